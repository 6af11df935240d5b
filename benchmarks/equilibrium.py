"""The limit of infinite depth, against one dense attention layer of the rivals."""

from __future__ import annotations

from functools import partial

import torch

import hardmax as hm

from ._load import busy_machine, processors
from ._measure import seconds, sort_seconds
from ._promises import at_a_million
from ._rivals import measure, tokens
from ._table import Check, Report, number

_CASES = [(10**5, 2), (10**6, 2), (10**5, 3), (10**6, 3), (10**5, 8), (10**5, 64)]
_QUICK = [(10**5, 2), (10**5, 3), (10**4, 8), (10**4, 64)]
_RIVALS = ("numpy f64", "torch f32", "faiss f32")
# How many times faster than one layer of the best rival the infinite-depth limit must be.
_TARGETS = {(10**6, 2): 3000.0, (10**6, 3): 1500.0, (10**5, 8): 30.0, (10**5, 64): 1.5}


def run(quick: bool = False) -> Report:
    """Time the equilibrium of Gaussian tokens under alpha = 0.5, A = I."""
    report = Report(
        f"Equilibrium (infinite depth) against one layer of the rivals, seconds ({torch.get_num_threads()} threads)",
        [
            "tokens (n, d)",
            "ours",
            "ours, busy machine",
            "layers run",
            "leaders",
            *(f"{name}, 1 layer" for name in _RIVALS),
            "best rival / ours",
        ],
    )
    ours: dict[tuple[int, int], float] = {}
    table = [["tokens (n, d)", "ours, infinite depth", "busy machine", "best rival, one layer", "ratio"]]
    table.append(["---", "---:", "---:", "---:", "---:"])
    for n, d in _QUICK if quick else _CASES:
        cloud = tokens("gaussian", n, d)
        layer = hm.HardmaxLayer(alpha=0.5)
        limit = hm.equilibrium(cloud, layer)
        work, repeat = partial(hm.equilibrium, cloud, layer), 1 if n * d > 5 * 10**6 else 4
        ours[n, d] = seconds(work, repeat)
        with busy_machine():
            busy = seconds(work, repeat)
        rivals = [measure(name, "gaussian", n, d).seconds for name in _RIVALS]
        ratio = min(rivals) / ours[n, d]
        report.rows.append(
            [f"gaussian ({n:,}, {d})", ours[n, d], busy, limit.layers, len(limit.leaders), *rivals, ratio]
        )
        if (n, d) in _TARGETS:
            table.append([f"({n:,}, {d})", *map(number, (ours[n, d], busy, min(rivals), ratio))])
        if (n, d) in _TARGETS:
            report.checks.append(
                Check(
                    f"equilibrium ({n:,}, {d}) against one layer of the best rival",
                    ratio,
                    _TARGETS[n, d],
                    unit="times faster",
                )
            )
    report.notes += [
        "One layer of a rival is its search alone; times are extrapolated from some of the queries.",
        f"Busy machine: beside {processors()} processes that never sleep, one for each processor.",
        f"numpy.sort of a million floats takes {1000 * sort_seconds():.0f} ms here.",
    ]
    if not quick:
        report.notes += ["For README.md:", *(f"| {' | '.join(cells)} |" for cells in table)]
        report.checks.append(
            Check(
                "equilibrium (1,000,000, 2) against numpy.sort of a million floats",
                ours[10**6, 2] / sort_seconds(),
                10.0,
                at_least=False,
                unit="times as long",
            )
        )
        report.checks += at_a_million("equilibrium", ours)
    return report
