"""Sixteen adversarial families of data sets for the constructions, each from a seed."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from fractions import Fraction

Token = tuple[Fraction, ...]
Sets = list[list[Token]]


def _token(rng: random.Random, d: int, size: int) -> Token:
    return tuple(Fraction(rng.randint(-size, size)) for _ in range(d))


def _distinct_sets(rng: random.Random, count: int, draw: Callable[[], set[Token]]) -> Sets:
    found: dict[frozenset[Token], None] = {}
    for _ in range(50 * count):
        found.setdefault(frozenset(draw()))
        if len(found) == count:
            break
    return [sorted(x) for x in found]


def grid(rng: random.Random, d: int) -> Sets:
    """Few places, many overlaps."""
    return _distinct_sets(rng, rng.randint(2, 10), lambda: {_token(rng, d, 1) for _ in range(rng.randint(1, 6))})


def subsets(rng: random.Random, d: int) -> Sets:
    """All non-empty subsets of one set."""
    base = list({_token(rng, d, 3) for _ in range(4)})
    return [list(x) for k in range(1, len(base) + 1) for x in itertools.combinations(base, k)]


def chain(rng: random.Random, d: int) -> Sets:
    """Each set contains the one before it."""
    base = list({_token(rng, d, 4) for _ in range(9)})
    return [base[: k + 1] for k in range(len(base))]


def symmetric(rng: random.Random, d: int) -> Sets:
    """All means are zero."""

    def draw() -> set[Token]:
        half = {_token(rng, d, 3) for _ in range(rng.randint(1, 3))}
        return half | {tuple(-c for c in x) for x in half}

    return _distinct_sets(rng, rng.randint(2, 8), draw)


def flip(rng: random.Random, d: int) -> Sets:
    """Clusters on a line with equal counts, sums and extremes; one of them differs in each set but the first."""
    k = rng.randint(2, 6)
    plain, other = (-1, 0, 3, 4), (-1, 1, 2, 4)
    result = []
    for flipped in [None, *range(k)]:
        values = [100 * c + v for c in range(k) for v in (other if c == flipped else plain)]
        result.append([(Fraction(v), *(Fraction(0),) * (d - 1)) for v in values])
    return result


def equal_powers(rng: random.Random, d: int) -> Sets:
    """Prouhet-Thue-Morse sets: equal sums of many powers."""
    k = rng.randint(2, 4)
    parts: tuple[list[int], list[int]] = ([], [])
    for v in range(2**k):
        parts[v.bit_count() % 2].append(v)
    shift = _token(rng, d, 2)
    place = lambda v: (v + shift[0], *shift[1:])  # noqa: E731
    return [[place(Fraction(v)) for v in part] for part in parts]


def singletons(rng: random.Random, d: int) -> Sets:
    """One token each."""
    return [[x] for x in {_token(rng, d, 3) for _ in range(rng.randint(2, 9))}]


def zero_token(rng: random.Random, d: int) -> Sets:
    """The zero vector in every set."""
    zero = (Fraction(0),) * d
    return _distinct_sets(
        rng, rng.randint(2, 8), lambda: {zero} | {_token(rng, d, 2) for _ in range(rng.randint(0, 4))}
    )


def tiny(rng: random.Random, d: int) -> Sets:
    """Tokens from a thousandth to a million-millionth apart."""
    step = Fraction(1, 10 ** rng.randint(3, 12))
    base = [_token(rng, d, 2) for _ in range(4)]

    def draw() -> set[Token]:
        return {tuple(c + step * rng.randint(-2, 2) for c in rng.choice(base)) for _ in range(rng.randint(1, 5))}

    return _distinct_sets(rng, rng.randint(2, 7), draw)


def huge(rng: random.Random, d: int) -> Sets:
    """Coordinates from one to a thousand million."""

    def draw() -> set[Token]:
        return {
            tuple(Fraction(rng.randint(-9, 9) * 10 ** rng.randint(0, 9)) for _ in range(d))
            for _ in range(rng.randint(1, 5))
        }

    return _distinct_sets(rng, rng.randint(2, 7), draw)


def rationals(rng: random.Random, d: int) -> Sets:
    """Denominators of all kinds."""

    def draw() -> set[Token]:
        return {
            tuple(Fraction(rng.randint(-9, 9), rng.randint(1, 13)) for _ in range(d)) for _ in range(rng.randint(1, 5))
        }

    return _distinct_sets(rng, rng.randint(2, 7), draw)


def shared_targets(rng: random.Random, d: int) -> Sets:
    """Ordinary inputs; :func:`make` gives all of them targets from a pool of three."""
    return grid(rng, d)


def targets_are_inputs(rng: random.Random, d: int) -> Sets:
    """Ordinary inputs; :func:`make` draws the targets from the tokens."""
    return grid(rng, d)


def on_a_line(rng: random.Random, d: int) -> Sets:
    """All tokens are multiples of one vector."""
    direction = _token(rng, d, 3)
    if not any(direction):
        direction = (Fraction(1),) * d

    def draw() -> set[Token]:
        return {tuple(rng.randint(-5, 5) * c for c in direction) for _ in range(rng.randint(1, 5))}

    return _distinct_sets(rng, rng.randint(2, 8), draw)


def many(rng: random.Random, d: int) -> Sets:
    """Twenty sets of up to thirty tokens."""
    return _distinct_sets(rng, 20, lambda: {_token(rng, d, 4) for _ in range(rng.randint(1, 30))})


def windows(rng: random.Random, d: int) -> Sets:
    """Sliding windows over one list of tokens."""
    tokens = list(dict.fromkeys(_token(rng, d, 4) for _ in range(12)))
    size = rng.randint(2, 4)
    return [tokens[k : k + size] for k in range(len(tokens) - size + 1)]


FAMILIES: dict[str, Callable[[random.Random, int], Sets]] = {
    f.__name__: f
    for f in (
        grid, subsets, chain, symmetric, flip, equal_powers, singletons, zero_token, tiny, huge, rationals,
        shared_targets, targets_are_inputs, on_a_line, many, windows,
    )
}  # fmt: skip


def make(name: str, seed: int, d: int) -> tuple[Sets, Sets]:
    """Inputs and outputs of one family; the number of targets is 1, 2, random or all, by the seed."""
    rng = random.Random(f"{name} {seed} {d}")  # noqa: S311
    inputs = FAMILIES[name](rng, d)
    rule = seed % 4
    every = [x for tokens in inputs for x in tokens]
    pool = [_token(rng, d, 2) for _ in range(3)]
    outputs = []
    for tokens in inputs:
        m = {0: 1, 1: min(2, len(tokens)), 2: rng.randint(1, len(tokens)), 3: len(tokens)}[rule]
        targets: set[Token] = set()
        while len(targets) < m:
            if name == "shared_targets" and len(targets) < len(set(pool)):
                targets.add(rng.choice(pool))
            elif name == "targets_are_inputs" and len(targets) < len(set(every)):
                targets.add(rng.choice(every))
            else:
                targets.add(_token(rng, d, 9))
        outputs.append(sorted(targets))
    return inputs, outputs
