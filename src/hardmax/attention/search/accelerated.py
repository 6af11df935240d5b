r"""The search on a GPU: screened on the tensor cores, decided in float64, see :mod:`hardmax.attention.kernels.search`.

The screen errs by a known amount only. What rounding to half precision loses is measured; the tensor cores add K
products in an order of their own, keeping at least 23 bits, so they add at most :math:`(K + 8)\,2^{-23}\,|p||y|`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import torch

from ...errors import InputError
from ...shapes import Indices, PerQuery, Queries, Tokens
from ..choice import Ballot
from ..kernels.canonical import pair_scores
from .frames import round_frame

_KEPT_BITS = 2.0**-23
_NARROWEST, _WIDEST = 16, 256
# Largest scores of blocks held at a time, in numbers; less where the memory is short.
_MAXIMA_AT_ONCE = 1 << 30
# Blocks looked at again for a row before a finer screen is asked; largest scores of a row loaded at a time.
_MOST_VISITS, _ANY = 32, 2**31 - 1
_MAXIMA_PER_LOAD = 1024
_UNROLLED_UP_TO = 128
# For fewer pairs, making the cloud round and sorting it takes longer than looking at all of them.
_PRUNING_PAYS_FROM = 1 << 36
# Where lengths prune: blocks of the longest points that all rows see, and how many times more are tried each time.
_FIRST_BLOCKS, _FURTHER = 16, 8
# Points whose lengths differ by less than this are ordered by direction instead.
_SAME_LENGTH = 1.02


@dataclass(frozen=True)
class Found:
    """For each query that was asked, its best point and the score; all members for those that have several."""

    rows: Indices
    first: Indices
    best: PerQuery
    tied: Indices
    members: Indices


@dataclass(frozen=True)
class Tiles:
    """How the screen is cut: rows to a program, points to a block, warps, stages of loads in flight."""

    rows: int
    block: int
    warps: int
    stages: int


# Measured on an H200 by benchmarks/gpu.
_TILES = {16: Tiles(64, 256, 4, 4), 32: Tiles(64, 256, 4, 4), 64: Tiles(128, 128, 8, 4), 128: Tiles(64, 128, 4, 3)}
_WIDE_TILES = Tiles(64, 64, 4, 2)


@dataclass(frozen=True)
class _Arranged:
    r"""Queries and points as the screen sees them, and how its scores relate to the deciding ones:

    :math:`\langle p, y\rangle = (\langle q, z\rangle - \text{offset}) / \text{size}`.
    """

    p: Queries
    y: Tokens
    q: Queries
    z: Tokens
    order: Indices | None
    margin: float
    reach: PerQuery | None
    """How far below the best a score may lie and the point still win; None stands for the margin times the longest."""
    size: torch.Tensor | None
    """None stands for one."""
    offset: PerQuery | None
    """None stands for zero."""
    tolerance: float
    square_z: torch.Tensor
    """The largest squared length of a z."""
    lengths: torch.Tensor | None
    """Lengths of y where they prune."""
    square_y: torch.Tensor
    """The largest squared length of a y."""


def takes(dimension: int) -> bool:
    """Whether the kernels take points of so many coordinates."""
    return dimension <= _WIDEST


def decide_by_kernels(ballot: Ballot, queries: Queries, points: Tokens, margin: float, tolerance: float) -> None:
    """Decide all queries that are not zero."""
    prune = len(queries) * len(points) >= _PRUNING_PAYS_FROM
    found = best_points(queries, points, margin, tolerance, prune=prune)
    ballot.record(found.rows, found.first, found.best, found.tied, found.members)


def best_points(
    queries: Queries,
    points: Tokens,
    margin: float,
    tolerance: float,
    *,
    prune: bool = True,
    tiles: Tiles | None = None,
    most_visits: int = _MOST_VISITS,
    maxima_at_once: int = _MAXIMA_AT_ONCE,
) -> Found:
    """The points within the tolerance of the best score; a query that is zero is given any point.

    ``prune`` visits points by decreasing length, after making the cloud round, and stops where none can win.
    """
    arranged = _arrange(queries, points, margin, tolerance, prune)
    in_two_fit = 3 * points.shape[1]
    pieces = 2 if in_two_fit <= _NARROWEST else 1
    parts: list[Found] = []
    finer = pieces == 1 and in_two_fit <= _WIDEST
    screen = _Screen(arranged, pieces, tiles, most_visits if finer else _ANY)
    left = _portions(screen, None, parts, maxima_at_once)
    if len(left):
        _portions(_Screen(arranged, 2 if finer else pieces, tiles, _ANY), left, parts, maxima_at_once)
    if len(parts) == 1:
        return parts[0]
    return Found(*(torch.cat([getattr(part, field.name) for part in parts]) for field in fields(Found)))


def _portions(screen: _Screen, rows: Indices | None, parts: list[Found], maxima_at_once: int) -> Indices:
    """Decide the rows (None: all), as many at a time as the memory allows; return those that need a finer screen."""
    left: list[Indices] = []
    count, start = screen.asked if rows is None else len(rows), 0
    while start < count:
        if start and rows is None:
            # The rows so far tell how many of the blocks are worth keeping largest scores for.
            screen.hold_what_was_needed()
        part = slice(start, min(start + screen.rows_that_fit(maxima_at_once), count))
        some: Indices | slice = part if rows is None else rows[part]
        try:
            found, unfinished = screen.decide(some)
        except torch.OutOfMemoryError:
            maxima_at_once = _less(maxima_at_once, screen)
            continue
        parts.append(found)
        left.append(unfinished)
        start = part.stop
    return left[0] if len(left) == 1 else torch.cat(left)


def _less(maxima_at_once: int, screen: _Screen) -> int:
    if maxima_at_once <= screen.smallest:
        raise InputError(
            "tokens",
            f"{screen.count} points",
            "do not fit into the memory of the device",
            f"free {screen.smallest * 4 / 2**30:.2g} GiB on it, use fewer tokens, or move them to the CPU",
        )
    torch.cuda.empty_cache()
    return max(screen.smallest, min(maxima_at_once, screen.asked * screen.blocks) // 4)


def _arrange(queries: Queries, points: Tokens, margin: float, tolerance: float, prune: bool) -> _Arranged:
    square = pair_scores(points, points).max()
    if not prune:
        order = torch.atan2(points[:, 1], points[:, 0]).argsort() if points.shape[1] == 2 else None
        z = points if order is None else points[order]
        return _Arranged(queries, z, queries, z, order, margin, None, None, None, tolerance, square, None, square)
    zero = ~queries.any(dim=1)
    if bool(zero.any()):  # a direction of their own does no harm, and their answer is not used
        queries = torch.where(zero[:, None], torch.ones_like(queries), queries)
    frame = round_frame(queries.double(), points.double(), margin, torch.float64)
    order = _longest_first_then_by_direction(frame.lengths, frame.points)
    lengths = frame.lengths[order]
    return _Arranged(
        p=frame.queries,
        y=frame.points[order],
        q=queries,
        z=points[frame.order[order]],
        order=frame.order[order],
        reach=frame.reach,
        size=frame.sizes,
        offset=queries.double() @ frame.centre,
        margin=margin,
        tolerance=tolerance,
        square_z=square,
        lengths=lengths,
        square_y=lengths.max().square(),
    )


def _longest_first_then_by_direction(lengths: torch.Tensor, points: Tokens) -> Indices:
    """Points of about the same length together, ordered by an angle: what one query likes lies in few blocks."""
    ring = torch.log(lengths.clamp_min(1e-300)) * (1 / torch.tensor(_SAME_LENGTH).log().item())
    angle = torch.atan2(points[:, 1], points[:, 0]) if points.shape[1] > 1 else torch.sign(points[:, 0])
    return (angle - 8.0 * ring.floor()).argsort()


def _power_of_two(n: int) -> int:
    return 1 << max(0, n - 1).bit_length()


class _Screened:
    """The largest scores of some rows, block by block, as far as they were needed."""

    def __init__(
        self, queries: torch.Tensor, points: torch.Tensor, width: int, tiles: Tiles, blocks: int, rows: int
    ) -> None:
        device = points.device
        self._queries, self._points, self._width, self._tiles, self._blocks = queries, points, width, tiles, blocks
        self.maxima = torch.empty(blocks, rows, device=device)
        self.top, self.second = torch.empty(2, rows, device=device)
        self.favourite = torch.empty(rows, dtype=torch.int32, device=device)
        self.ends = torch.zeros(rows // tiles.rows, dtype=torch.int32, device=device)
        self.short: torch.Tensor | None = None
        """Tiles of rows for which more blocks would have to be held."""
        self._done = 0

    def screen(self, stop: int) -> None:
        """Screen all rows by the next blocks, up to ``stop``."""
        self.ends.fill_(stop)
        self._run(stop)

    def screen_until(self, bounds: torch.Tensor, needed: torch.Tensor) -> None:
        """Screen each tile of rows up to the block from which on no point is long enough for any of them."""
        self.screen(min(_FIRST_BLOCKS, self._blocks))
        while self._done < self._blocks:
            stop = min(self._done * _FURTHER, self._blocks)
            certain = (self.top - needed).view(len(self.ends), -1).amin(dim=1)
            last = torch.searchsorted(-bounds, -certain, right=True).to(torch.int32)
            self.short = last > self._blocks
            self.ends = torch.maximum(self.ends, last.clamp(max=stop))
            self._run(stop)

    def _run(self, stop: int) -> None:
        from ..kernels import search as kernels

        tiles, rows = self._tiles, self.maxima.shape[1]
        kernels.screen[(len(self.ends),)](
            self._queries, self._points, self.maxima, self.ends, self._done, rows,
            K=self._width, ROWS=tiles.rows, BLOCK=tiles.block, STAGES=tiles.stages, num_warps=tiles.warps,
        )  # fmt: skip
        kernels.summarise[(len(self.ends),)](
            self.maxima, self.ends, self.top, self.favourite, self.second, self._done, rows,
            TILE=tiles.rows, ROWS=tiles.rows, AT_ONCE=8, num_warps=max(1, tiles.rows // 32),
        )  # fmt: skip
        self._done = stop


class _Screen:
    """Points rounded once; rows decided in portions."""

    def __init__(self, arranged: _Arranged, pieces: int, tiles: Tiles | None, most_visits: int) -> None:
        self._in, self._pieces, self._most_visits = arranged, pieces, most_visits
        n, d = arranged.y.shape
        self._width = max(_NARROWEST, _power_of_two(d * (3 if pieces == 2 else 1)))
        self._tiles = tiles or _TILES.get(self._width, _WIDE_TILES)
        self.count, self.asked = n, len(arranged.q)
        self.blocks = -(-n // self._tiles.block)
        self.held = self.blocks
        """For how many blocks, the longest points first, largest scores are kept."""
        self._unit = torch.empty(1, dtype=torch.float64, device=arranged.y.device)
        self._points, self._missing, self._low, _ = self._rounded(
            arranged.y, self.blocks * self._tiles.block, query=False
        )
        self._reached: torch.Tensor | None = None
        self._bounds = None if arranged.lengths is None else self._longest_behind(arranged.lengths)
        self._z = arranged.z.contiguous()

    @property
    def smallest(self) -> int:
        """The fewest largest scores that can be held at a time."""
        return self._tiles.rows * self.held

    def rows_that_fit(self, maxima: int) -> int:
        """How many rows can be decided at a time with so many largest scores."""
        return max(1, maxima // self.smallest) * self._tiles.rows

    def hold_what_was_needed(self) -> None:
        """From now on hold twice as many blocks as the rows before reached."""
        if self._bounds is not None and self._reached is not None and self.held == self.blocks:
            self.held = min(self.blocks, 2 * int(self._reached.max()))

    def decide(self, some: Indices | slice) -> tuple[Found, Indices]:
        """The best points of some rows, and the rows that had too many blocks to be looked at."""
        from ..kernels import search as kernels

        given, tiles, device = self._in, self._tiles, self._z.device
        q = given.q[some].contiguous()
        count, d = q.shape
        padded = -(-count // tiles.rows) * tiles.rows
        halves, missing, low, scale = self._rounded(given.p[some], padded, query=True)
        screened = _Screened(halves, self._points, self._width, tiles, self.held, padded)
        if self._bounds is None:  # the margins are computed while the screen runs
            screened.screen(self.blocks)
            error, needed = self._margins(missing, low, some, padded)
        else:
            error, needed = self._margins(missing, low, some, padded)
            screened.screen_until(self._bounds, needed)
        maxima, top, second = screened.maxima, screened.top, screened.second
        sizes = pair_scores(q, q).sqrt()
        slack = given.tolerance * sizes * given.square_z.sqrt()
        zero = sizes == 0  # these like everybody alike, and what is found for them is not used
        second[:count].masked_fill_(zero, -torch.inf)
        factor = scale * self._unit if given.size is None else scale * self._unit / given.size[some]
        offset = torch.zeros_like(scale) if given.offset is None else given.offset[some].contiguous()
        first = torch.empty(count, dtype=torch.int32, device=device)
        best, near = torch.empty_like(slack), torch.empty_like(first)
        where = (halves, self._points, q, self._z)
        options: dict[str, Any] = {
            "D": d, "K": self._width, "ROWS": tiles.rows, "BLOCK": tiles.block, "CHUNK": _MAXIMA_PER_LOAD,
            "WIDTH": 16, "UNROLL": d <= _UNROLLED_UP_TO, "num_warps": 1, "enable_fp_fusion": False,
        }  # fmt: skip
        kernels.decide[(count,)](
            maxima, top, screened.favourite, second, screened.ends, *where, error, needed, slack, factor, offset,
            first, best, near, padded, self.count, self._most_visits, **options,
        )  # fmt: skip
        near.masked_fill_(zero, 1)
        if screened.short is not None:
            near.masked_fill_(screened.short.repeat_interleave(tiles.rows)[:count], 0)
        self._reached = screened.ends
        rows = torch.arange(self.asked, device=device)[some] if isinstance(some, slice) else some
        several = (near != 1).nonzero()[:, 0]
        found = Found(rows, self._named(first), best, several, several)
        if len(several) == 0:
            return found, several
        chosen = several[near[several] > 1]
        known = (needed, slack, factor, offset, best)
        tied, members = self._members(chosen, maxima, screened.ends, where, known, options)
        done = near > 0
        return Found(rows[done], found.first[done], best[done], rows[tied], members), rows[~done]

    def _margins(
        self, missing: torch.Tensor, low: torch.Tensor, some: Indices | slice, padded: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """For each row how much its scores may err, and how far below the largest a point may lie and still win."""
        given, count, accumulated = self._in, len(missing), (self._width + 8) * _KEPT_BITS
        reach = given.margin * given.square_z.sqrt() if given.reach is None else given.reach[some]
        error = torch.zeros(padded, device=missing.device)
        # In units of the screen no point is longer than one and queries have length one, up to what is missing.
        error[:count] = missing + (1 + missing) * (self._missing.max() + accumulated) + low * self._low.max()
        needed = torch.full_like(error, -torch.inf)
        needed[:count] = error[:count] + (reach * self._unit * (1 + 1e-5)).float()
        return error, needed

    def _members(
        self,
        chosen: Indices,
        maxima: torch.Tensor,
        ends: torch.Tensor,
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
        given = (chosen, maxima, ends, *where, *known)
        last = (maxima.shape[1], self.count)
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

    def _rounded(
        self, vectors: Queries, padded: int, *, query: bool
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
        """Pieces in half precision, the length of what they lack, of the second piece, and the factors used."""
        from ..kernels import search as kernels

        n, d = vectors.shape
        device = vectors.device
        halves = torch.empty(padded, self._width, dtype=torch.float16, device=device)
        missing, low = torch.empty(2, n, device=device)
        scale = torch.empty(n if query else 1, dtype=torch.float64, device=device)
        wide = _power_of_two(d) if self._pieces == 2 else self._width
        rows = min(max(1, 1024 // wide), self._tiles.block, self._tiles.rows)
        kernels.prepare[(padded // rows,)](
            vectors.contiguous(), self._in.square_y, self._unit, halves, missing, low, scale, n,
            D=d, WIDE=wide, K=self._width, PIECES=self._pieces, IS_QUERY=query, ROWS=rows,
        )  # fmt: skip
        return halves, missing, low, scale
