"""Tokens in the plane and in space, drawn with Bokeh: markers, trails, hull and half-plane.

The browser gets the positions of all layers at once and draws the motion between them itself (static/stage.js). In
space it also projects them, so that a drag turns the view without the server.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from bokeh.core.properties import value
from bokeh.core.serialization import Serializable, Serializer
from bokeh.models import (
    Arrow,
    ColumnDataSource,
    CustomJS,
    HoverTool,
    LabelSet,
    LinearColorMapper,
    OpenHead,
    Range1d,
    Title,
)

from ..look import FONT, PALETTE, Light, equal_scales, leader_colours, on_first_screen, rank_colours, static
from ..session import Session
from ..stage import register_stage, turn_by_hand
from .picture import TRAIL_LAYERS, Badge, Picture

_EVENTS = ("panstart", "pan", "panend", "tap", "doubletap")
# Beyond what a view shows, so that the corners of a half-plane are never seen.
_FAR = 1e4


class _Strings(list[str], Serializable):  # type: ignore[misc]
    """A column of strings that is sent as it is: Bokeh looks at strings one by one, the longest part of a drag."""

    def to_serializable(self, _serializer: Serializer) -> list[str]:
        return list(self)


def dot_size(count: int) -> int:
    """Pixels of a token among so many."""
    return 12 if count <= 60 else 9 if count <= 500 else 5


def rims(picture: Picture, light: Light) -> np.ndarray:
    """Colour of the edge of every token that does not lead: a second leader's for tokens tied for ever."""
    rim: np.ndarray = np.where(picture.second >= 0, np.array(rank_colours(picture.second, light)), light.soft)
    return rim


def frames_data(picture: Picture, light: Light, *, live: bool = False) -> dict[str, list[Any]]:
    """What static/stage.js draws a picture from; ``live``, while a token is dragged, what it needs for trails alone."""
    frames, chosen = picture.frames, picture.trail_of
    if live:
        frames, chosen = frames[: TRAIL_LAYERS + 1, chosen], np.arange(len(chosen))
    data: dict[str, list[Any]] = {
        "at": [picture.moment],
        "positions": [np.ascontiguousarray(frames, dtype=np.float64).ravel()],
        "shape": [list(frames.shape)],
        "eased": [1],
        "trails": [int(len(chosen) > 0)],
        "chosen": [chosen.astype(np.int32)],
        "rank": [_folded(picture.rank[picture.trail_of]).astype(np.float64)],
        "playable": [int(picture.playable and not live)],
        "ends": [int(picture.ends)],
    }
    if live:
        return data
    return data | {
        "emerged": [picture.emerged.astype(np.int32)],
        "fill": [_Strings(rank_colours(picture.rank, light))],
        "rim": [_Strings(rims(picture, light).tolist())],
        "tied": [(picture.second >= 0).astype(np.int32)],
        "index": [picture.index.astype(np.int32)],
        "dot": [dot_size(len(picture.index))],
        "ink": [light.ink],
    }


def _line_above(font: str, **options: Any) -> Title:
    """An empty line above the frame of a plot, where it covers no token."""
    return Title(text="", text_font=FONT, text_font_size=font, visible=False, **options)


class _View:
    """What plots of tokens share: trails, tokens, the heading and the badge of the theorem."""

    def __init__(self, session: Session, name: str, height: int) -> None:
        self._light = session.lighting.light
        self._picture: Picture | None = None
        self._badged: tuple[Badge, Light] | None = None
        """The badge that is shown, and its theme."""
        self.figure = session.figure(
            height=height, x_range=Range1d(start=-3, end=3), y_range=Range1d(start=-3, end=3), name=name
        )
        self.tokens = ColumnDataSource(
            {name: [] for name in ("x", "y", "index", "fill", "line", "size", "shape", "wide")}
        )
        self.frames = ColumnDataSource({"at": [], "positions": [], "shape": []}, name=f"{name}-frames")
        self.trails = ColumnDataSource({"xs": [], "ys": [], "rank": []})
        colours = list(leader_colours())
        self._mapper = LinearColorMapper(palette=colours, low=-0.5, high=len(colours) - 0.5)
        self._badge = _line_above("12px", text_font_style="normal", padding=5, border_radius=5, name=f"{name}-badge")
        self._title = _line_above("15px", text_font_style="bold")
        for line in (self._badge, self._title):
            self.figure.add_layout(line, "above")
        equal_scales(self.figure)
        on_first_screen(self.figure, around=344)

    def _draw_trails(self) -> None:
        colour = {"field": "rank", "transform": self._mapper}
        self.figure.multi_line("xs", "ys", source=self.trails, line_color=colour, line_alpha=0.45, line_width=1.2)

    def _draw_tokens(self) -> Any:
        return self.figure.scatter(
            "x",
            "y",
            source=self.tokens,
            size="size",
            marker="shape",
            fill_color="fill",
            line_color="line",
            line_width="wide",
        )

    def clear(self) -> None:
        """Draw no motion here while another view is shown."""
        self.frames.data = {"at": [], "positions": [], "shape": []}

    def title(self, words: str) -> None:
        """Write a heading above the badge; none for an empty text."""
        if words != self._title.text:
            self._title.update(text=words, visible=bool(words))

    @property
    def heading(self) -> str:
        """The heading."""
        return str(self._title.text)

    def fit(self, points: np.ndarray) -> None:
        """Set the ranges so that all points are inside, with the same scale on both axes."""
        reach = 1.15 * max(float(np.abs(points).max()), 1e-300)
        self.figure.y_range.update(start=-reach, end=reach)

    def _show_badge(self, picture: Picture) -> None:
        if self._badged == (picture.badge, self._light):
            return  # as at nearly every step of a drag
        self._badged = (picture.badge, self._light)
        self._title.text_color = self._light.ink
        good = picture.badge.holds
        dark = self._light.ink > self._light.card  # letters are lighter than the card
        back, ink = ("#14322a", "#8fe3c6") if dark else ("#e3f4ee", "#00553f")
        if not good:
            back, ink = ("#3a2417", "#ffbe97") if dark else ("#fdeee5", "#8a3c00")
        self._badge.update(text=picture.badge.words, text_color=ink, background_fill_color=back, visible=True)


class PlaneView(_View):
    """The plot of tokens with two coordinates; ``act(kind, what, x, y)`` is called for every action of the pointer.

    ``kind`` is move, drop, select or add; ``what`` is a token, or -1 and -2 for the ends of the ellipse's axes. Without
    ``act`` nothing can be moved.
    """

    def __init__(
        self,
        session: Session,
        act: Callable[[str, int, float, float], None] | None,
        *,
        name: str = "plane",
        height: int = 560,
    ) -> None:
        super().__init__(session, name, height)
        self.figure.xaxis.axis_label, self.figure.yaxis.axis_label = "first coordinate", "second coordinate"
        self._hull = ColumnDataSource({"x": [], "y": []}, name=f"{name}-hull")
        self._ellipse = ColumnDataSource({"x": [], "y": []})
        self._axes: tuple[float, float, float] | None = None
        self.handles = ColumnDataSource({"x": [], "y": []})
        self._region = ColumnDataSource({"x": [], "y": []})
        self._favourites = ColumnDataSource({"x": [], "y": []})
        self._chosen = ColumnDataSource({"x": [], "y": []})
        self._arrow = ColumnDataSource({"x0": [], "y0": [], "x1": [], "y1": []})
        self._draw()
        self.wire = ColumnDataSource({"kind": [], "what": [], "x": [], "y": [], "serial": []}, name=f"{name}-hand")
        if name == "plane":
            self.wire.name = "hand"
        self._answer = ColumnDataSource({"serial": [0]})
        if act is not None:
            self._listen(act)
        register_stage(self.figure, "plane", self.models)
        session.lighting.follow(self._repaint)

    def _draw(self) -> None:
        plot = self.figure
        self._shaded = plot.patch("x", "y", source=self._region, line_width=1, fill_color=PALETTE[3], fill_alpha=0.18)
        self._solid = plot.patch("x", "y", source=self._hull, line_width=1.5, fill_alpha=0.55)
        self._draw_trails()
        self._round = plot.line("x", "y", source=self._ellipse, line_dash=[5, 4], line_width=1.3)
        self._ends = plot.scatter("x", "y", source=self.handles, marker="square", size=11, line_width=2)
        dots = self._draw_tokens()
        self._circles = plot.scatter(
            "x",
            "y",
            source=self._favourites,
            size=24,
            fill_color=None,
            line_color="#D55E00",
            line_width=2.5,
            marker="circle",
        )
        self._ring = plot.scatter(
            "x", "y", source=self._chosen, size=19, fill_color=None, line_width=2.5, marker="circle"
        )
        self._head = OpenHead(size=9, line_width=2)
        self._pointer = Arrow(
            end=self._head, source=self._arrow, x_start="x0", y_start="y0", x_end="x1", y_end="y1", line_width=2
        )
        plot.add_layout(self._pointer)
        plot.scatter([0], [0], marker="cross", size=10, line_color="#7b8794", fill_color=None)
        hover = HoverTool(renderers=[dots], tooltips=[("token", "@index"), ("at", "(@x{0.000}, @y{0.000})")])
        plot.add_tools(hover)

    @property
    def models(self) -> dict[str, Any]:
        """The models that static/stage.js draws with."""
        resting = [self._shaded, self._circles, self._ring, self._pointer]
        return {
            "plot": self.figure,
            "frames": self.frames,
            "tokens": self.tokens,
            "trails": self.trails,
            "resting": resting,
            "movable": [self.tokens, self.handles],
        }

    def _listen(self, act: Callable[[str, int, float, float], None]) -> None:
        known = {
            "plot": self.figure,
            "tokens": self.tokens,
            "handles": self.handles,
            "wire": self.wire,
            "answer": self._answer,
        }
        callback = CustomJS(args=known, code=static("drag.js"))
        for event in _EVENTS:
            self.figure.js_on_event(event, callback)
        self._answer.js_on_change("data", callback)
        self.tokens.js_on_change("data", callback)

        def on_action(_attr: str, _old: Any, new: dict[str, list[Any]]) -> None:
            if not new["kind"]:
                return
            try:
                act(str(new["kind"][0]), int(new["what"][0]), float(new["x"][0]), float(new["y"][0]))
            finally:
                self._answer.data = {"serial": [new["serial"][0]]}

        self.wire.on_change("data", on_action)

    def _repaint(self, light: Light) -> None:
        self._light = light
        self._solid.glyph.fill_color, self._solid.glyph.line_color = light.shade, light.line
        self._shaded.glyph.line_color = light.soft
        self._round.glyph.line_color = light.soft
        self._ends.glyph.line_color, self._ends.glyph.fill_color = light.soft, light.card
        self._ring.glyph.line_color = light.ink
        self._pointer.line_color = self._head.line_color = light.ink
        self._mapper.update(low_color=light.grey, palette=list(leader_colours(light)))
        if self._picture is not None:
            self.show(self._picture)

    def show_ellipse(self, angle: float, a: float, b: float) -> None:
        """Draw the ellipse of points z with ⟨A z, z⟩ = 1."""
        turn = math.radians(angle)
        first, second = np.array([math.cos(turn), math.sin(turn)]), np.array([-math.sin(turn), math.cos(turn)])
        if self._axes != (angle, a, b):
            self._axes, t = (angle, a, b), np.linspace(0, 2 * math.pi, 97)
            points = a * np.cos(t)[:, None] * first + b * np.sin(t)[:, None] * second
            self._ellipse.data = {"x": points[:, 0], "y": points[:, 1]}
        # Sent always: the browser has moved the one that is dragged, which snaps to steps.
        self.handles.data = {"x": [a * first[0], b * second[0]], "y": [a * first[1], b * second[1]]}

    def show(self, picture: Picture, *, live: bool = False) -> None:
        """Draw a picture in place of the previous one; ``live`` while a token is dragged."""
        self._picture = picture
        light = self._light
        dot = dot_size(len(picture.index))
        tied = picture.second >= 0
        self.tokens.data = {
            "x": picture.positions[:, 0],
            "y": picture.positions[:, 1],
            "index": picture.index,
            "fill": _Strings(rank_colours(picture.rank, light)),
            "line": _Strings(np.where(picture.leads, light.ink, rims(picture, light)).tolist()),
            "size": np.where(picture.leads, 2 * max(dot, 9), np.where(tied, dot + 2, dot)),
            "shape": _Strings(np.where(picture.leads, "star", "circle").tolist()),
            "wide": np.where(tied & ~picture.leads, 3.0, 0.6),
        }
        self._hull.data = {"x": picture.hull[:, 0], "y": picture.hull[:, 1]}
        self.frames.data = frames_data(picture, light, live=live)
        self._show_badge(picture)
        self._show_half_space(picture)

    def _show_half_space(self, picture: Picture) -> None:
        half = picture.half_space
        nothing: dict[str, Any] = {"x": [], "y": []}
        if half is None:
            self._region.data = self._favourites.data = self._chosen.data = nothing
            self._arrow.data = {"x0": [], "y0": [], "x1": [], "y1": []}
            return
        length = float(np.hypot(*half.normal))
        unit = half.normal / length if length > 0 else np.zeros(2)
        along = np.array([-unit[1], unit[0]])
        reach = _FAR * max(1.0, float(self.figure.y_range.end))
        corners = half.here + reach * np.array([along, along + unit, unit - along, -along])
        self._region.data = {"x": corners[:, 0], "y": corners[:, 1]} if length > 0 else nothing
        self._favourites.data = {"x": half.favourites[:, 0], "y": half.favourites[:, 1]}
        self._chosen.data = {"x": [half.here[0]], "y": [half.here[1]]}
        tip = half.here + 0.18 * (self.figure.y_range.end - self.figure.y_range.start) * unit
        self._arrow.data = {"x0": [half.here[0]], "y0": [half.here[1]], "x1": [tip[0]], "y1": [tip[1]]}


def _folded(ranks: np.ndarray) -> np.ndarray:
    """Ranks as the colour mapper needs them: colours repeat, -1 is grey."""
    return np.where(ranks < 0, -1, ranks % len(leader_colours()))


class SpaceView(_View):
    """The plot of tokens with three coordinates, which a drag turns."""

    def __init__(self, session: Session, camera: ColumnDataSource, *, name: str = "space", height: int = 560) -> None:
        super().__init__(session, name, height)
        self.camera = camera
        plot = self.figure
        plot.axis.visible = plot.grid.visible = False
        self.faces = ColumnDataSource({"xs": [], "ys": []})
        self.axes = ColumnDataSource({name: [] for name in ("x0", "y0", "x1", "y1", "name")})
        self._solid = plot.patches("xs", "ys", source=self.faces, line_width=0.8, fill_alpha=0.22, line_alpha=0.6)
        self._lines = plot.segment("x0", "y0", "x1", "y1", source=self.axes, line_width=1)
        self._names = LabelSet(
            x="x1", y="y1", text="name", source=self.axes, text_font=value(FONT), text_font_size="12px"
        )
        plot.add_layout(self._names)
        self._draw_trails()
        self._draw_tokens()
        turn_by_hand(plot, camera)
        register_stage(plot, "space", self.models)
        session.lighting.follow(self._repaint)

    @property
    def models(self) -> dict[str, Any]:
        """The models that static/stage.js draws with."""
        return {
            "plot": self.figure,
            "frames": self.frames,
            "tokens": self.tokens,
            "trails": self.trails,
            "faces": self.faces,
            "frame": self.axes,
            "camera": self.camera,
        }

    def _repaint(self, light: Light) -> None:
        self._light = light
        self._solid.glyph.fill_color, self._solid.glyph.line_color = light.grey, light.grey
        self._lines.glyph.line_color = light.line
        self._names.text_color = light.soft
        self._mapper.update(low_color=light.grey, palette=list(leader_colours(light)))
        if self._picture is not None:
            self.show(self._picture)

    def show(self, picture: Picture, *, live: bool = False) -> None:
        """Draw a picture in place of the previous one."""
        self._picture = picture
        faces = picture.faces if len(picture.faces) else _flat_faces(picture.hull)
        self.frames.data = frames_data(picture, self._light) | {
            "hull": [np.ascontiguousarray(picture.hull, dtype=np.float64).ravel()],
            "faces": [faces.astype(np.int32).ravel()],
            "reach": [max(float(np.abs(picture.frames[0]).max()), 1e-300)],
        }
        self._show_badge(picture)


def _flat_faces(hull: np.ndarray) -> np.ndarray:
    """Triangles of a polygon in space, as rows of its corners; none for fewer than three."""
    return np.array([[0, k, k + 1] for k in range(1, len(hull) - 1)], dtype=np.int64).reshape(-1, 3)
