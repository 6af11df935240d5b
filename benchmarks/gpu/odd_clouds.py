"""The search on a GPU for clouds that half precision does not suit, against the same search for Gaussian tokens."""

from __future__ import annotations

import torch

from benchmarks._table import Check, Report
from benchmarks.gpu._timing import machine, milliseconds
from hardmax.attention.choice import default_tolerance
from hardmax.attention.search import attended


def run(quick: bool = False) -> Report:
    """One layer's search for tokens of extreme size, with outliers and with an offset."""
    n = 16_383 if quick else 131_071
    report = Report(f"Odd clouds on a GPU, n = {n}", ["tokens", "ms", "ratio to Gaussian"])
    worst = 0.0
    for d in (2, 16, 64):
        gaussian = torch.randn(
            n, d, generator=torch.Generator("cuda").manual_seed(0), device="cuda", dtype=torch.float64
        )
        plain = _time(gaussian)
        report.rows.append([f"Gaussian, d = {d}", plain, 1.0])
        for name, tokens in _odd(gaussian).items():
            took = _time(tokens)
            worst = max(worst, took / plain)
            report.rows.append([f"{name}, d = {d}", took, took / plain])
    report.checks.append(Check("slowest, as a multiple of Gaussian tokens", worst, 4.0, at_least=False, unit=""))
    report.notes.append(machine())
    return report


def _odd(gaussian: torch.Tensor) -> dict[str, torch.Tensor]:
    outlier = gaussian.clone()
    outlier[7] *= 1e5 / outlier[7].norm()
    return {
        "times 1e-150": gaussian * 1e-150,
        "times 1e150": gaussian * 1e150,
        "one point 1e5 long": outlier,
        "offset of 1e6": gaussian + 1e6,
    }


def _time(tokens: torch.Tensor) -> float:
    tolerance = default_tolerance(torch.float64)
    return milliseconds(lambda: attended(tokens, tokens, tolerance=tolerance))
