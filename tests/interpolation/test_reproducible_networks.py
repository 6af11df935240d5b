"""The same data give the same network, weight for weight: compiled networks can be cited by a hash.

The data are integers up to a power of two, in sets of one, two or four tokens, so that every float of the searches is
exact and the choice does not depend on the machine. Whoever changes a construction on purpose prints the new table with
``python tests/interpolation/test_reproducible_networks.py``.
"""

from __future__ import annotations

import hashlib
import itertools
import random

import pytest

from hardmax.interpolation import ExactTransformer, interpolate

Sets = list[list[list[int]]]


def _drawn(seed: int, count: int, d: int, size: int) -> tuple[Sets, Sets]:
    """Overlapping sets of one, two or four integer tokens, with one to all of their number of targets."""
    rng = random.Random(seed)  # noqa: S311
    pool = [list(p) for p in itertools.product(range(-size, size + 1), repeat=d)]
    found: dict[frozenset[tuple[int, ...]], list[list[int]]] = {}
    while len(found) < count:
        tokens = rng.sample(pool, rng.choice([1, 2, 4]))
        found.setdefault(frozenset(map(tuple, tokens)), tokens)
    inputs = list(found.values())
    outputs = [rng.sample(pool, rng.randint(1, len(x))) for x in inputs]
    return inputs, outputs


def _equal_means(count: int) -> tuple[Sets, Sets]:
    """Pairs and quadruples around zero, which no mean tells apart."""
    inputs = [[[k, 0], [-k, 0]] for k in range(1, count)] + [[[8, 1], [-8, -1], [1, 2], [-1, -2]]]
    return inputs, [[[k, 1]] if k % 2 else [[k, 1], [k, 2]] for k in range(len(inputs))]


DATA = {
    "few": _drawn(0, 5, 2, 2),
    "space": _drawn(1, 7, 3, 2),
    "many": _drawn(2, 14, 2, 4),
    "balanced": _equal_means(5),
    "classes": (_drawn(3, 10, 2, 4)[0], [[[0, k % 2]] for k in range(10)]),
    "one": ([[[0, 0], [1, 2], [4, 1], [2, 2]]], [[[1, 1], [2, 5]]]),
}
OPTIONS: dict[str, dict[str, object]] = {
    "plain": {},
    "flat": {"flat": True},
    "narrow": {"width": 1},
    "two": {"width": 2},
    "wide": {"width": 9},
    "soft": {"attention": "softmax", "temperature": "1/3"},
}
CONSTRUCTIONS = ("leaders", "fewest", "witness", "conditioned", "paper")


def network(data: str, construction: str, options: str) -> ExactTransformer:
    return interpolate(*DATA[data], construction=construction, **OPTIONS[options])  # type: ignore[arg-type]


def digest(net: ExactTransformer) -> str:
    """A hash of every weight, stage and count."""
    numbers = [[str(x) for x in block.numbers()] + [block.stage] for block in net.blocks]
    report, counts = net.report, net.counts
    facts = [report.cuts, report.flat, str(report.gain), f"{report.conditioning:.6g}", f"{report.gap:.6g}"]
    facts += [counts.formula, counts.worst_case, counts.published, counts.necessary_blocks, counts.parameters]
    return hashlib.sha256(repr((numbers, facts)).encode()).hexdigest()[:12]


def digests(data: str, construction: str) -> str:
    """One hash over the networks of all options."""
    soft = construction in ("leaders", "fewest", "conditioned")
    every = [digest(network(data, construction, name)) for name in OPTIONS if name != "soft" or soft]
    return hashlib.sha256(" ".join(every).encode()).hexdigest()[:12]


EXPECTED = {
    ("few", "leaders"): "cd94583f0008",
    ("few", "fewest"): "b6a677139f00",
    ("few", "witness"): "9e09243757ca",
    ("few", "conditioned"): "1e160a28c126",
    ("few", "paper"): "453d050ea693",
    ("space", "leaders"): "b976858aad52",
    ("space", "fewest"): "e5482b0b1f48",
    ("space", "witness"): "2f601e83cc18",
    ("space", "conditioned"): "c37c9b01baac",
    ("space", "paper"): "ac7e360214dc",
    ("many", "leaders"): "e0277b925f6c",
    ("many", "fewest"): "96b83b906cc2",
    ("many", "witness"): "5dde6ebe9daa",
    ("many", "conditioned"): "a712461eb148",
    ("many", "paper"): "66daa0b03479",
    ("balanced", "leaders"): "6e7ec02994c0",
    ("balanced", "fewest"): "06ed12ca7c17",
    ("balanced", "witness"): "c9263d0ea6d4",
    ("balanced", "conditioned"): "7a6a1e815c96",
    ("balanced", "paper"): "6179e734f239",
    ("classes", "leaders"): "a9ffb74c11fb",
    ("classes", "fewest"): "1da6ce7f55aa",
    ("classes", "witness"): "0eb4f4321215",
    ("classes", "conditioned"): "887a9f2f5671",
    ("classes", "paper"): "18e06156afc6",
    ("one", "leaders"): "40460e367cc4",
    ("one", "fewest"): "2cf766e14bf4",
    ("one", "witness"): "382efd9dd901",
    ("one", "conditioned"): "7d51f3c0958d",
    ("one", "paper"): "f310583d66bb",
}


@pytest.mark.parametrize("construction", CONSTRUCTIONS)
@pytest.mark.parametrize("data", DATA)
def test_the_same_data_give_the_same_network(data: str, construction: str) -> None:
    largest = max(abs(c) for tokens in DATA[data][0] for x in tokens for c in x)
    assert largest & (largest - 1) == 0
    assert digests(data, construction) == EXPECTED[data, construction]


if __name__ == "__main__":
    for data, construction in itertools.product(DATA, CONSTRUCTIONS):
        print(f'    ("{data}", "{construction}"): "{digests(data, construction)}",')
