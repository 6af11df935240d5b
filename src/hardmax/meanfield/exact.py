r"""The zero-temperature flow in closed form.

With :math:`M = VB` the field :math:`\dot x = P_x V B x/|B x|` is solved by [derived, see the developer notes]

.. math:: x(t) = \frac{e^{sM}x_0}{|e^{sM}x_0|}, \qquad t = \int_0^s \frac{|B e^{uM}x_0|}{|e^{uM}x_0|}\,du :

the linear flow of M, with a change of time per token. The integral is taken in panels of s so short that its
integrand is resolved to rounding by a polynomial; inside its last panel each token's s is found by Newton's method.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from numpy.polynomial import legendre
from scipy.linalg import expm

from ..errors import InputError
from ..inputs import as_number, as_square, as_tokens
from ..shapes import Array, ArrayLike
from .flow import SphereFlow
from .spectrum import refuse_singular

_NODES = 24  # Gauss nodes per panel
# |e^{sM}x| has no complex zero within pi/4 of the real line in units of 1/|M|; half a unit leaves the polynomial of
# degree 23 an error far below rounding.
_PANEL = 0.5
_MOST_PANELS = 200_000  # longer times are refused


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
    refuse_singular(score)
    remedy = "pass one time or an ascending list"
    times = [as_number("time", t, lambda x: x >= 0, "must be finite and not negative", remedy) for t in np.ravel(time)]
    if times != sorted(times) or not times:
        raise InputError("time", times, "must ascend", remedy)
    found = _solution(points, score, value, times)
    return kind.give_back(torch.from_numpy(found if np.ndim(time) else found[0]))


def _solution(points: np.ndarray, B: np.ndarray, V: np.ndarray, times: list[float]) -> np.ndarray:
    M = V @ B
    # B e^{sVB} = e^{sBV} B, so the numerator is governed by BV as the denominator is by VB.
    speed = max(float(np.linalg.norm(M, 2)), float(np.linalg.norm(B @ V, 2)), 1e-300)
    panel = _PANEL / speed
    nodes, quadrature = legendre.leggauss(_NODES)
    ahead = np.stack([expm(0.5 * panel * (1 + node) * M) for node in nodes])
    whole = expm(panel * M)
    # Values at the nodes -> Legendre coefficients of the interpolating polynomial.
    analysis = legendre.legvander(nodes, _NODES - 1).T * quadrature * (np.arange(_NODES) + 0.5)[:, None]
    found = np.empty((len(times), *points.shape))
    here, clock = points.copy(), np.zeros(len(points))
    pending = np.zeros(len(points), dtype=np.int64)  # index of the next time to record, per token
    schedule = np.array([*times, math.inf])
    for _ in range(_MOST_PANELS):
        busy = np.flatnonzero(pending < len(times))
        if len(busy) == 0:
            return found
        states = np.einsum("kij,nj->kni", ahead, here[busy])
        rates = np.linalg.norm(states @ B.T, axis=2) / np.linalg.norm(states, axis=2)
        passed = legendre.legint(analysis @ rates, lbnd=-1.0) * (0.5 * panel)
        shape = np.einsum("mk,kni->mni", analysis, states)
        end = clock[busy] + legendre.legval(1.0, passed)
        while True:
            due = np.flatnonzero(schedule[pending[busy]] <= end)
            if len(due) == 0:
                break
            who = busy[due]
            wanted = schedule[pending[who]] - clock[who]
            at = _crossing(passed[:, due], analysis @ rates[:, due] * (0.5 * panel), wanted)
            position = legendre.legval(at[:, None], shape[:, due], tensor=False)
            found[pending[who], who] = position / np.linalg.norm(position, axis=1, keepdims=True)
            pending[who] += 1
        moved = here[busy] @ whole.T
        here[busy] = moved / np.linalg.norm(moved, axis=1, keepdims=True)
        clock[busy] = end
    raise InputError("time", times[-1], "is too long for these matrices", "use low_temperature_limit for t = inf")


def _crossing(passed: np.ndarray, rate: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Points of [-1, 1] at which the increasing polynomial ``passed`` (with derivative ``rate``) equals ``wanted``."""
    at: np.ndarray = np.clip(2 * wanted / legendre.legval(1.0, passed) - 1, -1.0, 1.0)
    for _ in range(50):
        change = (legendre.legval(at, passed, tensor=False) - wanted) / legendre.legval(at, rate, tensor=False)
        at = np.clip(at - change, -1.0, 1.0)
        if float(np.abs(change).max()) < 4e-16:
            break
    return at
