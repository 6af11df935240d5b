r"""An index to which keys can be appended, with an exact search for the best keys of a query.

The score of key j for the query q is :math:`\langle q, k_j\rangle`. A structure of :mod:`~hardmax.attention.best_keys`
proposes a superset of the best keys; they are selected by scores computed in the fixed order of
:func:`hardmax.attention.choice.score`, so that an answer depends only on the keys so far and on the query: not on the
sizes of the blocks in which keys were appended, nor on when the structure merged its blocks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
import torch

from ..errors import InputError
from ..inputs import as_count, as_number, as_tensor
from ..shapes import Array, ArrayLike
from .best_keys import (
    AbstractStructure,
    BestKeys,
    LengthBlocks,
    PlaneForest,
    Shortlist,
    TopKeys,
    best_of_block,
    ranked,
    scores_in_order,
)
from .choice import default_tolerance
from .normal_form import scale, scaled_down
from .rational import Rational, as_float, rational
from .search.margins import UNIT64, product_error

Give = Callable[[np.ndarray], Array]

# Exponents of the sizes within which `attended` works on the numbers as they are; beyond, on numbers scaled to one.
_ORDINARY = 400
# Blocks of queries: fewer pairs of query and key than this are scored densely; with more keys, the plane is faster
# query by query; elsewhere so are queries of which the first few see less than this share of the keys.
_FEW_PAIRS, _FEW_KEYS, _TRIED, _SMALL_SHARE = 1 << 20, 1 << 13, 4, 1 / 32


class LeaderIndex:
    r"""Keys that can be appended at any time, and searched exactly for those of the largest score.

    The answers are those of :func:`hardmax.attention.attended` on the keys so far, to the last bit, together with the
    margin to the next key. In the plane one query costs a few bisections per doubling of the number of keys; in other
    dimensions keys are visited by decreasing length. Appending n keys rebuilds at most :math:`n \log_2 n` entries.

    Parameters
    ----------
    d
        Number of coordinates of keys and queries.
    tolerance
        Relative tolerance within which scores tie, as for :class:`hardmax.HardmaxLayer`: relative to the length of the
        query times that of the longest key so far; 64 rounding errors when left out. ``"exact"`` decides in rational
        arithmetic, for any number of keys: only the keys that rounding cannot exclude are compared exactly.

    Examples
    --------
    >>> index = LeaderIndex(2)
    >>> index.append([[1.0, 1.0], [1.0, -1.0], [-1.0, 0.0]])
    3
    >>> found = index.best([2.0, 0.0])
    >>> found.first, found.score, found.ties, found.margin
    (0, 2.0, array([0, 1]), 4.0)
    >>> index.append([1.5, 0.0])
    4
    >>> index.best([2.0, 0.0]).first
    3
    """

    def __init__(self, d: int, tolerance: float | Literal["exact"] | None = None) -> None:
        self._d = as_count("d", d, 1)
        self._exact = isinstance(tolerance, str) and tolerance == "exact"
        if tolerance is None:
            self._tolerance = default_tolerance(torch.float64)
        elif not self._exact:
            problem, remedy = "must lie in [0, 0.1)", 'or be "exact"'
            self._tolerance = as_number("tolerance", tolerance, lambda x: 0 <= x < 0.1, problem, remedy)
        self._stored = np.empty((64, self._d))
        self._count = 0
        self._largest, self._smallest = 0.0, math.inf  # sizes of coordinates other than zero
        # The structure holds the keys times 2**-frame; the frame is 0 unless squares might leave the range of float64.
        self._frame = 0
        self._longest = 0.0  # length of the longest key of the structure
        self._structure = self._empty_structure()

    @property
    def d(self) -> int:
        """Number of coordinates."""
        return self._d

    @property
    def tolerance(self) -> float | Literal["exact"]:
        """Relative tolerance within which scores tie, or ``"exact"``."""
        return "exact" if self._exact else self._tolerance

    @property
    def keys(self) -> np.ndarray:
        """Keys so far in the order of their positions, shape (keys, d), float64, read-only."""
        view = self._stored[: self._count]
        view.flags.writeable = False
        return view

    def __len__(self) -> int:
        return self._count

    def __repr__(self) -> str:
        return f"LeaderIndex(d={self._d}, tolerance={self.tolerance!r}): {self._count:,} keys"

    def append(self, keys: ArrayLike) -> int:
        """Append one key or a block of keys, and return the number of keys so far.

        Parameters
        ----------
        keys
            One key of shape (d,) or a block of shape (keys, d), of any real dtype; computed with as float64.

        Returns
        -------
        int
            Number of keys so far: the new keys have the positions before it.
        """
        row = self._plain_row(keys)
        if row is None:
            block, _ = self._checked("keys", keys)
            self._append_block(block.reshape(-1, self._d))
            return self._count
        sizes = [abs(a) for a in row if a]
        if sizes:
            largest, smallest = max(self._largest, *sizes), min(self._smallest, *sizes)
            self._require_range(largest, smallest)
            self._largest, self._smallest = largest, smallest
        if self._count == len(self._stored):
            self._grow(self._count + 1)
        self._stored[self._count] = row
        self._count += 1
        if self._frame or not _is_ordinary(self._largest):
            self._insert(self._stored[self._count - 1 : self._count])
        else:
            self._structure.append(row)
            self._longest = max(self._longest, _length(row))
        return self._count

    def best(self, queries: ArrayLike) -> BestKeys:
        """Keys of the largest score: the lowest position, the score, all ties and the margin to the next key.

        Parameters
        ----------
        queries
            One query of shape (d,) or a block of shape (queries, d).

        Returns
        -------
        BestKeys
            Plain numbers and one array of ties for one query, arrays and one array of ties per query for a block;
            NumPy arrays, or tensors where ``queries`` is a tensor.
        """
        row = self._plain_row(queries)
        if row is not None:
            self._require_keys()
            return _best(*self._top(row, 1), _give_as(queries))
        block, give = self._checked("queries", queries)
        self._require_keys()
        if block.ndim == 1:
            return _best(*self._top(block.tolist(), 1), give)
        return self._best_of_each(block, give)

    def best_k(self, queries: ArrayLike, k: int) -> TopKeys:
        """The k keys of the largest scores, all keys that tie with the k-th, and the margin to the next key.

        Parameters
        ----------
        queries
            One query of shape (d,) or a block of shape (queries, d).
        k
            Number of keys, at least 1 and at most the number of keys so far.

        Returns
        -------
        TopKeys
            Positions by decreasing score, equal scores by position; one array for one query, one array per query for a
            block; NumPy arrays, or tensors where ``queries`` is a tensor.
        """
        block, give = self._checked("queries", queries)
        self._require_keys()
        if as_count("k", k, 1) > self._count:
            remedy = "pass a smaller k, or append more keys first"
            raise InputError("k", k, f"must be at most the {self._count} keys of the index", remedy)
        if block.ndim == 1:
            positions, scores, margin = self._top(block.tolist(), k)
            return TopKeys(give(np.array(positions)), give(np.array(scores)), margin)
        found = [self._top(row, k) for row in block.tolist()]
        return TopKeys(
            [give(np.array(positions)) for positions, _, _ in found],
            [give(np.array(scores)) for _, scores, _ in found],
            give(np.array([margin for _, _, margin in found], dtype=np.float64)),
        )

    def _best_of_each(self, block: np.ndarray, give: Give) -> BestKeys:
        count = len(block)
        first, score, margin = np.empty(count, np.int64), np.empty(count), np.empty(count)
        ties = [first] * count
        rest = np.arange(count)
        if not self._exact and _is_ordinary(self._largest) and count:
            sizes = np.abs(block).max(axis=1)
            dense = (sizes > 2.0**-_ORDINARY) & (sizes < 2.0**_ORDINARY)
            if self._dense_pays(block[dense]):
                some, rest = np.flatnonzero(dense), np.flatnonzero(~dense)
                found = best_of_block(block[some], self._stored[: self._count], self._tolerance, self._longest)
                first[some], score[some], margin[some] = found[:3]
                for k, members in zip(some.tolist(), found[3], strict=True):
                    ties[k] = members
        for k in rest.tolist():
            positions, scores, margin[k] = self._top(block[k].tolist(), 1)
            ties[k] = np.sort(np.array(positions))
            first[k], score[k] = ties[k][0], scores[0]
        return BestKeys(give(first), give(score), [give(members) for members in ties], give(margin))

    def _top(self, query: list[float], k: int) -> tuple[Sequence[int], Sequence[float], float]:
        """Positions and scores of the best k keys and those that tie with the k-th, in order, and the margin."""
        size = max(map(abs, query))
        if size == 0.0:
            return range(self._count), [0.0] * self._count, math.inf
        as_they_are = _is_ordinary(size) and _is_ordinary(self._largest)
        exponent = 0 if as_they_are else math.frexp(size)[1]
        q = query if as_they_are else [scale(a, -exponent) for a in query]
        length = _length(q)
        if as_they_are and not self._exact:
            slack = self._tolerance * length * self._longest
            return ranked(*self._collect(q, Shortlist(k, slack, 0.0), length * self._longest), k, slack)
        # Candidates by scores in the frame of the structure, then decided by other scores, exact or in the frame of
        # `attended`. Either score errs by at most half of this, so ties and the next key are found within three times.
        doubt = 3 * 2 * product_error(self._d, UNIT64) * length * self._longest
        if self._exact:
            chosen, _ = self._collect(q, Shortlist(k, doubt, doubt), length * self._longest)
            return self._decide_exactly(query, chosen, k)
        scaled_down("keys", torch.tensor([self._smallest, self._largest], dtype=torch.float64))  # refuses wide ranges
        slack = self._tolerance * length * self._longest
        chosen, _ = self._collect(q, Shortlist(k, slack + doubt, doubt), length * self._longest)
        frame = math.frexp(self._largest)[1]
        slack = self._tolerance * length * math.ldexp(self._longest, self._frame - frame)
        scores = scores_in_order(np.ldexp(self._stored[chosen], -frame), np.array(q)).tolist()
        positions, scores, margin = ranked(chosen, scores, k, slack)
        back = exponent + frame
        return positions, [scale(s, back) for s in scores], scale(margin, back)

    def _collect(self, q: list[float], shortlist: Shortlist, reach: float) -> tuple[Sequence[int], Sequence[float]]:
        """Positions and scores, in the frame of the structure, of all keys that may be needed."""
        if self._structure.collect(q, shortlist, reach) >= 0:
            return shortlist.positions, shortlist.scores
        keys = self._stored[: self._count]
        scores = scores_in_order(np.ldexp(keys, -self._frame) if self._frame else keys, np.array(q))
        chosen = np.flatnonzero(scores >= shortlist.final_floor(scores))
        return chosen.tolist(), scores[chosen].tolist()

    def _decide_exactly(
        self, query: list[float], chosen: Sequence[int], k: int
    ) -> tuple[Sequence[int], Sequence[float], float]:
        q = [rational(a) for a in query]
        known: dict[tuple[float, ...], Rational] = {}  # repeated keys are scored once
        scores = []
        for key in map(tuple, self._stored[chosen].tolist()):
            if key not in known:
                known[key] = sum((a * rational(b) for a, b in zip(q, key, strict=True)), rational(0))
            scores.append(known[key])
        positions, exact, margin = ranked(chosen, scores, k, rational(0))
        return positions, [_nearest(s) for s in exact], margin if margin == math.inf else _nearest(margin)

    def _dense_pays(self, queries: np.ndarray) -> bool:
        pairs = len(queries) * self._count
        if pairs <= _FEW_PAIRS or (self._d == 2 and self._count <= _FEW_KEYS):
            return True
        if self._d == 2:
            return False
        limit = _SMALL_SHARE * self._count
        for row in queries[:_TRIED].tolist():
            length = _length(row)
            tried = Shortlist(1, self._tolerance * length * self._longest, 0.0)
            if not 0 <= self._structure.collect(row, tried, length * self._longest) <= limit:
                return True
        return False

    def _plain_row(self, value: ArrayLike) -> list[float] | None:
        """One key or query in float64 as a list, without a detour over tensors; None where it needs one."""
        if isinstance(value, (np.ndarray, torch.Tensor)):
            if value.ndim != 1 or value.dtype not in (np.float64, torch.float64):
                return None
            row = value.tolist()
        elif type(value) in (list, tuple) and all(type(a) is float for a in value):  # type: ignore[attr-defined]
            row = list(value)  # type: ignore[call-overload]
        else:
            return None
        # Only finite numbers give zero here; other rows are checked as tensors, with an error that names the entry.
        return row if len(row) == self._d and all(a - a == 0.0 for a in row) else None

    def _checked(self, argument: str, value: ArrayLike) -> tuple[np.ndarray, Give]:
        """Finite float64 array of shape (d,) or (rows, d), and how results are returned."""
        tensor, _ = as_tensor(argument, value)
        shape = tuple(tensor.shape)
        if len(shape) not in (1, 2) or shape[-1] != self._d:
            problem = f"must have shape ({self._d},) or ({argument}, {self._d})"
            raise InputError(argument, f"shape {shape}", problem, f"the index was made with d={self._d}")
        array = tensor.detach().cpu().to(torch.float64).numpy()
        if not np.isfinite(array).all():
            where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
            remedy = "remove what is NaN or infinite"
            raise InputError(argument, f"{array[where]} at index {where}", "must be finite", remedy)
        return array, _give_as(value)

    def _require_keys(self) -> None:
        if not self._count:
            raise InputError("index", "no keys", "must hold at least one key", "append keys first")

    def _require_range(self, largest: float, smallest: float) -> None:
        # As `attended` does. Exact scores lose no digits at any size.
        if not self._exact and not _is_ordinary(largest):
            scaled_down("keys", torch.tensor([smallest, largest], dtype=torch.float64))

    def _append_block(self, block: np.ndarray) -> None:
        sizes = np.abs(block[block != 0])
        if sizes.size:
            largest = max(self._largest, float(sizes.max()))
            smallest = min(self._smallest, float(sizes.min()))
            self._require_range(largest, smallest)
            self._largest, self._smallest = largest, smallest
        stop = self._count + len(block)
        if stop > len(self._stored):
            self._grow(stop)
        self._stored[self._count : stop] = block
        self._count = stop
        if len(block):
            self._insert(self._stored[stop - len(block) : stop])

    def _insert(self, rows: np.ndarray) -> None:
        """Put stored rows into the structure, after a change of the frame where their size requires it."""
        exponent = math.frexp(self._largest)[1]
        if _is_ordinary(self._largest):
            frame = 0
        else:
            frame = self._frame if self._frame and abs(exponent - self._frame) < _ORDINARY else exponent
        if frame != self._frame:  # at most a handful of times, as sizes then have to change by 2**400
            self._frame, self._longest, self._structure = frame, 0.0, self._empty_structure()
            rows = self._stored[: self._count]
        scaled = np.ldexp(rows, -frame) if frame else rows
        self._structure.extend(scaled)
        self._longest = max(self._longest, float(np.sqrt(scores_in_order(scaled, scaled)).max()))

    def _grow(self, least: int) -> None:
        larger = np.empty((max(least, 2 * len(self._stored)), self._d))
        larger[: self._count] = self._stored[: self._count]
        self._stored = larger

    def _empty_structure(self) -> AbstractStructure:
        return PlaneForest() if self._d == 2 else LengthBlocks(self._d)


def _best(positions: Sequence[int], scores: Sequence[float], margin: float, give: Give) -> BestKeys:
    ties = np.array(positions)
    if len(positions) > 1:
        ties.sort()
    return BestKeys(int(ties[0]), scores[0], give(ties), margin)


def _give_as(queries: ArrayLike) -> Give:
    """Function that converts results: to tensors on the device of the queries, or to NumPy arrays."""
    if isinstance(queries, torch.Tensor):
        device = queries.device
        return lambda result: torch.from_numpy(result).to(device)
    return lambda result: result


def _is_ordinary(size: float) -> bool:
    return 2.0**-_ORDINARY < size < 2.0**_ORDINARY or size == 0.0


def _length(row: Sequence[float]) -> float:
    """Euclidean length, bit-identical to ``choice.length``."""
    total = row[0] * row[0]
    for a in row[1:]:
        total += a * a
    return math.sqrt(total)


def _nearest(value: Rational) -> float:
    try:
        return as_float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
