"""Softmax-weighted means on a GPU in float32, fused so that no matrix of scores is ever held."""

from __future__ import annotations

import math

import torch

from ..shapes import PerToken, Queries, Tokens
from .search.accelerated import best_points

_LOG2E = math.log2(math.e)
_FEW, _MOST = 4, 64
# Rows to a program for one to four coordinates; rows and columns to a tile for more. Measured on an H200.
_ROWS_OF_FEW = {1: 16, 2: 16, 3: 8, 4: 8}
_TILE = (64, 64)
_CHUNK = 1024
# Weights have a wide range: bfloat16 has that of float32.
_WEIGHT_PIECES = torch.bfloat16
# Powers of two between those of plus and minus this, and sums of many of them, have all their digits in float32.
_SAFE = 60.0


def takes(dimension: int) -> bool:
    """Whether the kernels take points of so many coordinates."""
    return dimension <= _MOST


def softmax_means(queries: Queries, points: Tokens, weights: PerToken | None = None) -> Queries:
    """For each query q the mean of the points z with weights proportional to ``w exp(<q, z>)``, in float32.

    Tensors on a GPU; the points of at most 64 coordinates.
    """
    queries, points = queries.float() * _LOG2E, points.float()
    mass = None if weights is None else weights.double().log2().float()
    span = queries.square().sum(dim=1).max() * points.square().sum(dim=1).max()
    shift = None
    if not float(span) < _SAFE**2:
        shift = _largest(queries, points)
    return (_few if points.shape[1] <= _FEW else _more)(queries, points, mass, shift)


def _largest(queries: Queries, points: Tokens) -> torch.Tensor:
    found = best_points(queries, points, 1e-6, 0.0)
    largest = torch.zeros(len(queries), device=queries.device)
    largest[found.rows] = found.best.float()
    return largest


def _padded_rows(vectors: torch.Tensor, multiple: int, value: float = 0.0) -> torch.Tensor:
    missing = -vectors.shape[0] % multiple
    return torch.nn.functional.pad(vectors, (0, 0) * (vectors.ndim - 1) + (0, missing), value=value)


def _masses(mass: torch.Tensor | None, count: int, multiple: int, device: torch.device) -> tuple[torch.Tensor, bool]:
    """Logarithms of the weights; what fills up the last tile weighs nothing."""
    if mass is None and count % multiple == 0:
        return torch.empty(1, device=device), False
    mass = torch.zeros(count, device=device) if mass is None else mass
    return _padded_rows(mass, multiple, -torch.inf), True


def _few(queries: Queries, points: Tokens, mass: torch.Tensor | None, shift: torch.Tensor | None) -> Queries:
    from .kernels import softmax as kernels

    n, d = queries.shape
    rows, columns = _ROWS_OF_FEW[d], 128
    masses, weighted = _masses(mass, len(points), columns, points.device)
    q, z = _padded_rows(queries, rows).T.contiguous(), _padded_rows(points, columns).T.contiguous()
    out = torch.empty_like(q)
    kernels.few_coordinates[(q.shape[1] // rows,)](
        q, z, masses, q if shift is None else _padded_rows(shift, rows), out, q.shape[1], z.shape[1],
        D=d, ROWS=rows, COLUMNS=columns, WEIGHTED=weighted, SHIFTED=shift is not None, num_warps=4,
    )  # fmt: skip
    return out[:, :n].T.contiguous()


def _more(queries: Queries, points: Tokens, mass: torch.Tensor | None, shift: torch.Tensor | None) -> Queries:
    from .kernels import softmax as kernels

    n, d = queries.shape
    rows, columns = _TILE
    width = max(16, 1 << (d - 1).bit_length())
    masses, weighted = _masses(mass, len(points), _CHUNK, points.device)
    # Halves have a narrow range: points come to length about one and queries take the factor, or scores do.
    unit = torch.exp2(-torch.frexp(points.abs().max()).exponent.float())
    factor = (1.0 if shift is None else queries.norm(dim=1).clamp_min(1e-30)) / unit
    asked = queries / unit if shift is None else queries / (factor * unit)[:, None]
    q_high, q_low = _pieces(asked, torch.float16, rows, width)
    z_high, z_low = _pieces(points * unit, torch.float16, _CHUNK, width)
    values = torch.cat(_pieces(points, _WEIGHT_PIECES, _CHUNK, width), dim=1)
    out = torch.empty(len(q_high), 2 * width, device=points.device)
    kernels.more_coordinates[(len(out) // rows,)](
        q_high, q_low, z_high, z_low, values, masses,
        unit if shift is None else _padded_rows(shift, rows), unit if shift is None else _padded_rows(factor, rows),
        out, len(z_high),
        K=width, ROWS=rows, COLUMNS=columns, CHUNK=_CHUNK, WEIGHTED=weighted, SHIFTED=shift is not None,
        STAGES=3, num_warps=4,
    )  # fmt: skip
    return out[:n, :d] + out[:n, width : width + d]


def _pieces(vectors: torch.Tensor, dtype: torch.dtype, multiple: int, width: int) -> tuple[torch.Tensor, torch.Tensor]:
    vectors = torch.nn.functional.pad(_padded_rows(vectors, multiple), (0, width - vectors.shape[1]))
    high = vectors.to(dtype)
    return high, (vectors - high.float()).to(dtype)
