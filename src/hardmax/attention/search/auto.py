"""The entry point of the exact search: methods differ in speed, not in the result."""

from __future__ import annotations

from dataclasses import replace

import torch

from ...errors import InputError
from ...shapes import Indices, PerQuery, Queries, Tokens
from .. import kernels
from ..choice import AbstractBallot, Ballot, Choice
from ..normal_form import exponents_of, scale_rows, scaled_down
from .accelerated import decide_by_kernels, takes
from .blocks import decide_by_blocks, decide_by_longest
from .cells import HIGHEST_DIMENSION, decide_by_cells
from .margins import tie_margin
from .tree import decide_by_tree

METHODS = ("auto", "cells", "tree", "pruned", "dense")

# Numbers outside this range might overflow or lose digits when squared.
_SMALLEST, _LARGEST = 2.0**-400, 2.0**400
# For fewer pairs, queries or points preparation does not pay; float32 copies pay from this many pairs.
_FEW_PAIRS, _FEW_QUERIES, _FEW_POINTS = 1 << 20, 128, 512
_FLOAT32_PAYS_FROM = 1 << 22
# With more coordinates a tree visits nearly all points.
_TREE_PAYS_UP_TO = 6


def attended(
    queries: Queries, points: Tokens, *, tolerance: float, method: str = "auto", hint: Indices | None = None
) -> Choice:
    r"""The sets :math:`C_i`: for each query, the points whose score is within the tolerance of the largest.

    Parameters
    ----------
    queries, points
        Finite float64 tensors on one device, shapes (queries, d) and (points, d), with numbers of any size; the
        coordinates of points must not range over more than 288 orders of magnitude.
    tolerance
        Relative tolerance: a score ties when it is within ``tolerance`` times the length of the query times that of
        the longest point of the largest score.
    method
        ``"cells"`` (few coordinates), ``"tree"`` (points on a sphere), ``"pruned"`` (lengths that differ) or
        ``"dense"``; ``"auto"`` selects the one that should be fastest. The result is the same, to the last bit, and a
        method that does not suit the points is replaced by one that does. On a GPU with Triton ``"auto"`` runs Triton
        kernels.
    hint
        Index of a point with a large score for each query, shape (queries,), if known; makes ``"pruned"`` stop earlier.

    Returns
    -------
    Choice
        The set of each query; ``choice[i]`` lists the members for query i.

    Examples
    --------
    >>> square = torch.tensor([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]], dtype=torch.float64)
    >>> attended(torch.tensor([[3.0, 0.0]], dtype=torch.float64), square, tolerance=1e-14)[0]
    tensor([0, 1])
    """
    if method not in METHODS:
        raise InputError("method", repr(method), "is not a search method", f"pass one of {', '.join(METHODS)}")
    size = queries.abs().amax(dim=1)
    if not bool(is_ordinary(size).all() & is_ordinary(points.abs().max())):
        return _attended_at_any_size(queries, points, tolerance, method, hint)
    ballot = Ballot(queries, points, tolerance)
    if bool(size.any()):
        if method == "auto" and ballot.longest > 0 and kernels.usable(points.device) and takes(points.shape[1]):
            decide_by_kernels(ballot, queries, points, tie_margin(tolerance, points.shape[1]), tolerance)
        else:
            decide(ballot, queries, points, tolerance, method, hint)
    return ballot.choice()


def is_ordinary(size: torch.Tensor) -> torch.Tensor:
    """True where the square of a number of this size neither overflows nor loses digits."""
    return ((size > _SMALLEST) & (size < _LARGEST)) | (size == 0)


def _attended_at_any_size(
    queries: Queries, points: Tokens, tolerance: float, method: str, hint: Indices | None
) -> Choice:
    """Choice of :func:`attended` for numbers whose squares leave the range of float64.

    Points, and each query by itself, are brought near one by exact powers of two.
    """
    scaled, exponent = scaled_down("points", points)
    exponents = exponents_of(queries.abs().amax(dim=1))
    choice = attended(scale_rows(queries, -exponents), scaled, tolerance=tolerance, method=method, hint=hint)
    return replace(choice, best=scale_rows(choice.best, exponents + exponent))


def decide(
    ballot: AbstractBallot,
    queries: Queries,
    points: Tokens,
    tolerance: float,
    method: str,
    hint: Indices | None = None,
    known: PerQuery | None = None,
) -> None:
    """Decide all queries that are not zero, without Triton kernels.

    ``known`` is a score of each query (perhaps -inf): candidates below it by more than the tolerance may be left out.
    """
    margin = tie_margin(tolerance, points.shape[1])
    d, pairs = points.shape[1], queries.shape[0] * points.shape[0]
    on_processor = points.device.type == "cpu"
    low = method == "auto" and pairs > _FEW_PAIRS and on_processor
    if (method == "tree" or (low and d <= _TREE_PAYS_UP_TO)) and decide_by_tree(
        ballot, queries.numpy(), points.numpy(), margin
    ):
        return
    if (
        (method == "cells" or low)
        and 2 <= d <= HIGHEST_DIMENSION
        and decide_by_cells(ballot, queries.numpy(), points.numpy(), margin)
    ):
        return
    small = pairs <= _FEW_PAIRS or queries.shape[0] <= _FEW_QUERIES or points.shape[0] <= _FEW_POINTS
    coarse = pairs >= _FLOAT32_PAYS_FROM and _float32_has_full_precision(points.device)
    dtype = torch.float32 if coarse else torch.float64
    if method == "dense" or not on_processor or (method == "auto" and small):
        decide_by_blocks(ballot, queries, points, margin, dtype=dtype)
    else:
        decide_by_longest(ballot, queries, points, margin, dtype=dtype, hint=hint, known=known)


def _float32_has_full_precision(device: torch.device) -> bool:
    """Whether products of float32 numbers have full precision; torch can be set to use less."""
    return device.type == "cpu" and torch.get_float32_matmul_precision() == "highest"
