r"""Points of the largest score, decided in float64 among the blocks that the screen selects.

The error of the screen is bounded. The loss by rounding to half precision is measured; the tensor cores add K products
in an unspecified order with at least 23 bits, so they add at most :math:`(K + 8)\,2^{-23}\,|p||y|`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch

from ...shapes import Indices, PerQuery, Queries, Tokens
from ..kernels import pair_scores
from .arrangement import Arranged
from .maxima import Rounded, Screened, Tiles, rounded, sight_of, tiles_for, width_for

# Tensor cores add with at least 23 bits.
_ACCUMULATOR_UNIT = 2.0**-23
# Largest scores of a row loaded at a time.
_MAXIMA_PER_LOAD = 1024
_UNROLLED_UP_TO = 128


@dataclass(frozen=True)
class Found:
    """Best point and score of each query, and all members for queries that have several."""

    rows: Indices
    first: Indices
    best: PerQuery
    tied: Indices
    members: Indices

    def of(self, part: Indices) -> Found:
        """The result in indices of all points, where the search was among those at the indices ``part``."""
        return replace(self, first=part[self.first], members=part[self.members])


class Screen:
    """Points rounded once; rows decided in portions."""

    def __init__(self, arranged: Arranged, pieces: int, tiles: Tiles | None, most_visits: int) -> None:
        self._in, self._pieces, self._most_visits = arranged, pieces, most_visits
        n, d = arranged.y.shape
        self._width = width_for(d, pieces)
        self._tiles = tiles or tiles_for(self._width)
        self.count, self.asked = n, len(arranged.q)
        self.blocks = -(-n // self._tiles.block)
        self.held = self.blocks
        """Number of blocks, the longest points first, for which largest scores are stored."""
        self._unit = torch.empty(1, dtype=torch.float64, device=arranged.y.device)
        self._points = self._rounded(arranged.y, self.blocks * self._tiles.block, query=False)
        self._reached: torch.Tensor | None = None
        self._bounds = None if arranged.lengths is None else self._longest_behind(arranged.lengths)
        self._z = arranged.z.contiguous()

    @property
    def smallest(self) -> int:
        """The fewest largest scores that can be held at a time."""
        return self._tiles.rows * self.held

    def rows_that_fit(self, maxima: int) -> int:
        """Number of rows that can be decided at a time with this many largest scores."""
        return max(1, maxima // self.smallest) * self._tiles.rows

    def hold_what_was_needed(self) -> None:
        """From now on hold twice as many blocks as the rows before reached."""
        if self._bounds is not None and self._reached is not None and self.held == self.blocks:
            self.held = min(self.blocks, 2 * int(self._reached.max()))

    def decide(self, some: Indices | slice) -> tuple[Found, Indices]:
        """Best points of some rows, and the rows with too many blocks to evaluate."""
        from ..kernels import search as kernels

        given, tiles, device = self._in, self._tiles, self._z.device
        q = given.q[some].contiguous()
        count, d = q.shape
        padded = -(-count // tiles.rows) * tiles.rows
        asked = self._rounded(given.p[some], padded, query=True)
        sees = given.intervals
        sight = None if sees is None else sight_of(sees.start[some], sees.stop[some], padded, tiles)
        screened = Screened(asked.halves, self._points.halves, self._width, tiles, self.held, padded, sight)
        if self._bounds is None:  # the margins are computed while the screen runs
            if sight is None:
                screened.screen(self.blocks)
            else:
                screened.screen_seen()
            error, needed = self._margins(asked, some, padded)
        else:
            error, needed = self._margins(asked, some, padded)
            screened.screen_until(self._bounds, needed)
        maxima, top, second = screened.maxima, screened.top, screened.second
        sizes = pair_scores(q, q).sqrt()
        slack = given.tolerance * sizes * (given.square_z.sqrt() if sees is None else sees.longest[some])
        zero = sizes == 0  # all points have the same score, and the result is not used
        second[:count].masked_fill_(zero, -torch.inf)
        factor = asked.scale * self._unit if given.size is None else asked.scale * self._unit / given.size[some]
        offset = torch.zeros_like(asked.scale) if given.offset is None else given.offset[some].contiguous()
        first = torch.empty(count, dtype=torch.int32, device=device)
        best, near = torch.empty_like(slack), torch.empty_like(first)
        where = (asked.halves, self._points.halves, q, self._z)
        options: dict[str, Any] = {
            "D": d, "K": self._width, "ROWS": tiles.rows, "BLOCK": tiles.block, "CHUNK": _MAXIMA_PER_LOAD,
            "WIDTH": 16, "UNROLL": d <= _UNROLLED_UP_TO, "MASKED": sight is not None,
            "num_warps": 1, "enable_fp_fusion": False,
        }  # fmt: skip
        kernels.decide[(count,)](
            maxima, top, screened.best_block, second, screened.ends, *screened.seen, *where, error, needed, slack,
            factor, offset, first, best, near, padded, self.count, self._most_visits, **options,
        )  # fmt: skip
        near.masked_fill_(zero, 1)
        if screened.short is not None:
            near.masked_fill_(screened.short.repeat_interleave(tiles.rows)[:count], 0)
        self._reached = screened.ends
        rows = torch.arange(self.asked, device=device)[some] if isinstance(some, slice) else some
        named = self._named(first)
        several = (near != 1).nonzero()[:, 0]  # only now is the device waited for
        if len(several) == 0:
            return Found(rows, named, best, several, several), several
        chosen = several[near[several] > 1]
        known = (needed, slack, factor, offset, best)
        tied, members = self._members(chosen, screened, where, known, options)
        done = near > 0
        return Found(rows[done], named[done], best[done], rows[tied], members), rows[~done]

    def _margins(self, asked: Rounded, some: Indices | slice, padded: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Bound on the error of the scores per row, and distance below the largest at which a point may still win."""
        given, missing, accumulated = self._in, asked.missing, (self._width + 8) * _ACCUMULATOR_UNIT
        points = self._points
        # In units of the screen no point is longer than one and queries have length one, up to the rounding loss.
        lost = points.missing.max() + accumulated
        error = torch.addcmul(torch.addcmul(lost, missing, 1 + lost), asked.low, points.low.max())
        reach = given.margin * given.square_z.sqrt() if given.reach is None else given.reach[some]
        needed = error + (reach * self._unit * (1 + 1e-5)).float()
        fill = padded - len(missing)  # rows that fill up the last tile need nothing
        if fill:
            error = torch.nn.functional.pad(error, (0, fill))
            needed = torch.nn.functional.pad(needed, (0, fill), value=-torch.inf)
        return error, needed

    def _members(
        self,
        chosen: Indices,
        screened: Screened,
        where: tuple[torch.Tensor, ...],
        known: tuple[torch.Tensor, ...],
        options: dict[str, Any],
    ) -> tuple[Indices, Indices]:
        """The members of the chosen rows, each with its row."""
        from ..kernels import search as kernels

        if len(chosen) == 0:
            return chosen, chosen
        sizes = torch.empty_like(chosen)
        found = torch.empty(1, dtype=torch.int32, device=chosen.device)
        given = (chosen, screened.maxima, screened.ends, *screened.seen, *where, *known)
        last = (screened.maxima.shape[1], self.count)
        kernels.members[(len(chosen),)](*given, sizes, found, *last, **options, WRITE=False)
        places = sizes.cumsum(0) - sizes
        found = torch.empty(int(sizes.sum()), dtype=torch.int32, device=chosen.device)
        kernels.members[(len(chosen),)](*given, places, found, *last, **options, WRITE=True)
        return torch.repeat_interleave(chosen, sizes), self._named(found)

    def _named(self, points: torch.Tensor) -> Indices:
        points = points.long()
        return points if self._in.order is None else self._in.order[points]

    def _longest_behind(self, lengths: torch.Tensor) -> torch.Tensor:
        """For each block the length of the longest point in it or behind it."""
        missing = -len(lengths) % self._tiles.block
        blocks = torch.nn.functional.pad(lengths, (0, missing)).view(self.blocks, -1).amax(dim=1)
        return (blocks.flip(0).cummax(0).values.flip(0) * self._unit * (1 + 1e-6)).float()

    def _rounded(self, vectors: Queries | Tokens, padded: int, *, query: bool) -> Rounded:
        return rounded(
            vectors, padded, self._in.square_y, self._unit,
            pieces=self._pieces, width=self._width, tiles=self._tiles, query=query,
        )  # fmt: skip
