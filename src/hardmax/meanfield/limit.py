r"""The law on which tokens concentrate at low temperature: the push-forward of the initial law under the limit map.

Let :math:`\lambda_1` be the largest real part in the spectrum of :math:`M = VB`, real and semisimple, E its eigenspace
and :math:`\Pi` the spectral projector onto E along the other generalised eigenspaces, in general oblique. Then the
zero-temperature flow maps :math:`x_0` to :math:`\Pi x_0/|\Pi x_0|`. For V symmetric and B symmetric positive definite
:math:`\Pi = E(E^\top B E)^{-1}E^\top B`; it is the orthogonal projector only when M is symmetric.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from ..geometry.result_arrays import near_one
from ..inputs import Kind, as_score_matrix, as_tokens, as_weights, plain
from ..shapes import Array, ArrayLike
from ..threads import one_thread
from .spectrum import Leading, NoLimit, NoLimitError, leading_of, leading_part
from .sphere import normalised, sized

_IN_KERNEL = 1e-12  # relative length of the projection below which rounding decides its direction
_APART = (
    1e-6  # a limit in another eigenspace has no part in the leading one, up to rounding; all others have length one
)


@dataclass(frozen=True, eq=False)
class LowTemperatureLimit:
    """Limit of each token at low temperature, before the terminal phase."""

    positions: Array
    """Limit of each token, shape (tokens, d)."""
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

    def __repr__(self) -> str:
        return f"<LowTemperatureLimit of {len(self.positions)} tokens: {self}>"

    def __str__(self) -> str:
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
    listed in ``elsewhere``. Raises :class:`NoLimitError` for a leading complex pair, a Jordan block or a singular B;
    its ``reason`` says which.

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
    positions = _limits(points.numpy(), leading, near_one(value)[0] @ near_one(score)[0])
    back = Kind(kind.is_numpy, torch.float64, kind.device)
    return LowTemperatureLimit(
        positions=kind.give_back(torch.from_numpy(positions)),
        projector=back.give_back(torch.from_numpy(leading.projector)),
        weights=mass,
        leading=leading,
        B=score,
        V=value,
    )


def _limits(points: np.ndarray, leading: Leading, M: np.ndarray) -> np.ndarray:
    """Limits of points of the unit sphere; those in the kernel of the projector go on inside it."""
    shadow = points @ leading.projector.T
    lengths = np.linalg.norm(shadow, axis=1)
    inside = np.flatnonzero(lengths <= _IN_KERNEL * np.linalg.norm(leading.projector, 2))
    lengths[inside] = 1.0
    limits = np.asarray(shadow / lengths[:, None])
    if len(inside):
        limits[inside] = _limits_in_kernel(points[inside], leading, M, inside)
    return limits


def _limits_in_kernel(points: np.ndarray, leading: Leading, M: np.ndarray, named: np.ndarray) -> np.ndarray:
    """Limits of points without a part in the leading eigenspace: the other eigenspaces are invariant under M."""
    size = len(M) - leading.dimension
    basis = np.linalg.svd(np.eye(len(M)) - leading.projector)[0][:, :size]
    inner = points @ basis
    inner = inner / np.linalg.norm(inner, axis=1, keepdims=True)
    restricted = basis.T @ M @ basis
    try:
        found = _limits(inner, leading_of(restricted), restricted)
    except NoLimitError as error:
        raise NoLimitError(
            NoLimit.IN_KERNEL,
            f"{len(named)} tokens, the first at index {named[0]}, have no part in the leading eigenspace, and among "
            f"the others {error.sentence}",
            "leave these tokens out, or move them a little",
        ) from None
    return np.asarray(found @ basis.T)
