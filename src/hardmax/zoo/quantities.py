"""Numbers measured on runs of the models, and scalar equations that some of them reduce to."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.integrate import solve_ivp

from ..errors import InputError
from ..scalars import shown
from .model import Run

# Relative and absolute error of scalar equations, far below that of a measurement.
_ACCURACY = 1e-10


def order(run: Run) -> float:
    """Length of the mean token at the end: 1 where all tokens of length one agree, near 0 where they are spread."""
    return float(np.linalg.norm(run.final.mean(axis=0)))


def initial_order(run: Run) -> float:
    """Length of the mean token at the first stored state."""
    return float(np.linalg.norm(run.tokens[0].mean(axis=0)))


def duration(run: Run) -> float:
    """Time between the first and the last stored state of a flow."""
    times = times_of(run)
    return float(times[-1] - times[0])


def times_of(run: Run) -> np.ndarray:
    """Times of the stored states of a flow, shape (states,)."""
    if run.times is None:
        raise InputError("run", shown(run), "must be a run of a flow", "pass model.run() of the same model")
    return run.times


def spread(run: Run) -> float:
    """Largest distance of two tokens at the end."""
    tokens = run.final
    largest = 0.0
    for token in tokens:
        largest = max(largest, float(np.linalg.norm(tokens - token, axis=1).max()))
    return largest


def mean_cosine(tokens: np.ndarray) -> float:
    """Mean cosine of the angle between two different tokens."""
    unit = tokens / np.linalg.norm(tokens, axis=1, keepdims=True)
    n = len(unit)
    total = float(np.square(unit.sum(axis=0)).sum())
    return (total - n) / (n * (n - 1))


def cosine(run: Run) -> float:
    """Mean cosine of the angle between two different tokens at the end."""
    return mean_cosine(run.final)


def energy_of(tokens: np.ndarray, beta: float) -> float:
    r"""Interaction energy relative to its maximum, :math:`n^{-2}\sum_{ij} e^{\beta(\langle x_i, x_j\rangle - 1)}`."""
    return float(np.exp(beta * (tokens @ tokens.T - 1)).mean())


def solved(rates: Callable[[float, np.ndarray], np.ndarray], start: np.ndarray, time: float) -> np.ndarray:
    """Solution of a small system of ordinary differential equations at ``time``."""
    if time == 0:
        return start
    found = solve_ivp(rates, (0.0, time), start, rtol=_ACCURACY, atol=_ACCURACY, method="LSODA")
    return np.asarray(found.y[:, -1])


def attention_to_others(gamma: float, beta: float, n: int) -> float:
    """Softmax weight of one other token, where all pairs of n tokens have the cosine ``gamma``."""
    return 1 / (math.exp(beta * (1 - gamma)) + n - 1)


def unit_vectors(generator: np.random.Generator, n: int, d: int) -> np.ndarray:
    """Independent uniform points of the unit sphere, shape (n, d)."""
    points = generator.normal(size=(n, d))
    return np.asarray(points / np.linalg.norm(points, axis=1, keepdims=True))


def equiangular_tokens(n: int, rho: float) -> np.ndarray:
    """n unit vectors in R^n all pairs of which have the cosine ``rho``, 0 <= rho < 1, shape (n, n)."""
    # x_i = a e_i + b (1, ..., 1) with a^2 = 1 - rho and n b^2 + 2 a b = rho.
    a = math.sqrt(1 - rho)
    b = (math.sqrt(a * a + n * rho) - a) / n
    return a * np.eye(n) + b
