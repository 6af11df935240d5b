"""The Mean field page: concentration, metastability and escape on the circle and the sphere."""

from __future__ import annotations

import html
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import panel as pn

import hardmax as hm

from ..history import History
from ..jobs import Job
from ..layout import beside, card, controls, noted, split
from ..page import Page
from ..player import Player
from ..session import Session
from ..sliders import set_slider
from .export import INTERVAL, Scene
from .state import MOST_TOKENS, STEP, Followed, MeanFieldState, follow
from .view import DistancesView, RoundView, subscripted

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure

    from ...progress import Progress


class MeanFieldPage(Page):
    """The page; see the module."""

    slug = "meanfield"
    title = "Mean field"
    task = "Press Play: the tokens gather at the dashed circles, stay for a while, and may leave."
    text = (
        "Many tokens on the circle or the sphere, as with layer normalisation. At low temperature (large β) they first "
        "concentrate at the predicted limit, the dashed circles; there they stay for a time of order log β (the "
        "metastable phase); then each cluster attends to itself (or to its antipode) alone and may leave. The curve is "
        "the Wasserstein distance W₂ to the prediction. Dashed lines are the times expected by the theory."
    )
    paper = "2605.10931"
    functions = ("SphereFlow", "simulate", "low_temperature_limit", "phases", "wasserstein")

    def __init__(self) -> None:
        self._state = MeanFieldState()
        self._seen: Followed | None = None

    # The interface of a page

    def restore(self, state: Mapping[str, str]) -> None:
        self._state = MeanFieldState.from_query(state)

    def state(self) -> dict[str, str]:
        return self._state.to_query()

    def code(self) -> str:
        return self._state.code()

    def figure(self) -> Figure | None:
        return None if self._seen is None else self._scene().figure()

    def page(self) -> str | None:
        return None if self._seen is None else self._scene().page()

    def film(self, path: Path, progress: Progress) -> Path | None:
        return None if self._seen is None else self._scene().film(path, progress)

    def _scene(self) -> Scene:
        """What is seen now, to be saved."""
        assert self._seen is not None  # noqa: S101 - the callers have just looked
        seen, eye = self._seen, self._rounds[3].camera.data
        camera = (float(eye["azimuth"][0]), float(eye["elevation"][0]))
        return Scene(seen.run, seen.limit, seen.found, self._moment(), self._session.lighting.light, camera)

    def build(self, session: Session) -> Any:
        self._session = session
        self.history = self._history = History(self._state, self._travel, reset=MeanFieldState())
        self.history.connect(session.guarded)
        self._make_widgets()
        self._distances = DistancesView(session)
        self._rounds = {d: RoundView(session, self._distances.here, sphere=d == 3) for d in (2, 3)}
        self._panes = {
            d: pn.pane.Bokeh(view.figure, margin=0, sizing_mode="stretch_width") for d, view in self._rounds.items()
        }
        self._stage = pn.Column(sizing_mode="stretch_width", margin=0)
        self._words = pn.pane.HTML("", sizing_mode="stretch_width", margin=0)
        self._table = pn.pane.HTML("", sizing_mode="stretch_width", margin=0)
        self._arrange()
        session.when_ready(session.guarded(self._run))
        return split(
            [
                controls(self._d, self._n, self._tilt, self._beta, self._time, title="Tokens and temperature"),
                controls(*self._matrices, self._turn, title="Matrices"),
            ],
            beside(
                card(self._stage, self._player, title="Tokens"),
                card(self._table, self._words, title="Measured and expected"),
            ),
            card(pn.pane.Bokeh(self._distances.figure, sizing_mode="stretch_width", margin=0), title="Phases"),
        )

    # Controls

    def _make_widgets(self) -> None:
        w, s = pn.widgets, self._state
        self._d = w.RadioButtonGroup(label="Where", options={"Circle": 2, "Sphere": 3}, value=s.d)
        self._n = w.IntSlider(label="Tokens", start=50, end=MOST_TOKENS, step=50, value=s.n)
        self._tilt = w.FloatSlider(label="Tilt of the initial law", start=-0.9, end=0.9, step=0.1, value=s.tilt)
        betas = sorted({1, 2, 3, 5, 10, 20, 30, 50, 100, 200, 300, 500, 1000, s.beta})
        self._beta = w.DiscreteSlider(
            label="Inverse temperature β", options=betas, value=s.beta, css_classes=["captioned"]
        )
        self._time = w.FloatSlider(label="Duration", start=1.0, end=40.0, step=1.0, value=s.time)
        self._matrices = [
            w.FloatSlider(
                label=f"{name.upper()}, entry {k}",
                start=0.1 if name == "b" else -1.0,
                end=6.0,
                step=0.1,
                value=getattr(s, f"{name}{k}"),
                tags=[f"{name}{k}"],
            )
            for name in "bv"
            for k in (1, 2, 3)
        ]
        self._turn = w.FloatSlider(label="V turned by", start=-90.0, end=90.0, step=5.0, value=s.turn, format="0°")
        self._player = Player(label="t =", named="Time", scale=STEP, interval=INTERVAL)
        guarded = self._session.guarded
        self._tied = {"n": self._n, "tilt": self._tilt, "beta": self._beta, "time": self._time, "turn": self._turn}
        self._tied |= {widget.tags[0]: widget for widget in self._matrices}
        for name, widget in self._tied.items():
            widget.param.watch(guarded(lambda event, name=name: self._changed(name, event.new)), "value_throttled")
        self._d.param.watch(guarded(lambda event: self._changed("d", event.new)), "value")
        self._player.param.watch(guarded(lambda _: self._mark()), "value")

    def _changed(self, name: str, value: Any) -> None:
        if getattr(self._state, name) == value:
            return  # the controls follow the state
        self._state = self._state.changed(**{name: value})
        self._history.record(self._state, name)
        self._arrange()
        self._run()

    def _travel(self, state: MeanFieldState) -> None:
        """Show a state of the history."""
        self._state = state
        self._d.value = state.d
        if state.beta not in self._beta.options:
            self._beta.options = sorted({*self._beta.options, state.beta})
        for name, widget in self._tied.items():
            set_slider(widget, getattr(state, name))
        self._arrange()
        self._run()

    def _arrange(self) -> None:
        """Show the circle or the sphere, and the entries of the matrices in that dimension."""
        d = self._state.d
        for widget in self._matrices:
            widget.visible = d == 3 or not widget.tags[0].endswith("3")
        self._rounds[5 - d].clear()
        if list(self._stage) != [self._panes[d]]:
            self._stage[:] = [self._panes[d]]

    # The run

    def _run(self) -> None:
        state = self._state
        self._session.changed()

        def work(job: Job) -> Followed:
            def tell(stage: str, done: float, total: float | None) -> None:
                # Only the pieces of the run report the share that is done.
                job.report(done / total if total and stage.startswith("t =") else job.fraction, stage)

            return follow(
                state, tell, lambda seen: self._session.later(self._session.guarded(lambda: self._take(seen)))
            )

        self._session.start("Simulating the flow", work, self._take)

    def _take(self, seen: Followed) -> None:
        if seen.state != self._state:
            return  # of a run that was replaced by another
        fresh = self._seen is None or self._seen.state != seen.state
        follows = fresh or self._seen is None or self._player.value >= len(self._seen.run) - 1
        self._seen = seen
        self._distances.show(seen.found)
        self._words.object = noted(" ".join(seen.words()))
        self._table.object = _phases_table(seen.found)
        times = np.asarray(seen.run.times)
        if fresh:
            self._player.end = round(seen.state.time / STEP)
        if follows and seen.finished and seen.found is not None:
            # First shown: the closest approach to the predicted limit.
            self._player.value = int(np.abs(times - seen.found.approach_time).argmin())
        elif follows:
            self._player.value = len(times) - 1
        self._draw_tokens()
        if seen.finished:
            self._session.changed()

    def _moment(self) -> int:
        """Index of the state that is shown."""
        return 0 if self._seen is None else min(round(self._player.value), len(self._seen.run) - 1)

    def _draw_tokens(self) -> None:
        if self._seen is None:
            return
        run, states = self._seen.run, np.asarray(self._seen.run.tokens)
        ghost = np.asarray(self._seen.limit.positions)
        self._rounds[states.shape[2]].show(states, np.asarray(run.times), ghost, self._moment())
        self._mark()

    def _mark(self) -> None:
        """Mark the time in the plot of distances; the browser has drawn the tokens."""
        if self._seen is not None:
            self._distances.at(float(np.asarray(self._seen.run.times)[self._moment()]))


def _phases_table(found: hm.Phases | None) -> str:
    if found is None:
        return noted("The phases are computed at the end of the run.")

    def shown(value: float | None, error: float | None = None) -> str:
        return "–" if value is None else f"{value:.4g}" + ("" if error is None else f" ± {error:.1g}")

    rows = [
        f"<tr><td>{html.escape(subscripted(name))}</td><td>{shown(value, error)}</td><td>{shown(expected)}</td></tr>"
        for name, value, error, expected in found.rows()
    ]
    return f"<table><tr><th>quantity</th><th>measured</th><th>theory, to leading order</th></tr>{''.join(rows)}</table>"
