r"""Equiangular tokens: all pairs have the same cosine, and stay so, which leaves one equation for the cosine.

For n unit vectors with common cosine :math:`\gamma` let :math:`p_o = 1/(e^{\beta(1-\gamma)} + n - 1)` be the softmax
weight of one other token and :math:`p_s = 1 - (n-1)p_o` that of the token itself. Then
:math:`A_i = p_s x_i + p_o\sum_{j \ne i} x_j`, and

.. math:: \langle P_{x_i}A_i, x_j\rangle = \langle A_i, x_j\rangle - \gamma\langle A_i, x_i\rangle
          = p_o (1-\gamma)(1 + (n-1)\gamma), \qquad \dot\gamma = 2 p_o (1-\gamma)(1+(n-1)\gamma) / s ,

where s is the factor by which a normalisation scheme slows the token down (1 on the sphere).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..attention.attention_layer import AttentionLayer
from ..attention.base import AbstractLayer, LayerSequence
from ..attention.heads import Head
from ..attention.moves import NoSkip, ResidualStep, SphereStep
from ..attention.norms import UnitNorm
from ..attention.weighting import Softmax
from ..dynamics.attention_flow import AttentionFlow
from ..errors import InputError
from ..scalars import as_choice, as_count, as_number, as_positive, shown
from .model import (
    FieldModel,
    Run,
    attention_to_others,
    cosine,
    duration,
    equiangular_tokens,
    mean_cosine,
    order,
    solved,
)
from .synchronisation import as_beta

SCHEMES = ("post", "pre", "peri", "nGPT", "mixed")
"""Normalisation schemes of :func:`normalisation`."""


def _as_rho(rho: object) -> float:
    return as_number("rho", rho, lambda x: 0 <= x < 1, "must lie in [0, 1)", "pass for example rho=0.2")


def equiangular(rho: float = 0.0, beta: float = 1.0, n: int = 32) -> FieldModel:
    r"""Equiangular tokens under self-attention on the sphere (2312.10794, 2512.01868).

    .. math:: \dot\gamma = \frac{2 e^{\beta\gamma}(1-\gamma)((n-1)\gamma + 1)}{e^\beta + (n-1)e^{\beta\gamma}},
              \qquad \gamma(0) = \rho

    Parameters
    ----------
    rho
        Cosine of all pairs at the start, in [0, 1).
    beta
        Inverse temperature, not negative.
    n
        Number of tokens; they live in R^n.

    Returns
    -------
    FieldModel
        A flow; measure ``cosine``, with the solution of the scalar equation as its prediction.
    """
    rho, beta, n = _as_rho(rho), as_beta(beta), as_count("n", n, 2)
    return FieldModel(
        name="equiangular",
        equation=r"\dot\gamma = \frac{2 e^{\beta\gamma}(1-\gamma)((n-1)\gamma+1)}{e^\beta+(n-1)e^{\beta\gamma}}",
        rule=AttentionFlow(weighting=Softmax(beta)),
        n=n,
        d=n,
        parameters={"rho": rho, "beta": beta, "n": n},
        constructor=equiangular,
        law=lambda generator: equiangular_tokens(n, rho),
        duration=4.0,
        measures={"cosine": cosine, "order": order},
        theory={"cosine": lambda run: _common_cosine(run, (beta,), (1.0,))},
    )


def multi_head(
    betas: Sequence[float] = (0.5, 8.0), shares: Sequence[float] | None = None, rho: float = 0.0, n: int = 32
) -> FieldModel:
    r"""Several heads with inverse temperatures of their own, on equiangular tokens (setting of 2605.04279).

    .. math:: \dot x_i = P_{x_i}\sum_h w_h \sum_j p^h_{ij} x_j, \quad p^h_{ij} \propto e^{\beta_h\langle x_i, x_j
              \rangle}, \qquad \dot\gamma = 2(1-\gamma)(1+(n-1)\gamma)\sum_h \frac{w_h}{e^{\beta_h(1-\gamma)} + n - 1}

    The equation for the common cosine follows from that of one head, since the velocity is a sum over heads.

    Parameters
    ----------
    betas
        Inverse temperature of each head, not negative.
    shares
        Factor of each head; equal and summing to one when left out.
    rho
        Cosine of all pairs at the start, in [0, 1).
    n
        Number of tokens; they live in R^n.

    Returns
    -------
    FieldModel
        A flow; measure ``cosine``, with the solution of the scalar equation as its prediction.
    """
    if isinstance(betas, (str, float, int)) or len(betas) == 0:
        raise InputError("betas", shown(betas), "must be one number per head", "pass for example (0.5, 8.0)")
    temperatures = tuple(as_beta(beta) for beta in betas)
    rho, n = _as_rho(rho), as_count("n", n, 2)
    heads = [Head(beta * np.eye(n)) for beta in temperatures]
    flow = AttentionFlow(heads, Softmax(1.0), shares=shares)
    factors = tuple(float(share) for share in flow.shares)
    return FieldModel(
        name="multi_head",
        equation=r"\dot x_i = P_{x_i} \sum_h w_h \sum_j p^h_{ij} x_j,\quad"
        r" p^h_{ij} \propto e^{\beta_h \langle x_i, x_j\rangle}",
        rule=flow,
        n=n,
        d=n,
        parameters={"betas": temperatures, "shares": factors, "rho": rho, "n": n},
        constructor=multi_head,
        law=lambda generator: equiangular_tokens(n, rho),
        duration=4.0,
        measures={"cosine": cosine, "order": order},
        theory={"cosine": lambda run: _common_cosine(run, temperatures, factors)},
    )


def _common_cosine(run: Run, betas: tuple[float, ...], shares: tuple[float, ...]) -> float:
    n = run.tokens.shape[1]

    def rate(t: float, gamma: np.ndarray) -> np.ndarray:
        g = float(gamma[0])
        weight = sum(w * attention_to_others(g, beta, n) for w, beta in zip(shares, betas, strict=True))
        return np.array([2 * weight * (1 - g) * (1 + (n - 1) * g)])

    return float(solved(rate, np.array([mean_cosine(run.tokens[0])]), duration(run))[0])


def long_context(gamma: float = 1.5, rho: float = 0.2, n: int = 1000) -> FieldModel:
    r"""Long context: the inverse temperature that a context of n tokens needs (2510.05554, 2512.01868).

    One attention layer without a skip connection, at :math:`\beta_n = \gamma\log n`, on equiangular tokens with cosine
    :math:`\rho`. The weight of a token on itself is

    .. math:: p = \frac{n^{\gamma}}{n^{\gamma} + (n-1)n^{\gamma\rho}} ,

    which tends to 0 with n where :math:`\gamma < \gamma_c = 1/(1-\rho)`, so that attention averages all tokens, and to
    1 above, so that it leaves every token where it is.

    Parameters
    ----------
    gamma
        Factor of the logarithm, not negative.
    rho
        Cosine of all pairs, in [0, 1).
    n
        Number of tokens; they live in R^n.

    Returns
    -------
    FieldModel
        One layer; measures ``own_weight`` (p, from the positions after the layer) and ``cosine`` after it. At
        finite n, p = 1/2 where :math:`\gamma = \log(n-1)/((1-\rho)\log n)`.
    """
    gamma = as_number("gamma", gamma, lambda x: x >= 0, "must be finite and not negative", "pass gamma >= 0")
    rho, n = _as_rho(rho), as_count("n", n, 3)
    beta = gamma * math.log(n)

    def own_weight(run: Run) -> float:
        # <A_i, x_i> = p + (1 - p) rho.
        overlap = float(np.einsum("ij,ij->i", run.tokens[1], run.tokens[0]).mean())
        return (overlap - rho) / (1 - rho)

    def predicted_cosine(run: Run) -> float:
        others = attention_to_others(rho, beta, n)
        a, b = 1 - n * others, others  # output = a x_i + b (sum of all tokens)
        total = n * (1 + (n - 1) * rho)
        with_sum = 1 + (n - 1) * rho
        square = a * a + 2 * a * b * with_sum + b * b * total
        return (a * a * rho + 2 * a * b * with_sum + b * b * total) / square

    return FieldModel(
        name="long_context",
        equation=r"y_i = \sum_j \frac{e^{\beta_n \langle x_i, x_j\rangle}}{\sum_k e^{\beta_n\langle x_i, x_k\rangle}}"
        r" x_j,\quad \beta_n = \gamma \log n,\quad \gamma_c = \frac{1}{1-\rho}",
        rule=AttentionLayer(weighting=Softmax(beta), move=NoSkip()),
        n=n,
        d=n,
        parameters={"gamma": gamma, "rho": rho, "n": n},
        constructor=long_context,
        law=lambda generator: equiangular_tokens(n, rho),
        duration=1,
        measures={"own_weight": own_weight, "cosine": cosine, "order": order},
        theory={
            "own_weight": lambda run: 1 - (n - 1) * attention_to_others(rho, beta, n),
            "cosine": predicted_cosine,
        },
        critical={"gamma": 1 / (1 - rho)},
    )


def normalisation(
    scheme: str = "post", beta: float = 1.0, rho: float = 0.0, alpha: float = 1.0, n: int = 32, step: float = 0.02
) -> FieldModel:
    r"""Normalisation schemes as speed regulation (2510.22026).

    With tokens :math:`x = r\theta` of length r and direction :math:`\theta`, all schemes move directions by

    .. math:: \dot\theta_i = \frac{1}{s_i} P_{\theta_i} A_i(\theta), \qquad
              A_i(\theta) = \sum_j p_{ij}\theta_j, \quad p_{ij} \propto e^{\beta\langle\theta_i, \theta_j\rangle} ,

    with s = 1 (post), s = r and :math:`\dot r = \langle\theta, A\rangle` (pre), s = r|A| and :math:`\dot r =
    \langle\theta, A\rangle/|A|` (peri), :math:`s = |A|/\alpha` (nGPT); mixed is post for the first quarter of the
    layers and pre after it. Near collapse :math:`|A| \to 1`: the cosine tends to one exponentially where s stays
    bounded (post, nGPT) and like :math:`t^{-2}` where r grows like t (pre, peri, mixed).

    Parameters
    ----------
    scheme
        ``"post"``, ``"pre"``, ``"peri"``, ``"nGPT"`` or ``"mixed"``.
    beta
        Inverse temperature, not negative.
    rho
        Cosine of all pairs at the start, in [0, 1).
    alpha
        Speed of nGPT, positive.
    n
        Number of tokens; they live in R^n and start with length one.
    step
        Step of a layer; the equation is the limit of small steps.

    Returns
    -------
    FieldModel
        Layers; measures ``cosine`` and ``collapse`` (1 - cosine), with the solution of the equations for the common
        cosine and length as prediction.
    """
    as_choice("scheme", scheme, SCHEMES)
    beta, rho, n = as_beta(beta), _as_rho(rho), as_count("n", n, 2)
    alpha, step = as_positive("alpha", alpha), as_positive("step", step)
    depth = max(4, round(8.0 / step))
    weighting = Softmax(beta)
    post = AttentionLayer(weighting=weighting, move=SphereStep(step, tangent=True))
    pre = AttentionLayer(weighting=weighting, move=ResidualStep(step), pre_norm=UnitNorm())
    rules: dict[str, AbstractLayer] = {
        "post": post,
        "pre": pre,
        "peri": AttentionLayer(
            weighting=weighting, move=ResidualStep(step), pre_norm=UnitNorm(), update_norm=UnitNorm()
        ),
        "nGPT": AttentionLayer(
            weighting=weighting, move=SphereStep(alpha * step, tangent=True), update_norm=UnitNorm()
        ),
        "mixed": LayerSequence([post] * (depth // 4) + [pre] * (depth - depth // 4)),
    }

    def predicted(run: Run) -> float:
        state = np.array([mean_cosine(run.tokens[0]), 1.0])
        layers = int(run.layers[-1])
        if scheme != "mixed":
            return float(solved(rates(scheme), state, layers * step)[0])
        early = min(layers, depth // 4)
        state = solved(rates("post"), state, early * step)
        return float(solved(rates("pre"), state, (layers - early) * step)[0])

    def rates(kind: str):  # type: ignore[no-untyped-def]
        def rate(t: float, state: np.ndarray) -> np.ndarray:
            g, r = float(state[0]), float(state[1])
            others = attention_to_others(g, beta, n)
            own = 1 - (n - 1) * others
            along = own + (n - 1) * others * g
            square = own**2 + 2 * own * others * (n - 1) * g + others**2 * (n - 1) * (1 + (n - 2) * g)
            length = math.sqrt(square)
            slowed = {"post": 1.0, "pre": r, "peri": r * length, "nGPT": length / alpha}[kind]
            growth = {"post": 0.0, "pre": along, "peri": along / length, "nGPT": 0.0}[kind]
            return np.array([2 * others * (1 - g) * (1 + (n - 1) * g) / slowed, growth])

        return rate

    return FieldModel(
        name="normalisation",
        equation=r"\dot\theta_i = \frac{1}{s_i} P_{\theta_i} \sum_j p_{ij} \theta_j",
        rule=rules[scheme],
        n=n,
        d=n,
        parameters={"scheme": scheme, "beta": beta, "rho": rho, "alpha": alpha, "n": n, "step": step},
        constructor=normalisation,
        law=lambda generator: equiangular_tokens(n, rho),
        duration=depth,
        measures={"cosine": cosine, "collapse": lambda run: 1 - cosine(run)},
        theory={"cosine": predicted, "collapse": lambda run: 1 - predicted(run)},
    )
