"""The index that grows: keys appended and queried in turn, beside a convex hull in sorted lists and faiss."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable

import faiss
import numpy as np
import torch

import hardmax as hm
from hardmax.attention import attended
from hardmax.progress import Ticker

from ._table import Cell, Check, Report

# Pairs of one append and one query.
_PAIRS, _QUICK_PAIRS = 10**6, 5_000
# Fewer where every key is a vertex, because lists that are kept by hand move their entries with each key, and where few
# keys come over and over, because each of our answers lists all ties.
_FEWER = {"circle": 200_000, "spiral": 200_000, "alphabet": 100_000}
# So many answers, evenly spaced in the logarithm, are compared with `attended` on the keys of their moment.
_COMPARED = 200
# faiss scores all keys for every query, so that it is run on the first so many pairs; in the plane its time for all is
# extrapolated by the number of scores, which grows with the square.
_FOR_FAISS = 20_000
_CASES = [("gaussian", 2), ("circle", 2), ("spiral", 2), ("alphabet", 2)]
_OTHERS = [("gaussian", 8, 50_000), ("gaussian", 64, 20_000)]
# Adversarial near-ties: decisions in all, keys of each set.
_NEAR_TIES, _QUICK_NEAR_TIES, _SET = 10**7, 4 * 10**4, 1000


class HullByHand:
    """Upper and lower hull as sorted lists, in floats: what one writes in an hour, without ties and without margin."""

    def __init__(self) -> None:
        self._halves = [_HalfHull(1.0), _HalfHull(-1.0)]

    def append(self, key: list[float], position: int) -> None:
        """Insert a key into both halves."""
        for half in self._halves:
            half.append(key[0], key[1], position)

    def best(self, query: list[float]) -> int:
        """Position of the vertex that bisection by slope finds."""
        return self._halves[query[1] < 0].best(query[0], query[1])


class _HalfHull:
    def __init__(self, sign: float) -> None:
        self._sign = sign
        self._x: list[float] = []
        self._y: list[float] = []
        self._position: list[int] = []

    def append(self, x: float, y: float, position: int) -> None:
        xs, ys, ps = self._x, self._y, self._position
        y *= self._sign
        i = bisect_left(xs, x)
        if i < len(xs) and xs[i] == x:
            if ys[i] >= y:
                return
            del xs[i], ys[i], ps[i]
        if 0 < i < len(xs) and _cross(xs[i - 1], ys[i - 1], x, y, xs[i], ys[i]) >= 0:
            return
        while i < len(xs) - 1 and _cross(x, y, xs[i], ys[i], xs[i + 1], ys[i + 1]) >= 0:
            del xs[i], ys[i], ps[i]
        while i > 1 and _cross(xs[i - 2], ys[i - 2], xs[i - 1], ys[i - 1], x, y) >= 0:
            i -= 1
            del xs[i], ys[i], ps[i]
        xs.insert(i, x)
        ys.insert(i, y)
        ps.insert(i, position)

    def best(self, q: float, p: float) -> int:
        xs, ys, p = self._x, self._y, p * self._sign
        low, high = 0, len(xs) - 1
        while low < high:
            middle = (low + high) // 2
            if q * (xs[middle + 1] - xs[middle]) + p * (ys[middle + 1] - ys[middle]) > 0:
                low = middle + 1
            else:
                high = middle
        return self._position[low]


def _cross(ax: float, ay: float, bx: float, by: float, cx: float, cy: float) -> float:
    return (bx - ax) * (cy - by) - (by - ay) * (cx - bx)


def keys_of(law: str, n: int, d: int) -> np.ndarray:
    """Keys in the order of their arrival: ``"circle"`` and ``"spiral"`` put every one on the hull."""
    rng = np.random.default_rng(0)
    if law == "gaussian":
        return rng.normal(size=(n, d))
    if law == "alphabet":  # a few keys, over and over
        return rng.integers(-5, 6, size=(n, d)).astype(float)
    angles = rng.uniform(0, 2 * np.pi, n)
    length = 1 + np.arange(n) / n if law == "spiral" else np.ones(n)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1) * length[:, None]


def _in_turn(append: Callable[[int], object], ask: Callable[[int], int], pairs: int) -> tuple[float, np.ndarray]:
    """Seconds of this process for one append and one query in turn, and the position that each query found."""
    found = np.empty(pairs, dtype=np.int64)
    start = time.process_time()
    for i in range(pairs):
        append(i)
        found[i] = ask(i)
    return time.process_time() - start, found


def _ours(keys: np.ndarray, queries: np.ndarray) -> tuple[float, np.ndarray]:
    index, rows, asked = hm.LeaderIndex(keys.shape[1]), keys.tolist(), queries.tolist()
    return _in_turn(lambda i: index.append(rows[i]), lambda i: index.best(asked[i]).first, len(keys))  # type: ignore[return-value, arg-type]


def _by_hand(keys: np.ndarray, queries: np.ndarray) -> tuple[float, np.ndarray]:
    hull, rows, asked = HullByHand(), keys.tolist(), queries.tolist()
    return _in_turn(lambda i: hull.append(rows[i], i), lambda i: hull.best(asked[i]), len(keys))


def _faiss(keys: np.ndarray, queries: np.ndarray) -> tuple[float, np.ndarray]:
    index = faiss.IndexFlatIP(keys.shape[1])
    rows, asked = keys.astype(np.float32)[:, None], queries.astype(np.float32)[:, None]
    return _in_turn(lambda i: index.add(rows[i]), lambda i: index.search(asked[i], 1)[1][0, 0], len(keys))


def _compared(pairs: int) -> list[int]:
    return np.unique(np.geomspace(1, pairs, _COMPARED).astype(int) - 1).tolist()  # type: ignore[no-any-return]


def _wrong(found: np.ndarray, keys: np.ndarray, queries: np.ndarray, tolerance: float) -> int:
    """Answers that are not among the ties of `attended` on the keys of their moment."""
    wrong = 0
    for i in _compared(len(found)):
        choice = attended(
            torch.from_numpy(queries[i : i + 1]), torch.from_numpy(keys[: i + 1]), tolerance=tolerance, method="dense"
        )
        wrong += int(found[i]) not in choice[0].tolist()
    return wrong


def order_dependent(decisions: int, d: int, tolerance: float) -> tuple[int, int]:
    """Queries on near-ties whose answer changes with the blocks in which keys arrive, and those faiss gets wrong.

    All keys of a set score the same up to some units in the last place; a decision is that of one key, listed or not.
    """
    rng, changed, wrong = np.random.default_rng(d), 0, 0
    with Ticker(f"sets of near-ties, d = {d}", decisions // _SET) as ticker:
        for _ in range(decisions // _SET):
            one_changed, one_wrong = _near_ties(rng, d, tolerance)
            changed, wrong = changed + one_changed, wrong + one_wrong
            ticker.advance()
    return changed, wrong


def _near_ties(rng: np.random.Generator, d: int, tolerance: float) -> tuple[bool, bool]:
    """One set: whether the answer depends on the blocks in which its keys arrive, and whether faiss is wrong."""
    query, keys = rng.normal(size=d), rng.normal(size=(_SET, d))
    keys[:, -1] = (3.0 - keys[:, :-1] @ query[:-1]) / query[-1]
    keys += rng.integers(-3, 4, size=keys.shape) * np.spacing(keys)
    found = []
    for cuts in ([], np.sort(rng.integers(0, _SET, size=4)).tolist()):
        index = hm.LeaderIndex(d, tolerance)
        for start, stop in zip([0, *cuts], [*cuts, _SET], strict=True):
            index.append(keys[start:stop])
        found.append(index.best(query))
    one, other = found
    same = one.score == other.score and one.margin == other.margin and np.array_equal(one.ties, other.ties)  # type: ignore[arg-type]
    flat = faiss.IndexFlatIP(d)
    flat.add(keys.astype(np.float32))
    named = int(flat.search(query[None].astype(np.float32), 1)[1][0, 0])
    return not same, named not in np.asarray(one.ties)


def run(quick: bool = False) -> Report:
    """Time all ways in turn and count wrong answers; then decide near-ties."""
    report = Report(
        "Growing index, seconds of the processor for all pairs of one append and one query",
        ["keys (pairs, d)", "ours", "hull by hand", "faiss f32", "wrong: ours", "by hand", "faiss", "of"],
    )
    tolerance = float(hm.LeaderIndex(2).tolerance)
    pairs = _QUICK_PAIRS if quick else _PAIRS
    cases = [(law, d, min(pairs, _FEWER.get(law, pairs))) for law, d in _CASES]
    cases += [(law, d, n // 10 if quick else n) for law, d, n in _OTHERS]
    for law, d, n in cases:
        print(f"{law}: {n:,} pairs, d = {d}", flush=True)
        keys = keys_of(law, n, d)
        queries = np.random.default_rng(1).normal(size=(n, d))
        took, found = _ours(keys, queries)
        row: list[Cell] = [f"{law} ({n:,}, {d})", took]
        wrong: list[Cell] = [_wrong(found, keys, queries, tolerance)]
        if d == 2:
            by_hand, named = _by_hand(keys, queries)
            row.append(by_hand)
            wrong.append(_wrong(named, keys, queries, tolerance))
        else:
            row.append(None)
            wrong.append(None)
        some = min(n, _FOR_FAISS)
        flat, named = _faiss(keys[:some], queries[:some])
        row.append(flat * (n / some) ** 2)
        wrong.append(_wrong(named, keys, queries, tolerance))
        report.rows.append([*row, *wrong, len(_compared(n))])
        if law == "gaussian" and d == 2:
            what = f"{n:,} appends and queries in the plane"
            report.checks.append(Check(what, took, 120.0 * n / 10**6, at_least=False, unit="s"))
    decisions = _QUICK_NEAR_TIES if quick else _NEAR_TIES
    for d, units in ((2, 0.0), (2, 4e-16), (3, 0.0), (8, 4e-16)):
        changed, wrong_sets = order_dependent(decisions // 4, d, units)
        report.notes.append(
            f"near-ties, d = {d}, tolerance {units:g}: {decisions // 4:,} keys in {decisions // 4 // _SET:,} sets;"
            f" answers that depend on the order: {changed}; sets where faiss names a key outside the ties: {wrong_sets}"
        )
        report.checks.append(Check(f"order-dependent answers, d = {d}", changed, 0.0, at_least=False, unit=""))
    report.notes += [
        f"faiss was run on the first {_FOR_FAISS:,} pairs; beyond, its time is extrapolated by the number of scores.",
        "Wrong: of the compared queries, answers that are not among the keys of the largest score at that moment.",
        "Ours also lists all ties and the margin to the next key; the others name one key.",
    ]
    return report
