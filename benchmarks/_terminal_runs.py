"""Runs of tokens on the sphere for the benchmark of the terminal phase, in a few lines of NumPy.

They share nothing with the predictions of the library that they are compared with.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.integrate import solve_ivp
from scipy.stats import qmc

_TRIM = 0.05  # share of tokens, the farthest, that distances leave out: isolated tokens stand still at finite beta
ATTENDED = 10.0  # tokens that the median token attends to at the start: below, a run is one of separate tokens
_ERROR = 5e-3  # largest error of one step of a token, as a chord: far below the distances that are judged
_LONGEST_STEP = 0.25
_SPACING = 0.2  # of the weighted tokens of a Gaussian cluster, in standard deviations: their sums are exact
_MASS = 6.0  # standard deviations on each side that hold all but 2e-9 of a Gaussian law
_MOST_TENTHS = 80  # of 1/rate before the start: by then tokens are as near to their limits as exp(-8)


def uniform(count: int, d: int, rng: np.random.Generator) -> np.ndarray:
    """Scrambled Sobol points of the uniform law on the sphere, shape (count, d), for a power of two.

    Independent draws differ from the law by the root of their number, these by less: the noise of few tokens starts the
    escape of clusters before they have formed.
    """
    normal = qmc.MultivariateNormalQMC(np.zeros(d), rng=rng)
    return unit(normal.random(count))


def unit(points: np.ndarray) -> np.ndarray:
    """Points of the sphere in the directions of the rows, shape (tokens, d)."""
    return np.asarray(points / np.linalg.norm(points, axis=1, keepdims=True))


def _tangent(points: np.ndarray, moved: np.ndarray) -> np.ndarray:
    return np.asarray(moved - (moved * points).sum(axis=1, keepdims=True) * points)


def cold(points: np.ndarray, B: np.ndarray, V: np.ndarray, time: float) -> np.ndarray:
    """Tokens after a time of the zero-temperature flow, by RK4 with steps of at most 0.1 and one over its stiffness."""

    def field(x: np.ndarray) -> np.ndarray:
        return _tangent(x, unit(x @ B.T) @ V.T)

    count = math.ceil(time * max(10.0, np.linalg.norm(V, 2) * (1 + np.linalg.cond(B))))
    for _ in range(count):
        h = time / count
        k1 = field(points)
        k2 = field(unit(points + 0.5 * h * k1))
        k3 = field(unit(points + 0.5 * h * k2))
        k4 = field(unit(points + h * k3))
        points = unit(points + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4))
    return points


def shares(points: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Attention of every token to every token, shape (tokens, tokens), for logits <scores x, y>."""
    logits = points @ scores.T @ points.T
    logits -= logits.max(axis=1, keepdims=True)
    np.exp(logits, out=logits)
    logits /= logits.sum(axis=1, keepdims=True)
    return np.asarray(logits)


def attended(points: np.ndarray, scores: np.ndarray) -> float:
    """Number of tokens that the median token attends to, by the inverse sum of squared attention."""
    return float(np.median(1 / (shares(points, scores) ** 2).sum(axis=1)))


def start(points: np.ndarray, B: np.ndarray, V: np.ndarray, beta: float, rate: float) -> np.ndarray:
    """Tokens at the first time at which the median token attends to enough others, in tenths of 1/rate."""
    for _ in range(_MOST_TENTHS):
        if math.isinf(rate) or attended(points, beta * B) >= ATTENDED:
            break
        points = cold(points, B, V, 0.1 / rate)
    return points


def followed(points: np.ndarray, B: np.ndarray, V: np.ndarray, beta: float, times: np.ndarray) -> np.ndarray:
    """States of a run at increasing times from zero, shape (times, tokens, d).

    The pair of order 3 and 2 of Bogacki and Shampine with error control, in single precision: its rounding is far below
    the noise of tokens.
    """
    points, scores, V = (part.astype(np.float32) for part in (points, beta * B, V))

    def field(x: np.ndarray) -> np.ndarray:
        return _tangent(x, shares(x, scores) @ x @ V.T)

    states, now, step = [points], 0.0, 0.02
    first = field(points)
    for until in times[1:]:
        while now < until - 1e-9:
            h = np.float32(min(step, until - now))
            second = field(points + 0.5 * h * first)
            third = field(points + 0.75 * h * second)
            moved = unit(points + h / 9 * (2 * first + 3 * second + 4 * third))
            last = field(moved)
            error = h * np.linalg.norm(-5 / 72 * first + second / 12 + third / 9 - last / 8, axis=1).max()
            if error <= _ERROR:
                points, first, now = moved, last, now + float(h)
            step = min(
                _LONGEST_STEP, float(h) * min(4.0, max(0.2, 0.9 * (_ERROR / max(float(error), 1e-12)) ** (1 / 3)))
            )
        states.append(points)
    return np.array(states)


def moved_gaussians(
    B: np.ndarray, V: np.ndarray, beta: float, width: float, sides: tuple[float, float], time: float
) -> tuple[np.ndarray, np.ndarray]:
    """Means and standard deviations of two Gaussian clusters on the circle after a time, each as angles, shape (2,).

    They start at the first axis and at its antipode, with the standard deviation ``width`` and with ``sides`` as their
    centres, as weighted tokens on a grid. A token at s standard deviations attends to a Gaussian law around b s with
    b = beta width^2 B[1, 1]: the grid reaches beyond what the mass of a cluster attends to. What the tokens at its ends
    attend to is missing, so that the time must be short.
    """
    reach = _MASS * max(1.0, beta * width**2 * abs(B[1, 1])) + _MASS
    grid = np.linspace(-reach, reach, 2 * math.ceil(reach / _SPACING) + 1)
    logs = np.tile(-0.5 * grid**2, 2)
    weights = np.exp(-0.5 * grid**2)
    weights /= weights.sum()
    first = np.concatenate([width * grid + sides[0], width * grid + sides[1]])
    base = np.repeat([0.0, math.pi], len(grid))

    def field(_: float, offsets: np.ndarray) -> np.ndarray:
        angles = base + offsets
        x = np.stack([np.cos(angles), np.sin(angles)], axis=1)
        logits = beta * (x @ B.T @ x.T) + logs
        logits -= logits.max(axis=1, keepdims=True)
        attention = np.exp(logits)
        mean = attention @ x / attention.sum(axis=1, keepdims=True)
        across = np.stack([-x[:, 1], x[:, 0]], axis=1)
        return np.asarray(((mean @ V.T) * across).sum(axis=1))

    done = solve_ivp(field, (0.0, time), first, method="DOP853", rtol=1e-7, atol=1e-7 * width)
    last = done.y[:, -1].reshape(2, len(grid))
    means = last @ weights
    return means, np.sqrt((last - means[:, None]) ** 2 @ weights)


def trimmed(chords: np.ndarray) -> float:
    """Root mean square without the largest."""
    kept = np.sort(chords)[: len(chords) - int(_TRIM * len(chords))]
    return math.sqrt(float((kept**2).mean()))


def distances(states: np.ndarray, basis: np.ndarray) -> np.ndarray:
    """Trimmed distance of the tokens of each state to the sphere of a subspace, shape (states,).

    ``basis`` has orthonormal columns, shape (d, k): for k = 1 the distance is that to the nearer end of an axis.
    """
    inside = np.linalg.norm(states @ basis, axis=2)
    return np.array([trimmed(np.sqrt(np.maximum(0.0, 2 - 2 * one))) for one in inside])


def at_end(values: np.ndarray) -> float:
    """Root mean square over the last quarter."""
    return math.sqrt(float((values[3 * len(values) // 4 :] ** 2).mean()))
