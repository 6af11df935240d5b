r"""Rates of concentration and of escape, predicted by the theory for given matrices.

With :math:`\Delta = \lambda_1 - \lambda_2` the gap of :math:`M = VB`, a token approaches its limit :math:`x_\infty`
like :math:`e^{-ct}`, :math:`c = \Delta/|Bx_\infty|`. In :math:`W_2` mass near :math:`\ker\Pi` is slower: it first has
to leave the second eigenspace, where :math:`|Bx| = b_2`. A share :math:`\varepsilon^m` of the mass starts within
:math:`\varepsilon` of the kernel, so :math:`W_2` decays at the rate :math:`\min(m\Delta/(2b_2), \Delta/b_1)`.

At finite :math:`\beta` a cluster that has shrunk to the width :math:`\beta^{-1/2}` of the kernel, at
:math:`t \approx \ln\beta/(2c)`, attends to itself or to its antipode alone. Where it then leaves at a rate r (see
:mod:`hardmax.meanfield.terminal`), it is gone at :math:`t \approx (1/c + 1/r)\ln(\beta)/2`. [derived; see the developer
notes]
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..errors import InputError
from ..geometry.result_arrays import near_one
from ..inputs import plain
from ..threads import one_thread
from .limit import LowTemperatureLimit
from .spectrum import refuse_rotation
from .terminal import TerminalPhase, terminal_phase


@dataclass(frozen=True, eq=False)
class Rates:
    """Rates of the zero-temperature flow, and of a cluster that attends to itself."""

    pointwise: np.ndarray
    """Rate c of each token, shape (tokens,); NaN for tokens that have no part in the leading eigenspace."""
    slowest: float
    """Smallest c of any direction in the leading eigenspace."""
    wasserstein: float
    """Rate at which W_2 to the limit decays, for a smooth law."""
    terminal: TerminalPhase
    """What becomes of a cluster of the limit."""
    depletion: float = math.inf
    """Rate at which the share of mass that has not arrived falls, for a smooth law."""

    @property
    def escape(self) -> float | None:
        """Rate at which a cluster leaves the limit; zero where it never does, None where that is not decided."""
        return self.terminal.escape

    def approach_time(self, beta: float, tokens: int | None = None) -> float | None:
        """Time of the closest approach to the limit, to leading order in log beta.

        Clusters that are no equilibria leave when the tokens beside them are used up: at a time proportional to beta
        for a law, to the logarithm of the number of tokens for finitely many of them.

        Parameters
        ----------
        beta
            Inverse temperature.
        tokens
            Number of tokens; infinite when left out.

        Returns
        -------
        float or None
            None where the theory does not apply.
        """
        if self.terminal.rate is None:
            return None
        formed = math.log(beta) / (2 * self.slowest)
        if not self.terminal.drifts:
            return formed
        lasting = beta * self.terminal.delay if tokens is None else min(beta * self.terminal.delay, math.log(tokens))
        return max(formed, lasting / self.depletion)

    def escape_time(self, beta: float, tokens: int | None = None) -> float | None:
        """Time at which a cluster has left its limit, to leading order in log beta.

        Parameters
        ----------
        beta
            Inverse temperature.
        tokens
            Number of tokens; infinite when left out.

        Returns
        -------
        float or None
            None where the cluster stays, where the theory does not apply, or where it does not decide whether the
            cluster leaves (``terminal.leaves`` is None).
        """
        if not self.escape:
            return None
        if self.terminal.drifts:
            approach = self.approach_time(beta, tokens)
            return None if approach is None else approach + self.terminal.travel
        return 0.5 * (1 / self.slowest + 1 / self.escape) * math.log(beta)


@one_thread()
def rates(limit: LowTemperatureLimit) -> Rates:
    """Rates of concentration and escape for a low-temperature limit.

    Parameters
    ----------
    limit
        Result of :func:`hardmax.low_temperature_limit`.

    Returns
    -------
    Rates
        Rate per token, rate of W_2, and rate of escape.

    Examples
    --------
    >>> from hardmax import low_temperature_limit
    >>> law = low_temperature_limit([[0.6, 0.8]], B=[[4.0, 0.0], [0.0, 1.0]], V=[[1.0, 0.0], [0.0, 2.0]])
    >>> found = rates(law)
    >>> found.slowest, found.wasserstein, found.escape
    (0.5, 0.5, 1.0)
    """
    if not isinstance(limit, LowTemperatureLimit):
        remedy = "pass low_temperature_limit(tokens, B, V)"  # type: ignore[unreachable]
        raise InputError("limit", f"a {type(limit).__name__}", "must be a LowTemperatureLimit", remedy)
    leading = limit.leading
    refuse_rotation(leading)
    if not leading.semisimple:
        none = np.zeros(len(limit.positions))
        return Rates(none, 0.0, 0.0, terminal_of(limit))
    B, power = near_one(limit.B)  # squares of its entries may be no floats
    lengths = np.ldexp(np.linalg.norm(plain(limit.positions).astype(np.float64) @ B.T, axis=1), power)
    b_1 = math.ldexp(float(np.linalg.norm(B @ leading.basis, 2)), power)
    if leading.second is None:
        still = np.full(len(lengths), math.inf)
        return Rates(still, math.inf, math.inf, terminal_of(limit))
    b_2 = math.ldexp(float(np.linalg.norm(B @ leading.second_basis, 2)), power)
    lengths[limit.elsewhere] = math.nan
    depletion = leading.dimension * leading.gap / b_2
    return Rates(leading.gap / lengths, leading.gap / b_1, limit.approach_rate, terminal_of(limit), depletion)


def terminal_of(limit: LowTemperatureLimit) -> TerminalPhase:
    """What becomes of the clusters of a limit."""
    if not limit.leading.semisimple:
        return TerminalPhase(None, None, None, 0.0, None, "tokens approach their limit like 1/t, too slowly for phases")
    if limit.dimension != 1:
        reason = f"tokens concentrate on a sphere of dimension {limit.dimension - 1}, not in clusters"
        return TerminalPhase(None, None, None, 0.0, None, reason)
    e = limit.leading.basis[:, 0]
    side = plain(limit.positions).astype(np.float64) @ e
    return terminal_phase(limit.B, limit.V, e, both=bool((side > 0).any() and (side < 0).any()))
