r"""Wasserstein distance :math:`W_2` between two laws, exact where the size allows it.

.. math:: W_2(\mu, \nu)^2 = \min_\pi \int c(x, y)\,d\pi(x, y)

over plans :math:`\pi` with marginals mu and nu, with :math:`c = |x-y|^2` (chordal) or the squared angle (geodesic).

========== ==================================================== ==========
method     for                                                  exact
========== ==================================================== ==========
line       d = 1, by sorting                                    yes
circle     the unit circle, by sorting and the best rotation    yes
atoms      at most two points on one side, by sorting           yes
exact      anything of moderate size, by linear programming     yes
sliced     larger sizes: mean over one-dimensional projections  another distance, comparable with itself only
========== ==================================================== ==========

On the circle sorting is optimal for a convex function of the angle. The chord :math:`2 - 2\cos\delta` is not convex
beyond a right angle, but it lies above its tangent at :math:`\delta_0` up to :math:`\pi` if
:math:`1 - \cos\delta_0 + (\pi - \delta_0)\sin\delta_0 \le 2`, that is for :math:`\delta_0 \le 0.81`. If no mass
travels farther, the sorted plan is optimal for the convex cost below the chord, with the same cost, hence optimal.
Otherwise the linear programme decides. It is one of distinct points: a limit law with few atoms is small however many
tokens there are. Above 25 million pairs it is solved on some of the pairs, with a proof that no other would be used
(:mod:`hardmax.meanfield.sparse_transport`).

A few isolated tokens that attend to themselves alone bound :math:`W_2` from below; the trimmed distance leaves out the
share of the mass that travels farthest.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch
from scipy.optimize import minimize_scalar
from scipy.spatial.distance import cdist

from ..errors import InputError, MissingExtraError
from ..inputs import as_count, as_number, as_tokens, as_weights
from ..randomness import seeded
from ..shapes import ArrayLike
from ..threads import one_thread
from .density import SphereDensity
from .sparse_transport import sparse_plan

Metric = Literal["chordal", "geodesic"]
DENSE = 5_000 * 5_000  # pairs up to which the linear programme holds all of them: 400 MB and some seconds
_AFFORDABLE = 10_000 * 10_000  # pairs for which linear programming is the default: half a minute
_CONVEX = 0.81  # radians up to which sorting is optimal for the chord, see above
_PLAIN_SIZES = (1e-100, 1e100)  # squares of larger and smaller points may leave float64
_SAME_ATOM = 1e-9  # points of one law this close, relative to the extent of both laws, are one


@dataclass(frozen=True, eq=False)
class Transport:
    """Optimal plan between two laws, in pieces; ``float(transport)`` is the distance."""

    method: str
    """Method that was used, see :func:`wasserstein`."""
    costs: np.ndarray
    """Squared distance per piece of the plan, shape (pieces,), in units of ``unit ** 2``."""
    masses: np.ndarray
    """Mass per piece, shape (pieces,)."""
    unit: float = 1.0
    """Unit of length: one, unless squares of the coordinates leave float64."""

    @property
    def exact(self) -> bool:
        """Whether the distance is W_2 itself."""
        return self.method != "sliced"

    @property
    def distance(self) -> float:
        """W_2, or its sliced counterpart."""
        return self.unit * math.sqrt(max(0.0, float(self.costs @ self.masses / self.masses.sum())))

    def trimmed(self, share: float = 0.01) -> float:
        """Distance without the share of the mass that travels farthest in this plan.

        Parameters
        ----------
        share
            Share of the mass to leave out, in [0, 1).

        Returns
        -------
        float
            Trimmed distance.
        """
        remedy = "pass for example share=0.01"
        share = as_number("share", share, lambda x: 0 <= x < 1, "must lie in [0, 1)", remedy)
        order = np.argsort(self.costs, kind="stable")
        masses = self.masses[order]
        room = (1 - share) * masses.sum() - (np.cumsum(masses) - masses)
        kept = np.clip(room, 0.0, masses)
        return self.unit * math.sqrt(max(0.0, float(self.costs[order] @ kept / kept.sum())))

    def __float__(self) -> float:
        return self.distance

    def __repr__(self) -> str:
        return f"<Transport: {self}>"

    def __str__(self) -> str:
        return f"{'W2' if self.exact else 'sliced W2'} = {self.distance:.6g} (method {self.method})"


@one_thread()
def wasserstein(
    first: ArrayLike | SphereDensity,
    second: ArrayLike | SphereDensity,
    *,
    first_weights: ArrayLike | None = None,
    second_weights: ArrayLike | None = None,
    metric: Metric = "chordal",
    method: str = "auto",
    projections: int = 200,
    random_state: int | np.random.Generator | None = 0,
) -> Transport:
    """Optimal transport between two weighted point sets; ``float()`` of it is the distance W_2.

    Parameters
    ----------
    first, second
        Points, shapes (n, d) and (m, d). One of them may be a :class:`SphereDensity`, its whole law rather than its
        nodes: on the circle the distance is exact; with an axis it is that of the angles to the axis, which is exact
        against another law with this symmetry and a lower bound otherwise.
    first_weights, second_weights
        Positive weights, shapes (n,) and (m,), normalised to sum one; all equal when left out.
    metric
        ``"chordal"`` (Euclidean distance) or ``"geodesic"`` (angle between points of the unit sphere).
    method
        ``"line"`` (d = 1), ``"atoms"`` (at most two points on one side), ``"circle"`` (points of the unit circle; with
        the chordal metric only where no mass travels more than 0.81 radians), ``"exact"`` (linear programming),
        ``"sliced"`` (mean over one-dimensional projections, another distance), or ``"auto"``: the first of these that
        applies and is affordable, where linear programming is up to 10,000 distinct points in both.
    projections
        Number of directions of the sliced distance.
    random_state
        Seed or generator of these directions.

    Returns
    -------
    Transport
        Costs and masses of the plan, the distance and the method.

    Examples
    --------
    >>> float(wasserstein([[0.0], [1.0]], [[2.0], [1.0]]))
    1.0
    """
    if metric not in ("chordal", "geodesic"):
        raise InputError("metric", repr(metric), "is not known", 'pass "chordal" or "geodesic"')
    for law, points, mass, name in ((first, second, second_weights, "first"), (second, first, first_weights, "second")):
        if isinstance(law, SphereDensity):
            return _from_density(law, points, mass, name, metric)
    a, wa = _law(first, first_weights, "first")
    b, wb = _law(second, second_weights, "second")
    if a.shape[1] != b.shape[1]:
        raise InputError(
            "second", f"{b.shape[1]} coordinates", f"must have {a.shape[1]} as the first has", "compare in one space"
        )
    if metric == "geodesic" and not _on_sphere(a, b):
        raise InputError("metric", "geodesic", "needs points on the unit sphere", 'use metric="chordal"')
    unit = _unit(a, b)
    found = _transport(a / unit, wa, b / unit, wb, metric, method, projections, random_state)
    return replace(found, unit=unit)


def _unit(a: np.ndarray, b: np.ndarray) -> float:
    size = max(float(np.abs(a).max()), float(np.abs(b).max()))
    return 1.0 if size == 0 or _PLAIN_SIZES[0] < size < _PLAIN_SIZES[1] else 2.0 ** math.floor(math.log2(size))


def _transport(
    a: np.ndarray,
    wa: np.ndarray,
    b: np.ndarray,
    wb: np.ndarray,
    metric: Metric,
    method: str,
    projections: int,
    random_state: int | np.random.Generator | None,
) -> Transport:
    chosen = _chosen(a, b, metric) if method == "auto" else method
    if method == "auto" and chosen != "atoms" and a.shape[1] == 2 and metric == "chordal" and _on_sphere(a, b):
        sorted_plan = _circle(a, wa, b, wb, metric)
        if sorted_plan is not None:
            return sorted_plan
    if chosen == "line":
        _require(a.shape[1] == 1, "line", "d = 1")
        return _line(a[:, 0], wa, b[:, 0], wb)
    if chosen == "circle":
        _require(a.shape[1] == 2 and _on_sphere(a, b), "circle", "d = 2 and points of the unit circle")
        sorted_plan = _circle(a, wa, b, wb, metric)
        _require(sorted_plan is not None, "circle", "chords of at most 0.81 radians, or the geodesic metric")
        return sorted_plan  # type: ignore[return-value]  # the line above refuses None
    if chosen == "atoms":
        return _atomic(a, wa, b, wb, metric)
    if chosen == "exact":
        return _programmed(a, wa, b, wb, metric)
    if chosen == "sliced":
        return _sliced(a, wa, b, wb, as_count("projections", projections, least=1), random_state)
    known = "auto, line, circle, atoms, exact, sliced"
    raise InputError("method", repr(method), "is not known", f"pass one of {known}")


def _law(points: ArrayLike, weights: ArrayLike | None, argument: str) -> tuple[np.ndarray, np.ndarray]:
    tensor, _ = as_tokens(points, argument=argument)
    mass = as_weights(weights, len(tensor), torch.device("cpu"), f"{argument}_weights").detach().numpy()
    return tensor.detach().to(torch.float64).cpu().numpy(), mass / mass.sum()


def _on_sphere(*laws: np.ndarray) -> bool:
    return all(bool(np.abs(np.linalg.norm(points, axis=1) - 1).max() < 1e-5) for points in laws)


def _require(holds: bool, method: str, need: str) -> None:
    if not holds:
        raise InputError("method", method, f"is only for {need}", 'pass method="auto"')


def _chosen(a: np.ndarray, b: np.ndarray, metric: Metric) -> str:
    if a.shape[1] == 1:
        return "line"
    if _atoms(b, a) is not None or _atoms(a, b) is not None:
        return "atoms"
    if a.shape[1] == 2 and metric == "geodesic":
        return "circle"
    return "exact" if pairs_of(a, b) <= _AFFORDABLE else "sliced"


def pairs_of(a: np.ndarray, b: np.ndarray) -> int:
    """Number of pairs of distinct points of two laws, or of all points where that is small."""
    if len(a) * len(b) <= DENSE:
        return len(a) * len(b)
    grain = _grain(a, b)
    return len(_places(a, grain)[0]) * len(_places(b, grain)[0])


def _costs(a: np.ndarray, b: np.ndarray, metric: Metric) -> np.ndarray:
    # From differences: |a|^2 + |b|^2 - 2 <a, b> would lose all digits of points that are close and far from zero.
    squared = cdist(a, b, "sqeuclidean")
    costs = squared if metric == "chordal" else (2 * np.arcsin(np.minimum(1.0, 0.5 * np.sqrt(squared)))) ** 2
    return np.asarray(costs)


def _quantile_plan(wa: np.ndarray, wb: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pieces that couple two sorted laws in order: index in the first, in the second, and mass."""
    upto_a, upto_b = np.cumsum(wa)[:-1], np.cumsum(wb)[:-1]
    cuts = np.concatenate([[0.0], np.sort(np.concatenate([upto_a, upto_b])), [1.0]])
    masses = np.diff(cuts)
    middles = 0.5 * (cuts[1:] + cuts[:-1])
    kept = masses > 0
    return np.searchsorted(upto_a, middles[kept]), np.searchsorted(upto_b, middles[kept]), masses[kept]


def _line(a: np.ndarray, wa: np.ndarray, b: np.ndarray, wb: np.ndarray) -> Transport:
    order_a, order_b = np.argsort(a, kind="stable"), np.argsort(b, kind="stable")
    i, j, masses = _quantile_plan(wa[order_a], wb[order_b])
    return Transport("line", (a[order_a][i] - b[order_b][j]) ** 2, masses)


def _circle(a: np.ndarray, wa: np.ndarray, b: np.ndarray, wb: np.ndarray, metric: Metric) -> Transport | None:
    """The best plan is in order up to a shift of mass, in which the cost is convex (Delon et al. 2010).

    None for the chordal metric if mass travels too far for sorting to be optimal.
    """
    turn_a, turn_b = (np.arctan2(p[:, 1], p[:, 0]) / (2 * math.pi) % 1.0 for p in (a, b))
    order_a, order_b = np.argsort(turn_a, kind="stable"), np.argsort(turn_b, kind="stable")
    places, heavy = turn_a[order_a], wa[order_a]
    # Three turns of the second law: quantiles of shifted mass stay inside them.
    targets = np.concatenate([turn_b[order_b] + k for k in (-1, 0, 1)])
    ends = np.concatenate([np.cumsum(wb[order_b]) + k for k in (-1, 0, 1)])

    def shifted(shift: float) -> tuple[np.ndarray, np.ndarray]:
        upto = np.cumsum(heavy)
        inner = ends - shift
        cuts = np.concatenate([[0.0], np.sort(np.concatenate([upto[:-1], inner[(inner > 0) & (inner < 1)]])), [1.0]])
        middles, masses = 0.5 * (cuts[1:] + cuts[:-1]), np.diff(cuts)
        i = np.minimum(np.searchsorted(upto[:-1], middles), len(places) - 1)
        j = np.minimum(np.searchsorted(ends, middles + shift), len(targets) - 1)
        return 2 * math.pi * np.abs(places[i] - targets[j]), masses

    def cost(shift: float) -> float:
        angles, masses = shifted(shift)
        return float(_convex_cost(angles, metric) @ masses)

    shift = _best_shift(cost)
    # The cost is linear between shifts at which ends of masses meet, so the nearest of these is at least as good.
    meeting = np.cumsum(heavy) + shift
    place = np.clip(np.searchsorted(ends, meeting), 1, len(ends) - 1)
    gaps = np.concatenate([ends[place] - meeting, ends[place - 1] - meeting])
    shift = min(shift, shift + float(gaps[np.abs(gaps).argmin()]), key=cost)
    angles, masses = shifted(shift)
    real = masses > 8 * np.finfo(np.float64).eps  # smaller pieces come from the rounding of cumulated weights
    angles, masses = angles[real], masses[real]
    if metric == "chordal" and float(masses[angles > _CONVEX].sum()) > _NO_MASS:
        return None
    return Transport("circle", _convex_cost(angles, metric), masses)


_NEARBY = 0.05  # shares of mass by which the best shifts for the chord and for the angle may differ
_NO_MASS = 1e-10  # mass that wraps around the circle by rounding of cumulated weights and of the best shift


def _convex_cost(angles: np.ndarray, metric: Metric) -> np.ndarray:
    """Squared angle, or squared chord continued by its tangent where it is no longer convex."""
    if metric == "geodesic":
        return np.asarray(angles**2)
    inside = np.minimum(angles, _CONVEX)
    return np.asarray(4 * np.sin(0.5 * inside) ** 2 + 2 * math.sin(_CONVEX) * (angles - inside))


def _best_shift(cost: Callable[[float], float]) -> float:
    """Shift of mass in [-1, 1] at which a convex cost is least, by golden sections."""
    low, high = -1.0, 1.0
    golden = (math.sqrt(5) - 1) / 2
    left, right = high - golden * (high - low), low + golden * (high - low)
    at_left, at_right = cost(left), cost(right)
    while high - low > 1e-12:
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - golden * (high - low)
            at_left = cost(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + golden * (high - low)
            at_right = cost(right)
    return 0.5 * (low + high)


def _least_at(cost: Callable[[float], float], low: float, high: float) -> float:
    """Place of the least value; the cost is quadratic there, so that an error of 1e-9 is one of 1e-18 in the cost."""
    return float(minimize_scalar(cost, bounds=(low, high), method="bounded", options={"xatol": 1e-9}).x)


def _from_density(
    law: SphereDensity, other: ArrayLike | SphereDensity, weights: ArrayLike | None, name: str, metric: Metric
) -> Transport:
    """Plan between the law of a density and points, in order of the angle; each point is one piece."""
    if isinstance(other, SphereDensity):
        problem = "cannot be a density as the other is"
        raise InputError(name, "two densities", problem, "pass density.quantiles(n).points for one of them")
    points, mass = _law(other, weights, "second" if name == "first" else "first")
    if points.shape[1] != law.dimension or not _on_sphere(points):
        found = f"points of {points.shape[1]} coordinates"
        raise InputError(name, found, f"must lie on the unit sphere in {law.dimension} dimensions", "normalise them")
    if law.axis is None:
        angles = np.arctan2(points[:, 1], points[:, 0]) % (2 * math.pi)
    else:
        along = points @ law.axis
        angles = np.arctan2(np.linalg.norm(points - np.outer(along, law.axis), axis=1), along)
    order = np.argsort(angles, kind="stable")
    angles, mass = angles[order], mass[order]
    upto = np.concatenate([[0.0], np.cumsum(mass)])
    upto[-1] = 1.0

    def pieces(shift: float) -> tuple[np.ndarray, np.ndarray]:
        """Squared distance per point, of the metric, and the farthest that its mass travels."""
        ends = law.quantile(upto + shift)
        far = np.maximum(np.abs(ends[1:] - angles), np.abs(ends[:-1] - angles))
        masses, first, second, cosines, sines = np.diff(law.integrals(upto + shift), axis=0).T
        masses = np.maximum(masses, np.finfo(float).tiny)
        if metric == "geodesic":
            return (second - 2 * angles * first) / masses + angles**2, far
        return 2 - 2 * (np.cos(angles) * cosines + np.sin(angles) * sines) / masses, far

    shift = 0.0
    if law.axis is None:
        # The angle of the points starts at 0, that of the law where it happens to be: the squared angle is convex.
        def cost(shift: float) -> float:
            masses, first, second, _, _ = np.diff(law.integrals(upto + shift), axis=0).T
            return float((second - 2 * angles * first + angles**2 * masses).sum())

        shift = _least_at(cost, -1.0, 1.0)
        if metric == "chordal":
            # Near this shift the cost is convex if no mass travels too far, which is checked below.
            shift = _least_at(lambda at: float(pieces(at)[0] @ mass), shift - _NEARBY, shift + _NEARBY)
    costs, far = pieces(shift)
    if metric == "chordal" and float(far.max()) > _CONVEX:
        remedy = 'pass metric="geodesic", or compare with density.quantiles(n).points'
        raise InputError(name, f"mass that travels {far.max():.2g} radians", "must be closer to the points", remedy)
    return Transport("line" if law.axis is not None else "circle", np.maximum(costs, 0.0), mass)


def _grain(a: np.ndarray, b: np.ndarray) -> float:
    """Distance within which two points of one law are one."""
    low = np.minimum(a.min(axis=0), b.min(axis=0))
    return _SAME_ATOM * float((np.maximum(a.max(axis=0), b.max(axis=0)) - low).max())


def _places(points: np.ndarray, grain: float) -> tuple[np.ndarray, np.ndarray]:
    """Indices of distinct points, one for each, and which of them each point is."""
    if grain == 0:
        return np.zeros(1, dtype=np.int64), np.zeros(len(points), dtype=np.int64)
    # Relative to one of the points, since cells of a fine grid far from zero have no integer numbers.
    cells = np.round((points - points[0]) / grain).astype(np.int64)
    _, first, which = np.unique(cells, axis=0, return_index=True, return_inverse=True)
    return first, which.ravel()


def _distinct(points: np.ndarray, mass: np.ndarray, grain: float) -> tuple[np.ndarray, np.ndarray]:
    """Distinct points and their masses."""
    first, which = _places(points, grain)
    return points[first], np.bincount(which, weights=mass, minlength=len(first))


def _atoms(points: np.ndarray, others: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """At most two places, and which of them each point is at; None if there are more."""
    grain = _grain(points, others)
    first = points[0]
    elsewhere = np.abs(points - first).max(axis=1) > grain
    if not elsewhere.any():
        return points[:1], np.zeros(len(points), dtype=np.int64)
    second = points[int(elsewhere.argmax())]
    if (np.abs(points[elsewhere] - second).max(axis=1) > grain).any():
        return None
    return np.stack([first, second]), elsewhere.astype(np.int64)


def _atomic(a: np.ndarray, wa: np.ndarray, b: np.ndarray, wb: np.ndarray, metric: Metric) -> Transport:
    """With two targets, those go to the first whose cost there is least compared with the second's."""
    found = _atoms(b, a)
    if found is None:
        found, (a, wa), wb = _atoms(a, b), (b, wb), wa
    _require(found is not None, "atoms", "at most two distinct points on one side")
    places, which = found  # type: ignore[misc]  # the line above refuses None
    costs = _costs(a, places, metric)
    if len(places) == 1:
        return Transport("atoms", costs[:, 0], wa)
    order = np.argsort(costs[:, 0] - costs[:, 1], kind="stable")
    i, j, masses = _quantile_plan(wa[order], np.array([wb[which == 0].sum(), wb[which == 1].sum()]))
    return Transport("atoms", costs[order[i], j], masses)


def _programmed(a: np.ndarray, wa: np.ndarray, b: np.ndarray, wb: np.ndarray, metric: Metric) -> Transport:
    try:
        import ot
    except ImportError:
        raise MissingExtraError("POT", "meanfield", "exact transport between laws of many points") from None
    grain = _grain(a, b)
    (a, wa), (b, wb) = _distinct(a, wa, grain), _distinct(b, wb, grain)
    remedy = 'use fewer points, or method="sliced"'
    if len(a) * len(b) > DENSE:
        sparse = sparse_plan(a, wa, b, wb, lambda first, second: _costs(first, second, metric))
        if sparse is None:
            raise InputError("method", "exact", f"did not finish for {len(a)} and {len(b)} points", remedy)
        return Transport("exact", sparse.costs, sparse.masses)
    costs = _costs(a, b, metric)
    plan, log = ot.emd(wa, wb, costs, numItermax=20_000_000, log=True)
    if log["warning"] is not None:
        raise InputError("method", "exact", f"did not finish ({log['warning']})", remedy)
    used = plan > 0
    return Transport("exact", costs[used], plan[used])


def _sliced(
    a: np.ndarray,
    wa: np.ndarray,
    b: np.ndarray,
    wb: np.ndarray,
    projections: int,
    random_state: int | np.random.Generator | None,
) -> Transport:
    rng = seeded(random_state).generator
    directions = rng.standard_normal((projections, a.shape[1]))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    parts = [_line(a @ direction, wa, b @ direction, wb) for direction in directions]
    costs = np.concatenate([part.costs for part in parts])
    return Transport("sliced", costs, np.concatenate([part.masses for part in parts]) / projections)
