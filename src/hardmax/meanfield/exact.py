r"""The zero-temperature flow in closed form.

With :math:`M = VB` the field :math:`\dot x = P_x V B x/|B x|` is solved by [derived, see the developer notes]

.. math:: x(t) = \frac{e^{sM}x_0}{|e^{sM}x_0|}, \qquad t = \int_0^s \frac{|B e^{uM}x_0|}{|e^{uM}x_0|}\,du :

the linear flow of M, with a change of time per token. The integral is taken in panels of s so short that its
integrand is resolved to rounding by a polynomial; inside its last panel each token's s is found by Newton's method.

A token near a direction that B makes very short passes little time t in much s. Panels therefore double as long as the
integrand stays resolved, and such a token is represented by its query :math:`w = Bx`, :math:`w' = BVw`: rounding of x
would drown Bx, rounding of w does not harm :math:`x = B^{-1}w`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.polynomial import legendre
from scipy.linalg import expm

from ..errors import InputError
from ..geometry.result_arrays import near_one
from ..inputs import as_number, as_square, as_tokens
from ..shapes import Array, ArrayLike
from .flow import SphereFlow
from .spectrum import refuse_singular

_NODES = 24  # Gauss nodes per panel
# |e^{sM}x| has no complex zero within pi/4 of the real line in units of 1/|M|; half a unit leaves the polynomial of
# degree 23 an error far below rounding.
_PANEL = 0.5
_MOST_PANELS = 200_000  # longer times are refused
_RESOLVED = 1e-14  # largest of the last coefficients of a resolved polynomial, relative to its size; rounding is 3e-15
_LAST = 4  # coefficients that tell whether a polynomial is resolved
# Coefficients fall geometrically: where those in the middle are this small, the last ones are resolved at twice the
# length, which multiplies the k-th by 2^k.
_MIDDLE = slice(9, 12)
_RESOLVED_AT_TWICE = 3e-11
# A state that a panel shrinks by more than this, relative to the largest growth, has lost three digits to cancellation.
_CANCELS = 1e-3
_WELL_CONDITIONED = 1e3  # below this condition number of B, queries need no representation of their own


def zero_temperature_solution(
    tokens: ArrayLike,
    B: ArrayLike | None = None,
    V: ArrayLike | None = None,
    *,
    time: float | Sequence[float] | np.ndarray,
    normalise: bool = False,
) -> Array:
    """Positions of tokens under the zero-temperature flow, exact to rounding at any time.

    Parameters
    ----------
    tokens
        Tokens on the unit sphere, shape (tokens, d).
    B
        Score matrix of shape (d, d), regular; the identity when left out.
    V
        Value matrix of shape (d, d); the identity when left out.
    time
        One time, or an ascending sequence of times, not negative.
    normalise
        Scale tokens to length one first; otherwise tokens off the sphere are an error.

    Returns
    -------
    array or tensor
        Shape (tokens, d) for one time, (times, tokens, d) for a sequence, of the kind of ``tokens``.

    Examples
    --------
    >>> import numpy as np
    >>> x = zero_temperature_solution([[0.6, 0.8]], V=np.diag([2.0, 1.0]), time=1.0)
    >>> bool(abs(x[0, 1] / x[0, 0] - np.exp(-1.0) * 0.8 / 0.6) < 1e-14)
    True
    """
    tensor, kind = as_tokens(tokens)
    flow = SphereFlow(B, V, math.inf, normalise=normalise)
    points = flow.on_sphere(tensor.detach().to(torch.float64), kind.dtype).cpu().numpy()
    d = points.shape[1]
    score = as_square("B", flow.score_matrix(d)).detach().cpu().numpy()
    value = as_square("V", flow.value_matrix(d)).detach().cpu().numpy()
    score, _ = near_one(score)  # its size has no effect
    value, power = near_one(value)  # its size is that of time
    refuse_singular(score)
    remedy = "pass one time or an ascending list"
    times = [as_number("time", t, lambda x: x >= 0, "must be finite and not negative", remedy) for t in np.ravel(time)]
    if times != sorted(times) or not times:
        raise InputError("time", times, "must ascend", remedy)
    with np.errstate(over="ignore"):
        scaled = np.minimum(np.ldexp(np.array(times), power), np.finfo(np.float64).max)
    found = _solution(points, score, value, scaled)
    if found is None:
        remedy = "use low_temperature_limit for t = inf"
        raise InputError("time", times[-1], "is too long for these matrices and tokens", remedy)
    return kind.give_back(torch.from_numpy(found if np.ndim(time) else found[0]))


@dataclass(frozen=True, eq=False)
class _Chart:
    """A linear flow w' = G w of states that represent tokens, with its propagators over panels of doubling length."""

    generator: np.ndarray
    panel: float
    """Length of the shortest panel in s."""
    to_position: np.ndarray | None
    """Matrix from states to multiples of positions; None where they agree."""
    to_query: np.ndarray | None
    """Matrix from states to multiples of queries; None where they agree."""
    levels: list[np.ndarray] = field(default_factory=list)

    def propagators(self, level: int) -> np.ndarray:
        """Propagators to the nodes and to the end of a panel, each up to a factor, shape (nodes + 1, d, d)."""
        while len(self.levels) <= level:
            if not self.levels:
                at = 0.5 * (1 + np.append(legendre.leggauss(_NODES)[0], 1.0))
                found = np.stack([expm(self.panel * share * self.generator) for share in at])
            else:
                found = self.levels[-1] @ self.levels[-1]
            self.levels.append(found / np.abs(found).max(axis=(1, 2), keepdims=True))
        return self.levels[level]

    def positions(self, states: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Unit positions of states, and the length of the query of each, in the shape of the states."""
        positions = states if self.to_position is None else states @ self.to_position.T
        queries = states if self.to_query is None else states @ self.to_query.T
        lengths = np.sqrt(np.einsum("...i,...i", positions, positions))
        return positions / lengths[..., None], np.sqrt(np.einsum("...i,...i", queries, queries)) / lengths


def _solution(points: np.ndarray, B: np.ndarray, V: np.ndarray, times: np.ndarray) -> np.ndarray | None:
    """Positions at each time, shape (times, tokens, d); None where too many panels would be needed."""
    # B e^{sVB} = e^{sBV} B, so queries are governed by BV as positions are by VB.
    panel = _PANEL / max(float(np.linalg.norm(V @ B, 2)), float(np.linalg.norm(B @ V, 2)), 1e-300)
    stretch = np.linalg.svd(B, compute_uv=False)
    by_query = stretch[0] > _WELL_CONDITIONED * stretch[-1]
    # Rounding of the position is |B|/|Bx| in the query; rounding of the query is |B^-1||Bx| in the position.
    switch = math.sqrt(stretch[0] * stretch[-1]) if by_query else 0.0
    charts = [_Chart(V @ B, panel, None, B)]
    if by_query:
        charts.append(_Chart(B @ V, panel, np.linalg.inv(B), None))
    nodes, quadrature = legendre.leggauss(_NODES)
    # Values at the nodes -> Legendre coefficients of the interpolating polynomial.
    analysis = legendre.legvander(nodes, _NODES - 1).T * quadrature * (np.arange(_NODES) + 0.5)[:, None]
    found = np.empty((len(times), *points.shape))
    here, clock = points.copy(), np.zeros(len(points))
    levels = np.zeros(len(points), dtype=np.int64)
    chart_of = np.zeros(len(points), dtype=np.int64)
    pending = np.zeros(len(points), dtype=np.int64)  # index of the next time to record, per token
    schedule = np.append(times, np.inf)

    def into_charts(who: np.ndarray) -> None:
        if by_query:
            for k, chart in enumerate(charts):
                inside = who[chart_of[who] == k]
                positions, lengths = chart.positions(here[inside])
                wanted = (lengths < switch).astype(np.int64)
                moved = inside[wanted != k]
                chart_of[moved] = 1 - k
                states = positions[wanted != k] if k else here[moved] @ B.T
                here[moved] = states / np.linalg.norm(states, axis=1, keepdims=True)

    into_charts(np.arange(len(points)))
    for _ in range(_MOST_PANELS):
        busy = np.flatnonzero(pending < len(times))
        if len(busy) == 0:
            return found
        keys = 4096 * chart_of[busy] + levels[busy]
        for key in np.unique(keys):
            who, chart, level = busy[keys == key], charts[key // 4096], int(key % 4096)
            states = here[who] @ chart.propagators(level).transpose(0, 2, 1)
            sizes = np.abs(states).max(axis=2)
            with np.errstate(invalid="ignore", divide="ignore"):
                positions, rates = chart.positions(states / sizes[..., None])
            coefficients, shape = analysis @ rates[:-1], np.tensordot(analysis, positions[:-1], 1)
            if level:
                tails = np.abs(coefficients[-_LAST:]).max(axis=0) / np.abs(coefficients[0])
                tails = np.maximum(tails, np.abs(shape[-_LAST:]).max(axis=(0, 2)))
                good = (tails <= _RESOLVED) & (sizes.min(axis=0) >= _CANCELS)  # False for NaN
                levels[who[~good]] -= 1
                who, states, sizes = who[good], states[:, good], sizes[:, good]
                coefficients, shape = coefficients[:, good], shape[:, good]
            if len(who) == 0:
                continue
            half = math.ldexp(0.5 * panel, level)
            end = clock[who] + 2 * half * coefficients[0]
            while True:
                due = np.flatnonzero(schedule[pending[who]] <= end)
                if len(due) == 0:
                    break
                ready = who[due]
                wanted = schedule[pending[ready]] - clock[ready]
                passed = legendre.legint(coefficients[:, due], lbnd=-1.0) * half
                at = _crossing(passed, coefficients[:, due] * half, wanted)
                position = legendre.legval(at[:, None], shape[:, due], tensor=False)
                found[pending[ready], ready] = position / np.linalg.norm(position, axis=1, keepdims=True)
                pending[ready] += 1
            moved = states[-1] / sizes[-1][:, None]
            here[who] = moved / np.linalg.norm(moved, axis=1, keepdims=True)
            clock[who] = end
            middle = np.abs(coefficients[_MIDDLE]).max(axis=0) / np.abs(coefficients[0])
            middle = np.maximum(middle, np.abs(shape[_MIDDLE]).max(axis=(0, 2)))
            levels[who[middle <= _RESOLVED_AT_TWICE]] += 1
            levels[who[middle <= _RESOLVED]] += 7  # at rest: long panels soon
            into_charts(who)
    return None


def _crossing(passed: np.ndarray, rate: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Points of [-1, 1] at which the increasing polynomial ``passed`` (with derivative ``rate``) equals ``wanted``."""
    at: np.ndarray = np.clip(2 * wanted / legendre.legval(1.0, passed) - 1, -1.0, 1.0)
    for _ in range(50):
        change = (legendre.legval(at, passed, tensor=False) - wanted) / legendre.legval(at, rate, tensor=False)
        at = np.clip(at - change, -1.0, 1.0)
        if float(np.abs(change).max()) < 4e-16:
            break
    return at
