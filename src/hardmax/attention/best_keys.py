r"""The best keys of one query in a growing list: the results, and two structures that propose candidates.

A structure is given a :class:`Shortlist` and adds every key that may be needed: those of the largest score, those that
tie with them, and the next one outside. It may leave a key out only if a proven bound on its score is at most
``shortlist.floor``. Both structures follow the logarithmic method of Bentley and Saxe (1980): blocks of doubling sizes,
two of one size merged into one of the next, so that a key takes part in at most :math:`\log_2 n` merges.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from array import array
from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from heapq import heapify, heappop, heappush
from typing import Any, TypeAlias

import numpy as np

from ..shapes import Array
from .search.margins import UNIT64, product_error

Chain: TypeAlias = tuple["array[float]", "array[int]"]

# Keys of a leaf: a loop over as many takes as long as the two or three levels of the tree that it replaces.
LEAF = 16
# Keys that wait before they become a block, and keys that are scored first: enough for one matrix product to pay.
_BLOCK, _FIRST_LOOK = 256, 64
# One pass over all keys is faster than visits of so many leaves, and of one more for so many keys, or than to sort so
# many shortlisted keys: keys that repeat or lie on a line can tie in any number.
_MANY_LEAVES, _KEYS_PER_LEAF_VISIT, _MANY_KEYS = 16, 1500, 4096
# NumPy sorts faster than Python from this many scores on.
_MANY_TO_SORT = 64
# Scores of a block of queries held at a time: 32 MB.
_SCORES_AT_ONCE = 1 << 22

# Bound on how far a key below a node of the plane may score above the vertex that is looked up, relative to |q| R.
# A stored slope differs from that of its edge by at most 7 u (three roundings of its own, three of the one that it was
# raised to) and the looked-up ratio by u, so an edge is passed on the wrong side only if its slope differs from that
# ratio by 8 u; along a chain |dx| sums to at most 2 R and |dy| to 4 R, which gives 36 u. Two scores add 2 u each.
PLANE_ERROR = 64 * UNIT64
# Slopes are compared without exact arithmetic where they differ by more than this share: 16 roundings, of at most 6.
_CERTAIN = 16 * UNIT64
# Quotients below the smallest normal number err by more than their share; far above their error.
_TINY = 1e-300


@dataclass(frozen=True, slots=True)
class BestKeys:
    """Keys of the largest score, for one query or for each query of a block."""

    first: int | Array
    """Lowest position among the ties: an int, or an array of shape (queries,)."""
    score: float | Array
    """Largest score in float64: a float, or an array of shape (queries,)."""
    ties: Array | Sequence[Array]
    """Positions of all keys whose score is within the tolerance of the largest, ascending; one array per query."""
    margin: float | Array
    """Distance from the largest score to the largest score outside the ties; infinite where there is none."""


@dataclass(frozen=True, slots=True)
class TopKeys:
    """The k keys of the largest scores and those that tie with the k-th, for one query or for each of a block."""

    positions: Array | Sequence[Array]
    """Positions by decreasing score, equal scores by position, at least k; one array per query."""
    scores: Array | Sequence[Array]
    """Score of each of these positions, in float64; one array per query."""
    margin: float | Array
    """Distance from the k-th largest score to the largest score that is not listed; infinite where all are."""


class Shortlist:
    """Keys that may be needed to decide one query, and the score below which keys are not needed.

    Let t be the k-th largest score so far and s the largest score below ``t - slack``. Both only grow while keys are
    added, so that keys of scores up to ``floor = s - spare`` can be left out at any time.
    """

    __slots__ = ("_ascending", "_k", "_slack", "_spare", "floor", "positions", "scores")

    def __init__(self, k: int, slack: float, spare: float) -> None:
        self._k, self._slack, self._spare = k, slack, spare
        self._ascending: list[float] = []
        self.scores: list[float] = []
        self.positions: list[int] = []
        self.floor = -math.inf

    def add(self, score: float, position: int) -> None:
        """Add one key, which was not added before."""
        ascending = self._ascending
        insort(ascending, score)
        self.scores.append(score)
        self.positions.append(position)
        if len(ascending) > self._k:
            below = bisect_left(ascending, ascending[-self._k] - self._slack)
            if below:
                self.floor = max(self.floor, ascending[below - 1] - self._spare)

    def foresee(self, scores: list[float]) -> None:
        """Raise the floor by the scores of distinct keys that will be added later."""
        if len(scores) > self._k:
            scores.sort()
            below = bisect_left(scores, scores[-self._k] - self._slack)
            if below:  # strictly below the score: the key that has it is still to be added
                self.floor = max(self.floor, math.nextafter(scores[below - 1] - self._spare, -math.inf))

    def final_floor(self, scores: np.ndarray) -> float:
        """Score from which on keys may be needed, given the scores of all keys."""
        threshold = np.partition(scores, -self._k)[-self._k] - self._slack
        below = scores[scores < threshold]
        return float(below.max()) - self._spare if below.size else -math.inf


class AbstractStructure(ABC):
    """Keys of one frame, in the order of their positions, that can be searched for the largest scores."""

    @abstractmethod
    def append(self, key: Sequence[float]) -> None:
        """Add one key."""

    @abstractmethod
    def extend(self, keys: np.ndarray) -> None:
        """Add keys, shape (keys, d)."""

    @abstractmethod
    def collect(self, query: Sequence[float], shortlist: Shortlist, reach: float) -> int:
        """Add all keys that may be needed; return the number of keys scored, -1 where too many have to be.

        ``reach`` is the length of the query times that of the longest key.
        """


class PlaneForest(AbstractStructure):
    """Binary trees over consecutive keys in the plane; each node stores the convex hull of its keys.

    A hull is an upper and a lower chain, each with the slopes of its edges, so that the best key of a node for one
    query is found by bisection. A key may be missing from a hull only if it certainly lies inside: near-collinear keys
    are compared in exact arithmetic. Keys that repeat are stored once, so that any number of copies costs no time.
    """

    def __init__(self) -> None:
        self._x, self._y = array("d"), array("d")  # of the distinct keys
        self._place_of: dict[complex, int] = {}
        self._position = array("q")  # first position of each distinct key
        self._copies: dict[int, list[int]] = {}  # all positions of those that repeat
        self._count = 0
        # By level and node: negative slopes of the edges, ascending, and the positions of the vertices.
        self._upper: list[list[Chain]] = []
        self._lower: list[list[Chain]] = []
        self._roots: list[tuple[int, int]] = []

    def append(self, key: Sequence[float]) -> None:
        """Add one key."""
        x, y = key
        point, position = complex(x, y), self._count
        self._count += 1
        place = self._place_of.setdefault(point, len(self._x))
        if place < len(self._x):
            self._copies.setdefault(place, [self._position[place]]).append(position)
            return
        self._x.append(x)
        self._y.append(y)
        self._position.append(position)
        if len(self._x) % LEAF == 0:
            self._add_leaf(len(self._x) // LEAF - 1)

    def extend(self, keys: np.ndarray) -> None:
        """Add keys, shape (keys, 2)."""
        for key in keys.tolist():
            self.append(key)

    def _add_leaf(self, leaf: int) -> None:
        ordered = sorted(range(leaf * LEAF, (leaf + 1) * LEAF), key=self._x.__getitem__)
        for levels, sign in ((self._upper, 1.0), (self._lower, -1.0)):
            node, chain, level = leaf, _chain(ordered, self._x, self._y, sign), 0
            while True:
                if level == len(levels):
                    levels.append([])
                levels[level].append(chain)
                if node % 2 == 0:
                    break
                both = levels[level][node - 1][1] + chain[1]
                chain = _chain(sorted(both, key=self._x.__getitem__), self._x, self._y, sign)
                node, level = node // 2, level + 1
        count = leaf + 1
        self._roots = [
            (level, (count >> level) - 1) for level in reversed(range(count.bit_length())) if count >> level & 1
        ]

    def collect(self, query: Sequence[float], shortlist: Shortlist, reach: float) -> int:
        """Add all keys that may be needed; return the number of keys scored, -1 where too many have to be."""
        q, p = query
        x, y, leaf = self._x, self._y, LEAF
        levels = self._lower if p < 0 else self._upper
        ratio = q / abs(p) if p else math.copysign(math.inf, q)
        error = PLANE_ERROR * reach
        nodes = []
        for level, node in self._roots:
            slopes, vertices = levels[level][node]
            v = vertices[bisect_left(slopes, ratio)]
            nodes.append((-(q * x[v] + p * y[v]), level, node, v))
        shortlist.foresee([-node[0] for node in nodes])
        self._score(q, p, len(x) // leaf * leaf, len(x), shortlist)
        heapify(nodes)
        visits, most = 0, _MANY_LEAVES + len(x) // _KEYS_PER_LEAF_VISIT
        while nodes:
            score, level, node, v = heappop(nodes)
            if error - score <= shortlist.floor:
                break
            least = shortlist.floor - error
            while level:  # towards the leaf of the vertex, which is also the best key of the nodes on the way
                level -= 1
                node = v // (leaf << level)
                sibling = node ^ 1
                slopes, vertices = levels[level][sibling]
                w = vertices[bisect_left(slopes, ratio)]
                other = q * x[w] + p * y[w]
                if other > least:
                    heappush(nodes, (-other, level, sibling, w))
            self._score(q, p, node * leaf, (node + 1) * leaf, shortlist)
            visits += 1
            if visits > most:
                return -1
        if self._copies:
            self._list_copies(shortlist)
        return visits * leaf + len(x) % leaf

    def _list_copies(self, shortlist: Shortlist) -> None:
        """Replace distinct keys by all positions that hold them; more of them than needed do no harm."""
        found = list(zip(shortlist.scores, shortlist.positions, strict=True))
        shortlist.scores, shortlist.positions = [], []
        for score, place in found:
            positions = self._copies.get(place) or [self._position[place]]
            shortlist.scores += [score] * len(positions)
            shortlist.positions += positions

    def _score(self, q: float, p: float, start: int, stop: int, shortlist: Shortlist) -> None:
        scores = [q * a + p * b for a, b in zip(self._x[start:stop], self._y[start:stop], strict=True)]
        floor = shortlist.floor
        if not scores or max(scores) <= floor:
            return
        for position, score in enumerate(scores, start):
            if score > floor:
                shortlist.add(score, position)
                floor = shortlist.floor


def _chain(ordered: Iterable[int], x: array[float], y: array[float], sign: float) -> Chain:
    """Upper (sign 1) or lower (sign -1) hull of keys ordered by x: negative slopes of its edges, and its vertices."""
    vertices: list[int] = []
    slopes: list[float] = []  # of the edge that ends in each vertex
    for v in ordered:
        a, b = x[v], sign * y[v]
        if vertices and x[vertices[-1]] == a:
            if sign * y[vertices[-1]] >= b:
                continue
            vertices.pop()
            slopes.pop()
        slope = math.inf
        while vertices:
            last = vertices[-1]
            slope = (b - sign * y[last]) / (a - x[last])
            if len(vertices) == 1:
                break
            turn = slopes[-1] - slope
            doubt = _CERTAIN * (abs(slopes[-1]) + abs(slope)) + _TINY
            if turn > doubt:
                break
            # Two infinite slopes give NaN, which is in doubt too.
            if not turn < -doubt and _turns_right(vertices[-2], last, v, x, y, sign):
                break
            vertices.pop()
            slopes.pop()
        vertices.append(v)
        slopes.append(slope)
    keys, highest = array("d"), -math.inf
    for slope in slopes[1:]:
        highest = max(highest, -slope)  # ascending also where neighbouring slopes round to the wrong order
        keys.append(highest)
    return keys, array("q", vertices)


def _turns_right(i: int, j: int, k: int, x: array[float], y: array[float], sign: float) -> bool:
    """Whether key j lies strictly above (sign 1) or below (sign -1) the line through keys i and k; exact."""
    (a, b), (c, d), (e, f) = ((Fraction(x[m]), Fraction(y[m])) for m in (i, j, k))
    turn = (c - a) * (f - d) - (d - b) * (e - c)
    return turn < 0 if sign > 0 else turn > 0


@dataclass(frozen=True)
class _Block:
    """Keys ordered by decreasing length."""

    keys: np.ndarray
    lengths: np.ndarray
    positions: np.ndarray


class LengthBlocks(AbstractStructure):
    """Blocks of keys in any dimension, each ordered by decreasing length.

    No score exceeds the product of the two lengths, so a block is visited from its longest key on until no further key
    is long enough.
    """

    def __init__(self, dimension: int) -> None:
        self._d = dimension
        self._blocks: list[_Block] = []
        self._newest = np.empty((_BLOCK, dimension))
        self._waiting = self._count = 0

    def append(self, key: Sequence[float]) -> None:
        """Add one key."""
        self._newest[self._waiting] = key
        self._waiting += 1
        self._count += 1
        if self._waiting == _BLOCK:
            self._add_block(self._newest.copy(), self._count - _BLOCK)
            self._waiting = 0

    def extend(self, keys: np.ndarray) -> None:
        """Add keys, shape (keys, d)."""
        done = 0
        while done < len(keys):
            some = keys[done : done + _BLOCK - self._waiting]
            self._newest[self._waiting : self._waiting + len(some)] = some
            self._waiting += len(some)
            self._count += len(some)
            done += len(some)
            if self._waiting == _BLOCK:
                self._add_block(self._newest.copy(), self._count - _BLOCK)
                self._waiting = 0

    def _add_block(self, keys: np.ndarray, start: int) -> None:
        blocks = self._blocks
        lengths = np.sqrt(np.einsum("nd,nd->n", keys, keys))
        parts = [_Block(keys, lengths, np.arange(start, start + len(keys)))]
        size = len(keys)
        while blocks and len(blocks[-1].positions) == size:
            parts.append(blocks.pop())
            size *= 2
        lengths = np.concatenate([part.lengths for part in parts])
        order = np.argsort(-lengths, kind="stable")
        keys = np.concatenate([part.keys for part in parts])[order]
        positions = np.concatenate([part.positions for part in parts])[order]
        blocks.append(_Block(keys, lengths[order], positions))

    def collect(self, query: Sequence[float], shortlist: Shortlist, reach: float) -> int:
        """Add all keys that may be needed; return the number of keys scored, -1 where too many have to be."""
        q = np.array(query)
        size = math.sqrt(sum(a * a for a in query))
        # Two computed scores, or a score and the product of the lengths; the factor 2 covers the rounding of lengths.
        error = 2 * product_error(self._d, UNIT64) * reach
        start, waiting = self._count - self._waiting, self._waiting
        newest = np.arange(start, self._count)
        seen = waiting
        if waiting and not self._look(q, self._newest[:waiting], newest, error, shortlist):
            return -1
        visits = [(-size * float(block.lengths[0]), k, 0, _FIRST_LOOK) for k, block in enumerate(self._blocks)]
        heapify(visits)
        while visits:
            bound, k, begin, many = heappop(visits)
            if error - bound <= shortlist.floor:
                break
            block = self._blocks[k]
            stop = min(begin + many, len(block.positions))
            if not self._look(q, block.keys[begin:stop], block.positions[begin:stop], error, shortlist):
                return -1
            seen += stop - begin
            if stop < len(block.positions):
                heappush(visits, (-size * float(block.lengths[stop]), k, stop, 4 * many))
        return seen

    def _look(self, q: np.ndarray, keys: np.ndarray, positions: np.ndarray, error: float, shortlist: Shortlist) -> bool:
        """Score keys and add those above the floor; False where there are too many."""
        rough = keys @ q
        near = np.flatnonzero(rough > shortlist.floor - error)
        if len(near) > 1:
            near = near[np.argsort(-rough[near], kind="stable")]
        done, some = 0, 8  # the floor rises with the first few keys
        while done < len(near) and rough[near[done]] > shortlist.floor - error:
            part = near[done : done + some]
            for score, position in zip(scores_in_order(keys[part], q).tolist(), positions[part].tolist(), strict=True):
                if score > shortlist.floor:
                    shortlist.add(score, position)
            done, some = done + some, 2 * some
            if len(shortlist.positions) > _MANY_KEYS:
                return False
        return True


def scores_in_order(keys: np.ndarray, queries: np.ndarray) -> np.ndarray:
    """Scores of keys for one query, or of paired rows, shape (keys,), bit-identical to those of ``choice.score``."""
    # A cumulative sum adds from left to right, where a sum adds in pairs.
    return np.cumsum(keys * queries, axis=1)[:, -1]


def ranked(positions: Sequence[int], scores: Sequence[Any], k: int, slack: Any) -> tuple[list[int], list[Any], Any]:
    """Positions and scores of the best k keys and those that tie with the k-th, by decreasing score, and the margin.

    Scores may be floats or rationals. Among candidates that include all keys of a needed score, further ones change
    nothing.
    """
    if len(scores) > _MANY_TO_SORT and isinstance(slack, float):
        return _ranked_many(np.array(positions), np.array(scores), k, slack)
    ordered = sorted(zip([-score for score in scores], positions, strict=True))
    lowest = -ordered[k - 1][0] - slack
    inside = k
    while inside < len(ordered) and -ordered[inside][0] >= lowest:
        inside += 1
    margin = ordered[inside][0] - ordered[k - 1][0] if inside < len(ordered) else math.inf
    return [position for _, position in ordered[:inside]], [-score for score, _ in ordered[:inside]], margin


def _ranked_many(
    positions: np.ndarray, scores: np.ndarray, k: int, slack: float
) -> tuple[list[int], list[float], float]:
    order = np.lexsort((positions, -scores))
    kth = scores[order[k - 1]]
    inside = int(np.count_nonzero(scores >= kth - slack))
    margin = float(kth - scores[order[inside]]) if inside < len(order) else math.inf
    return positions[order[:inside]].tolist(), scores[order[:inside]].tolist(), margin


def best_of_block(
    queries: np.ndarray, keys: np.ndarray, tolerance: float, longest: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[np.ndarray]]:
    """First position, score, margin and ties of each query, by matrix products over all keys.

    Queries are not zero and, like keys, of sizes whose squares stay in range.
    """
    count = len(queries)
    first, score, margin = np.empty(count, np.int64), np.empty(count), np.empty(count)
    ties: list[np.ndarray] = []
    lengths = np.sqrt(scores_in_order(queries, queries))
    slack = tolerance * lengths * longest
    # A product and a deciding score differ by at most this; thresholds below leave room for three such errors.
    error = 2 * product_error(keys.shape[1], UNIT64) * lengths * longest
    step = max(1, _SCORES_AT_ONCE // len(keys))
    for start in range(0, count, step):
        some = slice(start, start + step)
        q = queries[some]
        rough = q @ keys.T
        row, column, scores = _near(rough, slack[some] + 3 * error[some], q, keys)
        starts = np.searchsorted(row, np.arange(len(q)))
        score[some] = np.maximum.reduceat(scores, starts)
        tied = scores >= score[some][row] - slack[some][row]
        row, column = row[tied], column[tied]
        starts = np.searchsorted(row, np.arange(len(q)))
        first[some] = column[starts]
        ties += np.split(column, starts[1:])
        rough[row, column] = -np.inf  # what is left is outside the ties
        row, column, scores = _near(rough, 3 * error[some], q, keys)
        following = np.full(len(q), -np.inf)
        np.maximum.at(following, row, scores)
        margin[some] = score[some] - following
    return first, score, margin, ties


def _near(
    rough: np.ndarray, distance: np.ndarray, queries: np.ndarray, keys: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, columns and deciding scores of the entries within a distance of the largest of their row, if finite."""
    largest = rough.max(axis=1)
    lowest = np.where(largest > -np.inf, largest - distance, np.inf)
    row, column = np.nonzero(rough >= lowest[:, None])
    parts = max(1, len(row) * keys.shape[1] // _SCORES_AT_ONCE)
    pieces = zip(np.array_split(row, parts), np.array_split(column, parts), strict=True)
    return row, column, np.concatenate([scores_in_order(keys[c], queries[r]) for r, c in pieces])
