r"""The leading part of the spectrum of :math:`M = VB`, from an ordered Schur form.

Eigenvectors of a defective or clustered spectrum are useless in floating point; an ordered Schur form
:math:`M = Z \begin{pmatrix} T_{11} & T_{12}\\ 0 & T_{22}\end{pmatrix} Z^\top` with the leading eigenvalues in
:math:`T_{11}` is not. The spectral projector onto its invariant subspace along the other one is

.. math:: \Pi = Z \begin{pmatrix} I & -X\\ 0 & 0\end{pmatrix} Z^\top, \qquad T_{11}X - X T_{22} = -T_{12}.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

import numpy as np
from scipy.linalg import eig, schur, solve_sylvester

from ..errors import HardmaxError, InputError
from ..geometry.result_arrays import near_one

_EPS = float(np.finfo(np.float64).eps)
_EQUAL = 1e-9  # eigenvalues this close, relative to |M|, are taken to be equal
_TOUCHY = 3e5  # condition number from which an eigenvalue counts as part of a Jordan block


class NoLimit(Enum):
    """Reasons why the zero-temperature flow has no limit as in the theory."""

    ROTATES = "a leading complex pair"
    SINGULAR_B = "a singular B"
    IN_KERNEL = "tokens in the kernel of the projector"


class NoLimitError(HardmaxError, ValueError):
    """Error: the low-temperature limit does not exist for these matrices or tokens.

    Parameters
    ----------
    reason
        Which condition of the theory fails.
    sentence
        What was found, in words.
    remedy
        What to change.
    """

    def __init__(self, reason: NoLimit, sentence: str, remedy: str) -> None:
        self.reason = reason
        self.sentence = sentence
        self.remedy = remedy
        super().__init__(f"no low-temperature limit, {reason.value}: {sentence}: {remedy}")


@dataclass(frozen=True, eq=False)
class Leading:
    """Leading eigenvalue of M = V B, its eigenspace E, and the projector onto E along all other eigenspaces."""

    eigenvalue: float
    """Leading eigenvalue, real."""
    second: float | None
    """Largest real part among the other eigenvalues; None when there are none."""
    basis: np.ndarray
    """Orthonormal columns that span E, shape (d, m)."""
    second_basis: np.ndarray
    """Orthonormal columns that span the invariant subspace of the eigenvalues with the second real part."""
    projector: np.ndarray
    """Spectral projector, shape (d, d)."""
    turning: float = 0.0
    """Largest imaginary part among the leading eigenvalues; zero where they are real."""
    steady: bool = True
    """Whether all leading eigenvalues have the imaginary parts plus and minus ``turning`` or, if it is zero, none."""
    nilpotent: np.ndarray | None = None
    """Nilpotent part of V B on E for a leading Jordan block, shape (d, d), up to its size; otherwise None. E is then
    the generalised eigenspace."""

    @property
    def semisimple(self) -> bool:
        """Whether the leading eigenvalue is no Jordan block."""
        return self.nilpotent is None

    @property
    def dimension(self) -> int:
        """m = dim E."""
        return int(self.basis.shape[1])

    @property
    def gap(self) -> float:
        """Gap Delta from the leading eigenvalue to the next real part; infinite when there is no other."""
        return np.inf if self.second is None else self.eigenvalue - self.second


def refuse_rotation(leading: Leading) -> None:
    """Raise a NoLimitError where tokens turn for ever."""
    if leading.turning:
        raise NoLimitError(
            NoLimit.ROTATES,
            f"V B has the leading eigenvalues {leading.eigenvalue:.4g} ± {leading.turning:.4g}i, so tokens turn "
            "for ever",
            "change B or V until the leading eigenvalue of V B is real, or look at low_temperature_limit(…).orbit",
        )


def refuse_singular(B: np.ndarray) -> None:
    """Raise a NoLimitError if B is singular to rounding."""
    sizes = np.linalg.svd(B, compute_uv=False)
    if sizes[-1] <= len(B) * _EPS * sizes[0]:
        raise NoLimitError(
            NoLimit.SINGULAR_B,
            f"the least singular value of B is {sizes[-1]:.2g} against a largest of {sizes[0]:.2g}, so some "
            "queries are zero",
            "pass a regular B, or study finite beta with simulate",
        )


def leading_part(B: np.ndarray, V: np.ndarray) -> Leading:
    """Leading part of M = V B; raises :class:`NoLimitError` where the theory does not apply."""
    B, power_of_b = near_one(B)
    V, power_of_v = near_one(V)
    refuse_singular(B)
    found = leading_of(V @ B)
    power = power_of_b + power_of_v
    values = [found.eigenvalue, found.turning, 0.0 if found.second is None else found.second]
    with np.errstate(over="ignore"):
        sized = [float(np.ldexp(value, power)) for value in values]
    if not np.isfinite(sized).all() or np.count_nonzero(sized) < np.count_nonzero(values):
        raise InputError(
            "B, V",
            f"eigenvalues of V B of size about 2**{power}",
            "must keep V B within float64",
            "rescale them: the limit is the same for c B and c V, c > 0, and the rates are c times those of V",
        )
    second = None if found.second is None else sized[2]
    return replace(found, eigenvalue=sized[0], turning=sized[1], second=second)


def leading_of(M: np.ndarray) -> Leading:
    """Leading part of a matrix of ordinary size."""
    size = float(np.linalg.norm(M, 2))
    if size == 0:
        return Leading(0.0, None, np.eye(len(M)), np.zeros((len(M), 0)), np.eye(len(M)))
    values = _eigenvalues(M)
    block = _jordan_block(M, values, size)
    top = float(values.real.max())
    leads = values.real >= top - _EQUAL * size
    if block is not None:
        leads = np.zeros(len(values), dtype=bool)
        leads[block] = True
        top = float(values[block].real.mean())
    near = values[leads]
    turning = 0.0 if block is not None else float(np.abs(near.imag).max())
    turning = turning if turning > _EQUAL * size else 0.0
    steady = block is not None or bool((np.abs(np.abs(near.imag) - turning) <= 1e3 * _EQUAL * size).all())
    others = values.real[~leads]
    basis, projector = _projector(M, values.real[leads], others)
    nilpotent = None if block is None else projector @ (M - top * np.eye(len(M))) @ projector
    if len(others) == 0:
        return Leading(top, None, basis, np.zeros((len(M), 0)), projector, turning, steady, nilpotent)
    second = float(others.max())
    both, _ = _projector(M, values.real[values.real >= second - _EQUAL * size], others[others < second - _EQUAL * size])
    # Without its part in E, the larger subspace is the invariant subspace of the second part.
    apart = both[:, basis.shape[1] :] - projector @ both[:, basis.shape[1] :]
    return Leading(top, second, basis, np.linalg.qr(apart)[0], projector, turning, steady, nilpotent)


def _ordered(M: np.ndarray, first: np.ndarray, rest: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """Real Schur form ordered so that eigenvalues of real parts ``first`` lead, and their number."""
    if len(rest) == 0:
        return (*schur(M, output="real"), len(M))
    # Reordering moves eigenvalues of a cluster a little; a cut half-way to the others separates them.
    cut = 0.5 * (first.min() + rest.max())
    T, Z, count = schur(M, output="real", sort=lambda real, imaginary: real >= cut)
    return T, Z, count


def _projector(M: np.ndarray, first: np.ndarray, rest: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Orthonormal basis of the invariant subspace of eigenvalues of real parts ``first``, and its projector."""
    T, Z, count = _ordered(M, first, rest)
    onto = np.zeros_like(M)
    onto[:count, :count] = np.eye(count)
    if count < len(M):
        onto[:count, count:] = -solve_sylvester(T[:count, :count], -T[count:, count:], -T[:count, count:])
    return Z[:, :count], Z @ onto @ Z.T


def _jordan_block(M: np.ndarray, values: np.ndarray, size: float) -> np.ndarray | None:
    """Indices of the eigenvalues of a leading Jordan block; None where there is none.

    Rounding scatters a Jordan block of size k over a disc of radius eps^(1/k). A cluster of leading eigenvalues is a
    block when its spread is far smaller than its non-normal part and its eigenvalues are very sensitive to
    perturbations.
    """
    reference, left, right = eig(M, left=True)
    sensitivity = 1 / np.maximum(np.abs((left.conj() * right).sum(axis=0)), _EPS)
    top = values[values.real.argmax()]
    order = np.argsort(np.abs(values - top))
    for k in range(2, len(M) + 1):
        cluster = values[order[:k]]
        centre = cluster.mean()
        spread = float(np.abs(cluster - centre).max())
        if abs(centre.imag) > _EQUAL * size or spread > 20 * _EPS ** (1 / k) * size:
            continue
        rest = values[order[k:]].real
        if k < len(M) and rest.max() >= cluster.real.min():
            continue
        try:
            T, _, count = _ordered(M, cluster.real, rest)
        except np.linalg.LinAlgError:  # these k are part of a larger block that cannot be cut here
            continue
        if count == 0:  # the cut went through eigenvalues that differ by rounding alone: part of a larger cluster
            continue
        block = T[:count, :count] - centre.real * np.eye(count)
        # A pair may stand on either side of the diagonal of its two-by-two block.
        coupling = float(np.abs(block - np.diag(np.diag(block))).max())
        touchy = float(sensitivity[np.argsort(np.abs(reference - centre))[:count]].max())
        if coupling > 1e-6 * size and spread < 1e-3 * coupling and touchy > _TOUCHY:
            return np.asarray(order[:k])
    return None


def _eigenvalues(M: np.ndarray) -> np.ndarray:
    """Eigenvalues of the Schur form, so that they can be separated in it again.

    Another algorithm scatters those of a defective matrix differently.
    """
    T, _ = schur(M, output="real")
    values = np.diag(T).astype(complex)
    for k in np.flatnonzero(np.diag(T, -1)):
        turn = np.sqrt(complex(T[k, k + 1] * T[k + 1, k]))  # LAPACK gives both diagonal entries of a pair alike
        values[k] += turn
        values[k + 1] -= turn
    return values
