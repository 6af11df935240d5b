"""How cost grows with tokens, coordinates and layers, and what that means for more tokens than fit here."""

from __future__ import annotations

from functools import partial

import numpy as np
import torch

import hardmax as hm
from hardmax.attention.choice import default_tolerance
from hardmax.attention.search.margins import tie_margin
from hardmax.dynamics.distributed import can_lead

from ._measure import growth, peak_megabytes, processor_seconds
from ._table import Report

_SIZES = {2: (10**5, 10**6), 3: (10**5, 10**6), 8: (30_000, 100_000), 64: (10_000, 40_000)}
_QUICK_SIZES = {2: (10**4, 10**5), 3: (10**4, 10**5), 8: (5000, 20_000), 64: (2000, 8000)}
_DIMENSIONS = (2, 3, 4, 8, 16, 64)

# Of the machine to project to, not measured here: what one GPU scores and is sent in a second.
PAIRS_A_SECOND = {3: 5e12, 64: 3e12}
BYTES_A_SECOND = 25e9
GPUS, TOKENS = 64, 10**9
# The screen of candidates is repeated until so few are left.
_MOST_CANDIDATES = 8192


def run(quick: bool = False) -> Report:
    """Measure on one process with one thread, then project."""
    report = Report(
        "How cost grows, processor seconds of one thread", ["what", "from", "seconds", "to", "seconds", "power"]
    )
    torch.set_num_threads(1)
    layer = hm.HardmaxLayer(0.5)
    for d, (small, large) in (_QUICK_SIZES if quick else _SIZES).items():
        took = [processor_seconds(partial(hm.equilibrium, _tokens(n, d), layer), repeat=2) for n in (small, large)]
        power = growth(took[0], took[1], large / small)
        report.rows.append([f"equilibrium, d = {d}: tokens", f"{small:,}", took[0], f"{large:,}", took[1], power])
    n = 5000 if quick else 20_000
    by_dimension = {d: processor_seconds(partial(hm.equilibrium, _tokens(n, d), layer), repeat=2) for d in _DIMENSIONS}
    for low, high in ((2, 4), (8, 64)):
        took = [by_dimension[low], by_dimension[high]]
        power = growth(took[0], took[1], high / low)
        report.rows.append([f"equilibrium, n = {n:,}: coordinates", str(low), took[0], str(high), took[1], power])
    plane, few = _tokens(n, 2), _tokens(1000 if quick else 2000, 2)
    for name, tokens, kind in (("hardmax", plane, layer), ("softmax", few, hm.SoftmaxLayer(beta=4.0))):
        shallow, deep = 10, 100
        took = [processor_seconds(partial(_last, tokens, kind, depth), repeat=2) for depth in (shallow, deep)]
        power = growth(took[0], took[1], deep / shallow)
        report.rows.append([f"{name}, n = {len(tokens):,}: layers", str(shallow), took[0], str(deep), took[1], power])
    many = (_QUICK_SIZES if quick else _SIZES)[64][1]
    memory = peak_megabytes("equilibrium", many, 64) * 2**20 / many
    report.notes += [
        f"Peak memory beyond the input, d = 64: {memory:,.0f} bytes a token.",
        *_projection(10**5 if quick else 10**6, memory),
    ]
    return report


def _tokens(n: int, d: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(n, d))


def _last(tokens: np.ndarray, layer: hm.AbstractLayer, depth: int) -> object:
    return hm.simulate(tokens, layer, depth=depth, keep="last", progress=False)


def _projection(sample: int, memory: float) -> list[str]:
    """Gaussian tokens on many GPUs: the formulas of :mod:`hardmax.dynamics.distributed` with counts measured here."""
    n, d = TOKENS, 3
    reach = 8 * tie_margin(default_tolerance(torch.float64), d)
    screen = partial(can_lead, torch.from_numpy(_tokens(sample, d)), reach)
    outer, screening = len(screen()), processor_seconds(screen, repeat=2) * (n / GPUS) / sample
    limit = hm.equilibrium(_tokens(sample, d), hm.HardmaxLayer(0.5))
    court = float((limit.decided_at > 0).mean())
    parts = {
        "candidates": 8 * GPUS * _MOST_CANDIDATES * (d + 1),
        "court": 8 * court * n * (d + 2),
        "repeated tokens": 8 * n,
        "result": 8 * n * (d + 2),
    }
    sent, whole = sum(parts.values()), 8 * n * 65
    volume = ", ".join(f"{name} {size / 1e9:.2g}" for name, size in parts.items())
    first = (n / GPUS) * _MOST_CANDIDATES / PAIRS_A_SECOND[3]
    dense = (n / GPUS) * n / PAIRS_A_SECOND[64]
    return [
        f"Of {sample:,} tokens, d = 3, {outer:,} can lead as far as one process sees, however many there are at most",
        f"  about {_MOST_CANDIDATES:,}; {100 * court:.1f} % are undecided after the first layer, and go to court.",
        f"Projected to {n:,} tokens on {GPUS} GPUs, each assumed to be sent {BYTES_A_SECOND / 1e9:.0f} GB a second and",
        f"  to score {PAIRS_A_SECOND[3]:.0e} (d = 3) or {PAIRS_A_SECOND[64]:.0e} (d = 64) pairs a second:",
        f"  d = 3: GB received by each: {volume}; {sent / 1e9:.0f} in all,",
        f"  {sent / BYTES_A_SECOND:.1f} s; screening (on the CPU) {screening:.2g} s, the first search {first:.2g} s.",
        f"  d = 64, all tokens replicated: {whole / 1e9:.0f} GB received by each, {whole / BYTES_A_SECOND:.0f} s; one",
        f"  search {dense / 3600:.1f} h; but {memory * n / 1e12:.1f} TB needed in each. 140 GB are enough for "
        f"{140e9 / memory / 1e6:.0f} million.",
    ]
