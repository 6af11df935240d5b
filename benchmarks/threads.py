"""Few tokens: processor seconds with all threads allowed, against one thread for all of torch."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

import hardmax as hm
from hardmax.threads import one_thread

from ._measure import processor_seconds
from ._table import Check, Report

_SIZES = (20, 100, 200, 400)
_REPEATS = 5
_THREADS = 8


def run(quick: bool = False) -> Report:
    """Whole runs of few tokens; processor time counts threads that wait for each other, wall time hides them."""
    report = Report(
        f"Few tokens, processor seconds of a run, {_THREADS} threads allowed",
        ["tokens", "run", "as it comes", "one thread", "ratio"],
    )
    before = torch.get_num_threads()
    torch.set_num_threads(_THREADS)
    worst = 0.0
    try:
        for n in _SIZES[:3] if quick else _SIZES:
            for name, work in _works(n).items():
                free = _busy(work)
                with one_thread():
                    alone = _busy(work)
                worst = max(worst, free / alone)
                report.rows.append([f"{n}", name, free, alone, free / alone])
    finally:
        torch.set_num_threads(before)
    report.checks.append(Check("threads cost few tokens at most", worst, 1.5, at_least=False))
    return report


def _works(n: int) -> dict[str, Callable[[], object]]:
    tokens = hm.make_tokens("gaussian", n, 3, random_state=0)
    there = tokens / np.linalg.norm(tokens, axis=1, keepdims=True)
    flow = hm.SphereFlow(B=np.eye(3), V=np.eye(3), beta=5.0, few_tokens="ignore")
    return {
        "hardmax, infinite depth": lambda: hm.equilibrium(tokens, hm.HardmaxLayer(0.5)),
        "softmax, 50 layers": lambda: hm.simulate(tokens, hm.SoftmaxLayer(alpha=0.5, beta=2.0), depth=50),
        "sphere, time 2": lambda: hm.simulate(there, flow, time=2.0),
    }


def _busy(work: Callable[[], object]) -> float:
    """Least processor seconds of several, after one that warms up."""
    work()
    return processor_seconds(work, _REPEATS)
