"""Infinite depth under masks and heads: decisions against plain layers, reasons, and the cost of a causal mask."""

from __future__ import annotations

from collections import Counter
from functools import partial
from itertools import product

import numpy as np
import torch

import hardmax as hm
from hardmax.dynamics.process_setup import start
from hardmax.dynamics.undecided import counted_reasons

from ._measure import processor_seconds
from ._table import Check, Report, number

# Tokens per system: small enough for dense layers, many systems add up to the tokens of a setting.
_TOKENS = 200
_LAYERS_AFTER = 300
_MOST_LAYERS = 60
# A token that left its closed form for one layer is still visibly away from it ten layers later.
_COMPARED_EVERY = 10


def _matrices(rng: np.random.Generator, heads: int, d: int) -> np.ndarray:
    """Symmetric positive definite matrices, shape (heads, d, d); the identity for one head."""
    if heads == 1:
        return np.eye(d)[None]
    factors = rng.normal(size=(heads, d, d))
    return factors @ factors.transpose(0, 2, 1) / d + 0.2 * np.eye(d)


def _heard(z: np.ndarray, matrices: np.ndarray, unseen: np.ndarray | None) -> np.ndarray:
    """What every token listens to in one dense layer, shape (systems, tokens, d)."""
    total = np.zeros_like(z)
    for h in range(matrices.shape[1]):
        scores = (z @ matrices[:, h].transpose(0, 2, 1)) @ z.transpose(0, 2, 1)
        if unseen is not None:
            scores += unseen
        total += np.take_along_axis(z, scores.argmax(axis=2)[:, :, None], axis=1)
    return total / matrices.shape[1]


def _loyalty(causal: bool, heads: int, d: int, systems: int) -> tuple[int, int, float, Counter[str]]:
    """Decided tokens, tokens that left their closed form, largest distance from it, and reasons, over many systems."""
    rng = np.random.default_rng([causal, heads, d])
    z = rng.normal(size=(systems, _TOKENS, d))
    matrices = np.stack([_matrices(rng, heads, d) for _ in range(systems)])
    started, reasons = [], Counter[str]()
    for s in range(systems):
        layer = hm.HardmaxLayer(0.5, heads=list(matrices[s]), causal=causal)
        one = start(torch.from_numpy(z[s]), torch.ones(_TOKENS, dtype=torch.float64), layer)
        while not one.process.done and one.process.layer < _MOST_LAYERS:
            one.process.move()
        reasons.update(counted_reasons(one.reasons().tolist()))
        started.append(one)
    known = np.stack([one.process.decided_at.numpy() >= 0 for one in started])
    begin = max(one.process.layer for one in started)
    unseen = np.where(np.tril(np.ones((_TOKENS, _TOKENS), dtype=bool)), 0.0, -np.inf) if causal else None
    left, error = np.zeros_like(known), 0.0
    for number_of_layer in range(begin + _LAYERS_AFTER + 1):
        if number_of_layer >= begin and (number_of_layer - begin) % _COMPARED_EVERY == 0:
            closed = np.stack([one.positions(number_of_layer).numpy() for one in started])
            away = np.where(known, np.abs(z - closed).max(axis=2), 0.0)
            left |= away > 1e-9
            error = max(error, float(away.max()))
        z = (z + 0.5 * _heard(z, matrices, unseen)) / 1.5
    return int(known.sum()), int(left.sum()), error, reasons


def _spiral(n: int) -> np.ndarray:
    """Tokens on a growing spiral: each is a vertex of the hull of those before it."""
    angle = 0.01 * np.arange(n)
    return np.column_stack([np.cos(angle), np.sin(angle)]) * (1 + 1e-6 * np.arange(n))[:, None]


def _seconds(tokens: np.ndarray, causal: bool) -> float:
    return processor_seconds(partial(hm.equilibrium, tokens, hm.HardmaxLayer(0.5, causal=causal), progress=False), 2)


def run(quick: bool = False) -> Report:
    """Compare decisions with dense layers, count reasons, and time the causal against the unmasked limit."""
    tokens = 4_000 if quick else 100_000
    report = Report(
        f"Infinite depth under masks and heads, {tokens:,} Gaussian tokens a row in systems of {_TOKENS}",
        ["mask, heads, d", "decided", "loyalty violations", "largest error", "undecided, by reason"],
    )
    violations, largest = 0, 0.0
    for causal, heads, d in product((False, True), (1, 2, 4), (2, 3, 8)):
        decided, broken, error, reasons = _loyalty(causal, heads, d, tokens // _TOKENS)
        violations, largest = violations + broken, max(largest, error)
        why = "; ".join(f"{count} {reason}" for reason, count in reasons.most_common()) or "none"
        name = f"{'causal' if causal else 'all'}, {heads}, {d}"
        report.rows.append([name, f"{100 * decided / tokens:.2f} %", broken, f"{error:.1e}", why])
    report.checks.append(Check("loyalty violations", violations, 0, at_least=False, unit="tokens"))
    report.checks.append(Check("largest distance from the closed form", largest, 1e-12, at_least=False, unit=""))
    rng = np.random.default_rng(0)
    timed = [
        ("gaussian", rng.normal(size=(10**5 if quick else 10**6, 2)), 15.0),
        ("gaussian", rng.normal(size=(10**4 if quick else 10**5, 64)), 1.2),
        ("growing spiral", _spiral(10**4 if quick else 10**5), 60.0),
    ]
    for law, cloud, most in timed:
        plain, causal = _seconds(cloud, False), _seconds(cloud, True)
        name = f"{law} {cloud.shape}"
        report.notes.append(f"{name}: {number(plain)} s without a mask, {number(causal)} s causal.")
        report.checks.append(
            Check(f"causal equilibrium, {name}", causal / plain, most, at_least=False, unit="times the unmasked")
        )
    return report
