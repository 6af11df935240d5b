r"""The law on which tokens concentrate at low temperature: the push-forward of the initial law under the limit map.

Let :math:`\lambda_1` be the largest real part in the spectrum of :math:`M = VB`, real and semisimple, E its eigenspace
and :math:`\Pi` the spectral projector onto E along the other generalised eigenspaces, in general oblique. Then the
zero-temperature flow maps :math:`x_0` to :math:`\Pi x_0/|\Pi x_0|`. For V symmetric and B symmetric positive definite
:math:`\Pi = E(E^\top B E)^{-1}E^\top B`; it is the orthogonal projector only when M is symmetric.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch

from ..geometry.result_arrays import near_one
from ..inputs import Kind, as_score_matrix, as_tokens, as_weights, plain
from ..shapes import Array, ArrayLike
from ..threads import one_thread
from .spectrum import Leading, NoLimit, NoLimitError, leading_of, leading_part, refuse_rotation
from .sphere import normalised, sized

_IN_KERNEL = 1e-12  # relative length of the projection below which rounding decides its direction
_APART = (
    1e-6  # a limit in another eigenspace has no part in the leading one, up to rounding; all others have length one
)
_NIL = 1e-9  # a power of the nilpotent part that is shorter, relative to its largest, is rounding
_MOST_NODES = 1 << 16  # of the integral of a period; flatter ellipses are given what these resolve


@dataclass(frozen=True, eq=False)
class Orbit:
    """Periodic orbits that tokens approach where the leading eigenvalues of V B are a complex pair."""

    planes: np.ndarray
    """Orthonormal columns that span the plane of each token's orbit, a great circle, shape (tokens, d, 2)."""
    periods: np.ndarray
    """Time of one turn of each token, shape (tokens,); NaN where there are several frequencies and no period."""
    frequency: float
    """Largest imaginary part of the leading eigenvalues."""

    def __str__(self) -> str:
        if np.isnan(self.periods).any():
            return f"tokens turn for ever, at several frequencies up to {self.frequency:.4g}"
        shortest, longest = float(self.periods.min()), float(self.periods.max())
        period = f"{shortest:.6g}" if longest - shortest <= 1e-9 * longest else f"{shortest:.6g} to {longest:.6g}"
        return f"tokens turn for ever on great circles, with the period {period}"


@dataclass(frozen=True, eq=False)
class LowTemperatureLimit:
    """Limit of each token at low temperature, before the terminal phase."""

    positions: Array
    """Limit of each token, shape (tokens, d). Where tokens turn for ever, a point of each token's orbit: the token
    follows ``zero_temperature_solution`` from there, up to a shift of time."""
    projector: Array
    """Spectral projector onto the leading eigenspace of V B, shape (d, d)."""
    weights: Array | None
    """Weight per token, shape (tokens,), when weights were given; otherwise None."""
    leading: Leading
    """Leading eigenvalue and eigenspace of V B."""
    B: np.ndarray
    """Score matrix, shape (d, d)."""
    V: np.ndarray
    """Value matrix, shape (d, d)."""
    orbit: Orbit | None = None
    """Orbits that tokens approach where the leading eigenvalues are a complex pair; otherwise None."""
    algebraic: np.ndarray | None = None
    """Where the leading eigenvalue is a Jordan block: a per token in the law of approach a/t, shape (tokens,), zero for
    tokens that approach exponentially; otherwise None."""

    @property
    def kind(self) -> str:
        """``"exponential"``, ``"algebraic"`` (a Jordan block) or ``"orbit"`` (a complex pair): how tokens approach."""
        return "orbit" if self.orbit is not None else "exponential" if self.algebraic is None else "algebraic"

    @property
    def eigenvalue(self) -> float:
        """Leading eigenvalue of V B."""
        return self.leading.eigenvalue

    @property
    def elsewhere(self) -> np.ndarray:
        """Indices of tokens without a part in the leading eigenspace, whose limit lies in a later one."""
        shadow = plain(self.positions).astype(np.float64) @ self.leading.projector.T
        return np.flatnonzero(np.linalg.norm(shadow, axis=1) <= _APART)

    @property
    def dimension(self) -> int:
        """Dimension of the leading eigenspace; for 1, the limit has at most two atoms."""
        return self.leading.dimension

    @property
    def approach_rate(self) -> float:
        r"""Rate :math:`\min(m\Delta/(2b_2), \Delta/b_1)` at which :math:`W_2` to the limit, or to the orbits, decays.

        For a smooth law and to leading order; zero for a Jordan block, infinite where all tokens are at their limits.
        A run that is not several times longer than one over this rate does not show the limit.
        """
        leading = self.leading
        if not leading.semisimple:
            return 0.0
        if leading.second is None:
            return math.inf
        B, power = near_one(self.B)  # squares of its entries may be no floats
        b_1, b_2 = (float(np.linalg.norm(B @ basis, 2)) for basis in (leading.basis, leading.second_basis))
        return math.ldexp(min(leading.dimension * leading.gap / (2 * b_2), leading.gap / b_1), -power)

    def __repr__(self) -> str:
        return f"<LowTemperatureLimit of {len(self.positions)} tokens: {self}>"

    def __str__(self) -> str:
        if self.orbit is not None:
            return str(self.orbit)
        if self.algebraic is not None:
            return f"limit approached like 1/t: the leading eigenvalue {self.eigenvalue:.6g} is a Jordan block"
        kind = "two antipodal points" if self.dimension == 1 else f"a sphere of dimension {self.dimension - 1}"
        return f"limit on {kind}: leading eigenvalue {self.eigenvalue:.6g}, gap {self.leading.gap:.6g}"


@one_thread()
def low_temperature_limit(
    tokens: ArrayLike,
    B: ArrayLike | None = None,
    V: ArrayLike | None = None,
    *,
    weights: ArrayLike | None = None,
) -> LowTemperatureLimit:
    """Limit of each token at low temperature, before the terminal phase, predicted from the spectrum of V B.

    A token without a part in the leading eigenspace goes to the next eigenspace in which it has one; these tokens are
    listed in ``elsewhere``. With a leading Jordan block tokens approach their limits like a/t (``algebraic``), with a
    leading complex pair they approach great circles and turn for ever (``orbit``). Raises :class:`NoLimitError` for a
    singular B.

    Parameters
    ----------
    tokens
        Shape (tokens, d); only their directions matter.
    B
        Score matrix of shape (d, d); the identity when left out.
    V
        Value matrix of shape (d, d); the identity when left out.
    weights
        Positive weight per token, shape (tokens,); all equal when left out.

    Returns
    -------
    LowTemperatureLimit
        Limits of shape (tokens, d), the projector and the spectrum.

    Examples
    --------
    >>> import numpy as np
    >>> law = low_temperature_limit([[0.6, 0.8], [-0.6, 0.8]], B=np.diag([4.0, 1.0]), V=np.diag([1.0, 2.0]))
    >>> law.positions
    array([[ 1.,  0.],
           [-1.,  0.]])
    """
    tensor, kind = as_tokens(tokens)
    points = normalised(tensor.detach().to(torch.float64).cpu())
    d = points.shape[1]
    score = sized("B", as_score_matrix("B", B, None, None), d).detach().cpu().numpy()
    value = sized("V", as_score_matrix("V", V, None, None), d).detach().cpu().numpy()
    mass = None if weights is None else kind.give_back(as_weights(weights, len(points), points.device))
    leading = leading_part(score, value)
    (plain_score, _), (plain_value, power) = near_one(score), near_one(value)
    M = plain_value @ plain_score
    positions, parts = _limits(points.numpy(), leading, M)
    lengths = np.linalg.norm(positions @ plain_score.T, axis=1)
    algebraic = None if leading.semisimple else np.ldexp(parts * lengths, -power)
    orbit = _orbit(positions, leading, M, plain_score, power) if leading.turning else None
    back = Kind(kind.is_numpy, torch.float64, kind.device)
    return LowTemperatureLimit(
        positions=kind.give_back(torch.from_numpy(positions)),
        projector=back.give_back(torch.from_numpy(leading.projector)),
        weights=mass,
        leading=leading,
        B=score,
        V=value,
        orbit=orbit,
        algebraic=algebraic,
    )


def _limits(points: np.ndarray, leading: Leading, M: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Limits of points of the unit sphere, and the law a/s of their approach under e^{sM} (zero where exponential).

    Points in the kernel of the projector go on inside it.
    """
    shadow = points @ leading.projector.T
    lengths = np.linalg.norm(shadow, axis=1)
    inside = np.flatnonzero(lengths <= _IN_KERNEL * np.linalg.norm(leading.projector, 2))
    lengths[inside] = 1.0
    limits = np.asarray(shadow / lengths[:, None])
    parts = np.zeros(len(limits))
    if leading.nilpotent is not None:
        limits, parts = _block_limits(limits, leading.nilpotent)
    if len(inside):
        limits[inside] = _limits_in_kernel(points[inside], leading, M, inside)
        parts[inside] = 0.0
    return limits, parts


def _block_limits(states: np.ndarray, nilpotent: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Directions of e^{sN} y for large s, and the law a/s of the approach: the highest power of N leads."""
    size = float(np.linalg.norm(nilpotent, 2))
    limits, parts, before = states.copy(), np.zeros(len(states)), states
    lengths = np.ones(len(states))
    for k in range(1, len(nilpotent)):
        ahead = before @ nilpotent.T / size
        reached = np.linalg.norm(ahead, axis=1)
        who = np.flatnonzero((reached > _NIL) & (lengths > 0))
        lengths[reached <= _NIL] = 0.0
        limits[who] = ahead[who] / reached[who, None]
        beside = before[who] - (before[who] * limits[who]).sum(axis=1, keepdims=True) * limits[who]
        parts[who] = k * np.linalg.norm(beside, axis=1) / (reached[who] * size)
        before = ahead
    return limits, parts


def _orbit(positions: np.ndarray, leading: Leading, M: np.ndarray, B: np.ndarray, power: int) -> Orbit:
    """Great circles of tokens in the leading eigenspace of a complex pair."""
    small = leading_of(M)  # frequencies of the matrices of ordinary size
    turned = (positions @ M.T - small.eigenvalue * positions) / small.turning
    planes = np.stack([np.linalg.qr(np.column_stack(pair))[0] for pair in zip(positions, turned, strict=True)])
    if not leading.steady:
        return Orbit(planes, np.full(len(positions), math.nan), leading.turning)
    found, count = np.full(len(positions), math.nan), 256
    while count <= _MOST_NODES:
        # The trapezoidal rule is exact to rounding for smooth periodic functions, once they are resolved.
        total = np.zeros(len(positions))
        for angle in 2 * math.pi * np.arange(count) / count:
            y = math.cos(angle) * positions + math.sin(angle) * turned
            total += np.linalg.norm(y @ B.T, axis=1) / np.linalg.norm(y, axis=1)
        before, found = found, total / count * 2 * math.pi / small.turning
        if np.abs(found - before).max() <= 1e-13 * found.max():  # False for NaN
            break
        count *= 2
    return Orbit(planes, np.ldexp(found, -power), leading.turning)


def _limits_in_kernel(points: np.ndarray, leading: Leading, M: np.ndarray, named: np.ndarray) -> np.ndarray:
    """Limits of points without a part in the leading eigenspace: the other eigenspaces are invariant under M."""
    size = len(M) - leading.dimension
    basis = np.linalg.svd(np.eye(len(M)) - leading.projector)[0][:, :size]
    inner = points @ basis
    inner = inner / np.linalg.norm(inner, axis=1, keepdims=True)
    restricted = basis.T @ M @ basis
    try:
        leading = leading_of(restricted)
        refuse_rotation(leading)
        found, _ = _limits(inner, leading, restricted)
    except NoLimitError as error:
        raise NoLimitError(
            NoLimit.IN_KERNEL,
            f"{len(named)} tokens, the first at index {named[0]}, have no part in the leading eigenspace, and among "
            f"the others {error.sentence}",
            "leave these tokens out, or move them a little",
        ) from None
    return np.asarray(found @ basis.T)
