"""Softmax-weighted means on a GPU in float32, fused so that no matrix of scores is stored."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from ..shapes import PerToken, Queries, Tokens

_LOG2E = math.log2(math.e)
# Points of at most two coordinates have a kernel without tensor cores; the kernels take at most 64 coordinates.
_FEW, _MOST = 2, 64
# Rows and columns of a tile where coordinates are few.
_TILE_OF_FEW = (16, 128)
# Powers of two between those of plus and minus this, and sums of many of them, have all their digits in float32.
_SAFE = 60.0
# Halves hold powers of two up to that of 15.9. Below they cut off 2^-25, of a sum of n weights that is at least n 2^-6.
# Points of which none is more than this times longer than the average keep 20 bits.
_FLAT, _NOT_FAR_BELOW, _EVEN = 15.9, 6.0, 16.0
_TINY = 1e-30
# Columns after which sums are taken over from the tensor cores; rows to a program that cuts numbers in pieces.
_CHUNK = 2048
_ROWS_IN_PIECES = 32


@dataclass(frozen=True)
class _Tile:
    """Tiling of the products: rows per program, columns per tile, pipeline stages, largest number of registers."""

    rows: int
    columns: int
    stages: int
    registers: int | None


# By the columns of a half of the points. Measured on an H200.
_TILES = {8: _Tile(64, 64, 3, 128), 16: _Tile(64, 64, 3, 128), 32: _Tile(128, 64, 3, None)}
_WIDE_TILE = _Tile(64, 64, 3, None)
# The smallest number of columns of a product on tensor cores.
_NARROWEST = 16
# Programs that measure queries and points, and numbers per program and step.
_MEASURING, _NUMBERS_AT_ONCE = 256, 2048
# The exponents of the smallest power of two with all its digits, and of the room that points have in halves.
_SMALLEST, _ROOM = -126, 14


def takes(dimension: int) -> bool:
    """Whether the kernels support points of this many coordinates."""
    return dimension <= _MOST


def softmax_means(queries: Queries, points: Tokens, weights: PerToken | None = None) -> Queries:
    """Mean of the points z with weights proportional to ``w exp(<q, z>)`` per query q, in float32, shape (queries, d).

    Tensors on a GPU; the points of at most 64 coordinates.
    """
    queries, points = queries.float().contiguous(), points.float().contiguous()
    mass = None if weights is None else weights.double().log2().float()
    spread = _Spread.of(queries, points)
    if points.shape[1] <= _FEW and spread.is_safe:
        return _few(queries * _LOG2E, points, mass)
    return _more(queries, points, mass, spread, flat=mass is None and spread.is_flat)


@dataclass(frozen=True)
class _Spread:
    """Bounds on scores, in units of log 2, and on points."""

    largest: float
    """Bound on the absolute value of a score."""
    of_the_mean: float
    """Bound on the absolute value of a score of the mean of the points."""
    unevenness: float
    """Length of the longest point, relative to the average."""
    coordinate: float
    """Largest coordinate of a point."""

    @classmethod
    def of(cls, queries: Queries, points: Tokens) -> _Spread:
        from .kernels.softmax import spread

        d = points.shape[1]
        wide = 1 << (d - 1).bit_length()
        rows = _NUMBERS_AT_ONCE // wide
        programs = min(_MEASURING, -(-max(len(queries), len(points)) // rows))
        seen = torch.empty(programs, 4 + wide, device=points.device)
        spread[(programs,)](queries, points, seen, len(queries), len(points), D=d, WIDE=wide, ROWS=rows)
        found = seen.cpu().double().numpy()
        query, longest, coordinate = (float(x) for x in found[:, :3].max(axis=0))
        query, longest = math.sqrt(query) * _LOG2E, math.sqrt(longest)
        average, *mean = (float(x) / len(points) for x in found[:, 3:].sum(axis=0))
        # Points that are all zero have no size that others could be compared with.
        unevenness = longest / average if longest > _TINY else math.inf
        return cls(query * longest, query * math.hypot(*mean), unevenness, coordinate)

    @property
    def is_safe(self) -> bool:
        """Whether the exponentials of all scores are in the range of float32."""
        return self.largest < _SAFE

    @property
    def is_flat(self) -> bool:
        """Whether they are in the range of float16, and row sums are large compared with its underflow."""
        return self.largest < _FLAT and self.of_the_mean < _NOT_FAR_BELOW and self.unevenness < _EVEN

    def unit(self, *, flat: bool) -> float:
        """Power of two by which points are divided, so that they are below 2^15, or below 2 if ``flat``."""
        if not self.coordinate > 0:
            return 1.0
        power = math.frexp(self.coordinate)[1] - 1
        return 2.0 ** max(power if flat else power - _ROOM, _SMALLEST)


def _padded(length: int, multiple: int) -> int:
    return -(-length // multiple) * multiple


def _padded_rows(vectors: torch.Tensor, multiple: int) -> torch.Tensor:
    return torch.nn.functional.pad(vectors, (0, 0, 0, -len(vectors) % multiple))


def _masses(mass: torch.Tensor | None, count: int, multiple: int, device: torch.device) -> tuple[torch.Tensor, bool]:
    """Logarithms of the weights, padded with -inf to full tiles, and whether they are needed."""
    if mass is None and count % multiple == 0:
        return torch.empty(1, device=device), False
    mass = torch.zeros(count, device=device) if mass is None else mass
    return torch.nn.functional.pad(mass, (0, -count % multiple), value=-torch.inf), True


def _few(queries: Queries, points: Tokens, mass: torch.Tensor | None) -> Queries:
    from .kernels import softmax

    n, d = queries.shape
    rows, columns = _TILE_OF_FEW
    masses, weighted = _masses(mass, len(points), columns, points.device)
    q, z = _padded_rows(queries, rows).T.contiguous(), _padded_rows(points, columns).T.contiguous()
    out = torch.empty_like(q)
    softmax.few_coordinates[(q.shape[1] // rows,)](
        q, z, masses, out, q.shape[1], z.shape[1],
        D=d, ROWS=rows, COLUMNS=columns, WEIGHTED=weighted, num_warps=4,
    )  # fmt: skip
    return out[:, :n].T.contiguous()


def _more(queries: Queries, points: Tokens, mass: torch.Tensor | None, spread: _Spread, *, flat: bool) -> Queries:
    from .kernels import pieces, softmax

    (n, d), device = queries.shape, points.device
    half = max(_NARROWEST // 2, 1 << (d - 1).bit_length())
    narrow, counted = half < _NARROWEST, d < half
    tile = _TILES.get(half, _WIDE_TILE)
    masses, weighted = _masses(mass, len(points), _CHUNK, device)
    asked, padded = _padded(n, max(tile.rows, _ROWS_IN_PIECES)), _padded(len(points), _CHUNK)
    first, halves = (torch.empty(count, 2 * half, dtype=torch.float16, device=device) for count in (asked, padded))
    second = torch.empty(asked, 2 * half if narrow else half, dtype=torch.float16, device=device)
    highs = halves if narrow else torch.empty(padded, half, dtype=torch.float16, device=device)
    sizes, out = torch.empty(1 if flat else asked, device=device), torch.empty_like(queries)
    tiles, unit = asked // _ROWS_IN_PIECES, spread.unit(flat=flat)
    pieces.pieces[(tiles + padded // _ROWS_IN_PIECES,)](
        queries, points, first, second, sizes, halves, highs, n, len(points), tiles, unit,
        D=d, HALF=half, NARROW=narrow, COUNTED=counted, FLAT=flat, ROWS=_ROWS_IN_PIECES,
    )  # fmt: skip
    softmax.more_coordinates[(asked // tile.rows,)](
        first, second, sizes, halves, highs, masses, out, n, padded, unit,
        D=d, HALF=half, NARROW=narrow, ROWS=tile.rows, COLUMNS=tile.columns, CHUNK=_CHUNK, WEIGHTED=weighted,
        FLAT=flat, COUNTED=counted, STAGES=tile.stages, num_warps=4, maxnreg=tile.registers,
    )  # fmt: skip
    return out
