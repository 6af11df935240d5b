"""The largest score of each row in each block of points, taken on the tensor cores from numbers in half precision."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ...shapes import Indices, Queries, Tokens

# Columns of a product of halves: tensor cores take at least 16, and the kernels at most 256.
NARROWEST, WIDEST = 16, 256
# Where lengths prune: blocks of the longest points that all rows see, and how many times more are tried each time.
_FIRST_BLOCKS, _FURTHER = 16, 8


@dataclass(frozen=True)
class Tiles:
    """Tiling of the screen: rows per program, points per block, warps, and stages of loads in flight."""

    rows: int
    block: int
    warps: int
    stages: int


# Measured on an H200 by benchmarks/gpu.
_TILES = {16: Tiles(64, 256, 4, 4), 32: Tiles(64, 256, 4, 4), 64: Tiles(128, 128, 8, 4), 128: Tiles(64, 128, 4, 3)}
_WIDE_TILES = Tiles(64, 64, 4, 2)


def width_for(dimension: int, pieces: int) -> int:
    """Columns of the rounded vectors: a power of two with room for one piece, or for two pieces of each vector."""
    return max(NARROWEST, _power_of_two(dimension * (3 if pieces == 2 else 1)))


def tiles_for(width: int) -> Tiles:
    """Tiling of the screen for vectors of this width."""
    return _TILES.get(width, _WIDE_TILES)


def _power_of_two(n: int) -> int:
    return 1 << max(0, n - 1).bit_length()


@dataclass(frozen=True)
class Rounded:
    """Vectors in half precision, and the loss by rounding."""

    halves: torch.Tensor
    missing: torch.Tensor
    """Length of the difference between a vector and its pieces."""
    low: torch.Tensor
    """The length of the second piece."""
    scale: torch.Tensor
    """The factors that gave queries length one."""


def rounded(
    vectors: Queries | Tokens,
    padded: int,
    square: torch.Tensor,
    unit: torch.Tensor,
    *,
    pieces: int,
    width: int,
    tiles: Tiles,
    query: bool,
) -> Rounded:
    """Pieces in half precision; points are scaled by ``unit``, which is set by the square of the longest."""
    from ..kernels import search as kernels

    n, d = vectors.shape
    device = vectors.device
    halves = torch.empty(padded, width, dtype=torch.float16, device=device)
    missing, low = torch.empty(2, n, device=device)
    scale = torch.empty(n if query else 1, dtype=torch.float64, device=device)
    wide = _power_of_two(d) if pieces == 2 else width
    rows = min(max(1, 1024 // wide), tiles.block, tiles.rows)
    kernels.prepare[(padded // rows,)](
        vectors.contiguous(), square, unit, halves, missing, low, scale, n,
        D=d, WIDE=wide, K=width, PIECES=pieces, IS_QUERY=query, ROWS=rows,
    )  # fmt: skip
    return Rounded(halves, missing, low, scale)


@dataclass(frozen=True)
class Sight:
    """The interval of points that each row sees, and the blocks that each tile of rows sees; all int32."""

    low: torch.Tensor
    """First point of each row, shape (rows,)."""
    high: torch.Tensor
    """Last point plus one, shape (rows,)."""
    tiles: torch.Tensor
    """For each tile the first block that a row sees, and the first and last plus one that all rows see entirely."""
    ends: torch.Tensor
    """The last block plus one that a row of the tile sees."""


def sight_of(start: Indices, stop: Indices, padded: int, tiles: Tiles) -> Sight:
    """Intervals of rows, the last of them repeated up to ``padded`` rows, and the blocks that each tile sees."""
    from ..kernels import search as kernels

    count = padded // tiles.rows
    low, high = torch.empty(2, padded, dtype=torch.int32, device=start.device)
    ends = torch.empty(count, dtype=torch.int32, device=start.device)
    blocks = torch.empty(count, 3, dtype=torch.int32, device=start.device)
    kernels.sight[(count,)](
        start.contiguous(), stop.contiguous(), low, high, blocks, ends, len(start),
        ROWS=tiles.rows, BLOCK=tiles.block, num_warps=max(1, tiles.rows // 32),
    )  # fmt: skip
    return Sight(low, high, blocks, ends)


class Screened:
    """The largest scores of some rows, block by block, as far as they were needed."""

    def __init__(
        self,
        queries: torch.Tensor,
        points: torch.Tensor,
        width: int,
        tiles: Tiles,
        blocks: int,
        rows: int,
        sight: Sight | None = None,
    ) -> None:
        device = points.device
        self._queries, self._points, self._width, self._tiles, self._blocks = queries, points, width, tiles, blocks
        self.maxima = torch.empty(blocks, rows, device=device)
        self.ends = torch.empty(rows // tiles.rows, dtype=torch.int32, device=device)
        self.top, self.second = torch.empty(2, rows, device=device)
        self.best_block = torch.empty(rows, dtype=torch.int32, device=device)
        self.short: torch.Tensor | None = None
        """Tiles of rows for which more blocks would have to be held."""
        self._done = 0
        self._sight = sight
        # Without a mask the kernels do not read these.
        self.seen = (self.ends, self.ends, self.ends) if sight is None else (sight.tiles, sight.low, sight.high)

    def screen(self, stop: int) -> None:
        """Screen all rows by the next blocks, up to ``stop``."""
        self.ends.fill_(stop)
        self._run(stop)

    def screen_seen(self) -> None:
        """Screen each tile of rows by the blocks that it sees."""
        if self._sight is not None:
            self.ends = self._sight.ends
        self._run(self._blocks)

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

        tiles, rows, masked = self._tiles, self.maxima.shape[1], self._sight is not None
        kernels.screen[(len(self.ends),)](
            self._queries, self._points, self.maxima, self.ends, *self.seen, self._done, rows,
            K=self._width, ROWS=tiles.rows, BLOCK=tiles.block, STAGES=tiles.stages, MASKED=masked,
            num_warps=tiles.warps,
        )  # fmt: skip
        kernels.summarise[(len(self.ends),)](
            self.maxima, self.ends, self.seen[0], self.top, self.best_block, self.second, self._done, rows,
            TILE=tiles.rows, ROWS=tiles.rows, AT_ONCE=8, MASKED=masked, num_warps=max(1, tiles.rows // 32),
        )  # fmt: skip
        self._done = stop
