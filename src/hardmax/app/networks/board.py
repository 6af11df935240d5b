"""The drawing board: sequences and targets as points that can be added, moved and erased."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from bokeh.events import Tap
from bokeh.models import ColumnDataSource, HoverTool, PointDrawTool, Range1d

from ...figures.interpolation import window_around
from ...interpolation.arithmetic.numbers import rational, to_float
from ...interpolation.data import Problem
from ..look import DAY, Light, rank_colours
from .state import sequence_names

if TYPE_CHECKING:
    from ..session import Session


SHAPES = ("circle", "square", "triangle", "diamond", "inverted_triangle", "plus", "x")
_NEAR = 0.03
"""A click this close to a point, as a share of the view, selects the point."""
_GRID = 4
"""Drawn points lie on quarters, so that their coordinates are short rationals."""
# More points are shown but not edited: they are too close to be dragged.
_MOST_POINTS = 400
_COLUMNS = ("x", "y", "sequence", "place", "colour", "marker", "size", "name")


def on_grid(value: float) -> str:
    """A drawn coordinate as text, on quarters."""
    steps = round(value * _GRID)
    return str(steps // _GRID) if steps % _GRID == 0 else str(steps / _GRID)


class Board:
    """A plot of a data set in its first two coordinates, which can be edited where it has no more."""

    def __init__(self, session: Session, edited: Callable[[Problem], None]) -> None:
        self._edited = session.guarded(edited)
        self._problem: Problem | None = None
        self.mode, self.sequence = "token", 0
        self._tokens = ColumnDataSource({name: [] for name in _COLUMNS})
        self._targets = ColumnDataSource({name: [] for name in _COLUMNS})
        self.plot = session.figure(height=380, x_range=Range1d(-3, 3), y_range=Range1d(-3, 3), tools="")
        rings = self.plot.scatter(
            "x", "y", size=24, fill_alpha=0, line_color="colour", line_width=2.5, source=self._targets
        )
        marks = self.plot.scatter(
            "x", "y", size="size", marker="marker", fill_color="colour", line_width=1, source=self._tokens
        )
        mover = PointDrawTool(renderers=[marks, rings], add=False)
        self.plot.add_tools(mover, HoverTool(renderers=[marks, rings], tooltips=[("", "@name"), ("at", "(@x, @y)")]))
        self.plot.toolbar.active_multi = mover
        self.plot.on_event(Tap, session.guarded(self._tapped))
        for source, kind in ((self._tokens, "token"), (self._targets, "target")):
            source.on_change("data", session.guarded(lambda _a, _o, _n, kind=kind: self._moved(kind)))
        self._marks, self._light, self._showing = marks, DAY, False
        session.lighting.follow(self._repaint)

    def _repaint(self, light: Light) -> None:
        self._marks.glyph.line_color, self._light = light.ink, light
        self._showing = True  # colours move no point
        try:
            for source in (self._tokens, self._targets):
                ranks = np.array(source.data["sequence"], dtype=np.int64)
                source.data["colour"] = rank_colours(ranks, light)
        finally:
            self._showing = False

    @property
    def problem(self) -> Problem | None:
        """The data set that is shown."""
        return self._problem

    @property
    def editable(self) -> bool:
        """Whether points can be added and moved: in the plane, and not too many."""
        problem = self._problem
        if problem is None:
            return True
        points = [point for tokens in problem.inputs for point in tokens]
        return len(points) <= _MOST_POINTS and all(len(point) == 2 for point in points)

    @property
    def sequences(self) -> int:
        """How many sequences there are."""
        return 0 if self._problem is None else len(self._problem.inputs)

    @property
    def names(self) -> list[str]:
        """Names of the sequences, counted from 1, with their labels where they have some."""
        return sequence_names(self.sequences, None if self._problem is None else self._problem.labels)

    def show(self, problem: Problem | None, *, still: bool = False) -> None:
        """Draw another data set; ``still`` leaves the window as it is where it holds all points, as while one draws."""
        self._problem = problem
        self._showing = True
        try:
            inputs = [] if problem is None else problem.inputs
            outputs = [] if problem is None or problem.outputs is None else problem.outputs
            sizes = np.linspace(17, 9, max(len(inputs), 1))  # shared tokens show as nested shapes
            self._tokens.data = _columns(inputs, "token", sizes, self.names, self._light)
            self._targets.data = _columns(outputs, "target", sizes, self.names, self._light)
        finally:
            self._showing = False
        points = np.array([*_pairs(self._tokens), *_pairs(self._targets)], dtype=float).reshape(-1, 2)
        x, y = self.plot.x_range, self.plot.y_range
        if not (still and bool(((points >= (x.start, y.start)) & (points <= (x.end, y.end))).all())):
            self._frame(points)

    def _frame(self, points: np.ndarray) -> None:
        """Set the window around points, shape (point, 2)."""
        if not len(points):
            low, high = np.array([-3.0, -3.0]), np.array([3.0, 3.0])
        else:
            low, high = window_around(points)
            middle, reach = (low + high) / 2, np.maximum((high - low) / 2, 1.5)
            low, high = middle - reach, middle + reach
        self.plot.x_range.update(start=float(low[0]), end=float(high[0]))
        self.plot.y_range.update(start=float(low[1]), end=float(high[1]))

    def _tapped(self, event: Any) -> None:
        if event.x is None or not self.editable:
            return
        problem = self._problem or Problem([], [], None)
        inputs = [list(tokens) for tokens in problem.inputs]
        outputs = None if problem.outputs is None else [list(points) for points in problem.outputs]
        labels = None if problem.labels is None else list(problem.labels)
        if self.mode == "erase":
            if not self._erase(event, inputs, outputs, labels):
                return
        else:
            point: list[object] = [on_grid(event.x), on_grid(event.y)]
            place = min(self.sequence, len(inputs))
            if place == len(inputs):  # a new sequence, which needs a target before it can be compiled
                inputs.append([])
                if outputs is not None:
                    outputs.append([])
                if labels is not None:
                    labels.append("new")
            side = inputs if self.mode == "token" or outputs is None else outputs
            if point not in side[place]:
                side[place].append(point)
        self._edited(Problem(inputs, outputs, labels))

    def _erase(
        self,
        event: Any,
        inputs: list[list[list[object]]],
        outputs: list[list[list[object]]] | None,
        labels: list[object] | None,
    ) -> bool:
        best: tuple[float, Any, int, int] | None = None
        wide = self.plot.x_range.end - self.plot.x_range.start
        tall = self.plot.y_range.end - self.plot.y_range.start
        for source, side in ((self._tokens, inputs), (self._targets, outputs)):
            for k, (x, y) in enumerate(_pairs(source)):
                apart = max(abs(x - event.x) / wide, abs(y - event.y) / tall)
                if apart < _NEAR and (best is None or apart < best[0]):
                    best = (apart, side, int(source.data["sequence"][k]), int(source.data["place"][k]))
        if best is None:
            return False
        _, side, sequence, place = best
        del side[sequence][place]
        if not inputs[sequence] and not (outputs and outputs[sequence]):
            for part in (inputs, outputs, labels):
                if part is not None:
                    del part[sequence]
        return True

    def _moved(self, kind: str) -> None:
        if self._showing or self._problem is None or not self.editable:
            return
        problem = self._problem
        side = problem.inputs if kind == "token" else problem.outputs
        source = self._tokens if kind == "token" else self._targets
        if side is None or len(source.data["x"]) != sum(len(points) for points in side):
            self.show(problem)  # a point was deleted by a key, which is not supported
            return
        moved = [list(points) for points in side]
        changed = False
        for k, (x, y) in enumerate(_pairs(source)):
            sequence, place = int(source.data["sequence"][k]), int(source.data["place"][k])
            before = _place(side[sequence][place])
            if max(abs(before[0] - x), abs(before[1] - y)) > 1e-9:
                moved[sequence][place] = [on_grid(x), on_grid(y)]
                changed = True
        if changed:
            self._edited(
                Problem(moved, problem.outputs, problem.labels)
                if kind == "token"
                else Problem(problem.inputs, moved, problem.labels)
            )


def _place(point: list[object]) -> tuple[float, float]:
    values = [to_float(rational("point", value)) for value in point[:2]]
    return (values[0], values[1] if len(values) > 1 else 0.0)


def _pairs(source: ColumnDataSource) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in zip(source.data["x"], source.data["y"], strict=True)]


def _columns(
    side: list[list[list[object]]], kind: str, sizes: np.ndarray, names: list[str], light: Light
) -> dict[str, list[Any]]:
    rows: list[tuple[Any, ...]] = []
    for sequence, points in enumerate(side):
        colour = rank_colours(np.array([sequence]), light)[0]
        for place, point in enumerate(points):
            x, y = _place(point)
            name = f"{kind} of {names[sequence]}"
            shape, size = SHAPES[sequence % len(SHAPES)], float(sizes[sequence])
            rows.append((x, y, sequence, place, colour, shape, size, name))
    return {name: [row[k] for row in rows] for k, name in enumerate(_COLUMNS)}
