"""The Tokens page: tokens that can be dragged, layer by layer or at infinite depth."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import panel as pn

import hardmax as hm

from ..history import History
from ..kept import LARGEST, UPLOADS, Item, Kept
from ..layout import card, controls, note, noted, say, split
from ..page import Page
from ..player import Player
from ..session import Session
from ..stage import camera_source
from ..uploads import FilePicker, Upload, numbers_of
from .export import Panel, Scene
from .picture import ColourBook, Computed, Picture, paint
from .state import COMPARISONS, CONFIGURATIONS, DEPTH, MOST_TOKENS, STARTS, TokensState, code_of, write_table
from .view import PlaneView, SpaceView

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure

    from ...progress import Progress

_LIVE = {"hardmax": 20_000, "softmax": 300}
"""Tokens up to which a change is computed immediately, while a token is dragged; more are a background job."""
_YOURS = "yours"
"""The choice that stands for tokens that were moved, added, deleted or uploaded."""
_BEGIN = ("start", "n", "seed", "space")
"""Settings that make other tokens."""
_TABLES = (".csv", ".tsv", ".txt")
_TOKENS = Item("tokens", several=True, remedy="upload them again")
_STALE = "the plot is not of these settings: wait until they are computed, or go back to those of the plot with Undo"
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
    functions = ("simulate", "equilibrium", "HardmaxLayer", "SoftmaxLayer", "leaders", "choose")

    def __init__(self) -> None:
        self._state = TokensState()
        self._book, self._second_book = ColourBook(), ColourBook()
        self._computed: Computed | None = None
        self._second: Computed | None = None
        self._quiet = False
        self._kept = Kept()
        self._written: tuple[np.ndarray, Upload] | None = None
        """The edited tokens that were stored last, and their file."""
        self._gone = False
        self._new = False
        """Whether other tokens are about to be shown, which a player that plays shows from layer 0."""

    # The interface of a page

    def restore(self, state: Mapping[str, str]) -> None:
        stored = self._kept.read(state["kept"], _TABLES, LARGEST) if "kept" in state else None
        try:
            tokens = None if stored is None else numbers_of(stored)[0]
        except hm.HardmaxError:
            tokens = None
        self._state = TokensState.from_query(state, tokens)
        self._gone = "kept" in state and self._state.edited is None

    def state(self) -> dict[str, str]:
        name = self._stored()
        return self._state.to_query() | ({"kept": name} if name else {})

    def _stored(self) -> str | None:
        """The name under which edited tokens are stored that an address cannot hold; None without such."""
        edited = self._state.edited
        if edited is None or self._state.in_address:
            return None
        if self._written is None or self._written[0] is not edited:
            self._written = (edited, Upload("tokens.csv", write_table(edited)))
        return self._kept.keep(self._written[1])

    def code(self) -> str:
        return code_of(self._state)

    def figure(self) -> Figure | None:
        return None if self._computed is None else self._scene().figure()

    def page(self) -> str | None:
        return None if self._computed is None else self._scene().page()

    def film(self, path: Path, progress: Progress) -> Path | None:
        return None if self._computed is None else self._scene().film(path, progress)

    def _scene(self) -> Scene:
        """What is seen now, to be saved."""
        if self._stale:
            raise hm.HardmaxError(_STALE)
        s = self._state.settings
        views: tuple[Any, Any] = (self._space, self._space2) if s.space else (self._plane, self._plane2)
        panels = []
        for (state, picture), view in zip(self._pictures(), views, strict=False):
            window = (view.figure.x_range.start, view.figure.x_range.end, view.figure.y_range.end)
            ellipse = (state.settings.angle, state.settings.a, state.settings.b)
            panels.append(Panel(picture, view.heading, window, None if s.space else ellipse))
        eye = self._space.camera.data
        camera = (float(eye["azimuth"][0]), float(eye["elevation"][0]))
        return Scene(tuple(panels), self._session.lighting.light, camera, self._player.end, self._player.last)

    def build(self, session: Session) -> Any:
        self._session = session
        self.history = self._history = History(
            self._state,
            self._travel,
            reset=TokensState(),
            weigh=lambda state: {} if state.edited is None else {id(state.edited): state.edited.nbytes},
            same=_same_view,
        )
        self._recorded = self._state
        self.history.connect(session.guarded)
        self._make_widgets()
        act = session.guarded(self._hand)
        self._plane, self._plane2 = PlaneView(session, act), PlaneView(session, act, name="plane2")
        camera = camera_source()
        self._space, self._space2 = SpaceView(session, camera), SpaceView(session, camera, name="space2")
        views = (self._plane, self._plane2, self._space, self._space2)
        self._panes = {view: pn.pane.Bokeh(view.figure, sizing_mode="stretch_width", margin=0) for view in views}
        self._board = pn.Row(sizing_mode="stretch_width", margin=0, css_classes=["pair"])
        self._words = pn.pane.HTML("", sizing_mode="stretch_width", margin=0)
        self._table = pn.pane.HTML("", sizing_mode="stretch_width", margin=0)
        self._leaders = card(self._words, self._table, title="Leaders")
        self._fit()
        self._write_widgets()
        self._arrange()
        session.when_ready(session.guarded(self._begin))
        play = pn.Row(
            self._player, self._to_limit, css_classes=["tools"], sizing_mode="stretch_width", margin=(6, 0, 0, 0)
        )
        return split(
            [
                controls(self._view, self._start, self._n, self._seed, self._file, self._stored_note, title="Tokens"),
                controls(
                    self._attention,
                    self._sight,
                    self._compare,
                    self._beta,
                    self._alpha,
                    self._heads,
                    self._angle,
                    self._a,
                    self._b,
                    self._c,
                    self._skew,
                    self._angle2,
                    self._a2,
                    self._b2,
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
            self._leaders,
        )

    def _begin(self) -> None:
        if self._gone:
            self._session.show_message(_TOKENS.gone)
        self._update()

    # Controls

    def _make_widgets(self) -> None:
        w, s = pn.widgets, self._state.settings
        self._view = w.RadioButtonGroup(label="View", options={"Plane": 0, "Space": 1}, value=s.space)
        self._start = w.Select(label="Start from", options=STARTS, value=s.start)
        self._n = w.IntInput(label="Number of tokens (random starts)", start=1, end=MOST_TOKENS, step=50)
        self._seed = w.IntInput(label="Seed", start=0, end=2**31 - 1)
        self._file = FilePicker(label="Or upload a CSV: two columns (three for space), one row per token")
        self._file.on_file(_TABLES, self._uploaded, self._session.fail)
        self._stored_note = note(UPLOADS)
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
        self._selected = w.IntInput(label="Selected token (-1 for none)", start=-1)
        self._x = w.FloatInput(label="Its first coordinate", step=0.1)
        self._y = w.FloatInput(label="Its second coordinate", step=0.1)
        self._add = w.Button(label="Add a token there")
        self._delete = w.Button(label="Delete the selected token")
        self._trails = w.Checkbox(label="Trails", value=True)
        self._compare = w.Select(label="Compare with", options=COMPARISONS)
        self._angle2 = w.FloatSlider(label="Other A: angle", start=-90.0, end=90.0, step=1.0, format="0°")
        self._a2 = w.FloatSlider(label="Other A: first axis", start=0.25, end=4.0, step=0.05)
        self._b2 = w.FloatSlider(label="Other A: second axis", start=0.25, end=4.0, step=0.05)
        self._player = Player(label="Layer", end=DEPTH + 1, last="Infinite depth")
        self._to_limit = w.Toggle(label="Jump to the limit", width=150, margin=(6, 0, 0, 0))
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
            "compare": self._compare,
            "angle2": self._angle2,
            "a2": self._a2,
            "b2": self._b2,
            "limit": self._to_limit,
        }
        guarded = self._session.guarded
        for name, widget in self._tied.items():
            widget.param.watch(guarded(lambda event, name=name: self._changed(name, event.new)), "value")
        self._player.param.watch(guarded(lambda event: self._moment(round(event.new))), "value")
        for widget in (self._x, self._y):
            widget.param.watch(guarded(lambda _: self._typed()), "value")
        self._add.on_click(guarded(lambda _: self._go(self._state.added(self._x.value or 0.0, self._y.value or 0.0))))
        self._delete.on_click(guarded(lambda _: self._go(self._state.without(self._state.settings.selected))))

    def _write_widgets(self) -> None:
        """Set the controls to the state."""
        s = self._state.settings
        edited = self._state.edited is not None
        soft, plane = s.attention == "softmax", not s.space
        self._quiet = True
        try:
            starts = {**STARTS, **({} if s.start in STARTS.values() else {s.start: s.start})}
            starts |= {"Your tokens": _YOURS} if edited else {}
            if self._start.options != starts:
                self._start.options = starts
            for name, widget in self._tied.items():
                value = getattr(s, name)
                value = bool(value) if name in ("limit", "trails") else value
                value = _YOURS if name == "start" and edited else value
                if widget.value != value:
                    widget.value = value
            self._player.param.update(
                end=DEPTH if soft else DEPTH + 1,
                last="" if soft else "Infinite depth",
                value=DEPTH + 1 if s.limit else s.layer,
            )
            tokens = self._state.tokens
            self._selected.end = len(tokens) - 1
            if 0 <= s.selected < len(tokens) and plane:
                self._x.value, self._y.value = (float(value) for value in tokens[s.selected])
        finally:
            self._quiet = False
        self._beta.visible = soft or s.compare == "softmax"
        self._c.visible = not plane
        for widget in (self._angle2, self._a2, self._b2):
            widget.visible = s.compare == "matrix"
        self._n.disabled = self._seed.disabled = s.start in CONFIGURATIONS or edited
        self._to_limit.disabled = soft
        self._delete.disabled = s.selected < 0 or not plane
        for widget in (self._selected, self._x, self._y, self._add):
            widget.disabled = not plane

    def _changed(self, name: str, value: Any) -> None:
        if self._quiet or value is None or value == _YOURS:
            return
        changes: dict[str, Any] = {name: int(value) if name in ("limit", "trails") else value}
        before = self._state
        state = before.with_settings(**changes)
        if name == "start" and before.edited is not None:
            state = TokensState(state.settings)  # also where the start is that which was edited
        if name in _BEGIN:
            state = TokensState(state.with_settings(layer=0, limit=0, selected=-1).settings, state.edited)
            self._new = True
        self._go(state, fit=name in _BEGIN, control=name)

    def _moment(self, moment: int) -> None:
        """Show the layer at which the player rests; the last moment is infinite depth."""
        if not self._quiet:
            limit = int(moment > DEPTH)
            self._go(self._state.with_settings(layer=min(moment, DEPTH), limit=limit))

    def _travel(self, state: TokensState) -> None:
        """Show a state of the history."""
        self._new = False
        self._go(state, fit=True, record=False)

    def _uploaded(self, upload: Upload) -> None:
        values, _ = numbers_of(upload)
        state = self._state.uploaded(values)
        self._new = True
        self._go(state, fit=True)
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

    def _go(
        self, state: TokensState, *, settle: bool = True, fit: bool = False, control: str = "", record: bool = True
    ) -> None:
        """Show another state; controls, address and history are updated only when a drag ends (``settle``)."""
        before, self._state = self._state, state
        if fit:
            self._fit()
        if settle:
            self._write_widgets()
            if not record or not _same_view(self._recorded, state):
                self._session.clear_message()  # a message about the state before
                if record:
                    self._history.record(state, control)
                self._recorded = state
        if (before.settings.space, before.settings.compare) != (state.settings.space, state.settings.compare):
            self._arrange()
        self._update(settle)

    def _fit(self) -> None:
        tokens = self._state.tokens
        for view in (self._space, self._space2) if self._state.settings.space else (self._plane, self._plane2):
            # In space any token may be turned into the plane of the screen.
            view.fit(np.linalg.norm(tokens, axis=1) / 1.1 if self._state.settings.space else tokens)

    def _update(self, settle: bool = True) -> None:
        state, other = self._state, self._state.compared
        done = self._computed is not None and self._computed.answers(state)
        second_done = other is None or (self._second is not None and self._second.answers(other))
        states = (None if done else state, None if second_done else other)
        if done and second_done:
            self._show(settle)
        elif all(one is None or len(one.tokens) <= _LIVE[one.settings.attention] for one in states):
            try:
                first, second = (None if one is None else Computed.of(one) for one in states)
            except hm.HardmaxError:
                self._dim()
                raise
            self._take((first, second), settle)
        else:
            self._dim()

            def work(job: Any) -> Any:
                return tuple(None if one is None else Computed.of(one, progress=job.tell) for one in states)

            self._session.start("Computing", work, self._take)

    @property
    def _stale(self) -> bool:
        """Whether the plots are of other tokens or another layer than the controls, since these are not computed."""
        first = self._state.with_settings(layer=0)  # which is always stored
        wanted = [(self._computed, first), (self._second, first.compared)]
        return any(one is not None and (done is None or not done.answers(one)) for done, one in wanted)

    def _dim(self) -> None:
        """Dim the plots and the leaders while they are stale; nothing is sent where that is as before."""
        for part, classes in ((self._board, ["pair"]), (self._leaders, ["card"])):
            wanted = [*classes, "dimmed"] if self._stale else classes
            if part.css_classes != wanted:
                part.css_classes = wanted
        self._session.changed()

    def _take(self, found: tuple[Computed | None, Computed | None], settle: bool = True) -> None:
        self._computed, self._second = found[0] or self._computed, found[1] or self._second
        other = self._state.compared
        assert self._computed is not None  # noqa: S101 - the callers have just made it
        if self._computed.answers(self._state) and (
            other is None or (self._second is not None and self._second.answers(other))
        ):
            self._show(settle)
        else:
            self._update()

    def _pictures(self) -> list[tuple[TokensState, Picture]]:
        """The state and the picture of each plot that is shown."""
        assert self._computed is not None  # noqa: S101 - the callers have just made it
        shown = [(self._state, paint(self._computed, self._state, self._book))]
        other = self._state.compared
        if other is not None and self._second is not None:
            shown.append((other, paint(self._second, other, self._second_book, self._book)))
        return shown

    def _show(self, settle: bool) -> None:
        s = self._state.settings
        pictures = self._pictures()
        views: tuple[Any, Any] = (self._space, self._space2) if s.space else (self._plane, self._plane2)
        for (state, picture), view in zip(pictures, views, strict=False):
            if not s.space:
                view.show_ellipse(state.settings.angle, state.settings.a, state.settings.b)
            view.title(_title(state, s.compare) if len(pictures) > 1 else "")
            view.show(picture, live=not settle)
        if self._new:
            self._new = False
            self._player.shown += 1
        first = pictures[0][1]
        self._words.object = noted(f"{first.count:,} tokens. " + " ".join(first.words))
        if settle:
            assert self._computed is not None  # noqa: S101 - see above
            self._table.object = _leaders_table(self._computed.limit)
            self._mention_stored()
            self._session.changed()
        if "dimmed" in self._board.css_classes:
            self._dim()

    def _mention_stored(self) -> None:
        """Say where tokens are that an address cannot hold."""
        large = self._state.edited is not None and not self._state.in_address
        say(self._stored_note, UPLOADS if not large else _TOKENS.kept if self._stored() else _TOKENS.not_kept)

    def _arrange(self) -> None:
        """Put the plots on the board: one, or two that are compared."""
        s = self._state.settings
        pairs: dict[int, tuple[PlaneView | SpaceView, ...]] = {
            0: (self._plane, self._plane2),
            1: (self._space, self._space2),
        }
        shown = pairs[s.space][: 2 if s.compare != "none" else 1]
        for view in (*pairs[0], *pairs[1]):
            if view not in shown:
                view.clear()
        panes = [self._panes[view] for view in shown]
        if list(self._board) != panes:
            self._board[:] = panes


def _title(state: TokensState, compare: str) -> str:
    s = state.settings
    if compare == "matrix":
        return f"{state.name}, A with axes {s.a:g} and {s.b:g} at {s.angle:g}°"
    return state.name


def _same_view(one: TokensState, other: TokensState) -> bool:
    """Whether two states differ at most in what the player and the pointer show."""
    fields = [name for name in one.settings.__dataclass_fields__ if name not in ("layer", "limit", "selected")]
    return one.edited is other.edited and all(getattr(one.settings, f) == getattr(other.settings, f) for f in fields)


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
