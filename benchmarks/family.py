"""Infinite depth under masks and heads: decisions against plain layers, reasons, and the cost of a causal mask."""

from __future__ import annotations

import multiprocessing
from collections import Counter
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import product

import numpy as np
import torch

import hardmax as hm
from hardmax.dynamics.leadership import counted_reasons
from hardmax.dynamics.process_setup import start
from hardmax.progress import Ticker

from ._measure import processor_seconds
from ._table import Check, Report, number

# Tokens per system: what dense layers can follow for hundreds of layers, on a GPU or on the CPU. Many systems add up to
# the tokens of a setting.
_ON_GPU = torch.cuda.is_available()
_TOKENS = 2_000 if _ON_GPU else 200
# Every decision is made before this layer, or counted as undecided; from here on positions are compared.
_MOST_LAYERS = 60
_LAYERS_AFTER = 300
# A token that left its closed form for one layer is still visibly away from it ten layers later.
_COMPARED_EVERY = 10
_COMPARED = range(_MOST_LAYERS, _MOST_LAYERS + _LAYERS_AFTER + 1, _COMPARED_EVERY)
# Systems that go through the dense layers together: their scores fill at most about 1 GB.
_TOGETHER = 10**8 // _TOKENS**2


def _matrices(rng: np.random.Generator, heads: int, d: int) -> np.ndarray:
    """Symmetric positive definite matrices, shape (heads, d, d); the identity for one head."""
    if heads == 1:
        return np.eye(d)[None]
    factors = rng.normal(size=(heads, d, d))
    return factors @ factors.transpose(0, 2, 1) / d + 0.2 * np.eye(d)


@dataclass(frozen=True)
class _Decision:
    """What the library says of one system: decided tokens, shape (n,), closed forms, (times, n, d), and reasons."""

    known: np.ndarray
    closed: np.ndarray
    reasons: Counter[str]


def _decide(causal: bool, tokens: np.ndarray, matrices: np.ndarray) -> _Decision:
    torch.set_num_threads(1)
    layer = hm.HardmaxLayer(0.5, heads=list(matrices), causal=causal)
    one = start(torch.from_numpy(tokens), torch.ones(len(tokens), dtype=torch.float64), layer)
    while not one.process.done and one.process.layer < _MOST_LAYERS:
        one.process.move()
    return _Decision(
        one.process.decided_at.numpy() >= 0,
        np.stack([one.positions(number_of_layer).numpy() for number_of_layer in _COMPARED]),
        Counter(counted_reasons(one.reasons().tolist())),
    )


def _attended(z: torch.Tensor, matrices: torch.Tensor, unseen: torch.Tensor | None) -> torch.Tensor:
    """Mean over heads of the token that each token attends to in one dense layer, shape (systems, tokens, d)."""
    total = torch.zeros_like(z)
    for h in range(matrices.shape[1]):
        scores = (z @ matrices[:, h].transpose(1, 2)) @ z.transpose(1, 2)
        if unseen is not None:
            scores += unseen
        total += torch.take_along_dim(z, scores.argmax(dim=2)[:, :, None], dim=1)
    return total / matrices.shape[1]


def _distances(tokens: np.ndarray, matrices: np.ndarray, decisions: list[_Decision], causal: bool) -> np.ndarray:
    """Largest distance of each decided token from its closed form, in lengths of the longest token, (systems, tokens).

    The dense layers round too: among tokens that have come within rounding of each other they attend to a wrong one
    now and then (in extended precision they do not), which moves a token by up to about 1e-12.
    """
    device = "cuda" if _ON_GPU else "cpu"
    z, weights = (torch.from_numpy(array).to(device) for array in (tokens, matrices))
    longest = z.norm(dim=2).amax(dim=1, keepdim=True)
    hidden = torch.full((_TOKENS, _TOKENS), -torch.inf, dtype=z.dtype, device=device).triu(1) if causal else None
    known = torch.from_numpy(np.stack([one.known for one in decisions])).to(device)
    away = torch.zeros(known.shape, dtype=z.dtype, device=device)
    for number_of_layer in range(_COMPARED[-1] + 1):
        if number_of_layer in _COMPARED:
            row = _COMPARED.index(number_of_layer)
            closed = torch.from_numpy(np.stack([one.closed[row] for one in decisions])).to(device)
            away = torch.maximum(away, (z - closed).abs().amax(dim=2).masked_fill(~known, 0.0))
        z = (z + 0.5 * _attended(z, weights, hidden)) / 1.5
    return (away / longest).cpu().numpy()


def _loyalty(pool: Executor, causal: bool, heads: int, d: int, systems: int) -> tuple[int, int, float, Counter[str]]:
    """Decided tokens, tokens that left their closed form, largest distance from it, and reasons, over many systems."""
    rng = np.random.default_rng([causal, heads, d])
    tokens = rng.normal(size=(systems, _TOKENS, d))
    matrices = np.stack([_matrices(rng, heads, d) for _ in range(systems)])
    decisions = list(pool.map(partial(_decide, causal), tokens, matrices))
    away = np.concatenate(
        [
            _distances(tokens[s : s + _TOGETHER], matrices[s : s + _TOGETHER], decisions[s : s + _TOGETHER], causal)
            for s in range(0, systems, _TOGETHER)
        ]
    )
    reasons = sum((one.reasons for one in decisions), Counter[str]())
    return sum(int(one.known.sum()) for one in decisions), int((away > 1e-9).sum()), float(away.max()), reasons


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
        ["mask, heads, d", "decided", "loyalty violations", "largest distance", "undecided, by reason"],
    )
    violations, largest = 0, 0.0
    settings = list(product((False, True), (1, 2, 4), (2, 3, 8)))
    spawned = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(mp_context=spawned) as pool, Ticker("settings", len(settings)) as ticker:
        for causal, heads, d in settings:
            decided, broken, error, reasons = _loyalty(pool, causal, heads, d, tokens // _TOKENS)
            violations, largest = violations + broken, max(largest, error)
            why = "; ".join(f"{count} {reason}" for reason, count in reasons.most_common()) or "none"
            name = f"{'causal' if causal else 'all'}, {heads}, {d}"
            report.rows.append([name, f"{100 * decided / tokens:.2f} %", broken, f"{error:.1e}", why])
            ticker.advance()
    report.checks.append(Check("loyalty violations", violations, 0, at_least=False, unit="tokens"))
    report.checks.append(Check("largest distance from the closed form", largest, 1e-12, at_least=False, unit="lengths"))
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
