"""Who listens to whom on a GPU: the fused search against a dense product in torch, with wrong leaders beside time."""

from __future__ import annotations

import torch

from benchmarks._table import Check, Report
from benchmarks.gpu._timing import machine, matrix_rate, milliseconds
from hardmax.attention.choice import default_tolerance
from hardmax.attention.search.accelerated import best_points
from hardmax.attention.search.decision import Found
from hardmax.attention.search.margins import tie_margin

_TARGETS = {2: 3.0, 3: 3.0, 8: 3.5, 16: 3.5, 64: 5.0, 128: 9.0}


def run(quick: bool = False) -> Report:
    """One layer's search at every dimension, without and with pruning."""
    n = 16_384 if quick else 131_072
    generator = torch.Generator(device="cuda").manual_seed(0)
    columns = ["tokens", "torch float32 ms", "ours ms", "ratio", "pruned ms", "share of limit", "wrong", "torch wrong"]
    report = Report(f"Search on a GPU, n = {n}", columns)
    wrong_in_all = 0
    for d, target in _TARGETS.items():
        for name, tokens in _tokens(n, d, generator):
            rival = milliseconds(lambda z=tokens: _dense(z), repeat=3)
            ours = milliseconds(lambda z=tokens: _search(z, prune=False))
            pruned = milliseconds(lambda z=tokens: _search(z, prune=True))
            truth = _truth(tokens)
            wrong = max(int((_leaders(_search(tokens, prune=p), n) != truth).sum()) for p in (False, True))
            wrong_in_all += wrong
            limit = 2 * n * n * max(16, d) / matrix_rate() * 1e3
            careless = int((_dense(tokens) != truth).sum())
            row = [f"{name}, d = {d}", rival, ours, rival / ours, pruned, limit / ours, wrong, careless]
            report.rows.append(row)
            if name == "Gaussian":
                report.checks.append(Check(f"{name}, d = {d}, no pruning", ours, target, at_least=False, unit="ms"))
    report.checks.append(Check("wrong leaders in all", wrong_in_all, 0, at_least=False, unit=""))
    report.notes.append(machine())
    report.notes.append("share of limit: a product with max(16, d) columns at that rate, over our time")
    return report


def _tokens(n: int, d: int, generator: torch.Generator) -> list[tuple[str, torch.Tensor]]:
    gaussian = torch.randn(n, d, generator=generator, device="cuda")
    width = 300 if d < 4 else 4
    lattice = torch.randint(-width, width + 1, (n, d), generator=generator, device="cuda").float()
    lattice[0] += (lattice == 0).all(dim=1)[0].float()
    lattice = torch.where((lattice == 0).all(dim=1, keepdim=True), lattice[:1], lattice)
    return [("Gaussian", gaussian), ("sphere", torch.nn.functional.normalize(gaussian, dim=1)), ("lattice", lattice)]


def _search(tokens: torch.Tensor, prune: bool) -> Found:
    tolerance = default_tolerance(torch.float64)
    return best_points(tokens, tokens, tie_margin(tolerance, tokens.shape[1]), tolerance, prune=prune)


def _leaders(found: Found, n: int) -> torch.Tensor:
    leaders = torch.empty(n, dtype=torch.int64, device="cuda")
    leaders[found.rows] = found.first
    return leaders.scatter_reduce(0, found.tied, found.members, "amin") if len(found.tied) else leaders


def _truth(tokens: torch.Tensor) -> torch.Tensor:
    """The lowest index within the tolerance of the best float64 score."""
    z, tolerance = tokens.double(), default_tolerance(torch.float64)
    lengths = z.norm(dim=1)
    leaders = []
    for rows in torch.split(torch.arange(len(z), device="cuda"), 4096):
        scores = z[rows] @ z.T
        least = scores.amax(dim=1) - tolerance * lengths[rows] * lengths.max()
        leaders.append((scores >= least[:, None]).int().argmax(dim=1))
    return torch.cat(leaders)


def _dense(tokens: torch.Tensor) -> torch.Tensor:
    """The plain way in torch: float32 products of some rows with all points."""
    return torch.cat([(rows @ tokens.T).argmax(dim=1) for rows in torch.split(tokens, 8192)])
