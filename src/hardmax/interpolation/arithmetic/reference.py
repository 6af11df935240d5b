r"""The slow oracle: a network evaluated line by line from the definition, with plain fractions and dense matrices.

It shares only the weights with the fast exact evaluator. Nothing in the library calls it; tests compare the fast
evaluator with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from ..network import Block, dense
from .numbers import as_fraction

Point = list[Fraction]


def _times(matrix: Sequence[Sequence[Fraction]], x: Point) -> Point:
    return [sum((m * c for m, c in zip(row, x, strict=True)), Fraction(0)) for row in matrix]


def _inner(x: Point, y: Point) -> Fraction:
    return sum((a * b for a, b in zip(x, y, strict=True)), Fraction(0))


def feed_forward(block: Block, x: Point) -> Point:
    r""":math:`\eta x + \sum_r w_r \mathrm{relu}(\langle u_r, x\rangle + b_r)`."""
    result = [as_fraction(block.eta) * c for c in x]
    for neuron in block.neurons:
        reading = [as_fraction(c) for c in neuron.reading]
        height = max(_inner(reading, x) + as_fraction(neuron.bias), Fraction(0))
        result = [r + as_fraction(w) * height for r, w in zip(result, neuron.writing, strict=True)]
    return result


def attention(block: Block, tokens: list[Point], counted: Sequence[int]) -> list[Point]:
    r""":math:`\rho x_i + V\,\mathrm{mean}\{x_l : l\in C_i\}` with l among ``counted``, ties by equality of numbers."""
    d = len(tokens[0])
    B = [[as_fraction(c) for c in row] for row in dense(block.B, d)]
    V = [[as_fraction(c) for c in row] for row in dense(block.V, d)]
    moved = []
    for x in tokens:
        query = _times(B, x)
        scores = [_inner(query, tokens[i]) for i in counted]
        chosen = [tokens[i] for i, score in zip(counted, scores, strict=True) if score == max(scores)]
        mean = [sum((z[k] for z in chosen), Fraction(0)) / len(chosen) for k in range(d)]
        moved.append([as_fraction(block.rho) * a + b for a, b in zip(x, _times(V, mean), strict=True)])
    return moved


def run(blocks: Sequence[Block], tokens: Sequence[Sequence[Fraction]]) -> list[tuple[Fraction, ...]]:
    """Output of every token of one sequence, d fractions each; a repeated token counts once in every mean."""
    current = [list(x) for x in tokens]
    counted = [i for i, x in enumerate(current) if x not in current[:i]]
    for block in blocks:
        current = attention(block, [feed_forward(block, x) for x in current], counted)
    return [tuple(x) for x in current]
