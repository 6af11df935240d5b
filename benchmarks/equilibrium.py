"""The limit of infinite depth, against one dense attention layer of the rivals."""

from __future__ import annotations

from functools import partial

import torch

import hardmax as hm

from ._measure import seconds, sort_seconds
from ._promises import at_a_million
from ._rivals import measure, tokens
from ._table import Check, Report

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
            "layers run",
            "leaders",
            *(f"{name}, 1 layer" for name in _RIVALS),
            "best rival / ours",
        ],
    )
    ours: dict[tuple[int, int], float] = {}
    for n, d in _QUICK if quick else _CASES:
        cloud = tokens("gaussian", n, d)
        layer = hm.HardmaxLayer(alpha=0.5)
        limit = hm.equilibrium(cloud, layer)
        ours[n, d] = seconds(partial(hm.equilibrium, cloud, layer), repeat=1 if n * d > 5 * 10**6 else 4)
        rivals = [measure(name, "gaussian", n, d).seconds for name in _RIVALS]
        ratio = min(rivals) / ours[n, d]
        report.rows.append([f"gaussian ({n:,}, {d})", ours[n, d], limit.layers, len(limit.leaders), *rivals, ratio])
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
        f"numpy.sort of a million floats takes {1000 * sort_seconds():.0f} ms here.",
    ]
    if not quick:
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
