"""Under a mask every search method gives the answer of the dense oracle, to the last bit, for every query."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch

from hardmax.attention import attended_in
from hardmax.attention.choice import Choice, default_tolerance
from hardmax.attention.masks import Mask

TOLERANCE = default_tolerance(torch.float64)
FIELDS = ["first", "best", "everyone", "tied", "offsets", "members"]
Ends = tuple[torch.Tensor, torch.Tensor]


def assert_same(found: Choice, wanted: Choice) -> None:
    for field in FIELDS:
        assert torch.equal(getattr(found, field), getattr(wanted, field)), field


def tensor(array: object) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(np.asarray(array, dtype=np.float64)))


def of(mask: Mask, n: int) -> Ends:
    return mask.interval(torch.arange(n), n)


def random_intervals(n: int, count: int, seed: int = 0) -> Ends:
    ends = np.sort(np.random.default_rng(seed).integers(0, n + 1, (count, 2)), axis=1)
    start = np.minimum(ends[:, 0], n - 1)
    return torch.from_numpy(start), torch.from_numpy(np.maximum(ends[:, 1], start + 1))


def oracle(
    queries: torch.Tensor,
    points: torch.Tensor,
    start: torch.Tensor,
    stop: torch.Tensor,
    tolerance: float = TOLERANCE,
    bias: Callable[[torch.Tensor, torch.Tensor], torch.Tensor] | None = None,
) -> Choice:
    """Every pair scored in the order of the coordinates, after bringing each query and its interval near one."""
    q, z = queries.numpy(), points.numpy()
    place = np.arange(len(z))
    seen = (place >= start.numpy()[:, None]) & (place < stop.numpy()[:, None])
    of_queries = np.frexp(np.abs(q).max(axis=1))[1]
    of_points = np.frexp(np.where(seen, np.abs(z).max(axis=1), 0.0).max(axis=1))[1]
    q = np.ldexp(q, -of_queries[:, None])
    values, squares, size = np.zeros((3, len(q), len(z)))
    for k in range(z.shape[1]):
        scaled = np.ldexp(np.where(seen, z[:, k], 0.0), -of_points[:, None])
        values, squares, size = values + q[:, k, None] * scaled, squares + scaled * scaled, size + q[:, k, None] ** 2
    if bias is not None:
        row, column = (part.ravel() for part in np.indices(seen.shape))
        added = bias(torch.from_numpy(row), torch.from_numpy(column)).numpy().reshape(seen.shape)
        values = values + np.ldexp(added, -(of_queries + of_points)[:, None])
    values = np.where(seen, values, -np.inf)
    best = values.max(axis=1)
    chosen = seen & (values >= (best - tolerance * np.sqrt(size[:, 0]) * np.sqrt(squares.max(axis=1)))[:, None])
    everyone = ~q.any(axis=1) if bias is None else np.zeros(len(q), dtype=bool)
    row, column = (chosen & (chosen.sum(axis=1) > 1)[:, None] & ~everyone[:, None]).nonzero()
    tied, sizes = np.unique(row, return_counts=True)
    return Choice(
        torch.from_numpy(np.where(everyone, start.numpy(), chosen.argmax(axis=1))),
        torch.from_numpy(np.ldexp(np.where(everyone, 0.0, best), of_queries + of_points)),
        torch.from_numpy(everyone),
        torch.from_numpy(tied),
        torch.from_numpy(np.concatenate([[0], np.cumsum(sizes)])),
        torch.from_numpy(column),
    )


def gaussian(n: int, d: int) -> np.ndarray:
    return np.random.default_rng(n + 1000 * d).normal(size=(n, d))


def grid(n: int, d: int, size: int = 2) -> np.ndarray:
    return np.random.default_rng(n + d).integers(-size, size + 1, (n, d)).astype(float)


def spiral(n: int) -> np.ndarray:
    """Points on a growing spiral: every one is a vertex of the hull of its prefix."""
    k = np.arange(n)
    angle = k * math.pi * (3 - math.sqrt(5))
    return (1 + k / n)[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)


CLOUDS = {
    "one token": np.array([[0.3, -2.0]]),
    "two equal tokens": np.array([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]]),
    "only zeros": np.zeros((5, 3)),
    "zeros first": np.concatenate([np.zeros((7, 2)), gaussian(150, 2)]),
    "all equal": np.tile([[0.1, 0.7]], (60, 1)),
    "gaussian 1": gaussian(250, 1),
    "gaussian 2": gaussian(400, 2),
    "gaussian 3": gaussian(400, 3),
    "gaussian 4": gaussian(300, 4),
    "gaussian 7": gaussian(300, 7),
    "gaussian 20": gaussian(200, 20),
    "grid 1": grid(200, 1, 5),
    "grid 2": grid(300, 2),
    "grid 3": grid(300, 3),
    "grid 6": grid(200, 6, 1),
    "circle": spiral(300) / np.linalg.norm(spiral(300), axis=1)[:, None],
    "spiral": spiral(400),
    "spiral inwards": spiral(400)[::-1],
    "collinear": np.outer(np.arange(200), [1.0, 2.0, -1.0]) / 7 + [1.0, 1.0, 1.0],
    "collinear through zero": np.outer(np.arange(-100, 100), [3.0, -1.0]),
    "repeated": np.repeat(gaussian(60, 2), 5, axis=0),
    "repeated later": np.tile(gaussian(60, 3), (5, 1)),
    "1e-14 apart": np.concatenate([gaussian(150, 2), gaussian(150, 2) + 1e-14]),
    "growing": gaussian(200, 2) * 10.0 ** np.linspace(-100, 100, 200)[:, None],
    "growing beyond squares": gaussian(200, 2) * 10.0 ** np.linspace(-250, 0, 200)[:, None],
    "shrinking": gaussian(200, 3) * 10.0 ** -np.linspace(0, 200, 200)[:, None],
    "far away": gaussian(300, 2) + 1e6,
    "a long token late": np.concatenate([gaussian(100, 2), [[1e9, 1.0]], gaussian(100, 2)]),
}
MASKS = {
    "causal": Mask(after=0),
    "later": Mask(before=0),
    "causal window": Mask(before=20, after=0),
    "window": Mask(before=33, after=17),
    "itself": Mask(before=0, after=0),
    "all": Mask(),
}


@pytest.mark.parametrize("name", CLOUDS)
def test_same_as_the_oracle(name: str) -> None:
    points = tensor(CLOUDS[name])
    n, d = points.shape
    intervals = {mask: of(MASKS[mask], n) for mask in MASKS} | {"random": random_intervals(n, n)}
    queries = points @ tensor(np.random.default_rng(d).normal(size=(d, d)))
    for ends in intervals.values():
        for asked, tolerance in ((points, TOLERANCE), (points, 0.0), (queries, TOLERANCE)):
            assert_same(attended_in(asked, points, *ends, tolerance=tolerance), oracle(asked, points, *ends, tolerance))
