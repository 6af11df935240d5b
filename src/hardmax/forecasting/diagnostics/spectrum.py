"""Diagnostics of a fitted model: linear spectrum, local eigenvalues, Lyapunov exponent, attention over lags."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..protocol import FloatArray
from ..rollout import Member, Predictor

ComplexArray = npt.NDArray[np.complex128]


@dataclass(frozen=True)
class LagAttention:
    """How much the latest sample listens to each lag, averaged over the networks.

    ``lags`` are in samples before the latest, ``times`` in time; ``shares`` is ``(starts, lags)`` and adds up to one
    along lags. ``used`` says whether the networks are part of the model that was kept. This is what the model did;
    it is no causal reading: uniform attention forecasts about as well (see ``ablate``).
    """

    lags: npt.NDArray[np.int64]
    times: FloatArray
    shares: FloatArray
    used: bool


@dataclass(frozen=True)
class Spectrum:
    """Eigenvalues of the linear path, largest modulus first, and the modes as columns in the caller's units."""

    eigenvalues: ComplexArray
    modes: ComplexArray


def lag_operator(member: Member, outputs: int) -> FloatArray:
    """The coefficients ``(lags, outputs, outputs)`` of a linear member, oldest lag first, the residual included."""
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
    """The matrix that takes the stacked window (oldest first) to the next one."""
    window, outputs, _ = blocks.shape
    size = window * outputs
    matrix = np.zeros((size, size))
    matrix[:-outputs, outputs:] = np.eye(size - outputs)
    matrix[-outputs:] = blocks.transpose(1, 0, 2).reshape(outputs, size)
    return matrix


def spectrum(member: Member, outputs: int, scale: FloatArray) -> Spectrum:
    """Eigenvalues and modes of the linear path."""
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
    """The largest exponent of the learned map: the mean growth of a small difference, shrunk back again and again."""
    size, chunk = 1e-7, 20
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
        norm = np.maximum(norm, 1e-14)
        rates.append(np.log(norm[:, 0, 0] / size))
        difference *= size / norm
    settled = np.array(rates[max(2, length // chunk + 2) :] or rates)
    return float(settled.mean() / (chunk * dt))


def lag_attention(predictor: Predictor, windows: FloatArray, dt: float) -> LagAttention | None:
    """The attention of the networks that were kept, or of the best ones that were not; None without any."""
    kept = [m for m in predictor.members if m.features.networks and m.features.networks[0].kind != "mlp"]
    members = kept[:1] or ([predictor.attentive] if predictor.attentive is not None else [])
    if not members or members[0].features.tokens is None:
        return None
    features = members[0].features
    tokens = members[0].features.tokens
    flat = windows[:, -predictor.window :].reshape(len(windows), -1)
    shares = np.mean([network.attention(tokens(flat)) for network in features.networks], axis=0)
    lags = np.array(features.token_lags, dtype=np.int64)
    return LagAttention(lags, np.asarray(lags * dt, dtype=np.float64), np.asarray(shares), bool(kept))
