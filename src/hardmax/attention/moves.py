r"""Moves of a token by the update of its heads, and step sizes that depend on the layer.

Moves are the convex step, the residual step, no skip, the implicit step and the step on the sphere. Step sizes are a
sequence :math:`\alpha_0, \alpha_1, \dots` along depth. A token of a hardmax layer that is decided at layer t moves
along a segment to its target :math:`z^*`,

.. math:: z(s) = z^* + \prod_{u=t}^{s-1} \frac{1}{1+\alpha_u}\,(z(t) - z^*) .

If the steps have an infinite sum the product tends to zero and the token reaches its target; if the sum is finite the
token stops short of it, and the limit is the point that the infinite product gives.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction

import torch

from ..errors import InputError
from ..inputs import as_square
from ..scalars import as_number, as_positive
from ..shapes import ArrayLike, Square, Tokens
from .choice import apply
from .norms import UnitNorm

# Terms of an infinite product that are multiplied out; the rest is an Euler-Maclaurin sum, exact to float64.
_TERMS = 1000


class AbstractSteps(ABC):
    """Interface of a sequence of step sizes, one per layer."""

    @abstractmethod
    def at(self, index: int) -> float:
        """Step size of a layer.

        Parameters
        ----------
        index
            Number of the layer, from 0.

        Returns
        -------
        float
            Positive step size alpha.
        """

    @abstractmethod
    def remaining(self, index: int) -> float:
        r"""Infinite product :math:`\prod_{u \ge t} 1/(1+\alpha_u)` from the layer ``index`` on.

        Parameters
        ----------
        index
            Number t of the first layer of the product.

        Returns
        -------
        float
            Share of the distance to its target that a token never covers; 0 where the steps have an infinite sum.
        """

    def shrinkage(self, start: int, stop: int) -> float:
        r"""Finite product :math:`\prod_{t \le u < s} 1/(1+\alpha_u)`.

        Parameters
        ----------
        start, stop
            First layer of the product, and the layer after the last.

        Returns
        -------
        float
            Factor in (0, 1] by which the distance to a fixed target shrinks between the two layers.
        """
        return math.exp(-math.fsum(math.log1p(self.at(u)) for u in range(start, stop)))


@dataclass(frozen=True)
class PowerSteps(AbstractSteps):
    r"""Steps that decay like a power: :math:`\alpha_t = a\,(t+1)^{-p}`.

    For :math:`p \le 1` their sum is infinite and tokens reach their targets; for :math:`p > 1` they stop short.

    Parameters
    ----------
    first
        Step size a of the first layer, positive.
    power
        Exponent p, not negative; 0 gives a constant step.

    Examples
    --------
    >>> steps = PowerSteps(1.0, power=2.0)
    >>> steps.at(1), round(steps.remaining(0), 12)
    (0.25, 0.272029054982)
    """

    first: float
    power: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "first", as_positive("first", self.first))
        power = as_number("power", self.power, lambda x: x >= 0, "must not be negative", "pass for example power=1.0")
        object.__setattr__(self, "power", power)

    def at(self, index: int) -> float:
        return self.first * math.exp(-self.power * math.log(index + 1))

    def remaining(self, index: int) -> float:
        if self.power <= 1:
            return 0.0
        # log(1 + a u^-p) = sum_k (-1)^(k+1) a^k u^(-kp) / k; its sum over u >= M is a sum of Hurwitz zeta values,
        # which converges where a M^-p is small.
        from scipy.special import zeta

        far = max(index + 1 + _TERMS, math.ceil((10 * self.first) ** (1 / self.power)))
        near = math.fsum(math.log1p(self.at(u)) for u in range(index, far - 1))
        rest, size = 0.0, self.first
        for k in range(1, 40):
            term = size * float(zeta(k * self.power, far)) / k
            rest += term if k % 2 else -term
            if term < 1e-18 * (near + rest):
                break
            size *= self.first
        return math.exp(-near - rest)

    def __str__(self) -> str:
        return f"{self.first:g} (t + 1)^-{self.power:g}"


@dataclass(frozen=True)
class GeometricSteps(AbstractSteps):
    r"""Steps that decay geometrically: :math:`\alpha_t = a\,r^t`, whose sum is finite, so that tokens stop short.

    Parameters
    ----------
    first
        Step size a of the first layer, positive.
    ratio
        Factor r from one layer to the next, in (0, 1).

    Examples
    --------
    >>> round(GeometricSteps(0.5, ratio=0.5).remaining(0), 12)
    0.419422441795
    """

    first: float
    ratio: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "first", as_positive("first", self.first))
        inside = as_number("ratio", self.ratio, lambda x: 0 < x < 1, "must lie in (0, 1)", "pass for example 0.9")
        object.__setattr__(self, "ratio", inside)

    def at(self, index: int) -> float:
        return self.first * self.ratio**index

    def remaining(self, index: int) -> float:
        total, u = 0.0, index
        while True:
            step = self.at(u)
            # The terms left over sum to at most step / (1 - ratio).
            if step <= 1e-18 * (1 - self.ratio) * max(total, 1e-300) or step < 1e-300:
                return math.exp(-total)
            total += math.log1p(step)
            u += 1

    def __str__(self) -> str:
        return f"{self.first:g} * {self.ratio:g}^t"


def as_step(alpha: float | Fraction | AbstractSteps) -> float | Fraction | AbstractSteps:
    """A positive step size, or a rule that gives one per layer; a Fraction stays exact."""
    if isinstance(alpha, AbstractSteps):
        return alpha
    number = as_positive("alpha", alpha)
    return alpha if isinstance(alpha, Fraction) else number


def step_size(alpha: float | Fraction | AbstractSteps, index: int) -> float | Fraction:
    """Step size of the layer with this number.

    >>> step_size(PowerSteps(1.0, power=1.0), 3), step_size(0.5, 3)
    (0.25, 0.5)
    """
    return alpha.at(index) if isinstance(alpha, AbstractSteps) else alpha


Step = float | AbstractSteps


class AbstractMove(ABC):
    """Interface of a move: the next token from the token and the sum that its heads pass on."""

    @abstractmethod
    def __call__(self, tokens: Tokens, update: Tokens, index: int) -> Tokens:
        """Next tokens, shape (tokens, d).

        Parameters
        ----------
        tokens
            Float64 tensor of shape (tokens, d).
        update
            What the heads pass on to each token, shape (tokens, d).
        index
            Number of the layer in a run, from 0.

        Returns
        -------
        Tensor
            Shape (tokens, d).
        """

    @property
    def is_convex(self) -> bool:
        """Whether the next token is a convex combination of the token and the update."""
        return False

    @property
    def on_sphere(self) -> bool:
        """Whether tokens of length one stay of length one."""
        return False


def _checked(alpha: Step) -> Step:
    step = as_step(alpha)
    return step if isinstance(step, AbstractSteps) else float(step)


@dataclass(frozen=True)
class ConvexStep(AbstractMove):
    r"""Step of the clustering paper: :math:`z' = (z + \alpha m)/(1 + \alpha)`.

    Parameters
    ----------
    alpha
        Step size, positive, or one per layer (:class:`hardmax.PowerSteps`).
    """

    alpha: Step = 0.5

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", _checked(self.alpha))

    def __call__(self, tokens: Tokens, update: Tokens, index: int) -> Tokens:
        alpha = float(step_size(self.alpha, index))
        return (tokens + alpha * update) / (1 + alpha)

    @property
    def is_convex(self) -> bool:
        return True

    def __str__(self) -> str:
        return f"convex step, alpha = {self.alpha}"


@dataclass(frozen=True)
class ResidualStep(AbstractMove):
    r"""Residual connection: :math:`z' = z + \alpha m`.

    Parameters
    ----------
    alpha
        Step size, positive, or one per layer (:class:`hardmax.PowerSteps`).
    """

    alpha: Step = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", _checked(self.alpha))

    def __call__(self, tokens: Tokens, update: Tokens, index: int) -> Tokens:
        return tokens + float(step_size(self.alpha, index)) * update

    def __str__(self) -> str:
        return f"residual, alpha = {self.alpha}"


@dataclass(frozen=True)
class NoSkip(AbstractMove):
    r"""Attention without a skip connection: :math:`z' = m`."""

    def __call__(self, tokens: Tokens, update: Tokens, index: int) -> Tokens:
        return update

    @property
    def is_convex(self) -> bool:
        return True

    def __str__(self) -> str:
        return "no skip connection"


@dataclass(frozen=True, eq=False, init=False)
class ImplicitStep(AbstractMove):
    r"""Step with a general value matrix: :math:`z' = (I + V)^{-1}(z + V m)`.

    With :math:`V = \alpha I` this is the convex step. The heads pass on means of tokens: their value matrices are the
    identity.

    Parameters
    ----------
    V
        Value matrix of shape (d, d), of any rank, such that I + V is invertible.
    """

    V: Square

    def __init__(self, V: ArrayLike) -> None:
        matrix = as_square("V", V)
        identity = torch.eye(len(matrix), dtype=torch.float64)
        if (
            not float(torch.linalg.cond(identity + matrix)) <= 1e12
        ):  # fewer than four digits of the result would be right
            raise InputError("V", "I + V is singular", "must leave I + V invertible", "rescale V")
        object.__setattr__(self, "V", matrix)

    def __call__(self, tokens: Tokens, update: Tokens, index: int) -> Tokens:
        V = as_square("V", self.V, tokens.shape[1]).to(tokens.device)
        identity = torch.eye(len(V), dtype=torch.float64, device=tokens.device)
        # z' = z + (I + V)^{-1} V (m - z): tokens that attend to themselves stay exactly where they are.
        gain = torch.linalg.solve(identity + V, V)
        return tokens + apply(gain, update - tokens)

    def __str__(self) -> str:
        return f"implicit step, V = {len(self.V)} x {len(self.V)}"


@dataclass(frozen=True)
class SphereStep(AbstractMove):
    r"""Residual step on the unit sphere: :math:`z' = (z + \alpha\,P_z m)/|z + \alpha\,P_z m|`.

    :math:`P_z` is the projection to the tangent space at z. Without it (``tangent=False``) the step is the residual
    connection with normalisation after it, as in a transformer.

    Parameters
    ----------
    alpha
        Step size, positive, or one per layer (:class:`hardmax.PowerSteps`).
    tangent
        Whether the update is projected to the tangent space first.
    """

    alpha: Step = 1.0
    tangent: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", _checked(self.alpha))

    def __call__(self, tokens: Tokens, update: Tokens, index: int) -> Tokens:
        if self.tangent:
            update = update - (update * tokens).sum(dim=1, keepdim=True) * tokens
        return UnitNorm()(tokens + float(step_size(self.alpha, index)) * update)

    @property
    def on_sphere(self) -> bool:
        return True

    def __str__(self) -> str:
        return f"step on the sphere, alpha = {self.alpha}"
