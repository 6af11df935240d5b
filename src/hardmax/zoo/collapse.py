"""Models in Euclidean space: polytopes and hyperplanes, Sinkhorn attention, Frank-Wolfe steps, rank collapse."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..attention.attention_layer import AttentionLayer
from ..attention.base import AbstractLayer
from ..attention.heads import Head
from ..attention.layer import HardmaxLayer
from ..attention.moves import ConvexStep, NoSkip
from ..attention.weighting import DoublyStochastic, Softmax
from ..dynamics.attention_flow import AttentionFlow
from ..errors import InputError
from ..scalars import as_count, as_number, as_positive, shown
from .model import FieldModel, Run, duration, spread, times_of
from .synchronisation import as_beta

# Values of the leading coordinate count as one where they differ by less than this share of their range.
_SAME = 0.02
# Scores that differ by less than this leave the next residual to rounding errors of the weights.
_ROUNDING = 1e-12


def value_spectrum(spectrum: Sequence[float] = (1.0, 0.4), n: int = 40) -> FieldModel:
    r"""Self-attention in Euclidean space with a value matrix of a given spectrum (2305.05465).

    .. math:: \dot x_i = V\sum_j p_{ij} x_j, \quad p_{ij} \propto e^{\langle x_i, x_j\rangle}, \qquad
              z_i(t) = e^{-tV} x_i(t)

    Where the largest eigenvalue is positive and simple, the coordinate of the rescaled tokens z along its eigenvector
    tends to at most three values: tokens gather on at most three parallel hyperplanes. For V = I the rescaled tokens
    tend to the boundary of a convex polytope, most of them to its vertices.

    Parameters
    ----------
    spectrum
        Eigenvalues of V, a diagonal matrix; the number of coordinates is their number.
    n
        Number of tokens.

    Returns
    -------
    FieldModel
        A flow; measures ``hyperplanes`` (number of values of the leading rescaled coordinate) and ``on_boundary``
        (share of rescaled tokens that are within 1 % of the boundary of their convex hull; d = 2).
    """
    if isinstance(spectrum, (str, float, int)) or len(spectrum) == 0:
        raise InputError("spectrum", shown(spectrum), "must be numbers, one per coordinate", "pass (1.0, 0.4)")
    remedy = "pass finite numbers"
    values = tuple(as_number("spectrum", value, lambda x: True, "must be finite", remedy) for value in spectrum)
    n, d = as_count("n", n, 2), len(values)
    flow = AttentionFlow([Head(V=np.diag(values))], Softmax(1.0), sphere=False)
    leading = int(np.argmax(values))

    def hyperplanes(run: Run) -> float:
        along = np.sort(rescaled(run, values)[-1][:, leading])
        return float(1 + int((np.diff(along) > _SAME * (along[-1] - along[0])).sum()))

    measures = {"hyperplanes": hyperplanes, "spread": lambda run: spread(run)}
    if d == 2:
        measures["on_boundary"] = lambda run: _share_on_boundary(rescaled(run, values)[-1])
    return FieldModel(
        name="value_spectrum",
        equation=r"\dot x_i = V \sum_j \frac{e^{\langle x_i, x_j\rangle}}{\sum_k e^{\langle x_i, x_k\rangle}} x_j,"
        r"\quad z_i = e^{-tV} x_i",
        rule=flow,
        n=n,
        d=d,
        parameters={"spectrum": values, "n": n},
        constructor=value_spectrum,
        law=lambda generator: generator.uniform(-1, 1, size=(n, d)),
        duration=10.0 / max(1.0, max(abs(value) for value in values)),
        measures=measures,
    )


def rescaled(run: Run, spectrum: Sequence[float]) -> np.ndarray:
    """Rescaled tokens :math:`z = e^{-tV}x` of a run of :func:`value_spectrum`, shape (states, tokens, d).

    Parameters
    ----------
    run
        Run of the model.
    spectrum
        Eigenvalues of V.

    Returns
    -------
    ndarray
        Shape (states, tokens, d).
    """
    return np.asarray(run.tokens * np.exp(-np.multiply.outer(times_of(run), np.asarray(spectrum)))[:, None, :])


def _share_on_boundary(points: np.ndarray) -> float:
    """Share of points of the plane within 1 % of the extent from the boundary of their convex hull."""
    from scipy.spatial import ConvexHull

    hull = ConvexHull(points)
    inside = -(points @ hull.equations[:, :2].T + hull.equations[:, 2]).max(axis=1)
    extent = float(np.ptp(points, axis=0).max())
    return float((inside < 0.01 * extent).mean())


def sinkhorn(beta: float = 1.0, coupling: float = -1.0, n: int = 40, d: int = 2) -> FieldModel:
    r"""Doubly stochastic attention by Sinkhorn's iteration (2110.11773).

    .. math:: \dot x_i = c\sum_j K^\infty_{ij} x_j, \qquad
              K^\infty = \mathrm{Sinkhorn}\bigl(e^{\beta\langle x_i, x_j\rangle}\bigr)

    Rows and columns of the weights sum to one, so the mean token obeys a linear equation and is known exactly,
    :math:`\bar x(t) = e^{ct}\bar x(0)`, whatever the tokens do; with softmax it is not.

    Parameters
    ----------
    beta
        Inverse temperature, not negative.
    coupling
        Factor c of the velocity.
    n
        Number of tokens.
    d
        Number of coordinates.

    Returns
    -------
    FieldModel
        A flow; measure ``mean`` (length of the mean token at the end), with its exact prediction.
    """
    beta, n, d = as_beta(beta), as_count("n", n, 2), as_count("d", d, 1)
    c = as_number("coupling", coupling, lambda x: True, "must be finite", "pass for example coupling=-1.0")

    def length(state: np.ndarray) -> float:
        return float(np.linalg.norm(state.mean(axis=0)))

    return FieldModel(
        name="sinkhorn",
        equation=r"\dot x_i = c \sum_j K^\infty_{ij} x_j,\quad"
        r" K^\infty = \mathrm{Sinkhorn}(e^{\beta\langle x_i, x_j\rangle})",
        rule=AttentionFlow(weighting=DoublyStochastic(beta), sphere=False, coupling=c),
        n=n,
        d=d,
        parameters={"beta": beta, "coupling": c, "n": n, "d": d},
        constructor=sinkhorn,
        law=lambda generator: generator.normal(size=(n, d)) + 1.0,
        duration=2.0,
        measures={"mean": lambda run: length(run.final), "spread": spread},
        theory={"mean": lambda run: math.exp(c * duration(run)) * length(run.tokens[0])},
    )


def frank_wolfe(alpha: float = 0.5, sign: int = -1, n: int = 40, d: int = 2) -> FieldModel:
    r"""Hardmax attention as Frank-Wolfe steps for a quadratic objective (2508.09628).

    .. math:: z_i' = \frac{z_i + \alpha v_i}{1 + \alpha}, \qquad v_i \in \arg\max_{z_k} \langle A z_i, z_k\rangle

    With A = I the step is towards a vertex and the tokens tend to leaders. With A = -I it is a Frank-Wolfe step that
    minimises :math:`|z|^2/2` over the convex hull of the current tokens, which shrinks to one point. The point is not
    the origin: after some layers one token attends to itself and leads all others, so the limit is the
    position of one token, of small length; :func:`hardmax.equilibrium` gives it exactly. (The first version of the
    paper says "the origin"; its later abstract states a rate for the energy.)

    Parameters
    ----------
    alpha
        Step size, positive; the step of Frank and Wolfe is alpha / (1 + alpha).
    sign
        1 for A = I, -1 for A = -I.
    n
        Number of tokens.
    d
        Number of coordinates.

    Returns
    -------
    FieldModel
        A hardmax layer; measures ``diameter`` at the end, ``norm`` (largest length at the end) and, for A = -I,
        ``contraction`` (factor of the diameter in the last layer), with the exact 1 / (1 + alpha).
    """
    alpha, n, d = as_positive("alpha", alpha), as_count("n", n, 2), as_count("d", d, 1)
    if sign not in (1, -1) or isinstance(sign, bool):
        raise InputError("sign", shown(sign), "must be 1 or -1", "pass sign=-1")

    def contraction(run: Run) -> float:
        late = run.tokens[-2:]
        widths = [float(np.ptp(state, axis=0).max()) for state in late]
        return widths[1] / widths[0]

    minus = sign == -1
    measures = {
        "diameter": spread,
        "norm": lambda run: float(np.linalg.norm(run.final, axis=1).max()),
    }
    return FieldModel(
        name="frank_wolfe",
        equation=r"z_i' = \frac{z_i + \alpha v_i}{1 + \alpha},\quad v_i \in \arg\max_{z_k} \langle A z_i, z_k\rangle",
        rule=HardmaxLayer(alpha, sign * np.eye(d)),
        n=n,
        d=d,
        parameters={"alpha": alpha, "sign": int(sign), "n": n, "d": d},
        constructor=frank_wolfe,
        law=lambda generator: generator.normal(size=(n, d)),
        duration=30,
        measures={**measures, "contraction": contraction} if minus else measures,
        theory={"contraction": lambda run: 1 / (1 + alpha)} if minus else {},
    )


def rank_collapse(beta: float = 1.0, skip: float = 0.0, size: float = 0.3, n: int = 20, d: int = 4) -> FieldModel:
    r"""Rank collapse: without skip connections tokens become equal doubly exponentially (2103.03404).

    .. math:: X' = \mathrm{softmax}(\beta X X^\top) X, \qquad \mathrm{res}(X) = X - \mathbf{1}\bar x^\top

    Attention rows differ only through :math:`\beta\langle r_i, r_j\rangle`, of second order in the residuals
    :math:`r_i = x_i - \bar x`, so the next residual is of third order: for small R and mean zero :math:`R' \approx
    \tfrac{\beta}{n} R R^\top R`, and :math:`\log|\mathrm{res}|` triples from layer to layer, up to a constant. With a
    skip connection it falls linearly.

    Parameters
    ----------
    beta
        Inverse temperature, positive.
    skip
        Share of the token that the skip connection passes on, in [0, 1).
    size
        Standard deviation of the initial coordinates, positive.
    n
        Number of tokens; they come in pairs of opposite tokens, so that their mean stays zero.
    d
        Number of coordinates.

    Returns
    -------
    FieldModel
        Layers; measures ``residual`` (Frobenius norm of res at the end) and ``exponent`` (of the last layer whose
        residual is not rounding error: 3 without skip, 1 with it).
    """
    beta, size, n, d = as_positive("beta", beta), as_positive("size", size), as_count("n", n, 2), as_count("d", d, 1)
    skip = as_number("skip", skip, lambda x: 0 <= x < 1, "must lie in [0, 1)", "pass for example skip=0.5")
    if n % 2:
        raise InputError("n", n, "must be even: tokens come in opposite pairs", f"pass n={n + 1}")
    # (z + a m)/(1 + a) has the share 1/(1 + a) of the token.
    move = NoSkip() if skip == 0 else ConvexStep((1 - skip) / skip)
    rule: AbstractLayer = AttentionLayer(weighting=Softmax(beta), move=move)

    def law(generator: np.random.Generator) -> np.ndarray:
        half = size * generator.normal(size=(n // 2, d))
        return np.concatenate([half, -half])

    def exponent(run: Run) -> float:
        # log r_{k+1} = 3 log r_k + c for the largest singular value: three layers give the factor.
        lengths = residuals(run, ord=2)
        seen = 1 + int(np.argmin(np.append(beta * lengths**2 > _ROUNDING, False)))
        kept = lengths[: min(seen, len(lengths))]
        if len(kept) < 3:
            return math.nan
        return math.log(kept[-1] / kept[-2]) / math.log(kept[-2] / kept[-3])

    return FieldModel(
        name="rank_collapse",
        equation=r"X' = \mathrm{softmax}(\beta X X^\top) X,\quad \mathrm{res}(X) = X - \mathbf{1} \bar x^\top",
        rule=rule,
        n=n,
        d=d,
        parameters={"beta": beta, "skip": skip, "size": size, "n": n, "d": d},
        constructor=rank_collapse,
        law=law,
        duration=6,
        measures={
            "residual": lambda run: float(residuals(run)[-1]),
            "exponent": exponent,
        },
        theory={"exponent": lambda run: 3.0} if skip == 0 else {},
    )


def residuals(run: Run, ord: int | None = None) -> np.ndarray:
    """Norm of res(X) at each stored layer, shape (states,).

    Parameters
    ----------
    run
        A run.
    ord
        2 for the largest singular value; the Frobenius norm when left out.

    Returns
    -------
    ndarray
        Shape (states,).
    """
    return np.asarray(np.linalg.norm(run.tokens - run.tokens.mean(axis=1, keepdims=True), ord=ord, axis=(1, 2)))
