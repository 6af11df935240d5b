r"""Self-attention on the sphere with noise, and the coupling at which the uniform law loses its stability.

For tokens that attend without normalisation, with Brownian motion B of generator :math:`\tfrac{\sigma^2}{2}\Delta`,

.. math:: dX_i = K P_{X_i}\frac1n\sum_j e^{\beta\langle X_i, X_j\rangle} X_j\,dt + \sigma\,dB_i ,

the density relative to the uniform law obeys :math:`\partial_t f = \tfrac{\sigma^2}{2}\Delta f - K\nabla\cdot(f\nabla
W * f)` with :math:`W = e^{\beta\langle x, y\rangle}/\beta`. A small spherical harmonic of degree l grows with the rate
:math:`l(l+d-2)(K\lambda_l - \sigma^2/2)`, where :math:`\lambda_l` is the eigenvalue of W (Funk and Hecke). The degree
one has the largest, :math:`\lambda_1 = \Gamma(d/2)\,2^{d/2-1}I_{d/2}(\beta)/\beta^{d/2}`, so the uniform law is stable
below

.. math:: K_\# = \frac{\sigma^2}{2\lambda_1} = \sigma^2\,\frac{\beta^{d/2}}{2^{d/2}\Gamma(d/2)I_{d/2}(\beta)} .

With :math:`\sigma = 1` this is the threshold of 2606.05140: its noise is a standard Brownian motion. Softmax weights
divide by :math:`Z = \Gamma(d/2)(2/\beta)^{d/2-1}I_{d/2-1}(\beta)`; the change of Z by a small harmonic multiplies a
field along x, which the projection removes, so the threshold is :math:`K_\# Z = \sigma^2\tfrac{\beta}{2} I_{d/2-1}(
\beta)/I_{d/2}(\beta)`.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from scipy.optimize import brentq
from scipy.special import gammaln, ive

from ..attention.weighting import Exponential, Softmax
from ..dynamics.attention_flow import AttentionFlow
from ..dynamics.modified_flows import NoisyFlow
from ..scalars import as_count, as_number, as_positive
from .model import FieldModel, Run, order, unit_vectors
from .synchronisation import as_beta

# Below this the Bessel functions are replaced by their first terms, exact to float64.
_SMALL_BETA = 1e-4
# States at the end of a run over which noisy measures are averaged, as a share of the run.
_LATE = 0.5


def critical_coupling(beta: float, d: int, noise: float = 1.0, normalised: bool = False) -> float:
    r"""Coupling above which the uniform law on the sphere is unstable.

    .. math:: K_\# = \sigma^2\,\frac{\beta^{d/2}}{2^{d/2}\Gamma(d/2) I_{d/2}(\beta)}, \qquad
              K_\#^{\mathrm{softmax}} = \sigma^2\,\frac{\beta}{2}\frac{I_{d/2-1}(\beta)}{I_{d/2}(\beta)}

    Parameters
    ----------
    beta
        Inverse temperature, not negative.
    d
        Number of coordinates, at least 2.
    noise
        Amplitude of the noise, positive.
    normalised
        Whether attention is normalised (softmax).

    Returns
    -------
    float
        The threshold of linear stability; the transition where it is continuous, see :func:`tricritical_beta`.

    Examples
    --------
    >>> critical_coupling(0.0, 2), round(critical_coupling(1.0, 3), 6)
    (1.0, 1.359141)
    """
    beta, d, noise = as_beta(beta), as_count("d", d, 2), as_positive("noise", noise)
    if beta < _SMALL_BETA:
        # I_v(b) = (b/2)^v / Gamma(v+1) (1 + b^2/(4(v+1)) + ...).
        if normalised:
            return noise**2 * d / 2 * (1 + beta**2 / (d * (d + 2)))
        return noise**2 * d / 2 / (1 + beta**2 / (2 * (d + 2)))
    if normalised:
        return float(noise**2 * beta / 2 * ive(d / 2 - 1, beta) / ive(d / 2, beta))
    logarithm = d / 2 * math.log(beta / 2) - gammaln(d / 2) - math.log(ive(d / 2, beta)) - beta
    return float(noise**2 * math.exp(logarithm))


def tricritical_beta(d: int) -> float:
    r"""Inverse temperature up to which the transition is continuous, so that it happens at :math:`K_\#` (2606.05140).

    It solves :math:`I_{d/2+1}(\beta)/I_{d/2}(\beta) = 1/d`. Above it, other states have a lower free energy before the
    uniform law loses its stability.

    Parameters
    ----------
    d
        Number of coordinates, at least 2.

    Returns
    -------
    float
        The inverse temperature, for attention without normalisation.

    Examples
    --------
    >>> round(tricritical_beta(2), 4)
    2.4469
    """
    d = as_count("d", d, 2)

    def ratio(beta: float) -> float:
        return float(ive(d / 2 + 1, beta) / ive(d / 2, beta)) - 1 / d

    return float(brentq(ratio, 1e-3, 100.0, xtol=1e-12))


def noisy(
    coupling: float = 2.0,
    beta: float = 1.0,
    d: int = 2,
    noise: float = 1.0,
    normalised: bool = False,
    n: int = 300,
) -> FieldModel:
    r"""Self-attention on the sphere with noise, without normalisation (2606.05140) or with softmax.

    .. math:: dX_i = K P_{X_i}\frac1n\sum_j e^{\beta\langle X_i, X_j\rangle} X_j\,dt + \sigma\,dB_i

    Tokens stay uniform on the sphere below the coupling :math:`K_\#` of :func:`critical_coupling` and gather above it.

    Parameters
    ----------
    coupling
        Coupling K, not negative.
    beta
        Inverse temperature, not negative.
    d
        Number of coordinates, at least 2.
    noise
        Amplitude :math:`\sigma` of the Brownian motion, positive.
    normalised
        Whether weights are softmax weights.
    n
        Number of tokens.

    Returns
    -------
    FieldModel
        A flow with noise; measures ``order`` (root mean square over the second half of the run) and ``growth`` (rate at
        which a small mean token grows, from the velocities of the tokens), with its prediction
        :math:`(d-1)\tfrac{\sigma^2}{2}(K/K_\# - 1)`, exact for many tokens near the uniform law.
    """
    K = as_number("coupling", coupling, lambda x: x >= 0, "must be finite and not negative", "pass coupling >= 0")
    beta, d, noise, n = as_beta(beta), as_count("d", d, 2), as_positive("noise", noise), as_count("n", n, 2)
    critical = critical_coupling(beta, d, noise, bool(normalised))
    flow = AttentionFlow(weighting=Softmax(beta) if normalised else Exponential(beta), coupling=K)
    decay = (d - 1) * noise**2 / 2

    def growth(run: Run) -> float:
        """Regression of the mean velocity on the mean token; Brownian motion alone shrinks it by (d-1) sigma^2/2."""
        late = run.tokens[int(_LATE * len(run)) :]
        above = below = 0.0
        for state in late[:: max(1, len(late) // 50)]:
            tokens = torch.from_numpy(np.ascontiguousarray(state, dtype=np.float64))
            mean = tokens.mean(dim=0)
            above += float(mean @ flow.velocity(tokens, torch.ones(len(tokens), dtype=torch.float64)).mean(dim=0))
            below += float(mean @ mean)
        return above / below - decay

    def mean_order(run: Run) -> float:
        late = run.tokens[int(_LATE * len(run)) :]
        return math.sqrt(float(np.square(late.mean(axis=1)).sum(axis=1).mean()))

    return FieldModel(
        name="noisy",
        equation=r"dX_i = K P_{X_i} \frac1n \sum_j e^{\beta\langle X_i, X_j\rangle} X_j\,dt + \sigma\,dB_i",
        rule=NoisyFlow(flow, noise),
        n=n,
        d=d,
        parameters={
            "coupling": K,
            "beta": beta,
            "d": d,
            "noise": noise,
            "normalised": bool(normalised),
            "n": n,
        },
        constructor=noisy,
        law=lambda generator: unit_vectors(generator, n, d),
        duration=20.0,
        measures={"order": mean_order, "growth": growth, "final_order": order},
        theory={"growth": lambda run: decay * (K / critical - 1)},
        critical={"coupling": critical},
        integrator="noise-splitting",
    )
