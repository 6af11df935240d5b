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
    JORDAN_BLOCK = "a leading Jordan block"
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

    @property
    def dimension(self) -> int:
        """m = dim E."""
        return int(self.basis.shape[1])

    @property
    def gap(self) -> float:
        """Gap Delta from the leading eigenvalue to the next real part; infinite when there is no other."""
        return np.inf if self.second is None else self.eigenvalue - self.second


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
    values = [found.eigenvalue] if found.second is None else [found.eigenvalue, found.second]
    with np.errstate(over="ignore"):
        sized = [float(np.ldexp(value, power)) for value in values]
    if not np.isfinite(sized).all() or np.count_nonzero(sized) < np.count_nonzero(values):
        raise InputError(
            "B, V",
            f"eigenvalues of V B of size about 2**{power}",
            "must keep V B within float64",
            "rescale them: the limit is the same for c B and c V, c > 0, and the rates are c times those of V",
        )
    return replace(found, eigenvalue=sized[0], second=None if found.second is None else sized[1])


def leading_of(M: np.ndarray) -> Leading:
    """Leading part of a matrix of ordinary size; raises :class:`NoLimitError` where it rotates or is a Jordan block."""
    size = float(np.linalg.norm(M, 2))
    if size == 0:
        return Leading(0.0, None, np.eye(len(M)), np.zeros((len(M), 0)), np.eye(len(M)))
    values = _eigenvalues(M)
    _refuse_jordan(M, values, size)
    top = float(values.real.max())
    near = values[values.real >= top - _EQUAL * size]
    if np.abs(near.imag).max() > _EQUAL * size:
        turn = float(np.abs(near.imag).max())
        raise NoLimitError(
            NoLimit.ROTATES,
            f"V B has the leading eigenvalues {top:.4g} ± {turn:.4g}i, so tokens turn for ever",
            "change B or V until the leading eigenvalue of V B is real",
        )
    leads = values.real >= top - _EQUAL * size
    others = values.real[~leads]
    basis, projector = _projector(M, values.real[leads], others)
    if len(others) == 0:
        return Leading(top, None, basis, np.zeros((len(M), 0)), projector)
    second = float(others.max())
    both, _ = _projector(M, values.real[values.real >= second - _EQUAL * size], others[others < second - _EQUAL * size])
    # Without its part in E, the larger subspace is the invariant subspace of the second part.
    apart = both[:, basis.shape[1] :] - projector @ both[:, basis.shape[1] :]
    return Leading(top, second, basis, np.linalg.qr(apart)[0], projector)


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


def _refuse_jordan(M: np.ndarray, values: np.ndarray, size: float) -> None:
    """Raise a NoLimitError for a leading Jordan block.

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
            raise NoLimitError(
                NoLimit.JORDAN_BLOCK,
                f"the leading eigenvalue {centre.real:.4g} of V B is repeated {count} times without as many "
                "eigenvectors, so tokens approach their limit only like 1/t",
                "change B or V a little, or follow the flow itself with zero_temperature_solution",
            )


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
