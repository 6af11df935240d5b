"""The search for the attended tokens: argmax_j <A z_i, z_j> for every token i, exactly."""

from __future__ import annotations

from functools import partial

import torch

from hardmax.attention.choice import default_tolerance
from hardmax.attention.search import attended

from ._measure import seconds, sort_seconds
from ._promises import at_a_million
from ._rivals import RIVALS, measure, tokens
from ._table import Check, Report

_CASES = [
    ("gaussian", 10**4, 2),
    ("gaussian", 10**5, 2),
    ("gaussian", 10**6, 2),
    ("gaussian", 10**4, 3),
    ("gaussian", 10**5, 3),
    ("gaussian", 10**6, 3),
    ("gaussian", 10**5, 4),
    ("gaussian", 10**5, 8),
    ("gaussian", 10**5, 16),
    ("gaussian", 10**4, 64),
    ("gaussian", 10**5, 64),
    ("sphere", 10**5, 2),
    ("sphere", 10**5, 3),
    ("sphere", 10**4, 8),
]
_QUICK = [
    ("gaussian", 10**4, 2),
    ("gaussian", 10**5, 3),
    ("gaussian", 10**4, 8),
    ("gaussian", 10**4, 64),
    ("sphere", 10**4, 2),
]
# How many times faster than the best rival the search must be.
_TARGETS = {
    ("gaussian", 10**6, 2): 3000.0,
    ("gaussian", 10**6, 3): 1500.0,
    ("gaussian", 10**5, 8): 30.0,
    ("gaussian", 10**5, 64): 1.5,
}


def run(quick: bool = False) -> Report:
    """Time every case and every rival."""
    report = Report(
        f"Search, seconds ({torch.get_num_threads()} threads)",
        ["tokens (n, d)", "ours", *RIVALS, "best rival / ours", "wrong: torch", "wrong: faiss"],
    )
    ours: dict[tuple[str, int, int], float] = {}
    for law, n, d in _QUICK if quick else _CASES:
        points = torch.from_numpy(tokens(law, n, d))
        tolerance = default_tolerance(torch.float64)
        search = partial(attended, points, points, tolerance=tolerance)
        choice = search()
        took = seconds(search, repeat=2 if n * d > 10**6 else 5)
        ours[law, n, d] = took
        rivals = {name: measure(name, law, n, d) for name in RIVALS}
        ratio = min(rival.seconds for rival in rivals.values()) / took
        wrong = [f"{100 * rivals[name].wrong(choice):.1f} %" for name in ("torch f32", "faiss f32")]
        report.rows.append([f"{law} ({n:,}, {d})", took, *(rival.seconds for rival in rivals.values()), ratio, *wrong])
        if (law, n, d) in _TARGETS:
            report.checks.append(
                Check(f"search ({n:,}, {d}) against the best rival", ratio, _TARGETS[law, n, d], unit="times faster")
            )
    report.notes += [
        "Rivals answer some of the queries against all points; their times are extrapolated to all queries.",
        "Wrong: answers that are not among the points of the largest score (ours has none, see the tests).",
        f"numpy.sort of a million floats takes {1000 * sort_seconds():.0f} ms here.",
    ]
    if not quick:
        gaussian = {(n, d): took for (law, n, d), took in ours.items() if law == "gaussian"}
        report.checks += at_a_million("search", gaussian)
    return report
