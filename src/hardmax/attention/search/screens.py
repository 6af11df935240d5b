r"""Products of a tile of points with some rows, of which only the largest score in each block is stored.

A screen may be coarse as long as its error is bounded. In floating point the error is that of the sum of products.
Where the processor multiplies 8-bit integers fast, coordinates are rounded to :math:`p \approx s P,\; y \approx t Y`
with integers up to 127; integer products are exact, so a score errs by

.. math:: |\langle p, y\rangle - s t \langle P, Y\rangle| \le |p - s P|\,|y| + |s P|\,|y - t Y| .
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import lru_cache

import torch

from ...shapes import Indices, PerQuery, Points
from ..choice import length
from .frames import Frame

# Points per block, points per product and queries per product: sizes that suit the cache of a processor.
BLOCK = 128
TILE = 512
ROWS = 1024


def _larger(device: torch.device) -> int:
    """Factor by which pieces are larger than those that suit the cache of a processor."""
    return 1 if device.type == "cpu" else 16


def rows_at_once(device: torch.device) -> int:
    """Number of rows per call of a screen."""
    return ROWS * _larger(device)


class AbstractScreen(ABC):
    """Largest scores, block by block, each within ``error`` of the truth."""

    error: PerQuery
    """Bound on the error of the scores of a row."""

    @abstractmethod
    def maxima(self, rows: Indices, start: int, stop: int) -> torch.Tensor:
        """For at most ``rows_at_once`` rows, the largest score in each block of the points from ``start`` to ``stop``.

        ``start`` is a multiple of ``TILE``, and so is ``stop`` unless it is the end.
        """


class ProductScreen(AbstractScreen):
    """Scores in the precision of the frame."""

    def __init__(self, frame: Frame) -> None:
        self._queries, self._points = frame.queries, frame.points
        self.error = torch.full_like(frame.reach, frame.error)

    def maxima(self, rows: Indices, start: int, stop: int) -> torch.Tensor:
        queries = self._queries[rows]
        wide = TILE * _larger(queries.device)
        scores = queries.new_empty(queries.shape[0], wide)
        largest = queries.new_empty(queries.shape[0], -(-(stop - start) // BLOCK))
        for tile in range(start, stop, wide):
            points = self._points[tile : min(tile + wide, stop)]
            if points.shape[0] < wide:
                # Fill up with a point that is there, which changes no maximum.
                points = _repeat_last(points, BLOCK)
                scores = queries.new_empty(queries.shape[0], points.shape[0])
            torch.mm(queries, points.T, out=scores)
            block = (tile - start) // BLOCK
            blocks = scores.view(queries.shape[0], -1, BLOCK)
            largest[:, block : block + blocks.shape[1]] = blocks.amax(dim=2)
        return largest


class IntegerScreen(AbstractScreen):
    """Scores of coordinates rounded to 8-bit integers; four times as fast where the processor supports it."""

    def __init__(self, frame: Frame) -> None:
        d = _padded(frame.points.shape[1])
        self._queries, scales = _rounded(frame.queries, frame.queries.abs().amax(dim=1), d)
        largest = frame.points.abs().amax().reshape(1)
        points, spacing = _rounded(_repeat_last(frame.points, TILE), largest, d)
        self._tiles = [tile.T for tile in torch.split(points, TILE)]
        self._units = scales * spacing[0]
        missing = _residual(frame.queries, self._queries, scales)
        lost = _residual(frame.points, points[: frame.points.shape[0]], spacing).max()
        farthest = frame.lengths.max().to(missing.dtype)
        # The frame's own error covers the rounding of these few operations, which are relative to |p| |y| too.
        self.error = missing * farthest + (1 + missing) * lost + 4 * frame.error

    def maxima(self, rows: Indices, start: int, stop: int) -> torch.Tensor:
        # Always the same shape, the one that was tested.
        queries = _repeat_last(self._queries[rows], ROWS)
        per_tile = TILE // BLOCK
        tiles = self._tiles[start // TILE : -(-stop // TILE)]
        largest = torch.empty(len(tiles), ROWS, per_tile, dtype=torch.int32)
        scores = torch.empty(ROWS, TILE, dtype=torch.int32)  # not shared: several threads may call this at a time
        by_block = scores.view(ROWS, per_tile, BLOCK)
        for points, some in zip(tiles, largest, strict=True):
            torch._int_mm(queries, points, out=scores)
            torch.amax(by_block, dim=2, out=some)
        blocks = -(-(stop - start) // BLOCK)
        by_row = largest.permute(1, 0, 2).reshape(ROWS, -1)
        return by_row[: len(rows), :blocks].to(self._units.dtype) * self._units[rows, None]


def integers_are_fast(dimension: int) -> bool:
    """Whether this processor multiplies 8-bit integers fast, and exactly for matrices of the shape used here."""
    return dimension <= 1024 and _processor_has_integer_products() and _products_are_exact(_padded(dimension))


def _processor_has_integer_products() -> bool:
    capabilities: Mapping[str, object] = getattr(torch.cpu, "get_capabilities", dict)()
    return bool(capabilities.get("avx512_vnni") or capabilities.get("amx_int8")) and hasattr(torch, "_int_mm")


@lru_cache
def _products_are_exact(d: int) -> bool:
    # Some versions of the underlying library overflow silently on some processors, so the products are tested once.
    generator = torch.Generator().manual_seed(0)
    left = torch.randint(-127, 128, (ROWS, d), generator=generator, dtype=torch.int8)
    right = torch.randint(-127, 128, (TILE, d), generator=generator, dtype=torch.int8)
    left[::3], right[::3], left[::7], right[::5] = 127, 127, -127, -127
    found = torch.empty(ROWS, TILE, dtype=torch.int32)
    torch._int_mm(left, right.T, out=found)
    return torch.equal(found.double(), left.double() @ right.double().T)


def _padded(d: int) -> int:
    return -(-d // 16) * 16


def _repeat_last(rows: torch.Tensor, multiple: int) -> torch.Tensor:
    """Rows, the last of them repeated up to a multiple."""
    missing = -rows.shape[0] % multiple
    return torch.cat([rows, rows[-1:].expand(missing, -1)]) if missing else rows


def _rounded(vectors: Points, largest: torch.Tensor, d: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Vectors in units of ``largest / 127``, to the nearest integers and with zeros for more coordinates."""
    unit = largest.clamp(min=torch.finfo(vectors.dtype).tiny * 256) / 127
    integers = torch.zeros(vectors.shape[0], d, dtype=torch.int8)
    integers[:, : vectors.shape[1]] = (vectors / unit[:, None]).round().clamp(-127, 127)
    return integers, unit


def _residual(vectors: Points, integers: torch.Tensor, unit: torch.Tensor) -> torch.Tensor:
    """Bound on the distance of each vector from its integers, rounding included."""
    lost = vectors - integers[:, : vectors.shape[1]] * unit[:, None]
    return length(lost) * (1 + 1e-4)
