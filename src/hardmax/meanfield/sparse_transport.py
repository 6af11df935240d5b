r"""Exact transport between laws of more points than a dense linear programme can hold, with a proof of optimality.

Few of the :math:`nm` pairs carry mass. A plan that is optimal among some pairs comes with potentials u and v; it is
optimal among all if no other pair has :math:`c_{ij} < u_i + v_j`. Pairs that have are added and the programme is solved
again (column generation). The pairs of the first round are those of the least :math:`c_{ij} - u_i - v_j` for potentials
of a programme of a thousand points of each law, and a plan in sorted order, so that there is always one.

The end is proved, not assumed: for any u, with :math:`v_j = \min_i c_{ij} - u_i`, the number :math:`\sum_i u_i a_i +
\sum_j v_j b_j` is a lower bound of the cost of every plan. The plan is returned when its cost is that number up to
rounding. Pairs are looked at in tiles, so that memory grows like n + m.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_matrix
from scipy.spatial import cKDTree

Cost = Callable[[np.ndarray, np.ndarray], np.ndarray]
_COARSE = 1_000  # points of each law in the first programme: a fraction of a second
_TILE = 1_024  # points of each law per tile: 8 MB
_NEAREST = 8  # pairs per point of the first round: more than twice the mean number that carry mass
_MOST_ROUNDS = 60  # some ten are usual
_GAP = 1e-12  # cost above the lower bound, relative to the largest cost of a pair, at which no more pairs are added
_ROUNDED_GAP = 1e-9  # the same where there are none to add
_MOST_PIVOTS = 20_000_000


@dataclass(frozen=True, eq=False)
class SparsePlan:
    """Optimal plan in pieces."""

    costs: np.ndarray
    """Cost per piece, shape (pieces,)."""
    masses: np.ndarray
    """Mass per piece, shape (pieces,)."""
    gap: float
    """Cost of the plan above the proved lower bound of all plans."""
    rounds: int
    """Number of linear programmes that were solved."""


def sparse_plan(
    a: np.ndarray,
    wa: np.ndarray,
    b: np.ndarray,
    wb: np.ndarray,
    cost: Cost,
    *,
    coarse: int = _COARSE,
    tile: int = _TILE,
) -> SparsePlan | None:
    """Optimal plan between weighted points, or None if optimality was not proved.

    Parameters
    ----------
    a, b
        Points, shapes (n, d) and (m, d).
    wa, wb
        Masses of sum one, shapes (n,) and (m,).
    cost
        Costs between two sets of points, shape (points of the first, points of the second).
    coarse
        Number of points of each law in the first programme.
    tile
        Number of points of each law whose costs are held at a time.

    Returns
    -------
    SparsePlan or None
        Costs and masses of the pieces, and the proved gap.
    """
    import ot  # the caller has made sure that it is there

    n, m = len(a), len(b)
    u, v = _coarse_potentials(a, wa, b, wb, cost, coarse, tile)
    pairs = np.unique(np.concatenate([_least(a, b, u, v, cost, tile), _in_order(a, wa, b, wb)]))
    largest = 0.0
    for rounds in range(1, _MOST_ROUNDS + 1):
        i, j = np.divmod(pairs, m)
        costs = _cost_of(a, b, i, j, cost)
        # A cost of zero would be no entry of a sparse matrix.
        shifted = coo_matrix((costs + 1.0, (i, j)), shape=(n, m))
        plan, log = ot.emd(wa, wb, shifted, numItermax=_MOST_PIVOTS, log=True)
        if log["warning"] is not None:
            return None
        plan = coo_matrix(plan)
        used = plan.data > 0
        moved, masses = _cost_of(a, b, plan.row[used], plan.col[used], cost), plan.data[used]
        u, v = np.asarray(log["u"]) - 1.0, np.asarray(log["v"])
        missing, lower, top = _priced(a, b, u, v, wa, wb, cost, tile)
        largest = max(largest, top)
        gap = float(moved @ masses / masses.sum()) - lower
        more = np.union1d(pairs, missing)
        finished = len(more) == len(pairs)  # what is left is rounding of the potentials
        if gap <= (_ROUNDED_GAP if finished else _GAP) * largest:
            return SparsePlan(moved, masses, gap, rounds)
        if finished:
            return None
        pairs = more
    return None


def _cost_of(a: np.ndarray, b: np.ndarray, i: np.ndarray, j: np.ndarray, cost: Cost) -> np.ndarray:
    """Cost of pairs, shape (pairs,)."""
    found = np.empty(len(i))
    order = np.argsort(i, kind="stable")
    starts = np.flatnonzero(np.diff(i[order], prepend=-1))
    for part in np.split(order, starts[1:]):
        found[part] = cost(a[i[part[:1]]], b[j[part]])[0]
    return found


def _tiles(n: int, m: int, tile: int) -> Iterator[tuple[slice, slice]]:
    for top in range(0, n, tile):
        for left in range(0, m, tile):
            yield slice(top, min(n, top + tile)), slice(left, min(m, left + tile))


def _coarse_potentials(
    a: np.ndarray, wa: np.ndarray, b: np.ndarray, wb: np.ndarray, cost: Cost, coarse: int, tile: int
) -> tuple[np.ndarray, np.ndarray]:
    """Potentials of all points from a programme of some of them, to which the others give their mass."""
    import ot

    rng = np.random.default_rng(0)  # any choice gives the same plan in the end
    few = []
    for points, mass in ((a, wa), (b, wb)):
        chosen = np.sort(rng.choice(len(points), min(coarse, len(points)), replace=False))
        nearest = cKDTree(points[chosen]).query(points)[1]
        few.append((points[chosen], np.bincount(nearest, weights=mass, minlength=len(chosen))))
    (some_a, mass_a), (some_b, mass_b) = few
    some_a, mass_a = some_a[mass_a > 0], mass_a[mass_a > 0]
    some_b, mass_b = some_b[mass_b > 0], mass_b[mass_b > 0]
    _, log = ot.emd(mass_a, mass_b, cost(some_a, some_b), numItermax=_MOST_PIVOTS, log=True)
    v = _transform(some_a, np.asarray(log["u"]), b, cost, tile)
    u = _transform(some_b, _transform(some_a, np.asarray(log["u"]), some_b, cost, tile), a, cost, tile)
    return u, v


def _transform(points: np.ndarray, potential: np.ndarray, others: np.ndarray, cost: Cost, tile: int) -> np.ndarray:
    """Least cost minus potential over points, for each of the others."""
    found = np.full(len(others), np.inf)
    for rows, columns in _tiles(len(points), len(others), tile):
        least = (cost(points[rows], others[columns]) - potential[rows, None]).min(axis=0)
        found[columns] = np.minimum(found[columns], least)
    return found


def _least(a: np.ndarray, b: np.ndarray, u: np.ndarray, v: np.ndarray, cost: Cost, tile: int) -> np.ndarray:
    """Pairs of the least reduced cost of each point of either law, as i m + j."""
    found = []
    for points, others, theirs, swapped in ((a, b, v, False), (b, a, u, True)):
        count = min(_NEAREST, len(others))
        rows_at_once = max(1, tile * tile // len(others))
        for top in range(0, len(points), rows_at_once):
            rows = slice(top, min(len(points), top + rows_at_once))
            reduced = cost(points[rows], others) - theirs
            near = np.argpartition(reduced, count - 1, axis=1)[:, :count]
            at = np.arange(rows.start, rows.stop)[:, None]
            found.append((near * len(points) + at if swapped else at * len(others) + near).ravel())
    return np.concatenate(found)


def _in_order(a: np.ndarray, wa: np.ndarray, b: np.ndarray, wb: np.ndarray) -> np.ndarray:
    """Pairs of a plan in order of the direction in which the laws extend most, as i m + j."""
    both = np.concatenate([a, b])
    direction = np.linalg.svd(both - both.mean(axis=0), full_matrices=False)[2][0]
    first, second = (np.argsort(points @ direction, kind="stable") for points in (a, b))
    upto_a, upto_b = np.cumsum(wa[first]), np.cumsum(wb[second])
    pairs, i, j = [], 0, 0
    while True:
        pairs.append(int(first[i]) * len(b) + int(second[j]))
        if i == len(a) - 1 and j == len(b) - 1:
            return np.array(pairs)
        # Both neighbours of a step, so that rounding of the cumulated masses leaves a plan.
        if j == len(b) - 1 or (i < len(a) - 1 and upto_a[i] <= upto_b[j]):
            i += 1
        else:
            j += 1


def _priced(
    a: np.ndarray,
    b: np.ndarray,
    u: np.ndarray,
    v: np.ndarray,
    wa: np.ndarray,
    wb: np.ndarray,
    cost: Cost,
    tile: int,
) -> tuple[np.ndarray, float, float]:
    """Pairs below their potentials, the most of each row and column of a tile; the lower bound; the largest cost."""
    found, largest = [], 0.0
    highest = np.full(len(b), np.inf)
    for rows, columns in _tiles(len(a), len(b), tile):
        costs = cost(a[rows], b[columns])
        largest = max(largest, float(costs.max()))
        reduced = costs - u[rows, None]
        highest[columns] = np.minimum(highest[columns], reduced.min(axis=0))
        reduced -= v[columns]
        down, across = reduced.argmin(axis=0), reduced.argmin(axis=1)
        width = reduced.shape[1]
        places = np.unique(np.concatenate([down * width + np.arange(width), np.arange(len(across)) * width + across]))
        i, j = np.divmod(places[reduced.ravel()[places] < 0], width)
        found.append((i + rows.start) * len(b) + j + columns.start)
    return np.concatenate(found), float(u @ wa + highest @ wb), largest
