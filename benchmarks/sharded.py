"""Tokens split over processes: two against one, each with one thread; and what they send one another."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

from ._table import Check, Report

_CASES = [
    ("equilibrium", 10**5, 64, 2),
    ("equilibrium", 10**6, 3, 3),
    ("equilibrium", 10**6, 2, 3),
    ("softmax layer", 20_000, 16, 2),
    ("flow on the sphere", 10_000, 3, 2),
]
_QUICK = [("equilibrium", 20_000, 64, 2), ("equilibrium", 10**5, 3, 2), ("flow on the sphere", 2000, 3, 2)]
_TARGETS = {("equilibrium", 10**5, 64): 1.6}


def timed(case: str, n: int, d: int, repeats: int, processes: int) -> dict[str, Any]:
    """What :mod:`benchmarks._sharded_worker` found with so many processes."""
    launch = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(processes)]
    command = [*launch, "-m", "benchmarks._sharded_worker", case, str(n), str(d), str(repeats)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def run(quick: bool = False) -> Report:
    """Time every case in one process and in two."""
    load = os.getloadavg()[0]
    report = Report(
        "Two processes against one, one thread each, seconds",
        [
            "work (n, d)",
            "one",
            "two",
            "one / two",
            "processor: one / two",
            "MB received",
            "replicated tokens",
            "same answer",
        ],
    )
    for case, n, d, repeats in _QUICK if quick else _CASES:
        one, two = (timed(case, n, d, repeats, processes) for processes in (1, 2))
        ratio, busy = one["seconds"] / two["seconds"], one["busy"] / two["busy"]
        court = "all" if two["court"] is None else f"{100 * two['court']:.1f} %"
        same = "yes" if one["answer"] == two["answer"] else "NO"
        name = f"{case} ({n:,}, {d})"
        report.rows.append([name, one["seconds"], two["seconds"], ratio, busy, two["received"] / 1e6, court, same])
        if (case, n, d) in _TARGETS:
            report.checks.append(Check(f"{name}, two against one", ratio, _TARGETS[case, n, d], unit="times faster"))
    report.notes += [
        f"Load average before: {load:.1f}, after: {os.getloadavg()[0]:.1f}, on {os.cpu_count()} cores;",
        "  above their number the seconds are those of a busy machine.",
        "Processor: the same ratio in seconds of processor time, of the process that had most to do.",
        "MB received: by each process, from the other. At court: tokens that every process must have.",
        "A flow with symmetric B takes half the work in one process and not in two, so this one's B is not symmetric.",
    ]
    return report
