r"""The three phases of a run, measured and compared with the theory.

1. Tokens concentrate on the push-forward of their law under the limit map: :math:`W_2` to it falls.
2. They stay there for a time of order :math:`\log\beta`: :math:`W_2` is near its least value.
3. Clusters that attend to themselves obey :math:`\dot x = P_x V x` and leave for the leading eigenspace of V.

Times and rates are measured from :math:`W_2(t)`, with the quality of each fit.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

import numpy as np
import torch
from scipy.special import logsumexp

from ..dynamics.trajectory import Trajectory
from ..errors import InputError
from ..inputs import as_number, plain
from ..threads import one_thread
from .density_flow import DensityRun
from .energy import flow_of, states_of, weights_of
from .flow import SphereFlow
from .limit import LowTemperatureLimit, low_temperature_limit
from .measures import FewTokensWarning, Occupancy, occupancy_of
from .rates import Rates, rates
from .spectrum import leading_part
from .transport import DENSE, Metric, Transport, pairs_of, wasserstein

_NEAR = 2.0  # the metastable window: W_2 below twice its least value
_FEWEST_TO_FIT = 4  # states; two parameters are fitted
_ROUNDING = 1e-12  # distances on the unit sphere below this are rounding
_MOST_PROGRAMMED = 40  # states compared by linear programming, which is slow
_IN_KERNEL = 1e-9  # length of the projection of a node at an edge between basins, up to rounding
_FLOOR = 0.5  # share of W_2 due to isolated tokens above which they dominate: a quarter of its square
_AWAY = 0.1  # distance from the limit beyond which a token that attends to itself stands still elsewhere
_ROWS = 256  # queries per block of logits


@dataclass(frozen=True)
class Fit:
    """Exponential rate fitted to log W_2 by least squares."""

    rate: float
    """Rate per unit of time."""
    error: float
    """Standard error of the rate."""
    r_squared: float
    """Coefficient of determination of the fit."""
    interval: tuple[float, float]
    """First and last time of the fitted states."""

    def __str__(self) -> str:
        return f"{self.rate:.3g} ± {self.error:.1g} (R² = {self.r_squared:.3f})"


@dataclass(frozen=True, eq=False)
class Terminal:
    """The last state of a run, compared with the axis on which the theory expects it."""

    direction: np.ndarray
    """Principal axis of the tokens, a unit vector of shape (d,)."""
    spread: float
    """Root mean square distance of tokens to the nearer end of that axis."""
    expected: np.ndarray | None
    """Axis on which tokens end, shape (d,): that of the clusters where they stay, otherwise the leading eigenvector of
    V, or of -V for clusters that attend to their antipodes; None where it is not known."""
    distance: float | None
    """Root mean square distance of tokens to the nearer end of the expected axis."""


@dataclass(frozen=True, eq=False)
class Phases:
    """Phases that :func:`phases` measured in a run, and the prediction of the theory where it applies."""

    times: np.ndarray
    """Times of the compared states, shape (states,)."""
    distances: np.ndarray
    """W_2 to the limit law at each of ``times``, shape (states,); the sliced distance where ``method`` says so."""
    trimmed: np.ndarray
    """W_2 without the share of mass that travels farthest, shape (states,)."""
    method: str
    """Method of the distances, see :func:`wasserstein`."""
    approach_time: float
    """Time of the closest approach to the limit law."""
    approach_distance: float
    """W_2 at the closest approach."""
    window: tuple[float, float]
    """Metastable window: the interval around the closest approach in which W_2 is below twice its least value."""
    escape_time: float | None
    """Time at which W_2 has risen to half its later maximum; None if it does not rise."""
    concentration: Fit | None
    """Rate at which W_2 fell; None where it fell for too few states."""
    escape: Fit | None
    """Rate at which W_2 rose; None where it did not."""
    terminal: Terminal
    """The last state compared with the axis on which the theory expects it."""
    occupancy: Occupancy
    """Number of tokens per attention kernel at the start; that of the nodes for a density."""
    limit: LowTemperatureLimit
    """Limit law that the states were compared with."""
    theory: Rates
    """Rates that the theory predicts."""
    beta: float
    """Inverse temperature of the run."""
    metric: Metric = "chordal"
    """Metric of the distances, ``"chordal"`` or ``"geodesic"``."""
    isolated: float = 0.0
    """Mass of tokens that give more than half of their attention to themselves at the closest approach, although they
    are not at their limit: they stand still and are an effect of few tokens; zero for a density."""
    isolated_distance: float = 0.0
    """Root of the part of W_2 squared that these tokens contribute at the closest approach."""

    @property
    def few_dominate(self) -> bool:
        """Whether isolated tokens contribute more than a quarter of W_2 squared at the closest approach."""
        return self.isolated_distance > _FLOOR * self.approach_distance

    @property
    def distance_name(self) -> str:
        """``"W2"``, or ``"sliced W2"`` where there were too many tokens for the exact distance."""
        return "sliced W2" if self.method == "sliced" else "W2"

    @property
    def expected_approach_time(self) -> float | None:
        """Predicted time of the closest approach, to leading order in log beta; None where there is no prediction."""
        return self.theory.approach_time(self.beta, len(self.limit.positions)) if 1 < self.beta < math.inf else None

    @property
    def expected_escape_time(self) -> float | None:
        """Predicted time of escape, to leading order in log beta; None where there is no prediction."""
        return self.theory.escape_time(self.beta, len(self.limit.positions)) if 1 < self.beta < math.inf else None

    def rows(self) -> list[tuple[str, float | None, float | None, float | None]]:
        """Table of the phases.

        Returns
        -------
        list of tuple
            Name, measured value, its standard error and predicted value per row; None where there is no value.
        """
        fell, rose = _fitted(self.concentration), _fitted(self.escape)
        # The rate of the theory is that of W_2; the sliced distance is another one.
        predicted = self.theory.wasserstein if self.distance_name == "W2" else None
        return [
            ("closest approach at t", self.approach_time, None, self.expected_approach_time),
            (f"least {self.distance_name}", self.approach_distance, None, None),
            (f"least trimmed {self.distance_name}", float(self.trimmed.min()), None, None),
            ("part of it due to isolated tokens", self.isolated_distance, None, None),
            ("metastable from t", self.window[0], None, None),
            ("metastable until t", self.window[1], None, None),
            ("escape at t", self.escape_time, None, self.expected_escape_time),
            ("rate of concentration", *fell, predicted),
            # Clusters that drift have a speed, not a rate.
            ("rate of escape", *rose, None if self.theory.terminal.drifts else self.theory.escape),
            ("rms distance to the expected axis", self.terminal.distance, None, None),
        ]

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        def shown(number: float | None) -> str:
            return "–" if number is None else f"{number:.4g}"

        lines = [
            f"{name}: {shown(found)}"
            + (f" ± {error:.1g}" if error is not None else "")
            + (f" (theory {shown(expected)})" if expected is not None else "")
            for name, found, error, expected in self.rows()
        ]
        return "\n".join(lines)


@dataclass(frozen=True, eq=False)
class _Observed:
    """What the phases are measured from: laws at times, as points with masses."""

    flow: SphereFlow
    times: np.ndarray
    laws: list[tuple[np.ndarray, np.ndarray]]
    start: np.ndarray
    """Points whose limits are the limit law, shape (tokens, d), with the masses of the first of ``laws``."""
    moments: tuple[np.ndarray, np.ndarray]
    """Mean and mean of x x^T at the end."""
    tokens: bool
    """Whether the points are tokens, rather than nodes of a density."""

    @staticmethod
    def of(run: Trajectory | DensityRun) -> _Observed:
        if isinstance(run, DensityRun):
            return _Observed._of_density(run)
        flow = flow_of(run)
        if len(run.layers) == 0 or int(run.layers[0]) != 0:
            stored = "no state" if len(run.layers) == 0 else f"the first at t = {run.times[0]:g}"  # type: ignore[index]
            remedy = 'the limit is that of the start: keep it, for example with keep="all" or keep=Every(10)'
            raise InputError("run", f"a run that stored {stored}", "must have stored its start", remedy)
        states, mass = states_of(run).numpy(), weights_of(run).numpy()
        end = states[-1]
        moments = (end.T @ mass, (end * mass[:, None]).T @ end)
        return _Observed(flow, np.asarray(run.times), [(state, mass) for state in states], states[0], moments, True)

    @staticmethod
    def _of_density(run: DensityRun) -> _Observed:
        first = run.states[0]
        d = first.dimension
        matrices = (run.flow.score_matrix(d).detach().cpu().numpy(), run.flow.value_matrix(d).detach().cpu().numpy())
        # Edges lie where basins meet, in the kernel of the projector; the limit of their mass is that of the panel.
        inward = first.angles.copy()
        inward[:, 0], inward[:, -1] = first.angles[:, 1], first.angles[:, -2]
        shadow = np.linalg.norm(first.points @ leading_part(*matrices).projector.T, axis=1)
        start = np.where((shadow < _IN_KERNEL)[:, None], first.moved(inward).points, first.points)
        laws = []
        for state in run.states:
            heavy = state.masses > 0
            laws.append((state.points[heavy], state.masses[heavy]))
        moments = (run.final.mean, run.final.second_moment)
        return _Observed(run.flow, run.times, laws, start[first.masses > 0], moments, False)


@one_thread()
def phases(
    run: Trajectory | DensityRun,
    limit: LowTemperatureLimit | None = None,
    *,
    trim: float = 0.01,
    method: str = "auto",
    metric: Metric = "chordal",
) -> Phases:
    """Phases of a run of a :class:`SphereFlow`, measured from W_2 to the low-temperature limit.

    Warns with a :class:`FewTokensWarning` where isolated tokens dominate the least W_2; see ``isolated``.

    Parameters
    ----------
    run
        Trajectory that stored its start, such as ``simulate(tokens, SphereFlow(…), time=14.0)``, or a density that
        :func:`simulate_density` followed.
    limit
        Law to compare with; the low-temperature limit of the start when left out.
    trim
        Share of mass left out of the trimmed distance, in [0, 1).
    method
        Method of the distances, see :func:`wasserstein`. By linear programming at most forty states are compared, and
        by default only up to 5,000 distinct points in both laws; above, ``method="exact"`` takes minutes.
    metric
        ``"chordal"`` (Euclidean distance) or ``"geodesic"`` (angle between points of the unit sphere).

    Returns
    -------
    Phases
        Times, distances and fitted rates, with the predictions of the theory.
    """
    seen = _Observed.of(run)
    share = as_number("trim", trim, lambda x: 0 <= x < 1, "must lie in [0, 1)", "pass for example trim=0.01")
    d = seen.start.shape[1]
    B, V = seen.flow.score_matrix(d).detach().cpu(), seen.flow.value_matrix(d).detach().cpu()
    beta = seen.flow.beta
    occupied = occupancy_of(torch.from_numpy(seen.start), B, min(beta, 1e300))
    if limit is None:
        limit = low_temperature_limit(seen.start, B, V)
    _require_limit(limit, seen.start.shape)
    chosen, found = _distances(seen, limit, method, metric)
    times = seen.times[chosen]
    distances = np.array([one.distance for one in found])
    trimmed = np.array([one.trimmed(share) for one in found])
    least = int(distances.argmin())
    theory = rates(limit)
    approach_time, approach_distance = _vertex(times, distances, least)
    escape_time, escape = _escape(times, distances, least)
    isolated, part = (0.0, 0.0)
    if seen.tokens and 0 < beta < math.inf:
        isolated, part = _isolated(*seen.laws[int(chosen[least])], limit, beta * B.numpy(), metric)
    measured = Phases(
        times=times,
        distances=distances,
        trimmed=trimmed,
        method=found[0].method,
        approach_time=approach_time,
        approach_distance=approach_distance,
        window=_window(times, distances, least),
        escape_time=escape_time,
        concentration=_fit(times, distances, *_falling(distances, least), sign=-1.0),
        escape=escape,
        terminal=_terminal(*seen.laws[-1], *seen.moments, theory.terminal.final),
        occupancy=occupied,
        limit=limit,
        theory=theory,
        beta=beta,
        metric=metric,
        isolated=isolated,
        isolated_distance=part,
    )
    if measured.few_dominate and seen.flow.few_tokens == "warn":
        warnings.warn(
            f"tokens that attend to themselves (a share {isolated:.2g}) make {part:.2g} of the least "
            f"{measured.distance_name} {approach_distance:.2g}: use more tokens, or simulate_density",
            FewTokensWarning,
            stacklevel=3,
        )
    return measured


def _isolated(
    points: np.ndarray, mass: np.ndarray, limit: LowTemperatureLimit, scores: np.ndarray, metric: Metric
) -> tuple[float, float]:
    """Mass of tokens away from their limit that attend mostly to themselves, and their part of W_2."""
    target = plain(limit.positions).astype(np.float64)
    away = np.linalg.norm(points - target, axis=1)
    far = np.flatnonzero(away > _AWAY)
    alone: list[np.ndarray] = []
    for top in range(0, len(far), _ROWS):
        part = far[top : top + _ROWS]
        logits = points[part] @ scores.T @ points.T
        own = logits[np.arange(len(part)), part] + np.log(mass[part])
        alone.append(own - logsumexp(logits + np.log(mass), axis=1) > math.log(0.5))
    if not alone:
        return 0.0, 0.0
    chosen = far[np.concatenate(alone)]
    gaps = away[chosen] if metric == "chordal" else 2 * np.arcsin(np.minimum(1.0, 0.5 * away[chosen]))
    return float(mass[chosen].sum()), math.sqrt(float(mass[chosen] @ gaps**2))


def _require_limit(limit: object, shape: tuple[int, ...]) -> None:
    remedy = "leave it out, or pass low_temperature_limit(run.tokens[0], B, V)"
    if not isinstance(limit, LowTemperatureLimit):
        raise InputError("limit", f"a {type(limit).__name__}", "must be a LowTemperatureLimit", remedy)
    if tuple(limit.positions.shape) != tuple(shape):
        found = f"{limit.positions.shape[0]} tokens of {limit.positions.shape[1]} coordinates"
        wanted = f"must have one position for each of {shape[0]} tokens of {shape[1]} coordinates"
        raise InputError("limit", found, wanted, remedy)


def _fitted(fit: Fit | None) -> tuple[float | None, float | None]:
    return (None, None) if fit is None else (fit.rate, fit.error)


def _distances(
    seen: _Observed, limit: LowTemperatureLimit, method: str, metric: Metric
) -> tuple[np.ndarray, list[Transport]]:
    """Indices of the compared laws, and the transport of each to the limit law."""
    target, at_start = plain(limit.positions).astype(np.float64), seen.laws[0][1]

    if method == "auto" and target.shape[1] > 2 and pairs_of(seen.laws[0][0], target) > DENSE:
        method = "sliced"  # many states, each of which would take a fraction of a minute

    def compare(k: int) -> Transport:
        points, mass = seen.laws[k]
        return wasserstein(points, target, first_weights=mass, second_weights=at_start, method=method, metric=metric)

    first = compare(0)
    chosen = np.arange(len(seen.times))
    if first.method == "exact" and len(chosen) > _MOST_PROGRAMMED:
        chosen = np.unique(np.linspace(0, len(chosen) - 1, _MOST_PROGRAMMED).round().astype(np.int64))
    return chosen, [first, *(compare(int(k)) for k in chosen[1:])]


def _vertex(times: np.ndarray, distances: np.ndarray, least: int) -> tuple[float, float]:
    """Time and value of the minimum between states: the vertex of the parabola through three of them."""
    if least in (0, len(times) - 1):
        return float(times[least]), float(distances[least])
    t, w = times[least - 1 : least + 2], distances[least - 1 : least + 2]
    a, b, c = np.polyfit(t - t[1], w, 2)
    return (float(t[1] - b / (2 * a)), float(c - b * b / (4 * a))) if a > 0 else (float(t[1]), float(w[1]))


def _crossing(times: np.ndarray, values: np.ndarray, level: float, before: int, after: int) -> float:
    """Time at which ``values`` pass ``level`` between two neighbouring states."""
    share = (level - values[before]) / (values[after] - values[before])
    return float(times[before] + share * (times[after] - times[before]))


def _window(times: np.ndarray, distances: np.ndarray, least: int) -> tuple[float, float]:
    level = _NEAR * distances[least]
    above = np.flatnonzero(distances > level)
    left, right = above[above < least], above[above > least]
    begins = times[0] if len(left) == 0 else _crossing(times, distances, level, left[-1], left[-1] + 1)
    ends = times[-1] if len(right) == 0 else _crossing(times, distances, level, right[0] - 1, right[0])
    return float(begins), float(ends)


def _falling(distances: np.ndarray, least: int) -> tuple[int, int]:
    """First and last state of the decay: from half the initial W_2 to three times its least value."""
    # Half the start value: before that, the law is still far from its limit and W_2 bounded by the sphere.
    low = 3 * distances[least]
    start = int(np.argmax(distances[: least + 1] < 0.5 * distances[0]))
    below = np.flatnonzero(distances[: least + 1] < low)
    stop = int(below[0]) + 1 if len(below) else least + 1
    return start, stop


def _escape(times: np.ndarray, distances: np.ndarray, least: int) -> tuple[float | None, Fit | None]:
    later = distances[least:]
    half = 0.5 * later.max()
    if half <= max(float(later[0]), _ROUNDING):  # the latter for tokens that start at their limit and stay
        return None, None
    after = least + int(np.argmax(later > half))
    # The displacement of the cluster dominates W_2 once it is well above the distance at the closest approach.
    start = least + int(np.argmax(later > min(3 * later[0], 0.5 * half)))
    return _crossing(times, distances, half, after - 1, after), _fit(times, distances, start, after, sign=1.0)


def _fit(times: np.ndarray, distances: np.ndarray, start: int, stop: int, *, sign: float) -> Fit | None:
    t, w = times[start:stop], distances[start:stop]
    t, y = t[w > _ROUNDING], np.log(w[w > _ROUNDING])
    if len(t) < _FEWEST_TO_FIT:
        return None
    centred = t - t.mean()
    slope = float(centred @ y / (centred @ centred))
    residual = y - y.mean() - slope * centred
    variance = float(((y - y.mean()) ** 2).sum())
    error = math.sqrt(float(residual @ residual) / max(1, len(t) - 2) / float(centred @ centred))
    quality = 1 - float(residual @ residual) / variance if variance > 0 else 0.0
    return Fit(sign * slope, error, quality, (float(t[0]), float(t[-1])))


def _terminal(
    points: np.ndarray, mass: np.ndarray, mean: np.ndarray, moment: np.ndarray, final: np.ndarray | None
) -> Terminal:
    axis = np.linalg.eigh(moment)[1][:, -1]
    axis = axis * np.sign(mean @ axis or 1.0)
    expected = None if final is None else final * np.sign(mean @ final or 1.0)
    return Terminal(
        axis, _to_axis(points, mass, axis), expected, None if expected is None else _to_axis(points, mass, expected)
    )


def _to_axis(tokens: np.ndarray, mass: np.ndarray, axis: np.ndarray) -> float:
    """Root mean square distance to the nearer of two opposite points."""
    side = np.where(tokens @ axis < 0, -1.0, 1.0)
    return math.sqrt(float(((tokens - side[:, None] * axis) ** 2).sum(axis=1) @ mass))
