"""Spectrum of the linear path, local eigenvalues, Lyapunov exponent and attention over lags of a fitted model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..protocol import FloatArray
from ..rollout import Member, Predictor

ComplexArray = npt.NDArray[np.complex128]


@dataclass(frozen=True)
class LagAttention:
    """Attention weights of the latest sample over the lags, averaged over the networks.

    The weights describe the model and are no evidence of causes: uniform attention forecasts about as well (see
    :meth:`hardmax.TimeDelayedTransformer.ablate`).

    Attributes
    ----------
    lags
        Lags in samples before the latest, shape (lags,), oldest first.
    times
        The same in time.
    shares
        Weights, shape (starts, lags); each row sums to one.
    used
        Whether the networks are part of the selected model.
    """

    lags: npt.NDArray[np.int64]
    times: FloatArray
    shares: FloatArray
    used: bool


@dataclass(frozen=True)
class Spectrum:
    """Eigenvalues and modes of the linear path.

    Attributes
    ----------
    eigenvalues
        Complex eigenvalues per time step, shape (eigenvalues,), largest modulus first.
    modes
        Modes of unit length in the units of the data, shape (channels, eigenvalues).
    """

    eigenvalues: ComplexArray
    modes: ComplexArray


def lag_operator(member: Member, outputs: int) -> FloatArray:
    """Coefficients of a linear member, shape (lags, outputs, outputs), oldest lag first, with the residual term."""
    features = member.features
    channels = features.channels
    window = features.window
    effect = np.zeros((window * channels, outputs))
    at = 1
    for embedding in (features.linear, features.polynomial):
        if embedding is None:
            continue
        rows = member.readouts[0, at : at + embedding.size]
        at += embedding.size
        placed = rows if embedding.matrix is None else embedding.matrix @ rows
        np.add.at(effect, embedding.columns + window * channels, placed)
    blocks = effect.reshape(window, channels, outputs)[:, :outputs].transpose(0, 2, 1).copy()
    blocks[-1] += np.eye(outputs)
    return blocks


def companion(blocks: FloatArray) -> FloatArray:
    """Companion matrix, which maps the stacked window (oldest first) to the next one."""
    window, outputs, _ = blocks.shape
    size = window * outputs
    matrix = np.zeros((size, size))
    matrix[:-outputs, outputs:] = np.eye(size - outputs)
    matrix[-outputs:] = blocks.transpose(1, 0, 2).reshape(outputs, size)
    return matrix


def spectrum(member: Member, outputs: int, scale: FloatArray) -> Spectrum:
    """Spectrum of a linear member; ``scale`` holds the standard deviation per output."""
    values, vectors = np.linalg.eig(companion(lag_operator(member, outputs)))
    order = np.argsort(-np.abs(values), kind="stable")
    modes = vectors[-outputs:, order] * scale[:, None]
    length = np.linalg.norm(modes, axis=0)
    unit = (modes / np.where(length > 0, length, 1.0)).astype(np.complex128)
    return Spectrum(values[order].astype(np.complex128), unit)


def local_eigenvalues(
    predictor: Predictor, window: FloatArray, future: FloatArray | None, step: float = 1e-5
) -> ComplexArray:
    """Eigenvalues of the derivative of the learned map at one normalised window, by central differences."""
    outputs, length = predictor.outputs, predictor.window
    base = window[-length:]
    size = length * outputs
    shifts = np.zeros((size, length, base.shape[1]))
    shifts.reshape(size, -1)[np.arange(size), _output_columns(length, base.shape[1], outputs)] = step
    ahead = None if future is None else np.repeat(future[None, :1], size, axis=0)
    above = predictor.roll(base + shifts, 1, ahead)[:, 0]
    below = predictor.roll(base - shifts, 1, ahead)[:, 0]
    slopes = ((above - below) / (2 * step)).T
    values = np.linalg.eigvals(companion(slopes.reshape(outputs, length, outputs).transpose(1, 0, 2)))
    return np.asarray(values[np.argsort(-np.abs(values), kind="stable")], dtype=np.complex128)


def _output_columns(length: int, channels: int, outputs: int) -> npt.NDArray[np.int64]:
    return (np.arange(length)[:, None] * channels + np.arange(outputs)).reshape(-1)


def lyapunov_exponent(predictor: Predictor, windows: FloatArray, dt: float, steps: int, seed: int) -> float:
    """Largest exponent of the learned map: the mean growth rate of a small difference that is rescaled repeatedly.

    A readout with large weights amplifies rounding, and a difference below it grows by rounding alone. The exponent is
    therefore computed for two sizes of the difference, of which the larger is ten times the smaller; where they do not
    agree both are raised, and then rescaled more often, for maps whose differences grow quickly. NaN where no two
    sizes agree: the exponent is not resolved.
    """
    for chunk in _CHUNKS:
        smaller = float("nan")
        for size in _DIFFERENCES:
            found = _growth_rate(predictor, windows, dt, steps, seed, size, chunk)
            if abs(found - smaller) <= _AGREE * (max(abs(smaller), abs(found)) + 1.0 / (chunk * dt)):
                return smaller
            smaller = found
    return float("nan")


_DIFFERENCES = (1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2)
"""Sizes of the difference, in standard deviations: from far above rounding to what is still small for the data."""
_CHUNKS = (20, 4)
"""Steps after which the difference is rescaled, the usual number first."""
_VANISHED = 1e-7
"""Share of its size below which a difference counts as vanished: a contraction stronger than that is not resolved."""
_AGREE = 0.1
"""Two exponents agree if they differ by less than a tenth of the larger plus 10 % of growth between rescalings."""


def _growth_rate(
    predictor: Predictor, windows: FloatArray, dt: float, steps: int, seed: int, size: float, chunk: int
) -> float:
    """Mean growth rate of a difference that is rescaled to ``size`` every ``chunk`` steps."""
    length = predictor.window
    state = windows[:, -length:]
    generator = np.random.default_rng(seed)
    difference = generator.standard_normal(state.shape)
    difference *= size / np.sqrt((difference**2).mean(axis=(1, 2), keepdims=True))
    rates = []
    for _ in range(max(8, steps // chunk)):
        both = np.concatenate([state, state + difference])
        paths = np.concatenate([both, predictor.roll(both, chunk)], axis=1)[:, -length:]
        state, moved = paths[: len(state)], paths[len(state) :]
        difference = moved - state
        norm = np.sqrt((difference**2).mean(axis=(1, 2), keepdims=True))
        norm = np.maximum(norm, _VANISHED * size)
        rates.append(np.log(norm[:, 0, 0] / size))
        difference *= size / norm
    settled = np.array(rates[max(2, length // chunk + 2) :] or rates)
    return float(settled.mean() / (chunk * dt))


def lag_attention(predictor: Predictor, windows: FloatArray, dt: float) -> LagAttention | None:
    """Attention of the networks in the selected model, else of the best ones outside it; None without networks."""
    used = [m for m in predictor.members if m.features.networks and m.features.networks[0].kind != "mlp"]
    members = used[:1] or ([predictor.attentive] if predictor.attentive is not None else [])
    if not members or members[0].features.tokens is None:
        return None
    features = members[0].features
    tokens = members[0].features.tokens
    flat = windows[:, -predictor.window :].reshape(len(windows), -1)
    shares = np.mean([network.attention(tokens(flat)) for network in features.networks], axis=0)
    lags = np.array(features.token_lags, dtype=np.int64)
    return LagAttention(lags, np.asarray(lags * dt, dtype=np.float64), np.asarray(shares), bool(used))
