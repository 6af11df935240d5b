"""The Models page: the models of ``hm.zoo`` with their equations, their runs, and what is measured beside theory."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import panel as pn

import hardmax as hm

from ..history import History
from ..layout import Steps, beside, card, controls, note, noted, plot_pane, split, wide_html
from ..page import Page
from ..painted import PaintedPlots
from ..session import Session
from .computed import Computed, compute, seconds
from .state import (
    MOST_SEED,
    TITLES,
    WORDS,
    ModelsState,
    Parameter,
    durations,
    measures_over_time,
    numbers_in,
    parameters_of,
)
from .view import CurveView, PlaneView, equation_html, spoken

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure

    from ...progress import Progress

# Estimated seconds up to which a run is computed immediately; longer ones are background jobs.
_LIVE = 0.3


def _same_view(one: ModelsState, other: ModelsState) -> bool:
    """Whether two states differ at most in the frame, which the player sets."""
    return one.changed(frame=0) == other.changed(frame=0)


class ModelsPage(Page):
    """The page; see the module."""

    slug = "models"
    title = "Models"
    task = "Choose a model, change its parameters, and play the run."
    text = (
        "The models in which attention is studied as a dynamical system: each with its equation, its paper, and "
        "numbers measured on a run beside the theory."
    )
    paper = "2312.10794"
    functions = ("simulate", "AttentionFlow", "AttentionLayer", "phase_diagram", "draw_tokens")

    def __init__(self) -> None:
        self._state = ModelsState()
        self._computed: Computed | None = None
        self._quiet = False

    # The interface of a page

    def restore(self, state: Mapping[str, str]) -> None:
        self._state = ModelsState.from_query(state)

    def state(self) -> dict[str, str]:
        return self._state.to_query()

    def code(self) -> str:
        return self._state.code()

    def figure(self) -> Figure | None:
        computed = self._computed
        if computed is None or computed.state.run_key != self._state.run_key:
            return None
        return self._painted().figure()

    def film(self, path: Path, progress: Progress) -> Path | None:
        known, state = self._computed, self._state
        moves = known is not None and known.state.run_key == state.run_key and not state.zoom and len(known.frames) > 1
        return self._painted().film(path, progress) if moves else None

    def _painted(self) -> PaintedPlots:
        """What is seen now, to be saved."""
        plots = [("Tokens", self._plane.figure), ("", self._curve.box[0].object)]
        return PaintedPlots(plots, self._steps.player, self._session.lighting.light)

    def build(self, session: Session) -> Any:
        self._session = session
        self.history = self._history = History(self._state, self._travel, reset=ModelsState(), same=_same_view)
        self.history.connect(session.guarded)
        self._make_widgets()
        self._curve = CurveView(session)
        self._plane = PlaneView(session, self._curve.spans)
        # Panel cannot change the classes of a Bokeh pane itself.
        self._picture = pn.Column(plot_pane(self._plane.figure), sizing_mode="stretch_width", margin=0)
        self._steps = Steps("Time", session.guarded(self._moved), interval=120)
        self._equation, self._table = wide_html(), wide_html()
        self._now, self._about = note(""), note("")
        self._write_widgets()
        self._describe(self._state.model)
        session.when_ready(session.guarded(self._update))
        return split(
            [
                card(self._name, self._parameters, title="Model", css_classes=["controls"]),
                controls(self._duration_box, self._seed, self._trails, self._zoom, title="Run"),
            ],
            beside(
                card(
                    self._picture,
                    self._steps.box,
                    self._now,
                    title="Tokens",
                ),
                card(
                    self._equation,
                    self._about,
                    self._table,
                    self._measure,
                    self._curve.box,
                    title="Equation and numbers",
                ),
            ),
        )

    # Controls

    def _make_widgets(self) -> None:
        w, s, guarded = pn.widgets, self._state, self._session.guarded
        wide: dict[str, Any] = {"sizing_mode": "stretch_width", "margin": (3, 0)}
        names = {TITLES.get(name, spoken(name)): name for name in hm.zoo.MODELS}
        self._name = w.Select(label="Model", options=names, value=s.name, **wide)
        self._parameters = pn.Column(sizing_mode="stretch_width", margin=0)
        self._duration_box = pn.Column(sizing_mode="stretch_width", margin=0)
        self._seed = w.IntInput(label="Seed", value=s.seed)
        self._trails = w.Checkbox(label="Trails", value=s.trails)
        self._zoom = w.Checkbox(label="Zoom in around the mean token", value=s.zoom)
        self._measure = w.Select(label="Measure over time", width=240, margin=(10, 0, 3, 0))
        self._name.param.watch(guarded(lambda event: self._go(ModelsState(event.new, seed=self._state.seed))), "value")
        self._seed.param.watch(guarded(lambda event: self._seeded(event.new)), "value")
        for name, widget in (("trails", self._trails), ("zoom", self._zoom)):
            widget.param.watch(guarded(lambda event, name=name: self._changed(name, event.new)), "value")
        self._measure.param.watch(guarded(lambda event: self._changed("measure", event.new)), "value")

    def _control(self, parameter: Parameter) -> Any:
        """The widget of a parameter."""
        w, value = pn.widgets, self._state.value(parameter)
        options: dict[str, Any] = {"label": parameter.label, "sizing_mode": "stretch_width", "margin": (3, 0)}
        watched = "value"
        if parameter.options:
            made = w.Select(options=dict(parameter.options), value=value, **options)
        elif isinstance(value, tuple):
            made = w.TextInput(value=", ".join(f"{entry:g}" for entry in value), **options)
        elif parameter.name == "n":
            made = w.IntInput(value=value, **options)  # without bounds, beyond which a browser sends nothing at all
        else:
            kind = w.IntSlider if isinstance(value, int) else w.FloatSlider
            made = kind(value=value, start=parameter.low, end=parameter.high, step=parameter.step, **options)
            watched = "value_throttled"
        made.param.watch(self._session.guarded(lambda event: self._typed(parameter, event.new, made)), watched)
        return made

    def _duration(self, model: hm.zoo.FieldModel) -> list[Any]:
        """The slider of the duration; none where a model has one layer."""
        low, high, step = durations(model)
        if low == high:
            return []
        kind = pn.widgets.FloatSlider if model.in_time else pn.widgets.IntSlider
        value = model.duration if self._state.duration is None else min(max(self._state.duration, low), high)
        made = kind(
            label="Duration" if model.in_time else "Layers",
            value=value,
            start=low,
            end=high,
            step=step,
            sizing_mode="stretch_width",
            margin=(3, 0),
        )
        made.param.watch(self._session.guarded(lambda event: self._changed("duration", event.new)), "value_throttled")
        return [made]

    def _write_widgets(self) -> None:
        """Make the controls of the model."""
        model = self._state.model
        self._parameters[:] = [self._control(parameter) for parameter in parameters_of(self._state.name)]
        self._quiet = True
        try:
            self._name.value, self._seed.value = self._state.name, self._state.seed
            self._trails.value, self._zoom.value = self._state.trails, self._state.zoom
            options = {spoken(name): name for name in measures_over_time(model)}
            self._measure.param.update(options=options, value=self._state.shown_measure(model))
        finally:
            self._quiet = False
        self._duration_box[:] = self._duration(model)

    def _clipped(self, widget: Any, value: float, low: float, high: float) -> str:
        """A message where a value is out of its range; the widget then shows the bound."""
        if low <= value <= high:
            return ""
        self._quiet = True
        try:
            widget.value = int(min(max(value, low), high))
        finally:
            self._quiet = False
        return f"{widget.label}: {value:,} is not between {low:,.0f} and {high:,.0f}; the nearest is used."

    def _typed(self, parameter: Parameter, value: Any, widget: Any) -> None:
        if self._quiet or value is None:
            return
        message = ""
        if isinstance(parameter.default, tuple):
            value = numbers_in(parameter.name, value)
        elif parameter.name == "n":
            message = self._clipped(widget, value, parameter.low, parameter.high)
            value = widget.value
        elif not parameter.options:
            value = type(parameter.default)(min(max(value, parameter.low), parameter.high))
        state = self._state.with_value(parameter.name, value)
        model = state.model  # the library refuses what the model does not allow
        self._session.clear_message()
        if model.duration != self._state.model.duration:  # it depends on a parameter
            state = state.changed(duration=None)
        self._state = state
        self._record(parameter.name)
        self._duration_box[:] = self._duration(model)
        self._update()
        if message:
            self._session.show_message(message)

    def _seeded(self, value: int | None) -> None:
        if self._quiet or value is None:
            return
        message = self._clipped(self._seed, value, 0, MOST_SEED)
        self._changed("seed", self._seed.value)
        if message:
            self._session.show_message(message)

    def _changed(self, name: str, value: Any) -> None:
        if self._quiet or value is None:
            return
        self._state = self._state.changed(**{name: value})
        self._record(name)
        if name in ("frame", "trails", "zoom") and not self._is_computed():
            self._session.changed()  # the run that is under way is shown with this setting
        else:
            self._update()

    def _moved(self, event: Any) -> None:
        if not self._quiet and self._computed is not None:
            self._changed("frame", self._computed.moment_of(int(event.new)))

    def _go(self, state: ModelsState) -> None:
        """Show another model."""
        if not self._quiet:
            self._state = state
            self._record()
            self._show_state(other_model=True)

    def _record(self, control: str = "") -> None:
        """Add a step to the history, unless the player alone has moved."""
        if _same_view(self._state, self._history.current):
            self._history.amend(self._state)
        else:
            self._history.record(self._state, control)

    def _travel(self, state: ModelsState) -> None:
        """Show a state of the history."""
        before, self._state = self._state, state
        self._show_state(other_model=before.name != state.name)

    def _show_state(self, *, other_model: bool) -> None:
        """Set the controls to the state, and compute its run."""
        self._session.clear_message()
        self._write_widgets()
        if other_model:
            self._describe(self._state.model)
            self._table.object = ""
        self._update()

    # Drawing

    def _describe(self, model: hm.zoo.FieldModel) -> None:
        """Show the equation and the papers of a model."""
        self._equation.object = equation_html(model.equation) + _reference(model)
        self._about.object = noted(WORDS.get(model.name, ""))

    def _is_computed(self) -> bool:
        """Whether the run and the curve of the state are there."""
        known, state = self._computed, self._state
        return known is not None and (known.state.run_key, known.state.measure) == (state.run_key, state.measure)

    def _update(self) -> None:
        state, known = self._state, self._computed
        self._session.changed()
        if known is not None and self._is_computed():
            self._take(known)
        elif seconds(state) <= _LIVE:
            self._session.jobs.cancel()
            self._session.clear_message()
            self._take(compute(state, known))
        else:
            self._dim(True)
            self._session.start("Running the model", lambda job: compute(state, known, job.tell), self._take)

    def _dim(self, old: bool) -> None:
        """Dim the picture and the curve while they are those of an old run."""
        for part in (self._picture, self._curve.box):
            part.css_classes = ["dimmed"] if old else []

    def _take(self, computed: Computed) -> None:
        state = self._state
        if (computed.state.run_key, computed.state.measure) != (state.run_key, state.measure):
            return  # of a run that was replaced by another
        self._dim(False)
        before, self._computed = self._computed, computed.shown_as(state)
        computed = self._computed
        k = computed.shown
        drawn = None if before is None else (before.state.trails, before.state.zoom, id(before.run))
        self._plane.show(computed, moving=drawn != (computed.state.trails, computed.state.zoom, id(computed.run)))
        self._curve.at(float(computed.moments[k]))
        self._now.object = noted(_now(computed))
        if before is None or before.run is not computed.run:
            self._quiet = True
            try:
                titles = [_moment(computed, one) for one in range(len(computed.frames))]
                self._steps.show(len(computed.frames) - 1, k, titles)
            finally:
                self._quiet = False
        elif self._steps.player.value != k:
            self._quiet = True
            try:
                self._steps.player.value = k
            finally:
                self._quiet = False
        if before is not None and before.run is computed.run and before.curve is computed.curve:
            return
        self._curve.show(computed)
        # One layer has no course of time.
        self._measure.visible = self._curve.box.visible = len(computed.frames) > 2
        self._table.object = _numbers_table(computed)
        if not computed.run.outcome.ok:
            self._session.show_message(str(computed.run.outcome))


def _moment(computed: Computed, k: int) -> str:
    moment = computed.moments[k]
    return f"Layer {moment}" if computed.run.times is None else f"Time {moment:.4g}"


def _now(computed: Computed) -> str:
    return f"{computed.model.n:,} tokens in {computed.model.d:,} coordinates. {computed.words()}".strip()


def _reference(model: hm.zoo.FieldModel) -> str:
    links = [
        f'<a href="https://arxiv.org/abs/{html.escape(paper.arxiv)}" rel="noreferrer">'
        f"{html.escape(', '.join(paper.family_names))} {paper.year}, arXiv {html.escape(paper.arxiv)}</a>"
        for paper in model.papers
    ]
    return f"<p>{'<br>'.join(links)}</p>"


def _numbers_table(computed: Computed) -> str:
    def shown(value: float | None) -> str:
        return "–" if value is None or math.isnan(value) else f"{value:.6g}"

    rows = [
        f"<tr><td>{html.escape(spoken(name))}</td><td>{shown(measured)}</td><td>{shown(theory)}</td></tr>"
        for name, measured, theory in computed.rows
    ]
    model = computed.model
    critical = [
        f"Critical {spoken(name)}: {value:.5g}; here it is {model.parameters[name]:.5g}."
        for name, value in model.critical.items()
    ]
    head = "<tr><th>at the end</th><th>measured</th><th>theory</th></tr>"
    return f"<table>{head}{''.join(rows)}</table>" + "".join(noted(words) for words in critical)
