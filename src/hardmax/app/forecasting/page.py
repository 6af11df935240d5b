"""The forecasting page: a series is chosen or uploaded, a model is fitted, and its forecast evaluated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np
import panel as pn

from ...errors import HardmaxError
from ...figures.forecasting import draw_forecast
from ...forecasting.diagnostics.backtest import Backtest
from ..download import Download
from ..figure_colours import in_light
from ..history import History
from ..kept import UPLOADS, Item, Kept
from ..layout import beside, card, controls, empty, note, noted, plot_pane, say, split, wide_html
from ..page import Page
from ..uploads import FilePicker, Upload
from .channels import ChannelPicker
from .state import (
    FEWEST,
    LONGEST_SEARCH,
    MODELS,
    MOST_SAMPLES,
    MOST_STEPS,
    TABLES,
    UPLOAD,
    Choices,
    Data,
    Fit,
    ForecastingState,
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
from .view import ErrorCurves, Fan, ModelCards, PhasePortrait, backtest_key, backtest_table, key_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..jobs import Job
    from ..session import Session

STALE = "The series or the settings have changed since this forecast was made. Press Fit and forecast for a new one."
_TABLE, _MODEL = Item("table"), Item("model")
_MOST_FITS = 8
"""Forecasts that are kept for undo and redo, the latest ones."""
_LAG = 8
"""Lag in samples of the phase portrait of a single channel."""


class ForecastingPage(Page):
    """A series, a fitted model and its forecast."""

    slug = "forecasting"
    title = "Forecasting"
    task = "Upload a table or choose a system, then press Fit to see its forecast."
    text = (
        "A time-delayed transformer predicts the next sample of a series from the last few; applied to its own "
        "predictions it forecasts further. Models are compared by held-out forecasts, and one whose long forecasts "
        "stay bounded is selected, the simplest among the best."
    )
    paper = "2602.08478"
    functions = ("TimeDelayedTransformer", "load_forecaster")

    def __init__(self) -> None:
        self._store = Kept()
        self._asked: Upload | None = None
        """The model of the address, until it forecasts."""
        self._gone: list[Item] = []
        """What the address names that is not stored."""
        self._choices = Choices()
        self._data: Data | None = None
        self._upload: Upload | None = None
        self._fill = pn.widgets.Checkbox(label="Fill gaps by interpolation", visible=False)
        self._even = pn.widgets.Checkbox(label="Resample uneven times", visible=False)
        self._changed = wide_html()
        self._changed.object = f'<div class="message note stale" role="status">{STALE}</div>'
        self._changed.visible = False
        self._fit: Fit | None = None
        self._fit_for: tuple[object, ...] = ()
        """What the forecast that is shown was made for."""
        self._fits: dict[tuple[object, ...], Fit] = {}
        self._quiet = False
        self._at_once = False
        """Whether the address asks for a forecast without a press of the button."""
        self._data_of: tuple[object, ...] = ()
        """The settings of the series that is shown."""
        self._making: Job | None = None
        """The job that makes a series."""
        self._wanted = False
        """Whether a forecast was asked for before that series is there."""

    # The address

    def state(self) -> dict[str, str]:
        """The system or the uploaded table, the choices, and the forecast."""
        query = self._choices.to_query() | self._now.table_query(self._store)
        made = self._fit is not None and not self._changed.visible
        file = self._asked
        if made and self._fit is not None:
            file = self._fit.file
        model = None if file is None else self._store.keep(file)
        if model is not None:
            return query | {"model": model}
        return query | ({"fit": "1"} if self._at_once or (made and file is None) else {})

    def restore(self, state: Mapping[str, str]) -> None:
        """Take a system or a table, choices and a model from an address."""
        opened = ForecastingState.from_query(state, self._store)
        self._choices, self._upload, self._at_once = opened.choices, opened.upload, opened.at_once
        self._fill.value, self._even.value = opened.fill, opened.even
        if "kept" in state and opened.upload is None:  # a model of the address belongs to its table
            self._gone = [_TABLE]
        elif "model" in state:
            self._asked = self._store.read(state["model"], MODELS)
            self._gone = [_MODEL] if self._asked is None else []

    def code(self) -> str:
        """Python that fits, forecasts and backtests."""
        if self._data is None:
            return ""
        if self._fit is not None and self._fit.file is not None:
            return code_of_loaded(self._data, self._fit.file.name, self._choices.steps)
        ended = self._fit is not None and self._fit.model.budget_ended_
        return code_of(self._data, self._choices.seconds, self._choices.steps, ended)

    def figure(self) -> Figure | None:
        """The forecast, drawn by the library."""
        if self._fit is None:
            return None
        data = self._fit.data
        truth = None if data.future is None else data.future[1]
        gaps = np.flatnonzero(~np.isfinite(data.values).all(axis=1))
        since = int(gaps[-1]) + 1 if len(gaps) else 0
        names = [name.replace("$", r"\$") for name in data.series.names]  # names are not formulas
        figure = draw_forecast(
            data.values[since:],
            self._fit.forecast,
            dt=self._fit.model.dt_,
            names=names,
            truth=truth,
            times=data.times[since:],
            dates=data.series.dates if data.series.began else None,
        )
        return in_light(figure, self._session.lighting.light)

    # The layout

    def build(self, session: Session) -> Any:
        """The body of the page: data and model on the left, plots on the right."""
        self._session = session
        self.history = self._history = History(
            self._now, self._travel, reset=ForecastingState(Choices()), weigh=ForecastingState.weigh
        )
        self.history.connect(session.guarded)
        self._fan, self._portrait, self._errors = Fan(session), PhasePortrait(session), ErrorCurves(session)
        self._model = ModelCards(session)
        body = split([self._data_card(), self._fit_card()], *self._cards())
        session.when_ready(session.guarded(self._start))
        return body

    def _start(self) -> None:
        """Show the series of the address, and say what is not stored."""
        self._mention_stored()
        try:
            data = None if self._upload is None else self._read_upload(self._upload)
        except HardmaxError:  # a file that was stored by another page
            data = None
        if data is not None:
            self._show_data(data)
            self._go_on()
        elif self._upload is not None:
            self._gone = [_TABLE]
            self._travel(ForecastingState(replace(self._choices, system=Choices().system)))
        else:
            self._make()
        if self._gone:
            self._session.show_message(" ".join(item.gone for item in self._gone))

    def _go_on(self) -> None:
        """Forecast where the address asks for it, with its model or a new one."""
        asked, self._asked = self._asked, None
        if asked is not None:
            self._load(asked)
        elif self._at_once:
            self._begin()

    def _data_card(self) -> Any:
        guarded = self._session.guarded
        self._which = pn.widgets.Select(label="System", options=self._systems(), value=self._choices.system)
        self._count = pn.widgets.IntInput(
            label="Samples to learn from", value=self._choices.samples, start=FEWEST, end=MOST_SAMPLES, step=100
        )
        for name, widget in {"system": self._which, "samples": self._count}.items():
            widget.param.watch(guarded(lambda _, name=name: self._chosen(name)), "value")
        picker = FilePicker(label="Or upload a CSV: one row per time, one column per channel")
        picker.on_file(TABLES, self._take_new, self._session.fail)
        self._stored_note = note(UPLOADS)
        for widget in (self._fill, self._even):
            widget.param.watch(guarded(lambda _: self._reread()), "value")
        self._about = note("")
        self._fit_controls()
        return controls(
            self._which,
            self._count,
            picker,
            self._stored_note,
            self._fill,
            self._even,
            self._about,
            title="Series",
        )

    def _fit_card(self) -> Any:
        guarded = self._session.guarded
        self._ahead = pn.widgets.IntInput(
            label="Steps ahead", value=self._choices.steps, start=1, end=MOST_STEPS, step=50
        )
        self._budget = pn.widgets.FloatSlider(
            label="Seconds of search", value=self._choices.seconds, start=0.5, end=LONGEST_SEARCH, step=0.5
        )
        for name, widget in {"steps": self._ahead, "seconds": self._budget}.items():
            widget.param.watch(guarded(lambda _, name=name: self._changed_fit(name)), "value")
        self._look_back = pn.widgets.Button(label="Backtest and baselines", disabled=True)
        self._look_back.on_click(guarded(lambda _: self._backtest()))
        self._model_file = self._download("model.zip", "Download the model", model_archive)
        self._table_file = self._download("forecast.csv", "Download the forecast", lambda fit, _: forecast_table(fit))
        picker = FilePicker(label="Or load a saved model (ZIP or safetensors)")
        picker.on_file(MODELS, self._load, self._session.fail)
        return controls(
            self._ahead,
            self._budget,
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

        return Download(
            callback=self._session.guarded(bytes_of), filename=name, label=label, embed=False, icon=None, disabled=True
        )

    def _cards(self) -> list[Any]:
        self._channels = ChannelPicker(self._session.guarded(self._channel_chosen))
        begin = pn.widgets.Button(label="Fit and forecast", color="primary", width=150, margin=0)
        begin.on_click(self._session.guarded(lambda _: self._begin()))
        row = pn.Row(begin, *self._channels.widgets, css_classes=["tools", "level"], margin=(0, 0, 6, 0))
        self._outcome, self._report = note(""), note("")
        self._waiting = empty(
            "No forecast yet",
            "Press Fit and forecast. Linear, polynomial, reservoir and attention models are compared by forecasts of a "
            "held-out part of the series; the best bounded one is selected.",
        )
        self._key = note("")
        self._curves, self._table = wide_html(), wide_html()
        self._backtest_card = card(
            plot_pane(self._errors.plot), self._curves, self._table, title="Backtest: forecasts of known samples"
        )
        self._report_card = card(self._report, title="Fitted model")
        self._model.cards.visible = self._backtest_card.visible = self._report_card.visible = False
        return [
            card(row, self._changed, plot_pane(self._fan.plot), self._key, self._outcome, title="Past and future"),
            self._waiting,
            self._backtest_card,
            beside(card(plot_pane(self._portrait.plot), title="Phase portrait"), self._report_card),
            self._model.cards,
        ]

    # The history

    @property
    def _now(self) -> ForecastingState:
        fill, even = bool(self._fill.value), bool(self._even.value)
        return ForecastingState(self._choices, self._upload, fill, even, self._at_once)

    def _record(self, control: str = "") -> None:
        """Add a step to the history where the settings or the table have changed."""
        self._asked = None  # the model of the address was for other settings
        if self._now != self._history.current:
            self._history.record(self._now, control)
        self._mark_stale()

    def _travel(self, state: ForecastingState) -> None:
        """Show a state of the history, with its forecast if that is kept."""
        self._session.jobs.cancel()  # what it makes belongs to the state before
        self._session.clear_message()
        chosen = self._choices = state.choices
        self._upload, self._at_once, self._asked = state.upload, state.at_once, None
        uploaded = chosen.system == UPLOAD
        self._quiet = True
        try:
            self._which.param.update(options=self._systems(), value=chosen.system)
            self._count.value, self._ahead.value, self._budget.value = chosen.samples, chosen.steps, chosen.seconds
            self._fill.value, self._even.value = state.fill, state.even
        finally:
            self._quiet = False
        self._fit_controls()
        self._mark_stale()
        kept = self._fits.get(state.fit_key)
        if kept is not None:
            self._show_data(kept.data)
            self._show_fit(kept, state.fit_key)
        elif uploaded and state.upload is not None:
            self._show_data(self._read_upload(state.upload))
        else:
            self._make()
        self._session.changed()

    def _fit_controls(self) -> None:
        """Show the controls of a table or of a system: all samples of a table are learned from."""
        uploaded = self._choices.system == UPLOAD
        self._fill.visible = self._even.visible = uploaded
        self._count.visible = not uploaded

    def _systems(self) -> dict[str, str]:
        """Names of the systems by their titles, and the uploaded table."""
        found = {title: name for name, title in systems().items()}
        return found if self._upload is None else found | {self._upload.name: UPLOAD}

    def _mark_stale(self) -> None:
        """Say that a forecast is one of other settings, where it is."""
        made_for, now = self._fit_for, self._now.fit_key
        if self._fit is not None and self._fit.file is not None:  # without a search, whose seconds are the last part
            made_for, now = made_for[:-1], now[:-1]
        self._changed.visible = self._fit is not None and made_for != now
        self._mention_stored()

    # Events

    def _chosen(self, control: str) -> None:
        if self._quiet or self._count.value is None:
            return
        self._choices = replace(self._choices, samples=self._count.value)
        if self._which.value == UPLOAD:
            if self._choices.system != UPLOAD:
                self._reread()
            else:
                self._record(control)
            return
        self._choices = replace(self._choices, system=self._which.value)
        self._fit_controls()
        self._record(control)
        self._make()

    def _changed_fit(self, control: str) -> None:
        if self._quiet or self._ahead.value is None:
            return
        before = self._choices.steps
        self._choices = replace(self._choices, seconds=self._budget.value, steps=self._ahead.value)
        self._record(control)
        if self._choices.steps != before and self._choices.system != UPLOAD:
            self._make()  # the true future must be as long as the forecast
        self._session.changed()

    def _make(self, wanted: bool = False) -> None:
        """Make the series of the settings, and its forecast where it is ``wanted``."""
        chosen = self._choices

        def done(data: Data) -> None:
            if self._choices.system == chosen.system:  # a table may have been uploaded meanwhile
                self._show_data(data)
                wanted, self._wanted = self._wanted, False
                if wanted:
                    self._begin()
                else:
                    self._go_on()

        self._wanted = wanted
        self._session.start("Making the series", lambda _: make_data(chosen.system, chosen.samples, chosen.steps), done)
        self._making = self._session.jobs.current

    def _take_new(self, upload: Upload) -> None:
        """Read another table; how the one before was read does not count for it."""
        before = self._fill.value, self._even.value
        self._set_reading(False, False)
        try:
            self._take(upload)
        except HardmaxError:  # the table before stays
            self._set_reading(*before)
            raise

    def _set_reading(self, fill: bool, even: bool) -> None:
        """Set how a table is read, without reading it."""
        quiet, self._quiet = self._quiet, True
        try:
            self._fill.value, self._even.value = fill, even
        finally:
            self._quiet = quiet

    def _take(self, upload: Upload) -> None:
        data = self._read_upload(upload)
        self._session.jobs.cancel()  # what it makes belongs to the series before
        self._session.clear_message()
        self._upload = upload
        self._choices = replace(self._choices, system=UPLOAD)
        self._at_once = False
        self._record()
        self._which.param.update(options=self._systems(), value=UPLOAD)
        self._fit_controls()
        self._show_data(data)
        self._session.show_message(f"{upload.name} is read. Press Fit and forecast.", "good")

    def _read_upload(self, upload: Upload) -> Data:
        return read_data(upload, self._session.folder, fill=bool(self._fill.value), even=bool(self._even.value))

    def _mention_stored(self) -> None:
        """Say where the table and the model are that the link keeps."""
        file = None if self._fit is None else self._fit.file
        uploads = ((self._upload if self._choices.system == UPLOAD else None, _TABLE), (file, _MODEL))
        lost = [item.not_kept for upload, item in uploads if upload is not None and self._store.keep(upload) is None]
        say(self._stored_note, " ".join(lost) or UPLOADS)

    def _reread(self) -> None:
        if self._upload is not None and not self._quiet:
            self._take(self._upload)

    def _show_data(self, data: Data) -> None:
        self._data, self._data_of, self._fit = data, self._series, None
        names = data.series.names
        self._choices = replace(self._choices, channel=min(self._choices.channel, len(names) - 1))
        self._history.amend(self._now)
        self._channels.show(names, self._choices.channel)
        many = f"{data.samples:,} samples of {len(names)} channel{'s' if len(names) > 1 else ''}"
        self._about.object = noted(f"{data.series.source}: {', '.join(filter(None, (many, data.interval)))}")
        self._outcome.object = self._report.object = ""
        self._waiting.visible = True
        for part in (self._model.cards, self._backtest_card, self._report_card, self._key):
            part.visible = False
        for button in (self._look_back, self._model_file, self._table_file):
            button.disabled = True
        self._mark_stale()
        self._draw()
        self._session.changed()

    def _draw(self) -> None:
        if self._data is not None:
            forecast = None if self._fit is None else self._fit.forecast
            self._fan.show(self._data, self._fit, self._choices.channel)
            self._portrait.show(self._data, forecast, self._choices.channel, _LAG)

    def _channel_chosen(self, event: Any) -> None:
        if event.new == self._choices.channel:
            return  # the control follows the series
        self._choices = replace(self._choices, channel=event.new)
        self._record("channel")
        self._draw()
        self._session.changed()

    @property
    def _series(self) -> tuple[object, ...]:
        """What the series depends on."""
        chosen = self._choices
        return (UPLOAD,) if chosen.system == UPLOAD else (chosen.system, chosen.samples, chosen.steps)

    def _begin(self) -> None:
        if self._data is None or self._data_of != self._series:  # the forecast follows once the series is there
            if self._making is not None and self._session.jobs.current is self._making:
                self._wanted = True
            elif self._choices.system != UPLOAD:
                self._make(wanted=True)
            return
        data, seconds, steps, asked = self._data, self._choices.seconds, self._choices.steps, self._now.fit_key
        self._session.start(
            "Fitting",
            lambda job: fit_and_forecast(data, seconds, steps, job.tell),
            lambda fit: self._show_fit(fit, asked),
        )

    def _load(self, upload: Upload) -> None:
        """Forecast with an uploaded model from the end of the series that is shown."""
        if self._data is None or self._data_of != self._series:
            raise HardmaxError("there is no series yet: choose one or upload a table, then load the model")
        data, steps = self._data, self._choices.steps
        model = read_model(upload, self._session.folder)
        model.budget = min(model.budget or LONGEST_SEARCH, LONGEST_SEARCH)  # for backtests
        fit = forecast_with(model, upload, data, steps)
        self._session.jobs.cancel()  # a fit that still runs would replace this forecast
        self._session.clear_message()
        self._show_fit(fit, self._now.fit_key)
        self._session.show_message(
            f"{upload.name} is loaded and forecasts from the end of {data.series.source}.", "good"
        )

    def _show_fit(self, fit: Fit, made_for: tuple[object, ...]) -> None:
        """Show the forecast of some settings, which may have changed while it was made."""
        self._fit, self._fit_for = fit, made_for
        self._fits.pop(made_for, None)
        self._fits[made_for] = fit
        while len(self._fits) > _MOST_FITS:
            del self._fits[next(iter(self._fits))]
        self._mark_stale()
        self._waiting.visible = False
        self._model.cards.visible = self._report_card.visible = self._key.visible = True
        for button in (self._look_back, self._model_file, self._table_file):
            button.disabled = False
        self._draw()
        self._key.object = noted(key_of(fit))
        outcome = fit.forecast.outcome
        remedy = f" ({outcome.remedy})" if outcome.remedy else ""
        self._outcome.object = noted(f"Outcome: {f'{outcome.sentence}{remedy}' if outcome.ok else outcome}")
        self._report.object = "".join(noted(fit.data.in_words(sentence)) for sentence in fit.model.report_.sentences)
        self._model.show(fit.model, *fit.data.unit)
        self._session.changed()

    def _backtest(self) -> None:
        if self._fit is None:
            return
        fit = self._fit

        def done(found: Backtest) -> None:
            self._errors.show(found, *fit.data.unit)
            self._curves.object, self._table.object = backtest_key(found), backtest_table(found, fit.data)
            self._backtest_card.visible = True

        def work(job: Job) -> Backtest:
            return fit.backtest(job.tell)

        self._session.start("Backtesting", work, done)
