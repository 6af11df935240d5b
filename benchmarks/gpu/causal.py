"""Who listens to whom under a causal mask on a GPU: against no mask, with wrong leaders beside time."""

from __future__ import annotations

import torch

from benchmarks._table import Check, Report
from benchmarks.gpu._timing import machine, milliseconds
from hardmax.attention import attended, attended_in
from hardmax.attention.choice import default_tolerance, length
from hardmax.attention.search.accelerated import best_points, best_points_in
from hardmax.attention.search.arrangement import Intervals
from hardmax.attention.search.margins import tie_margin

_TOLERANCE = default_tolerance(torch.float64)


def run(quick: bool = False) -> Report:
    """One layer's search at some dimensions, the kernels alone and the whole search."""
    n = 16_384 if quick else 131_072
    generator = torch.Generator(device="cuda").manual_seed(0)
    columns = ["tokens", "kernels ms", "causal ms", "ratio", "search ms", "causal ms", "ratio", "wrong"]
    report = Report(f"Causal search on a GPU, n = {n}", columns)
    wrong_in_all = 0
    for d in (2, 3, 16, 64):
        gaussian = torch.randn(n, d, generator=generator, device="cuda", dtype=torch.float64)
        lattice = torch.randint(-4, 5, (n, d), generator=generator, device="cuda").double()
        clouds = {"Gaussian": gaussian, "sphere": torch.nn.functional.normalize(gaussian, dim=1)}
        if d >= 16:  # with fewer coordinates nearly all points of a lattice are repeated
            clouds["lattice"] = lattice
        for name, tokens in clouds.items():
            row = _row(tokens)
            report.rows.append([f"{name}, d = {d}", *row])
            wrong_in_all += int(row[-1])
            if name == "Gaussian":
                check = Check(f"{name}, d = {d}, causal over no mask", row[2], 1.0, at_least=False, unit="x")
                report.checks.append(check)
    report.checks.append(Check("wrong leaders in all", wrong_in_all, 0, at_least=False, unit=""))
    report.notes.append(machine())
    report.notes.append("kernels: best_points without pruning; search: attended and attended_in")
    return report


def _row(tokens: torch.Tensor) -> list[float]:
    n, margin = len(tokens), tie_margin(_TOLERANCE, tokens.shape[1])
    stop = torch.arange(1, n + 1, device="cuda")
    start = torch.zeros_like(stop)
    seen = Intervals(start, stop, length(tokens).cummax(0).values)
    plain = milliseconds(lambda: best_points(tokens, tokens, margin, _TOLERANCE, prune=False))
    causal = milliseconds(lambda: best_points_in(tokens, tokens, margin, _TOLERANCE, seen))
    search = milliseconds(lambda: attended(tokens, tokens, tolerance=_TOLERANCE))
    masked = milliseconds(lambda: attended_in(tokens, tokens, start, stop, tolerance=_TOLERANCE))
    found = attended_in(tokens, tokens, start, stop, tolerance=_TOLERANCE)
    first, members = _truth(tokens)
    wrong = int((found.first != first).sum())
    counted = torch.ones_like(first)
    counted[found.tied] = found.sizes
    wrong += int((counted != members)[~found.everyone].sum())
    return [plain, causal, causal / plain, search, masked, masked / search, wrong]


def _truth(tokens: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The lowest index within the tolerance of the best float64 score of the prefix, and the number of them."""
    lengths = length(tokens)
    longest = lengths.cummax(0).values
    first, members = [], []
    for rows in torch.split(torch.arange(len(tokens), device="cuda"), 2048):
        scores = torch.zeros(len(rows), len(tokens), dtype=torch.float64, device="cuda")
        for k in range(tokens.shape[1]):  # in the order of the coordinates, as the search decides
            scores += tokens[rows, k, None] * tokens[:, k]
        scores.masked_fill_(torch.arange(len(tokens), device="cuda") > rows[:, None], -torch.inf)
        least = scores.amax(dim=1) - _TOLERANCE * lengths[rows] * longest[rows]
        tied = scores >= least[:, None]
        first.append(tied.int().argmax(dim=1))
        members.append(tied.sum(dim=1))
    return torch.cat(first), torch.cat(members)
