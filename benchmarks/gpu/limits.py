"""Whole jobs on a GPU, transfers included: the limit of infinite depth, layers, and the flow on the sphere."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

import torch

import hardmax as hm
from benchmarks._table import Check, Report
from benchmarks.gpu._timing import machine

_T = TypeVar("_T")


def run(quick: bool = False) -> Report:
    """Tokens start in main memory and the answer ends there."""
    report = Report("Whole jobs on a GPU, transfers included", ["job", "seconds", "answer"])
    for n, d in ((10**6, 64), (10**7, 3)):
        n = n // 20 if quick else n
        tokens = torch.randn(n, d, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        seconds, limit = _timed(lambda z=tokens: _limit(z))
        report.rows.append([f"equilibrium, n = {n:.0e}, d = {d}", seconds, limit])
        report.checks.append(Check(f"equilibrium, n = {n:.0e}, d = {d}", seconds, 1.0, at_least=False, unit="s"))
    n = 20_000 if quick else 100_000
    tokens = torch.randn(n, 16, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    seconds, moved = _timed(lambda: hm.simulate(tokens.cuda(), hm.HardmaxLayer(alpha=0.5), depth=20, keep="last"))
    report.rows.append([f"simulate, 20 hardmax layers, n = {n:.0e}, d = 16", seconds, str(moved.outcome)])
    on_sphere = torch.nn.functional.normalize(tokens[:, :3], dim=1)
    flow = hm.SphereFlow(beta=50.0, precision="float32", normalise=True)
    seconds, moved = _timed(lambda: hm.simulate(on_sphere.cuda(), flow, time=1.0, keep="last"))
    report.rows.append([f"SphereFlow to t = 1, float32, n = {n:.0e}, d = 3", seconds, str(moved.outcome)])
    report.notes.append(machine())
    return report


def _limit(tokens: torch.Tensor) -> str:
    limit = hm.equilibrium(tokens.cuda(), hm.HardmaxLayer(alpha=0.5))
    limit.positions.cpu()
    return f"{len(limit.leaders)} leaders, {limit.layers} layers"


def _timed(work: Callable[[], _T]) -> tuple[float, _T]:
    work()
    torch.cuda.synchronize()
    start = time.perf_counter()
    result = work()
    torch.cuda.synchronize()
    return time.perf_counter() - start, result
