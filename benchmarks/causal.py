"""The search under a causal mask against the search without a mask, in one run."""

from __future__ import annotations

import math

import numpy as np
import torch

from hardmax.attention import attended, attended_in
from hardmax.attention.choice import Choice, default_tolerance, score

from ._measure import processor_seconds
from ._rivals import tokens
from ._table import Check, Report

_TOLERANCE = default_tolerance(torch.float64)
# Times longer than without a mask, at most; for the spiral, than the unmasked search of as many Gaussian tokens.
_TARGETS = {("gaussian", 10**6, 2): 12.0, ("gaussian", 10**5, 64): 1.2, ("spiral", 10**6, 2): 60.0}
_CASES = [
    ("gaussian", 10**6, 2),
    ("spiral", 10**6, 2),
    ("gaussian", 10**6, 3),
    ("gaussian", 10**5, 4),
    ("gaussian", 10**5, 8),
    ("gaussian", 10**5, 64),
]
_QUICK = [("gaussian", 10**5, 2), ("spiral", 10**5, 2), ("gaussian", 10**4, 8), ("gaussian", 10**4, 64)]
_CHECKED = 300


def run(quick: bool = False) -> Report:
    """Time every case with and without a mask."""
    columns = ["tokens (n, d)", "no mask", "causal", "ratio", "causal / Gaussian without mask", "wrong"]
    report = Report("Search under a causal mask, seconds of the processor", columns)
    gaussian: dict[tuple[int, int], float] = {}
    wrong_in_all = 0
    for law, n, d in _QUICK if quick else _CASES:
        points = torch.from_numpy(spiral(n) if law == "spiral" else tokens(law, n, d))
        stop = torch.arange(1, n + 1)
        start = torch.zeros_like(stop)
        repeat = 1 if n * d > 3 * 10**6 else 2
        plain = processor_seconds(lambda z=points: attended(z, z, tolerance=_TOLERANCE), repeat=repeat)
        causal = processor_seconds(
            lambda z=points, a=start, b=stop: attended_in(z, z, a, b, tolerance=_TOLERANCE), repeat=repeat
        )
        if law == "gaussian":
            gaussian[n, d] = plain
        ratio = causal / gaussian[n, d]
        wrong = (
            _wrong(points, attended_in(points, points, start, stop, tolerance=_TOLERANCE)) if n * d < 10**7 else None
        )
        wrong_in_all += wrong or 0
        report.rows.append([f"{law} ({n:,}, {d})", plain, causal, causal / plain, ratio, wrong])
        if (law, n, d) in _TARGETS:
            what = f"causal search, {law} ({n:,}, {d})"
            report.checks.append(Check(what, ratio, _TARGETS[law, n, d], at_least=False, unit="times as long"))
    report.checks.append(Check("wrong choices", wrong_in_all, 0, at_least=False, unit=""))
    report.notes.append(
        "Spiral: z_k = (1 + k / n) (cos, sin)(golden angle k), a vertex of the hull of its prefix for all k."
    )
    report.notes.append(f"Wrong: of {_CHECKED} random tokens, compared with all scores of their prefix.")
    return report


def spiral(n: int) -> np.ndarray:
    """Points on a growing spiral, shape (n, 2): every one is a vertex of the hull of those up to it."""
    k = np.arange(n)
    angle = k * math.pi * (3 - math.sqrt(5))
    return (1 + k / n)[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)


def _wrong(points: torch.Tensor, found: Choice) -> int:
    """Number of random tokens whose choice is not that of all scores of their prefix."""
    wrong = 0
    for i in np.random.default_rng(0).integers(0, len(points), _CHECKED).tolist():
        seen = points[: i + 1]
        scores = score(points[i].expand_as(seen), seen)
        slack = _TOLERANCE * float(points[i].norm()) * float(seen.norm(dim=1).max())
        wrong += found[i].tolist() != (scores >= scores.max() - slack).nonzero()[:, 0].tolist()
    return wrong
