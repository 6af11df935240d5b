"""The Tokens page: tokens that can be dragged, layer by layer or at infinite depth."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import panel as pn

import hardmax as hm

from ..layout import card, controls, noted, split
from ..page import Page
from ..session import Session
from ..uploads import FilePicker, Upload, numbers_of
from .picture import ColourBook, Computed, paint, stored_layers
from .state import CONFIGURATIONS, DEPTH, MOST_IN_ADDRESS, MOST_TOKENS, STARTS, TokensState, code_of
from .view import PlaneView, SpaceView

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LIVE = {"hardmax": 20_000, "softmax": 300}
"""Tokens up to which a change is computed immediately, while a token is dragged; more are a background job."""
# A readable list.
_MOST_LEADERS_LISTED = 12
_HELP = (
    "Drag a token. Click a token to see the half-plane that can attract it. Double-click an empty place to add a token."
)


class TokensPage(Page):
    """The page; see the module."""

    slug = "tokens"
    title = "Tokens"
    task = "Drag a token outwards until it becomes a leader, then play the layers."
    text = (
        "Every token listens to the tokens of the largest score ⟨A z, z′⟩ and moves towards their mean. A star is a "
        "leader: it listens to itself alone and never moves again. Every other token has the colour of the leader at "
        "which it ends, and a rim in a second colour where it follows two leaders for ever. The leaders span the "
        "shaded polytope; trails show the paths."
    )
    paper = "2407.01602"
    needs = ("plotly",)
    functions = ("simulate", "equilibrium", "HardmaxLayer", "SoftmaxLayer", "leaders", "choose")

    def __init__(self) -> None:
        self._state = TokensState()
        self._book = ColourBook()
        self._computed: Computed | None = None
        self._quiet = False

    # The interface of a page

    def restore(self, state: Mapping[str, str]) -> None:
        self._state = TokensState.from_query(state)

    def state(self) -> dict[str, str]:
        return self._state.to_query()

    def code(self) -> str:
        return code_of(self._state)

    def figure(self) -> Figure | None:
        if self._computed is None:
            return None
        s = self._state.settings
        if s.limit:
            ax = hm.draw_tokens(self._computed.limit, start=self._state.tokens, trails=bool(s.trails))
        else:
            run = hm.simulate(self._state.tokens, self._state.layer, depth=DEPTH, keep=stored_layers(self._state))
            ax = hm.draw_tokens(run, layer=s.layer, trails=bool(s.trails))
        figure: Figure = ax.get_figure(root=True)  # type: ignore[assignment]
        return figure

    def build(self, session: Session) -> Any:
        self._session = session
        self._make_widgets()
        self._plane = PlaneView(session, session.guarded(self._hand))
        self._pane = pn.pane.Bokeh(self._plane.figure, sizing_mode="stretch_width", margin=0)
        self._space: SpaceView | None = None
        self._board = pn.Column(sizing_mode="stretch_width", margin=0)
        self._words = pn.pane.HTML("", sizing_mode="stretch_width", margin=0)
        self._table = pn.pane.HTML("", sizing_mode="stretch_width", margin=0)
        self._plane.fit(self._state.tokens)
        self._write_widgets()
        self._put(self._pane)
        session.when_ready(session.guarded(self._update))
        play = pn.Row(
            self._player, self._to_limit, css_classes=["tools"], sizing_mode="stretch_width", margin=(6, 0, 0, 0)
        )
        return split(
            [
                controls(self._view, self._start, self._n, self._seed, self._file, title="Tokens"),
                controls(
                    self._attention,
                    self._sight,
                    self._heads,
                    self._alpha,
                    self._beta,
                    self._angle,
                    self._a,
                    self._b,
                    self._c,
                    self._skew,
                    title="Attention",
                ),
                controls(
                    pn.pane.HTML(noted(_HELP), margin=0),
                    self._selected,
                    self._x,
                    self._y,
                    self._add,
                    self._delete,
                    self._trails,
                    title="One token",
                ),
            ],
            card(self._board, play),
            card(self._words, self._table, title="Leaders"),
        )

    # Controls

    def _make_widgets(self) -> None:
        w, s = pn.widgets, self._state.settings
        self._view = w.RadioButtonGroup(label="View", options={"Plane": 0, "Space": 1}, value=s.space)
        self._start = w.Select(label="Start from", options=STARTS, value=s.start)
        self._n = w.IntInput(label="Number of tokens (random starts)", start=1, end=MOST_TOKENS, step=50)
        self._seed = w.IntInput(label="Seed", start=0, end=2**31 - 1)
        self._file = FilePicker(label="Or upload a CSV: two columns, one row per token")
        self._file.on_file((".csv", ".tsv", ".txt"), self._uploaded, self._session.fail)
        self._attention = w.RadioButtonGroup(label="Attention", options=["hardmax", "softmax"])
        self._sight = w.RadioButtonGroup(label="Mask", options={"Sees all": "all", "Causal": "causal"})
        self._heads = w.IntSlider(label="Heads (each turns the ellipse of A)", start=1, end=4)
        self._alpha = w.FloatSlider(label="Step α", start=0.05, end=5.0, step=0.05)
        self._beta = w.FloatSlider(label="Inverse temperature β", start=0.0, end=50.0, step=0.5)
        self._angle = w.FloatSlider(label="Ellipse of A: angle", start=-90.0, end=90.0, step=1.0, format="0°")
        self._a = w.FloatSlider(label="First axis", start=0.25, end=4.0, step=0.05)
        self._b = w.FloatSlider(label="Second axis", start=0.25, end=4.0, step=0.05)
        self._c = w.FloatSlider(label="Third axis", start=0.25, end=4.0, step=0.05)
        self._skew = w.FloatSlider(label="Skew part of A", start=-2.0, end=2.0, step=0.05)
        self._selected = w.IntInput(label="Selected token (-1 for none)", start=-1, end=MOST_TOKENS)
        self._x = w.FloatInput(label="Its first coordinate", step=0.1)
        self._y = w.FloatInput(label="Its second coordinate", step=0.1)
        self._add = w.Button(label="Add a token there")
        self._delete = w.Button(label="Delete the selected token")
        self._trails = w.Checkbox(label="Trails", value=True)
        self._player = w.Player(
            label="Layer",
            start=0,
            end=DEPTH,
            value=0,
            interval=350,
            loop_policy="once",
            show_loop_controls=False,
            visible_buttons=["first", "previous", "pause", "play", "next", "last"],
            show_value=True,
            value_align="start",
            sizing_mode="stretch_width",
            max_width=330,
            margin=0,
        )
        self._to_limit = w.Toggle(label="Jump to the limit", width=150, margin=0)
        self._tied = {
            "space": self._view,
            "start": self._start,
            "n": self._n,
            "seed": self._seed,
            "attention": self._attention,
            "sight": self._sight,
            "heads": self._heads,
            "alpha": self._alpha,
            "beta": self._beta,
            "angle": self._angle,
            "a": self._a,
            "b": self._b,
            "c": self._c,
            "skew": self._skew,
            "selected": self._selected,
            "trails": self._trails,
            "layer": self._player,
            "limit": self._to_limit,
        }
        guarded = self._session.guarded
        for name, widget in self._tied.items():
            widget.param.watch(guarded(lambda event, name=name: self._changed(name, event.new)), "value")
        for widget in (self._x, self._y):
            widget.param.watch(guarded(lambda _: self._typed()), "value")
        self._add.on_click(guarded(lambda _: self._go(self._state.added(self._x.value or 0.0, self._y.value or 0.0))))
        self._delete.on_click(guarded(lambda _: self._go(self._state.without(self._state.settings.selected))))

    def _write_widgets(self) -> None:
        """Set the controls to the state."""
        s = self._state.settings
        self._quiet = True
        try:
            if s.start not in STARTS.values():
                self._start.options = {**STARTS, s.start: s.start}
            for name, widget in self._tied.items():
                value = getattr(s, name)
                value = bool(value) if name in ("limit", "trails") else value
                if widget.value != value:
                    widget.value = value
            tokens = self._state.tokens
            if 0 <= s.selected < len(tokens) and not s.space:
                self._x.value, self._y.value = (float(value) for value in tokens[s.selected])
        finally:
            self._quiet = False
        soft, plane = s.attention == "softmax", not s.space
        self._beta.visible, self._c.visible = soft, not plane
        self._n.disabled = self._seed.disabled = s.start in CONFIGURATIONS
        self._to_limit.disabled = soft
        self._delete.disabled = s.selected < 0 or not plane
        for widget in (self._selected, self._x, self._y, self._add):
            widget.disabled = not plane

    def _changed(self, name: str, value: Any) -> None:
        if self._quiet or value is None:
            return
        changes = {name: int(value) if name in ("limit", "trails") else value}
        if name == "layer":
            changes["limit"] = 0
        before = self._state.tokens
        self._go(self._state.with_settings(**changes))
        if self._state.tokens.shape != before.shape and not self._state.settings.space:
            self._plane.fit(self._state.tokens)

    def _uploaded(self, upload: Upload) -> None:
        values, _ = numbers_of(upload)
        self._go(self._state.uploaded(values))
        self._plane.fit(values)
        self._session.show_message(f"{upload.name}: {len(values):,} tokens.", "good")

    def _typed(self) -> None:
        if not self._quiet and self._x.value is not None and self._y.value is not None:
            self._go(self._state.moved(self._state.settings.selected, self._x.value, self._y.value))

    def _hand(self, kind: str, what: int, x: float, y: float) -> None:
        if kind == "select":
            self._go(self._state.with_settings(selected=what))
        elif kind == "add":
            self._go(self._state.added(x, y))
        elif what >= 0:
            self._go(self._state.moved(what, x, y), settle=kind == "drop")
        else:
            self._go(self._turned(-1 - what, x, y), settle=kind == "drop")

    def _turned(self, axis: int, x: float, y: float) -> TokensState:
        """The state with one end of an axis of the ellipse at a point."""
        length = min(4.0, max(0.25, round(math.hypot(x, y), 2)))
        angle = math.degrees(math.atan2(y, x)) - 90.0 * axis
        angle = float(round((angle + 90.0) % 180.0 - 90.0))
        return self._state.with_settings(angle=angle, **{"ab"[axis]: length})

    # Drawing

    def _go(self, state: TokensState, *, settle: bool = True) -> None:
        """Show another state; the controls and the address are updated only when a drag ends (``settle``)."""
        if state.edited is not None and self._state.edited is None and len(state.edited) > MOST_IN_ADDRESS:
            self._session.show_message(f"The link stores moved tokens only for up to {MOST_IN_ADDRESS} tokens.")
        self._state = state
        if settle:
            self._write_widgets()
        self._update(settle)

    def _update(self, settle: bool = True) -> None:
        state = self._state
        if self._computed is not None and self._computed.answers(state):
            self._show(settle)
        elif len(state.tokens) <= _LIVE[state.settings.attention]:
            self._take(Computed.of(state), settle)
        else:
            self._session.start("Computing", lambda job: Computed.of(state, progress=job.tell), self._take)

    def _take(self, computed: Computed, settle: bool = True) -> None:
        self._computed = computed
        if computed.answers(self._state):
            self._show(settle)
        else:
            self._update()

    def _show(self, settle: bool) -> None:
        assert self._computed is not None  # noqa: S101 - the callers have just made it
        s = self._state.settings
        picture = paint(self._computed, self._state, self._book)
        if s.space:
            if self._space is None:
                self._space = SpaceView(self._session)
            self._put(self._space.pane)
            self._space.show(picture)
        else:
            self._put(self._pane)
            self._plane.show_ellipse(s.angle, s.a, s.b)
            self._plane.show(picture)
        where = "infinite depth" if s.limit else f"layer {s.layer}"
        self._words.object = noted(f"At {where}, {picture.count:,} tokens. " + " ".join(picture.words))
        if settle:
            self._table.object = _leaders_table(self._computed.limit)
            self._session.changed()

    def _put(self, picture: Any) -> None:
        if list(self._board) != [picture]:
            self._board[:] = [picture]


def _leaders_table(limit: hm.Equilibrium) -> str:
    found = hm.leaders(limit)
    if len(found) == 0:
        return noted("There is no leader.")
    rows = []
    for k in found.followers.argsort()[::-1][:_MOST_LEADERS_LISTED].tolist():
        place = ", ".join(f"{value:.3f}" for value in found.positions[k])
        cells = (found.index[k], found.followers[k], found.emerged_at[k], f"({place})")
        rows.append("<tr>" + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in cells) + "</tr>")
    more = len(found) - len(rows)
    head = "<tr><th>leader</th><th>followers</th><th>since layer</th><th>at</th></tr>"
    return f"<table>{head}{''.join(rows)}</table>" + (noted(f"and {more} more") if more > 0 else "")
