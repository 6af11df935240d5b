"""The hardmax choice in exact rational arithmetic: every float is a rational, and so is every score."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import torch
from flint import fmpq, fmpq_mat

from ..errors import InputError
from ..shapes import Square, Tokens
from .choice import Choice

# n tokens need n^2 exact scores per layer: more tokens would take minutes.
LARGEST_EXACT = 2000

Rational = fmpq
Rows = list[list[Rational]]


def rational(value: float | int | Fraction) -> Rational:
    """Rational that equals the number exactly.

    >>> rational(0.5), rational(Fraction(1, 3))
    (1/2, 1/3)
    """
    numerator, denominator = value.as_integer_ratio()
    return fmpq(numerator, denominator)


def rational_rows(array: torch.Tensor) -> Rows:
    """Rows of a tensor as rationals."""
    return [[rational(x) for x in row] for row in array.tolist()]


def as_float(value: Rational) -> float:
    """Nearest float."""
    return float(Fraction(int(value.p), int(value.q)))


def require_small(count: int) -> None:
    """Raise an InputError for sizes at which exact arithmetic takes too long."""
    if count > LARGEST_EXACT:
        raise InputError(
            "tokens",
            f"{count} distinct tokens",
            f'must be at most {LARGEST_EXACT} with tolerance="exact"',
            "leave out `tolerance`: the default re-checks near-ties in float64",
        )


def attended_sets(A: Rows, Z: Rows, queries: Sequence[int]) -> list[list[int]]:
    r""":math:`C_i(Z)` for the given tokens i, exactly; ascending."""
    if not queries:
        return []
    Q = fmpq_mat([Z[i] for i in queries]) * fmpq_mat(A).transpose()
    scores = (Q * fmpq_mat(Z).transpose()).tolist()
    chosen = []
    for row in scores:
        best = max(row)
        chosen.append([j for j, value in enumerate(row) if value == best])
    return chosen


def exact_choice_in(
    left: torch.Tensor,
    right: torch.Tensor,
    tokens: Tokens,
    positions: Sequence[int],
    intervals: Sequence[tuple[int, int]],
    *,
    shifts: tuple[torch.Tensor | None, torch.Tensor | None] = (None, None),
    table: Rows | None = None,
) -> Choice:
    r"""Sets C_i of the tokens at ``positions``, each among the tokens of its interval, with ties by exact equality.

    Scores are :math:`\langle L z_i + l, R z_k + r\rangle + b(i, k)` with ``left``, ``right``, ``shifts`` and ``table``.
    """
    require_small(tokens.shape[0])
    rows = rational_rows(tokens)
    moved = [
        _affine(rational_rows(matrix), None if shift is None else rational_rows(shift[None])[0], rows)
        for matrix, shift in zip((left, right), shifts, strict=True)
    ]
    chosen, best, zero = [], [], []
    for number, (i, (start, stop)) in enumerate(zip(positions, intervals, strict=True)):
        query = moved[0][i]
        values = [sum((q * k for q, k in zip(query, key, strict=True)), fmpq(0)) for key in moved[1][start:stop]]
        if table is not None:
            values = [value + extra for value, extra in zip(values, table[number][start:stop], strict=True)]
        largest = max(values)
        chosen.append([start + k for k, value in enumerate(values) if value == largest])
        best.append(as_float(largest))
        zero.append(table is None and not any(query))
    return _as_choice(chosen, best, zero, tokens.device)


def _affine(matrix: Rows, shift: list[Rational] | None, rows: Rows) -> Rows:
    moved: Rows = (fmpq_mat(rows) * fmpq_mat(matrix).transpose()).tolist()
    return moved if shift is None else [[x + s for x, s in zip(row, shift, strict=True)] for row in moved]


def exact_choice(A: Square, tokens: Tokens) -> Choice:
    """Sets C_i of all tokens, with ties by exact equality."""
    require_small(tokens.shape[0])
    rows, matrix = rational_rows(tokens), rational_rows(A)
    queries = (fmpq_mat(rows) * fmpq_mat(matrix).transpose()).tolist()
    chosen = attended_sets(matrix, rows, range(len(rows)))
    zero = [all(x == 0 for x in query) for query in queries]
    best = [
        as_float(sum((q * z for q, z in zip(query, rows[c[0]], strict=True)), fmpq(0)))
        for query, c in zip(queries, chosen, strict=True)
    ]
    return _as_choice(chosen, best, zero, tokens.device)


def _as_choice(chosen: list[list[int]], best: list[float], zero: list[bool], device: torch.device) -> Choice:
    tied = [i for i, c in enumerate(chosen) if len(c) > 1 and not zero[i]]
    sizes = [len(chosen[i]) for i in tied]
    return Choice(
        first=torch.tensor([c[0] for c in chosen], device=device),
        best=torch.tensor(best, dtype=torch.float64, device=device),
        everyone=torch.tensor(zero, device=device),
        tied=torch.tensor(tied, dtype=torch.int64, device=device),
        offsets=torch.tensor([0, *sizes], dtype=torch.int64, device=device).cumsum(0),
        members=torch.tensor([j for i in tied for j in chosen[i]], dtype=torch.int64, device=device),
    )
