"""Forecasting: choose a system or upload a table, fit, and see how far the future can be told."""

from __future__ import annotations

import math
from collections.abc import Mapping
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np
import panel as pn

from ...errors import HardmaxError, InputError
from ...figures.forecasting import draw_forecast
from ...forecasting.diagnostics.backtest import Backtest
from ..page import Page
from ..panes import plot_pane, wide_html
from ..shell import beside, card, controls, empty, note, noted, split
from ..uploads import STAYS, FilePicker, Upload
from .state import (
    FEWEST,
    MOST_SAMPLES,
    MOST_STEPS,
    UPLOAD,
    Data,
    Fit,
    code_of,
    code_of_loaded,
    fit_and_forecast,
    forecast_table,
    forecast_with,
    make_data,
    model_archive,
    read_data,
    read_model,
    systems,
)
from .view import ErrorCurves, Fan, LagBars, PhasePortrait, UnitCircle, backtest_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..jobs import Job
    from ..session import Session

_LONGEST_SEARCH = 20.0
_LAG = 8
"""A single channel is drawn against itself this many samples earlier."""


class ForecastingPage(Page):
    """A series, a model of its next sample, and the future it tells."""

    slug = "forecasting"
    title = "Forecasting"
    text = (
        "A time-delayed transformer looks at the last few samples and tells the next; fed its own answers, it tells "
        "the future. The search compares models by held-out forecasts and keeps one whose long forecasts stay "
        "bounded, so the plainest that does well wins. Upload a table of your own, or choose a system whose future is "
        "known."
    )
    paper = "2602.08478"
    functions = ("TimeDelayedTransformer", "load_forecaster")

    def __init__(self) -> None:
        self._system, self._samples, self._steps, self._seconds = "lorenz", 600, 200, 3.0
        self._channel = 0
        self._data: Data | None = None
        self._upload: Upload | None = None
        self._fit: Fit | None = None

    # What the address keeps

    def state(self) -> dict[str, str]:
        """The system and the choices; an uploaded table stays with the visit."""
        kept = {"samples": str(self._samples), "steps": str(self._steps), "seconds": f"{self._seconds:g}"}
        if self._system != UPLOAD:
            kept["system"] = self._system
        if self._channel:
            kept["channel"] = str(self._channel)
        return kept

    def restore(self, state: Mapping[str, str]) -> None:
        """Take up a system and choices, within bounds."""
        if state.get("system") in systems():
            self._system = state["system"]
        self._samples = _whole(state.get("samples", ""), self._samples, FEWEST, MOST_SAMPLES)
        self._steps = _whole(state.get("steps", ""), self._steps, 1, MOST_STEPS)
        self._channel = _whole(state.get("channel", ""), 0, 0, 99)
        try:
            seconds = float(state.get("seconds", self._seconds))
        except ValueError:
            return
        if math.isfinite(seconds):
            self._seconds = min(max(seconds, 0.5), _LONGEST_SEARCH)

    def code(self) -> str:
        """Fit, forecast, look back."""
        if self._data is None:
            return ""
        if self._fit is not None and self._fit.loaded:
            return code_of_loaded(self._data, self._fit.loaded, self._steps)
        return code_of(self._data, self._seconds, self._steps)

    def figure(self) -> Figure | None:
        """The forecast, as the library draws it."""
        if self._fit is None:
            return None
        data = self._fit.data
        truth = None if data.future is None else data.future[1]
        gaps = np.flatnonzero(~np.isfinite(data.values).all(axis=1))
        since = int(gaps[-1]) + 1 if len(gaps) else 0
        names = [name.replace("$", r"\$") for name in data.series.names]  # no formulas, whatever they hold
        return draw_forecast(
            data.values[since:],
            self._fit.forecast,
            dt=self._fit.model.dt_,
            names=names,
            truth=truth,
            times=data.times[since:],
            dates=data.series.dates if data.series.began else None,
        )

    # What one sees

    def build(self, session: Session) -> Any:
        """Data and fit on the left, pictures on the right."""
        self._session = session
        self._fan, self._portrait, self._errors = Fan(session), PhasePortrait(session), ErrorCurves(session)
        self._circle, self._lags = UnitCircle(session), LagBars(session)
        body = split([self._data_card(), self._fit_card()], *self._cards())
        session.when_ready(session.guarded(self._make))
        return body

    def _data_card(self) -> Any:
        guarded = self._session.guarded
        self._which = pn.widgets.Select(
            label="System", options={title: name for name, title in systems().items()}, value=self._system
        )
        self._count = pn.widgets.IntInput(
            label="Samples to learn from", value=self._samples, start=FEWEST, end=MOST_SAMPLES, step=100
        )
        for widget in (self._which, self._count):
            widget.param.watch(guarded(lambda _: self._chosen()), "value")
        picker = FilePicker(label="Or upload a CSV: a row a moment, a column a channel")
        picker.on_file((".csv", ".tsv", ".txt"), self._take, self._session.fail)
        self._fill = pn.widgets.Checkbox(label="Fill gaps by interpolation", visible=False)
        self._even = pn.widgets.Checkbox(label="Resample uneven times", visible=False)
        for widget in (self._fill, self._even):
            widget.param.watch(guarded(lambda _: self._reread()), "value")
        self._about = note("")
        return controls(
            self._which, self._count, picker, note(STAYS), self._fill, self._even, self._about, title="Series"
        )

    def _fit_card(self) -> Any:
        guarded = self._session.guarded
        self._ahead = pn.widgets.IntInput(label="Steps ahead", value=self._steps, start=1, end=MOST_STEPS, step=50)
        self._budget = pn.widgets.FloatSlider(
            label="Seconds of search", value=self._seconds, start=0.5, end=_LONGEST_SEARCH, step=0.5
        )
        for widget in (self._ahead, self._budget):
            widget.param.watch(guarded(lambda _: self._changed_fit()), "value")
        begin = pn.widgets.Button(label="Fit and forecast", color="primary")
        begin.on_click(guarded(lambda _: self._begin()))
        self._look_back = pn.widgets.Button(label="Backtest and baselines", disabled=True)
        self._look_back.on_click(guarded(lambda _: self._backtest()))
        self._model_file = self._download("model.zip", "Download the model", model_archive)
        self._table_file = self._download("forecast.csv", "Download the forecast", lambda fit, _: forecast_table(fit))
        picker = FilePicker(label="Or load a model that was saved (ZIP or safetensors)")
        picker.on_file((".zip", ".safetensors"), self._load, self._session.fail)
        return controls(
            self._ahead,
            self._budget,
            begin,
            self._look_back,
            self._table_file,
            self._model_file,
            picker,
            title="Model",
        )

    def _download(self, name: str, label: str, write: Any) -> Any:
        def bytes_of() -> BytesIO:
            if self._fit is None:
                raise HardmaxError("there is no forecast yet: press Fit and forecast first")
            return BytesIO(write(self._fit, self._session.folder))

        return pn.widgets.FileDownload(
            callback=self._session.guarded(bytes_of), filename=name, label=label, embed=False, icon=None, disabled=True
        )

    def _cards(self) -> list[Any]:
        self._show_channel = pn.widgets.RadioButtonGroup(
            label="Channel", options={"x": 0}, value=0, margin=(0, 0, 6, 0)
        )
        self._show_channel.param.watch(self._session.guarded(self._channel_chosen), "value")
        self._outcome, self._report = note(""), note("")
        self._waiting = empty(
            "No forecast yet",
            "Press Fit and forecast. Linear, polynomial, reservoir and attention models are compared by forecasts of a "
            "part of the series that they have not seen; the best bounded one is kept.",
        )
        self._key = note("")
        self._spectrum_words, self._attention_words = note(""), note("")
        self._model_cards = beside(
            card(plot_pane(self._circle.plot), self._spectrum_words, title="Eigenvalues of the linear path"),
            card(plot_pane(self._lags.plot), self._attention_words, title="Attention over the lags"),
        )
        self._table = wide_html()
        self._backtest_card = card(
            plot_pane(self._errors.plot), self._table, title="Backtest: forecasts of what is already known"
        )
        self._model_cards.visible = self._backtest_card.visible = False
        return [
            card(self._show_channel, plot_pane(self._fan.plot), self._key, self._outcome, title="Past and future"),
            self._waiting,
            self._backtest_card,
            beside(
                card(plot_pane(self._portrait.plot), title="Phase portrait"), card(self._report, title="What was found")
            ),
            self._model_cards,
        ]

    # What happens

    def _chosen(self) -> None:
        self._samples = self._count.value
        if self._which.value == UPLOAD:
            if self._system != UPLOAD:
                self._reread()
            return
        self._system = self._which.value
        self._fill.visible = self._even.visible = False
        self._make()

    def _changed_fit(self) -> None:
        self._seconds = self._budget.value
        if self._ahead.value != self._steps:
            self._steps = self._ahead.value
            if self._system != UPLOAD:
                self._make()  # the true future must reach as far
        self._session.changed()

    def _make(self) -> None:
        system, samples, steps = self._system, self._samples, self._steps
        self._session.start("Making the series", lambda _: make_data(system, samples, steps), self._show_data)

    def _take(self, upload: Upload) -> None:
        data = read_data(upload, self._session.folder, fill=self._fill.value, even=self._even.value)
        self._session.hush()
        self._system, self._upload = UPLOAD, upload
        options = {title: name for name, title in systems().items()} | {upload.name: UPLOAD}
        self._which.param.update(options=options, value=UPLOAD)
        self._fill.visible = self._even.visible = True
        self._show_data(data)
        self._session.say(f"{upload.name} is read. Press Fit and forecast.", "good")

    def _reread(self) -> None:
        if self._upload is not None:
            self._take(self._upload)

    def _show_data(self, data: Data) -> None:
        self._data, self._fit = data, None
        names = data.series.names
        self._channel = min(self._channel, len(names) - 1)
        # Names may be alike when shortened, and then they would be one option.
        options = {f"{name[:14]}" if len(name) <= 14 else f"{name[:12]}… {k + 1}": k for k, name in enumerate(names)}
        self._show_channel.param.update(options=options, value=self._channel)
        self._show_channel.visible = len(names) > 1
        self._about.object = noted(
            f"{data.series.source}: {data.samples:,} samples of {len(names)} "
            f"channel{'s' if len(names) > 1 else ''}, {_apart(data)} apart"
        )
        self._outcome.object = self._report.object = ""
        self._waiting.visible = True
        self._model_cards.visible = self._backtest_card.visible = self._key.visible = False
        for button in (self._look_back, self._model_file, self._table_file):
            button.disabled = True
        self._draw()
        self._session.changed()

    def _draw(self) -> None:
        if self._data is not None:
            forecast = None if self._fit is None else self._fit.forecast
            self._fan.show(self._data, forecast, self._channel)
            self._portrait.show(self._data, forecast, self._channel, _LAG)

    def _channel_chosen(self, event: Any) -> None:
        self._channel = event.new
        self._draw()
        self._session.changed()

    def _begin(self) -> None:
        if self._data is None:
            return
        data, seconds, steps = self._data, self._seconds, self._steps
        self._session.start("Fitting", lambda job: fit_and_forecast(data, seconds, steps, job.tell), self._show_fit)

    def _load(self, upload: Upload) -> None:
        """A model from a file goes on from the end of the series that is shown."""
        if self._data is None:
            raise HardmaxError("there is no series yet: choose one or upload a table, then load the model")
        data, steps = self._data, self._steps
        model = read_model(upload, self._session.folder)
        model.seconds = min(model.seconds or _LONGEST_SEARCH, _LONGEST_SEARCH)  # for looking back
        fit = forecast_with(model, upload.name, data, steps)
        self._session.hush()
        self._show_fit(fit)
        self._session.say(f"{upload.name} is loaded and goes on from the end of {data.series.source}.", "good")

    def _show_fit(self, fit: Fit) -> None:
        self._fit = fit
        self._waiting.visible = False
        self._model_cards.visible = self._key.visible = True
        for button in (self._look_back, self._model_file, self._table_file):
            button.disabled = False
        self._draw()
        known = " · dashed orange: what really came" if fit.data.future is not None else ""
        self._key.object = noted(f"Thin: seen · blue: forecast, with its spread{known}")
        self._outcome.object = noted(f"Outcome: {fit.forecast.outcome}")
        self._report.object = "".join(noted(sentence) for sentence in fit.model.report_.sentences)
        self._show_model(fit)
        self._session.changed()

    def _show_model(self, fit: Fit) -> None:
        # The figures are hidden, not their panes: a Bokeh pane that is on a page refuses to change (Panel 1.9).
        self._circle.plot.visible = self._lags.plot.visible = False
        try:
            outside = self._circle.show(fit.model)
        except InputError as error:
            self._spectrum_words.object = self._attention_words.object = noted(str(error))
            return
        self._circle.plot.visible = True
        self._spectrum_words.object = noted(
            "All lie inside or on the unit circle: the linear path alone stays bounded."
            if outside == 0
            else f"{outside} lie outside the unit circle: the linear path alone would grow."
        )
        try:
            found = fit.model.attention()
        except InputError as error:
            self._attention_words.object = noted(f"Attention {error.problem}: {error.remedy}.")
            return
        self._lags.plot.visible = True
        self._lags.show(found)
        part = "part of the model that was kept" if found.used else "not part of the model that was kept"
        self._attention_words.object = noted(f"How much the latest sample listens to each lag. Attention is {part}.")

    def _backtest(self) -> None:
        if self._fit is None:
            return
        fit = self._fit

        def done(found: Backtest) -> None:
            self._errors.show(found)
            self._table.object = backtest_table(found)
            self._backtest_card.visible = True

        def work(job: Job) -> Backtest:
            return fit.look_back(job.tell)

        self._session.start("Looking back", work, done)


def _apart(data: Data) -> str:
    """The time between samples, in words where times are dates."""
    if not data.series.began:
        return f"{data.series.dt:.4g}"
    for unit, size in (("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0)):
        if data.series.dt >= 0.999 * size:
            count = f"{data.series.dt / size:.4g}"
            return f"one {unit.removesuffix('s')}" if count == "1" else f"{count} {unit}"
    return f"{data.series.dt:.4g} seconds"


def _whole(text: str, usual: int, least: int, most: int) -> int:
    return min(max(int(text[:9]), least), most) if text.isdecimal() else usual
