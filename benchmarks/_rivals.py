"""How one would search for the largest score without this library, and what each way takes and gets wrong.

Each rival answers some of the queries against all points; its time is extrapolated to all queries.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import faiss
import numpy as np
import torch

from hardmax.attention.choice import Choice

from ._measure import seconds

Searcher = Callable[[np.ndarray], np.ndarray]

_SCORES_AT_ONCE = 1 << 25


def tokens(law: str, n: int, d: int) -> np.ndarray:
    """Random tokens: ``"gaussian"``, or on the unit ``"sphere"``."""
    drawn = np.random.default_rng(0).normal(size=(n, d))
    return drawn / np.linalg.norm(drawn, axis=1)[:, None] if law == "sphere" else drawn


def numpy_dense(points: np.ndarray) -> Searcher:
    """``(queries @ points.T).argmax(axis=1)`` in float64, as many rows at a time as fit in memory."""
    rows = max(1, _SCORES_AT_ONCE // len(points))

    def search(queries: np.ndarray) -> np.ndarray:
        return np.concatenate([(queries[i : i + rows] @ points.T).argmax(axis=1) for i in range(0, len(queries), rows)])

    return search


def torch_dense(points: np.ndarray) -> Searcher:
    """The same in torch and float32, which is how attention layers are computed."""
    single = torch.from_numpy(points).float()
    rows = max(1, _SCORES_AT_ONCE // len(points))

    def search(queries: np.ndarray) -> np.ndarray:
        parts = torch.split(torch.from_numpy(queries).float(), rows)
        return torch.cat([(part @ single.T).argmax(dim=1) for part in parts]).numpy()

    return search


def faiss_flat(points: np.ndarray) -> Searcher:
    """The exact inner-product index of faiss, float32."""
    index = faiss.IndexFlatIP(points.shape[1])
    index.add(np.ascontiguousarray(points, dtype=np.float32))

    def search(queries: np.ndarray) -> np.ndarray:
        return index.search(np.ascontiguousarray(queries, dtype=np.float32), 1)[1][:, 0]

    return search


def plain_loop(points: np.ndarray) -> Searcher:
    """Loops in Python."""
    rows = points.tolist()

    def search(queries: np.ndarray) -> np.ndarray:
        found = []
        for query in queries.tolist():
            scores = [sum(q * z for q, z in zip(query, row, strict=True)) for row in rows]
            found.append(scores.index(max(scores)))
        return np.array(found)

    return search


RIVALS: dict[str, Callable[[np.ndarray], Searcher]] = {
    "numpy f64": numpy_dense,
    "torch f32": torch_dense,
    "faiss f32": faiss_flat,
    "Python loop": plain_loop,
}

# Pairs scored by each rival: about a second's work.
_PAIRS = {"numpy f64": 1e8, "torch f32": 5e8, "faiss f32": 5e8, "Python loop": 2e5}


@dataclass(frozen=True)
class Rival:
    """What a rival took, for all queries, and which point it named for the queries it was asked."""

    seconds: float
    asked: np.ndarray
    named: np.ndarray

    @property
    def extrapolated(self) -> bool:
        """Whether only some of the queries were asked."""
        return len(self.asked) > 0 and self.asked[-1] + 1 > len(self.asked)

    def wrong(self, choice: Choice) -> float:
        """The fraction of answers that are not among the points of the largest score."""
        named = torch.from_numpy(self.named)
        right = choice.first[self.asked] == named
        for k in torch.nonzero(~right)[:, 0].tolist():
            right[k] = bool((choice[int(self.asked[k])] == named[k]).any())
        return 1 - float(right.double().mean())


@lru_cache
def measure(name: str, law: str, n: int, d: int) -> Rival:
    """One rival on tokens that are their own queries."""
    points = tokens(law, n, d)
    count = min(n, max(2, int(_PAIRS[name] / n)))
    asked = np.linspace(0, n - 1, count).astype(np.int64)
    queries = points[asked]
    search = RIVALS[name](points)
    named = search(queries)
    return Rival(seconds(lambda: search(queries), repeat=2) * n / count, asked, named)
