"""Tokens that synchronise: Kuramoto's oscillators, self-attention on the sphere, metastability, causal attention."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from ..attention.weighting import Softmax
from ..dynamics.attention_flow import AttentionFlow
from ..dynamics.flows import AbstractFlow, AbstractWrappedFlow
from ..errors import InputError
from ..scalars import as_count, as_number, as_positive, shown
from ..shapes import PerToken, Tokens, Values
from .model import (
    FieldModel,
    Run,
    cosine,
    duration,
    energy_of,
    initial_order,
    order,
    solved,
    spread,
    times_of,
    unit_vectors,
)

_GOLDEN = (math.sqrt(5) - 1) / 2
# Clusters are separate where the gap between neighbours exceeds this angle.
_GAP = 0.1


def as_beta(beta: object) -> float:
    """A finite inverse temperature that is not negative."""
    return as_number("beta", beta, lambda x: x >= 0, "must be finite and not negative", "pass for example beta=4.0")


@dataclass(frozen=True, eq=False)
class RotatingFlow(AbstractWrappedFlow):
    """A flow on the circle in which each token also turns with a frequency of its own."""

    flow: AbstractFlow
    frequencies: Values

    def drift(self, tokens: Tokens, weights: PerToken) -> Tokens:
        return self.drift_of(slice(None), tokens, weights)

    def velocity(self, tokens: Tokens, weights: PerToken) -> Tokens:
        return self.velocity_of(slice(None), tokens, weights)

    def drift_of(self, rows: slice, tokens: Tokens, weights: PerToken) -> Tokens:
        return self.flow.drift_of(rows, tokens, weights) + self._turning(rows, tokens)

    def velocity_of(self, rows: slice, tokens: Tokens, weights: PerToken) -> Tokens:
        return self.flow.velocity_of(rows, tokens, weights) + self._turning(rows, tokens)

    def _turning(self, rows: slice, tokens: Tokens) -> Tokens:
        across = torch.stack([-tokens[rows, 1], tokens[rows, 0]], dim=1)
        return self.frequencies.to(tokens.device)[rows, None] * across

    def __str__(self) -> str:
        return f"{self.flow}, with frequencies"


def kuramoto(coupling: float = 1.0, width: float = 0.0, initial: float = 0.1, n: int = 200) -> FieldModel:
    r"""Kuramoto's oscillators, which are self-attention on the circle at infinite temperature.

    .. math:: \dot\theta_i = \omega_i + \frac{K}{n}\sum_j \sin(\theta_j - \theta_i)

    With :math:`x = (\cos\theta, \sin\theta)` the sum is :math:`P_x` of the mean token, softmax attention at
    :math:`\beta = 0` (2312.10794). Frequencies are quantiles of the Cauchy (Lorentzian) law of half width
    :math:`\Delta`, angles at first those of the wrapped Cauchy law with the order r(0). For infinitely many oscillators
    the order then satisfies :math:`\dot r = \tfrac{K}{2} r (1 - r^2) - \Delta r` (Ott and Antonsen 2008), which tends
    to :math:`\sqrt{1 - 2\Delta/K}` above the critical coupling :math:`K_c = 2\Delta`.

    Parameters
    ----------
    coupling
        Coupling K.
    width
        Half width of the frequencies, not negative; 0 for identical oscillators.
    initial
        Order of the initial angles, in (0, 1).
    n
        Number of tokens.

    Returns
    -------
    FieldModel
        A flow; measure ``order``, with its prediction from the order at the start of the run.
    """
    K = as_number("coupling", coupling, lambda x: True, "must be finite", "pass for example coupling=1.0")
    delta = as_number("width", width, lambda x: x >= 0, "must be finite and not negative", "pass for example 0.5")
    first = as_number("initial", initial, lambda x: 0 < x < 1, "must lie in (0, 1)", "pass for example 0.1")
    n = as_count("n", n, 2)
    flow: AbstractFlow = AttentionFlow(weighting=Softmax(0.0), coupling=K)
    places = (np.arange(n) + 0.5) / n
    if delta > 0:
        flow = RotatingFlow(flow, torch.from_numpy(delta * np.tan(np.pi * (places - 0.5))))

    def law(generator: np.random.Generator) -> np.ndarray:
        # Quantiles, in the order of multiples of the golden ratio so that they are independent of the frequencies:
        # sums over them converge faster than over random angles.
        angles = 2 * np.arctan((1 - first) / (1 + first) * np.tan(np.pi * (places - 0.5)))
        shuffled = np.argsort((np.arange(n) * _GOLDEN + generator.uniform()) % 1)
        angles = angles[shuffled] + generator.uniform(0, 2 * np.pi)
        return np.stack([np.cos(angles), np.sin(angles)], axis=1)

    return FieldModel(
        name="kuramoto",
        equation=r"\dot\theta_i = \omega_i + \frac{K}{n}\sum_j \sin(\theta_j - \theta_i)",
        rule=flow,
        n=n,
        d=2,
        parameters={"coupling": K, "width": delta, "initial": first, "n": n},
        constructor=kuramoto,
        law=law,
        duration=4.0,
        measures={"order": order},
        theory={"order": lambda run: ott_antonsen(initial_order(run), duration(run), K, delta)},
        critical={"coupling": 2 * delta} if delta > 0 else {},
    )


def ott_antonsen(initial: float, time: float, coupling: float, width: float) -> float:
    r"""Order r(t) of infinitely many oscillators: solution of :math:`\dot r = \tfrac{K}{2} r(1-r^2) - \Delta r`."""
    a, b = coupling / 2 - width, coupling / 2
    # With u = 1/r^2 the equation is linear: u' = -2 a u + 2 b.
    u = 1 / initial**2
    grown = u * math.exp(-2 * a * time) - (b / a * math.expm1(-2 * a * time) if a else -2 * b * time)
    return 1 / math.sqrt(grown)


def sphere_attention(beta: float = 1.0, n: int = 64, d: int = 3) -> FieldModel:
    r"""Self-attention on the sphere (2312.10794).

    .. math:: \dot x_i = P_{x_i}\Bigl(\frac{1}{Z_i}\sum_j e^{\beta\langle x_i, x_j\rangle} x_j\Bigr)

    Tokens that start in an open hemisphere tend to one point. Near it every displacement from the mean decays like
    :math:`e^{-t}`, so that :math:`1 - \cos` of two tokens decays with the rate 2 (linearisation at a common point).

    Parameters
    ----------
    beta
        Inverse temperature, not negative.
    n
        Number of tokens.
    d
        Number of coordinates, at least 2.

    Returns
    -------
    FieldModel
        A flow; measures ``order``, ``energy`` (relative to its maximum) and ``rate`` of the final decay of
        :math:`1 - \cos`.
    """
    beta, n, d = as_beta(beta), as_count("n", n, 2), as_count("d", d, 2)

    def law(generator: np.random.Generator) -> np.ndarray:
        points = unit_vectors(generator, n, d)
        points[:, 0] = np.abs(points[:, 0])  # one hemisphere
        return points

    return FieldModel(
        name="sphere_attention",
        equation=r"\dot x_i = P_{x_i} \sum_j \frac{e^{\beta\langle x_i, x_j\rangle}}"
        r"{\sum_k e^{\beta\langle x_i, x_k\rangle}} x_j",
        rule=AttentionFlow(weighting=Softmax(beta)),
        n=n,
        d=d,
        parameters={"beta": beta, "n": n, "d": d},
        constructor=sphere_attention,
        law=law,
        duration=10.0,
        measures={"order": order, "energy": lambda run: energy_of(run.final, beta), "rate": _final_rate},
        theory={"rate": lambda run: 2.0},
    )


def _final_rate(run: Run) -> float:
    """Rate at which the mean of 1 - cos decays over the last tenth of the run."""
    times = times_of(run)
    late = len(run) - max(2, len(run) // 10)

    def apart(k: int) -> float:
        centred = run.tokens[k] - run.tokens[k].mean(axis=0)  # |x - y|^2 = 2 (1 - cos), without cancellation
        return float(np.square(centred).sum())

    return math.log(apart(late) / apart(-1)) / float(times[-1] - times[late])


def metastable(
    beta: float = 4.0, centres: Sequence[float] = (0.0, 1.3, 3.0), scatter: float = 0.02, n: int = 60
) -> FieldModel:
    r"""Metastability: clusters stay for times that grow exponentially with beta, and the energy climbs a staircase
    (2410.06833).

    .. math:: \dot x_i = P_{x_i}\Bigl(\frac{1}{Z_i}\sum_j e^{\beta\langle x_i, x_j\rangle} x_j\Bigr), \qquad
              E = \frac{1}{n^2}\sum_{ij} e^{\beta(\langle x_i, x_j\rangle - 1)}

    Tokens start near a few angles of the circle, one after the other in equal numbers. Merged tokens move as one heavy
    token, so the times at which clusters merge follow from an equation for one angle per cluster.

    Parameters
    ----------
    beta
        Inverse temperature, positive.
    centres
        Angles of the initial clusters, in radians, at least two.
    scatter
        Standard deviation of the angles of a cluster, positive.
    n
        Number of tokens.

    Returns
    -------
    FieldModel
        A flow; measures ``clusters`` (number at the end), ``order`` and ``energy`` (relative to its maximum, 1 for one
        cluster), with the energy of the equation for the clusters as its prediction.
    """
    beta, n = as_positive("beta", beta), as_count("n", n, 2)
    if isinstance(centres, (str, float, int)) or len(centres) < 2:
        raise InputError("centres", shown(centres), "must be at least two angles", "pass for example (0.0, 2.0)")
    remedy = "pass angles in radians"
    angles = tuple(as_number("centres", angle, lambda x: True, "must be finite", remedy) for angle in centres)
    scatter = as_positive("scatter", scatter)
    cluster = np.arange(n) * len(angles) // n

    def law(generator: np.random.Generator) -> np.ndarray:
        thetas = np.array(angles)[cluster] + scatter * generator.normal(size=n)
        return np.stack([np.cos(thetas), np.sin(thetas)], axis=1)

    def merged(run: Run) -> float:
        first = run.tokens[0]
        means = np.stack([first[cluster == c].mean(axis=0) for c in range(len(angles))])
        masses = np.bincount(cluster) / n

        def rates(t: float, thetas: np.ndarray) -> np.ndarray:
            apart = thetas[None, :] - thetas[:, None]
            kernel = masses * np.exp(beta * (np.cos(apart) - 1))
            return np.asarray((kernel * np.sin(apart)).sum(axis=1) / kernel.sum(axis=1))

        thetas = solved(rates, np.arctan2(means[:, 1], means[:, 0]), duration(run))
        kernel = np.exp(beta * (np.cos(thetas[None, :] - thetas[:, None]) - 1))
        return float(masses @ kernel @ masses)

    return FieldModel(
        name="metastable",
        equation=r"\dot x_i = P_{x_i} \sum_j \frac{e^{\beta\langle x_i, x_j\rangle}}"
        r"{\sum_k e^{\beta\langle x_i, x_k\rangle}} x_j,\quad \beta \gg 1",
        rule=AttentionFlow(weighting=Softmax(beta)),
        n=n,
        d=2,
        parameters={"beta": beta, "centres": angles, "scatter": scatter, "n": n},
        constructor=metastable,
        law=law,
        duration=150.0,
        measures={"energy": lambda run: energy_of(run.final, beta), "clusters": clusters_on_circle, "order": order},
        theory={"energy": merged},
        step=0.2,
    )


def clusters_on_circle(run: Run) -> float:
    """Number of groups of tokens at the end that are separated by gaps of more than 0.1 radians."""
    angles = np.sort(np.arctan2(run.final[:, 1], run.final[:, 0]))
    gaps = np.diff(np.append(angles, angles[0] + 2 * np.pi))
    return float(max(1, int((gaps > _GAP).sum())))


def causal_sphere(beta: float = 1.0, n: int = 32, d: int = 2) -> FieldModel:
    r"""Causal self-attention on the sphere (2411.04990).

    .. math:: \dot x_i = P_{x_i}\Bigl(\frac{1}{Z_i}\sum_{j \le i} e^{\beta\langle x_i, x_j\rangle} x_j\Bigr)

    The first token never moves and, for almost every start, all tokens tend to it. The angle between the first two
    satisfies :math:`\dot\varphi = -\sin\varphi\,/\,(1 + e^{\beta(1 - \cos\varphi)})`.

    Parameters
    ----------
    beta
        Inverse temperature, not negative.
    n
        Number of tokens.
    d
        Number of coordinates, at least 2.

    Returns
    -------
    FieldModel
        A flow; measures ``moved`` (distance that the first token moved), ``angle`` of the second token to the first,
        ``farthest`` (largest distance of a token to the first) and ``order``.
    """
    beta, n, d = as_beta(beta), as_count("n", n, 2), as_count("d", d, 2)

    def angle_of(tokens: np.ndarray) -> float:
        # Twice the arc sine of half the chord: accurate also for small angles.
        return 2 * math.asin(min(1.0, float(np.linalg.norm(tokens[1] - tokens[0])) / 2))

    def predicted(run: Run) -> float:
        def rate(t: float, angle: np.ndarray) -> np.ndarray:
            return np.asarray(-np.sin(angle) / (1 + np.exp(beta * (1 - np.cos(angle)))))

        return float(solved(rate, np.array([angle_of(run.tokens[0])]), duration(run))[0])

    return FieldModel(
        name="causal_sphere",
        equation=r"\dot x_i = P_{x_i} \sum_{j \le i} \frac{e^{\beta\langle x_i, x_j\rangle}}"
        r"{\sum_{k \le i} e^{\beta\langle x_i, x_k\rangle}} x_j",
        rule=AttentionFlow(weighting=Softmax(beta), causal=True),
        n=n,
        d=d,
        parameters={"beta": beta, "n": n, "d": d},
        constructor=causal_sphere,
        law=lambda generator: unit_vectors(generator, n, d),
        duration=30.0,
        measures={
            "angle": lambda run: angle_of(run.final),
            "moved": lambda run: float(np.linalg.norm(run.final[0] - run.tokens[0][0])),
            "farthest": lambda run: float(np.linalg.norm(run.final - run.final[0], axis=1).max()),
            "order": order,
            "cosine": cosine,
            "spread": spread,
        },
        theory={"angle": predicted, "moved": lambda run: 0.0},
    )
