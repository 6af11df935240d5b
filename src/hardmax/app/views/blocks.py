"""A compiled network at work: its tokens after every half of every block, and its size beside the bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from bokeh.models import ColumnDataSource, FactorRange, HoverTool, Range1d

from ...figures.interpolation import targets_of, window_around
from ...interpolation.counts import Counts
from ...interpolation.journey import Journey, Moment, every_moment
from ...interpolation.network import ExactTransformer
from ..look import PALETTE, rank_colours
from .board import SHAPES
from .panes import beside_bars

if TYPE_CHECKING:
    from ..session import Session

_USED, _BOUND, _OTHER = PALETTE[0], PALETTE[4], "#8a96a0"


class BlockPlane:
    """Tokens in the plane of their first two coordinates, at one moment; the view follows them."""

    def __init__(self, session: Session) -> None:
        self._moments: list[Moment] = []
        self._blocks = 0
        self._tokens = ColumnDataSource({name: [] for name in ("x", "y", "colour", "marker", "size", "name")})
        self._targets = ColumnDataSource({name: [] for name in ("x", "y", "colour")})
        self.plot = session.figure(height=400, x_range=Range1d(-1, 1), y_range=Range1d(-1, 1))
        self.plot.scatter("x", "y", size=26, fill_alpha=0, line_color="colour", line_width=2.5, source=self._targets)
        marks = self.plot.scatter(
            "x", "y", size="size", marker="marker", fill_color="colour", line_width=1, source=self._tokens
        )
        self.plot.add_tools(HoverTool(renderers=[marks], tooltips=[("", "@name"), ("at", "(@x, @y)")]))
        session.lighting.follow(lambda light: setattr(marks.glyph, "line_color", light.ink))

    @property
    def last(self) -> int:
        """The number of the last moment."""
        return max(len(self._moments) - 1, 0)

    def show(self, network: ExactTransformer, way: Journey) -> None:
        """Take another network."""
        self._moments = every_moment(network, way)
        self._blocks = len(network.blocks)
        points, owners = targets_of(network)
        self._target_points = points
        self._targets.data = {"x": points[:, 0], "y": points[:, 1], "colour": rank_colours(owners)}
        sizes = np.linspace(17, 9, len(network.data))
        self._tokens.data = {
            "x": way.before[:, 0],
            "y": way.before[:, 1],
            "colour": rank_colours(way.owner),
            "marker": [SHAPES[k % len(SHAPES)] for k in way.owner],
            "size": sizes[way.owner],
            "name": [f"sequence {k + 1}" for k in way.owner],
        }
        self.show_moment(0)

    def show_moment(self, number: int) -> str:
        """Move the tokens to one moment, and say in words which it is."""
        if not self._moments:
            return ""
        moment = self._moments[min(number, self.last)]
        at = moment.positions
        self._tokens.data = {**self._tokens.data, "x": at[:, 0], "y": at[:, 1]}
        # Far from the targets, including them would shrink the tokens to one dot.
        ends = number in (0, self.last)
        low, high = window_around(at, self._target_points if ends else None)
        self.plot.x_range.update(start=float(low[0]), end=float(high[0]))
        self.plot.y_range.update(start=float(low[1]), end=float(high[1]))
        return moment.title if moment.block == 0 else f"block {moment.block} of {self._blocks}: {moment.title}"


class CountBars:
    """Blocks used, beside our formula, the published bound and what is necessary."""

    def __init__(self, session: Session) -> None:
        self._source = ColumnDataSource({name: [] for name in ("bar", "blocks", "colour")})
        self._bars = FactorRange()
        self.plot = session.figure(height=210, y_range=self._bars, x_range=Range1d(0, 1), x_axis_label="blocks")
        self.plot.ygrid.grid_line_color = None
        self.plot.hbar(y="bar", right="blocks", height=0.62, color="colour", alpha=0.9, source=self._source)
        beside_bars(session, self.plot, self._source, x="blocks", text="blocks")

    def show(self, counts: Counts, *, softmax: bool) -> None:
        """Take the counts of another network."""
        rows = count_rows(counts, softmax=softmax)
        self._bars.factors = [name for name, _, _ in reversed(rows)]
        self.plot.x_range.end = 1.15 * max(blocks for _, blocks, _ in rows)
        self._source.data = {
            "bar": [name for name, _, _ in rows],
            "blocks": [blocks for _, blocks, _ in rows],
            "colour": [colour for _, _, colour in rows],
        }


def count_rows(counts: Counts, *, softmax: bool) -> list[tuple[str, int, str]]:
    """What to call each count, the count and its colour."""
    return [
        ("this network", counts.blocks, _USED),
        ("our formula", counts.formula, _OTHER),
        ("our worst case", counts.worst_case, _OTHER),
        ("published: 2M + 3N" if softmax else "published: 2M + 2N + 1", counts.published, _BOUND),
        ("necessary", counts.necessary_blocks, _OTHER),
    ]
