"""A network under softmax attention evaluated from the definition with mpmath, sharing nothing with ball arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from mpmath import mp, mpf

from hardmax.interpolation import Block
from hardmax.interpolation.network import dense


def _number(x: object) -> mpf:
    exact = Fraction(str(x))
    return mpf(exact.numerator) / exact.denominator


def _times(matrix: list[list[mpf]], x: list[mpf]) -> list[mpf]:
    return [mp.fdot(row, x) for row in matrix]


def run(
    blocks: Sequence[Block], tokens: Sequence[Sequence[object]], temperature: object, digits: int = 60
) -> list[list[mpf]]:
    """Where every token ends; equal tokens count once."""
    with mp.workdps(digits):
        x = [[_number(c) for c in token] for token in tokens]
        counted = [i for i, token in enumerate(x) if token not in x[:i]]
        heat = _number(temperature)
        for block in blocks:
            x = [_feed_forward(block, token) for token in x]
            B, V = ([[_number(c) for c in row] for row in dense(m, len(x[0]))] for m in (block.B, block.V))
            x = [_attend(B, V, _number(block.rho), token, [x[i] for i in counted], heat) for token in x]
        return x


def _feed_forward(block: Block, x: list[mpf]) -> list[mpf]:
    moved = [_number(block.eta) * c for c in x]
    for neuron in block.neurons:
        height = max(mp.fdot([_number(c) for c in neuron.reading], x) + _number(neuron.bias), mpf(0))
        moved = [m + _number(w) * height for m, w in zip(moved, neuron.writing, strict=True)]
    return moved


def _attend(
    B: list[list[mpf]], V: list[list[mpf]], rho: mpf, x: list[mpf], others: list[list[mpf]], heat: mpf
) -> list[mpf]:
    query = _times(B, x)
    scores = [mp.fdot(query, z) / heat for z in others]
    weights = [mp.exp(s - max(scores)) for s in scores]
    mean = [sum(w * z[k] for w, z in zip(weights, others, strict=True)) / sum(weights) for k in range(len(x))]
    return [rho * c + m for c, m in zip(x, _times(V, mean), strict=True)]
