r"""Exact evaluation of a network on many sequences at once.

A coordinate of a token is an exact rational (``fmpq``) or, under softmax attention, a ball that provably contains it
(``arb``). Every block acts on every token; only a proved identity is skipped: tokens at which
the affine map of the layer (see :mod:`.affine`) fixes the token, and sequences whose tokens are all annihilated by
:math:`V`. A coordinate whose coefficients on all balls cancel exactly is an exact rational again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from flint import arb, fmpq

from ...errors import HardmaxError
from ...progress import Progress, telling
from ..network import Block, LowRank, Neuron
from .affine import AffineMap, SignFilter, affine_map, patterns
from .numbers import ZERO, Vector, to_float

Number: TypeAlias = Any  # fmpq, or arb under softmax: both add, multiply and compare
# Products of smaller numbers with coefficients may underflow in float64.
_NEAR_ZERO = 1e-290


class UndecidedError(HardmaxError):
    """Error: ball arithmetic of the present precision cannot decide a sign."""


@dataclass
class Margins:
    """Smallest distances of the evaluation from a change of a decision."""

    activation: float = np.inf
    """Smallest distance of a pre-activation from zero (those exactly at zero left out)."""
    score: float = np.inf
    """Smallest difference between the best attention score and the next."""


def first_occurrences(tokens: Sequence[Vector]) -> list[int]:
    """The position of the first of each group of equal tokens, ascending."""
    first: dict[Vector, int] = {}
    for position, token in enumerate(tokens):
        first.setdefault(tuple(token), position)
    return list(first.values())


class State:
    """Tokens of many sequences, with float64 midpoints and radii that enclose them."""

    def __init__(self, sequences: Sequence[Sequence[Vector]]) -> None:
        self.counted = [first_occurrences(tokens) for tokens in sequences]
        """Per sequence, the positions that attention averages over: each distinct input token once."""
        self.rows: list[list[Number]] = [list(x) for tokens in sequences for x in tokens]
        self.starts = np.concatenate([[0], np.cumsum([len(tokens) for tokens in sequences])]).astype(np.int64)
        self.dimension = len(self.rows[0])
        self.middle = np.zeros((len(self.rows), self.dimension), order="F")  # layers mostly read one coordinate
        self.radius = np.zeros_like(self.middle)
        self.has_balls = False
        """Whether some radius may be positive."""
        for index in range(len(self.rows)):
            self.refresh(index, range(self.dimension))
        self.margins = Margins()

    def refresh(self, index: int, coordinates: Sequence[int]) -> None:
        """Update midpoint and radius of one token."""
        row, middle = self.rows[index], self.middle[index]
        for k in coordinates:
            value = row[k]
            if isinstance(value, fmpq):
                middle[k] = near = to_float(value)
                self.radius[index, k] = 0.0
                if value and -_NEAR_ZERO < near < _NEAR_ZERO:  # rounding is relative, except next to zero
                    self.radius[index, k] = _NEAR_ZERO
                    self.has_balls = True
            else:
                self.has_balls = True
                middle[k] = float(value.mid())
                self.radius[index, k] = float(value.rad().upper()) * 1.000001 + 1e-300

    def zero(self, index: np.ndarray | None = None) -> np.ndarray:
        """Mask of the tokens ``index``, or of all, whose coordinate is exactly zero."""
        middle, radius = (self.middle, self.radius) if index is None else (self.middle[index], self.radius[index])
        return np.asarray((middle == 0.0) & (radius == 0.0))

    def sequences(self) -> list[list[list[Number]]]:
        """Tokens per sequence."""
        return [self.rows[a:b] for a, b in zip(self.starts[:-1], self.starts[1:], strict=True)]


def is_exact(value: Number) -> bool:
    """Whether a coordinate is a rational, not a ball."""
    return isinstance(value, fmpq)


def linear(row: Sequence[tuple[int, fmpq]], x: Sequence[Number], shift: fmpq = ZERO) -> Number:
    """``shift + sum_j m_j x_j`` over the pairs (j, m_j): exact when all the coordinates it reads are."""
    total: Number = shift
    for j, m in row:
        total = total + (x[j] if m == 1 else m * x[j])
    return total


def sparse(vector: Vector) -> tuple[tuple[int, fmpq], ...]:
    """The entries that are not zero, as pairs (index, value)."""
    return tuple((k, x) for k, x in enumerate(vector) if x)


def feed_forward(state: State, block: Block) -> None:
    """Apply one feed-forward layer to every token."""
    if block.eta == 1 and not block.neurons:
        return
    screen = SignFilter(block, state.dimension)
    index, margin = np.arange(len(state.rows)), np.inf
    if block.eta == 1:
        index, margin = screen.possibly_active(state.middle, state.radius, exact=not state.has_balls)
        state.margins.activation = min(state.margins.activation, margin)
    if not len(index):
        return

    def decide(row: int, neuron: Neuron) -> bool:
        value = linear(sparse(neuron.reading), state.rows[int(index[row])], neuron.bias)
        if value > 0:
            return True
        if is_exact(value) or value <= 0:
            return False
        raise UndecidedError(f"the sign of {value}")

    on, margin = screen.active(state.middle[index], state.radius[index], decide)
    state.margins.activation = min(state.margins.activation, margin)
    for active, members in patterns(on):
        on_here = [n for n, yes in zip(block.neurons, active, strict=True) if yes]
        _apply(state, affine_map(block, on_here, state.dimension), index[members])


def _apply(state: State, piece: AffineMap, index: np.ndarray) -> None:
    changed = piece.changed()
    if not changed:
        return
    if not any(piece.shift):
        reads = piece.reads()
        index = index[~state.zero(index)[:, reads].all(axis=1)]
    for i in index.tolist():
        x = state.rows[i]
        new = [linear(piece.rows[k], x, piece.shift[k]) for k in changed]
        for k, value in zip(changed, new, strict=True):
            x[k] = value
        state.refresh(i, changed)


def attention(state: State, block: Block, temperature: fmpq | None) -> None:
    """Apply one attention layer: hardmax, or softmax when a temperature is given."""
    if not block.V:
        if block.rho != 1:
            for i, row in enumerate(state.rows):
                state.rows[i] = [block.rho * x for x in row]
                state.refresh(i, range(state.dimension))
        return
    support = sorted({k for term in block.V for k, _ in sparse(term.right)})
    annihilated = np.logical_and.reduceat(state.zero()[:, support].all(axis=1), state.starts[:-1])
    has_identity = block.rho == 1
    right = [sparse(term.right) for term in block.V]
    left = [sparse(term.left) for term in block.V]
    written = range(state.dimension) if not has_identity else sorted({k for term in left for k, _ in term})
    for j, (start, end) in enumerate(zip(state.starts[:-1].tolist(), state.starts[1:].tolist(), strict=True)):
        if annihilated[j] and has_identity:
            continue
        tokens = state.rows[start:end]
        averaged = [tokens[i] for i in state.counted[j]]
        values = [[linear(r, x) for x in averaged] for r in right]
        means = _means(tokens, averaged, values, block.B, temperature, state.margins)
        for offset, x in enumerate(tokens):
            new = x if has_identity else [block.rho * c for c in x]
            for term, mean in zip(left, means, strict=True):
                for k, a in term:
                    new[k] = new[k] + a * mean[offset]
            state.rows[start + offset] = new
            state.refresh(start + offset, written)


def _means(
    tokens: list[list[Number]],
    averaged: list[list[Number]],
    values: list[list[Number]],
    B: LowRank,
    temperature: fmpq | None,
    margins: Margins,
) -> list[list[Number]]:
    """For each list of values of the tokens ``averaged``, the mean that every one of ``tokens`` receives."""
    if not B:
        return [[_average(v)] * len(tokens) for v in values]
    queries = [[linear(sparse(term.right), x) for x in tokens] for term in B]
    keys = [[linear(sparse(term.left), x) for x in averaged] for term in B]
    if temperature is not None:
        return _soft_means(queries, keys, values, temperature)
    chosen = _attended(queries, keys, margins)
    cache: dict[tuple[int, ...], list[Number]] = {}
    for members in set(chosen):
        cache[members] = [_average([v[m] for m in members]) for v in values]
    return [[cache[members][k] for members in chosen] for k in range(len(values))]


def _average(values: list[Number]) -> Number:
    total: Number = ZERO
    for value in values:
        total = total + value
    return total / len(values)


def _attended(queries: list[list[Number]], keys: list[list[Number]], margins: Margins) -> list[tuple[int, ...]]:
    """The keys of the largest score, for every query; ties by equality of rationals."""
    if len(keys) == 1:
        # A rank-one score q_i k_l is largest where k_l is largest, smallest or anywhere, by the sign of q_i.
        signs = [_sign(q) for q in queries[0]]
        chosen = {sign: _largest([sign * k for k in keys[0]], margins) for sign in set(signs)}
        return [chosen[sign] for sign in signs]
    return [
        _largest(
            [
                linear([(t, queries[t][i]) for t in range(len(keys)) if queries[t][i]], column)
                for column in zip(*keys, strict=True)
            ],
            margins,
        )
        for i in range(len(queries[0]))
    ]


def _sign(value: Number) -> int:
    return int(value > 0) - int(value < 0)


def _largest(scores: list[Number], margins: Margins) -> tuple[int, ...]:
    best = max(scores)
    rest = [s for s in scores if s != best]
    if rest:
        margins.score = min(margins.score, to_float(best - max(rest)))
    return tuple(token for token, s in enumerate(scores) if s == best)


def _soft_means(
    queries: list[list[Number]], keys: list[list[Number]], values: list[list[Number]], temperature: fmpq
) -> list[list[Number]]:
    """Softmax averages as balls; a value that all tokens share stays exact."""
    others = range(len(keys[0]))
    result: list[list[Number]] = [[] for _ in values]
    for i in range(len(queries[0])):
        scores = [_score([q[i] for q in queries], [k[m] for k in keys], temperature) for m in others]
        top = max(others, key=lambda m: scores[m] if is_exact(scores[m]) else scores[m].mid())
        weights = [arb(1) if m == top else arb(scores[m] - scores[top]).exp() for m in others]
        total = sum(weights, arb(0))
        for v, out in zip(values, result, strict=True):
            if all(is_exact(x) and x == v[top] for x in v):
                out.append(v[top])
                continue
            # Relative to the top token, so that the ball is as small as the contribution of the others.
            mean = arb(v[top])
            for m in others:
                if m != top:
                    mean = mean + weights[m] / total * (v[m] - v[top])
            out.append(mean)
    return result


def _score(query: list[Number], key: list[Number], temperature: fmpq) -> Number:
    """``<query, key> / temperature``, a rational when both vectors are."""
    total: Number = ZERO
    for q, k in zip(query, key, strict=True):
        total = total + q * k
    return total / temperature


def evaluate(
    blocks: Sequence[Block],
    sequences: Sequence[Sequence[Vector]],
    temperature: fmpq | None = None,
    progress: Progress = False,
) -> State:
    """State after all blocks, exact; attention is softmax where a ``temperature`` is given.

    A sequence is a set of tokens: a repeated token has the same output as its first occurrence and counts once in every
    mean.
    """
    state = State(sequences)
    with telling("evaluating blocks exactly", len(blocks), progress) as tell:
        for done, block in enumerate(blocks):
            with np.errstate(all="ignore"):  # overflow leaves a sign open, and open signs are decided exactly
                feed_forward(state, block)
            attention(state, block, temperature)
            tell("evaluating blocks", done + 1, len(blocks))
    return state
