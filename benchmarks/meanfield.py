"""Attention on the sphere: one evaluation against rivals, the circle, large beta, and whole runs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import torch

import hardmax as hm
from hardmax.meanfield.evaluation import Evaluation
from hardmax.meanfield.measures import on_circle

from ._measure import processor_seconds as seconds  # one thread, so the clock would only add other work
from ._table import Check, Report

_CASES = [(2_000, 2), (20_000, 3), (20_000, 16), (100_000, 3)]
_QUICK = [(2_000, 2), (5_000, 3), (5_000, 16)]
_BETA = 10.0
_EXTRAPOLATED = 40_000
"""Rivals of more tokens than this are timed on some of the queries, since every query costs the same."""


def run(quick: bool = False) -> Report:
    """Time one attention evaluation, in float32 as the rivals do, and whole runs."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return _run(quick)
    finally:
        torch.set_num_threads(threads)


def _run(quick: bool) -> Report:
    report = Report(
        "Softmax attention on the sphere, processor seconds (1 thread)",
        ["case", "ours", "numpy dense", "torch SDPA", "pykeops", "best rival / ours", "our error"],
    )
    keops = _keops()
    if keops is None:
        report.notes.append("pykeops is not installed here, so its column is empty.")
    for n, d in _QUICK if quick else _CASES:
        report.rows.append(_evaluation(report, f"({n:,}, {d}), B = I", n, d, np.eye(d), keops))
    n = 20_000 if not quick else 5_000
    turned = np.eye(16) + 0.1 * np.triu(np.ones((16, 16)), 1)
    report.rows.append(_evaluation(report, f"({n:,}, 16), B not symmetric", n, 16, turned, keops))
    _circle(report, 100_000 if not quick else 20_000)
    _cold(report, 100_000 if not quick else 20_000)
    _whole_runs(report, quick)
    _density(report, quick)
    report.notes.append(f"Float32, beta = {_BETA:g}; numpy and SDPA on 100,000 tokens are extrapolated from queries.")
    return report


def _points(n: int, d: int) -> np.ndarray:
    return hm.sphere_sample(n, d, random_state=0).points


def _plain(queries: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """Dense softmax rows in numpy, as many at a time as fit the cache."""
    out = np.empty_like(queries)
    rows = max(1, 2**18 // len(keys))
    for top in range(0, len(queries), rows):
        scores = queries[top : top + rows] @ keys.T
        scores -= scores.max(axis=1, keepdims=True)
        np.exp(scores, out=scores)
        out[top : top + rows] = scores @ keys / scores.sum(axis=1, keepdims=True)
    return out


def _fused(queries: np.ndarray, keys: np.ndarray) -> np.ndarray:
    q, k = torch.from_numpy(queries)[None, None], torch.from_numpy(keys)[None, None]
    return torch.nn.functional.scaled_dot_product_attention(q, k, k, scale=1.0)[0, 0].numpy()


def _keops() -> Callable[[np.ndarray, np.ndarray], object] | None:
    try:
        from pykeops.torch import LazyTensor
    except ImportError:
        return None

    def attend(queries: np.ndarray, keys: np.ndarray) -> object:
        q, k = torch.from_numpy(queries), torch.from_numpy(keys)
        scores = (LazyTensor(q[:, None, :].contiguous()) | LazyTensor(k[None].contiguous())).sum(-1)
        return scores.sumsoftmaxweight(LazyTensor(k[None].contiguous()), dim=1)

    return attend


def _evaluation(
    report: Report, label: str, n: int, d: int, B: np.ndarray, keops: Callable[[np.ndarray, np.ndarray], object] | None
) -> list[str | float | int | None]:
    points = _points(n, d)
    tensor, weights, scores = torch.from_numpy(points), torch.ones(n, dtype=torch.float64), torch.from_numpy(_BETA * B)
    small = points.astype(np.float32)
    queries = (small @ (_BETA * B.T)).astype(np.float32)
    some = n if n <= _EXTRAPOLATED else n // 50
    repeat = 5 if n < 10_000 else 2
    ours = seconds(partial(Evaluation("auto", torch.float32).mean, tensor, scores, weights), repeat)
    times: list[float | None] = [
        seconds(partial(_plain, queries[:some], small), repeat) * n / some,
        seconds(partial(_fused, queries[:some], small), repeat) * n / some,
        None if keops is None else seconds(partial(keops, queries[:some], small), repeat) * n / some,
    ]
    truth = _plain((points @ (_BETA * B.T))[:500], points)
    error = np.abs(Evaluation("auto", torch.float32).mean(tensor, scores, weights)[:500].numpy() - truth).max()
    ratio = min(t for t in times if t is not None) / ours
    report.checks.append(Check(f"one evaluation {label}: best rival / ours", ratio, 0.9))
    return [label, ours, *times, ratio, f"{error:.0e}"]


def _circle(report: Report, n: int) -> None:
    points, beta = hm.circle_quantiles(n).points, 100.0
    tensor, weights = torch.from_numpy(points), torch.ones(n, dtype=torch.float64)
    scores = torch.diag(torch.tensor([2.0 * beta, beta], dtype=torch.float64))
    ours = seconds(partial(Evaluation().mean, tensor, scores, weights), 2)
    small = points.astype(np.float32)
    some = n // 50
    queries = (small[:some] * np.array([2 * beta, beta])).astype(np.float32)
    times = [seconds(partial(rival, queries, small), 2) * n / some for rival in (_plain, _fused)]
    truth = _plain(points[::1000] * np.array([2 * beta, beta]), points)
    error = np.abs(Evaluation().mean(tensor, scores, weights)[::1000].numpy() - truth).max()
    label = f"circle ({n:,}), beta = 100, ours in float64"
    report.rows.append([label, ours, *times, None, min(times) / ours, f"{error:.0e}"])
    report.checks.append(Check(label, min(times) / ours, 10.0, unit="times faster"))


def _cold(report: Report, n: int) -> None:
    points, beta = _points(n, 3), 1000.0
    tensor, weights = torch.from_numpy(points), torch.ones(n, dtype=torch.float64)
    scores = beta * torch.eye(3, dtype=torch.float64)
    ours = seconds(partial(Evaluation().mean, tensor, scores, weights), 1)
    some = n // 50
    small = points.astype(np.float32)
    times = [seconds(partial(rival, beta * small[:some], small), 1) * n / some for rival in (_plain, _fused)]
    error = np.abs(Evaluation().mean(tensor, scores, weights)[:500].numpy() - _plain(beta * points[:500], points)).max()
    label = f"({n:,}, 3), beta = 1000, ours in float64"
    report.rows.append([label, ours, *times, None, min(times) / ours, f"{error:.0e}"])


def _tfdy_step(x: np.ndarray, beta: float, h: float) -> np.ndarray:
    """The update of TransformerDynamics from its formula: dense softmax, Euler, normalise; no shift of exponents."""
    weights = np.exp(beta * x @ x.T)
    mean = weights @ x / weights.sum(axis=1, keepdims=True)
    moved = x + h * (mean - (mean * x).sum(axis=1, keepdims=True) * x)
    return np.asarray(moved / np.linalg.norm(moved, axis=1, keepdims=True))


def _borjan_step(x: np.ndarray, beta: float, h: float) -> np.ndarray:
    """The update of 2023-transformers from its formula: one token and one partner at a time."""
    n = len(x)
    moved = np.empty_like(x)
    for i in range(n):
        weights = np.array([np.exp(beta * (x[i] @ x[j])) for j in range(n)])
        total = sum(weights)
        velocity = sum(weights[j] / total * (x[j] - (x[i] @ x[j]) * x[i]) for j in range(n))
        moved[i] = x[i] + h * velocity
        moved[i] /= np.linalg.norm(moved[i])
    return moved


def _whole_runs(report: Report, quick: bool) -> None:
    n, few, steps, beta, h = (500 if quick else 2_000), 60, 20, 9.0, 0.1
    for count, rival, name in ((n, _tfdy_step, "TransformerDynamics rule"), (few, _borjan_step, "borjanG rule")):
        points = _points(count, 3)
        flow = hm.SphereFlow(beta=beta, few_tokens="ignore")
        follow = partial(hm.simulate, points, flow, time=steps * h, step=h, integrator="euler", keep="last")
        ours = seconds(follow, 2)

        def theirs(points: np.ndarray = points, rival: Callable[..., np.ndarray] = rival) -> np.ndarray:
            for _ in range(steps):
                points = rival(points, beta, h)
            return points

        taken = seconds(theirs, 1)
        error = np.abs(np.asarray(follow().final) - theirs()).max()
        label = f"{steps} Euler steps of {count:,} tokens, d = 3"
        report.rows.append([label, ours, taken, None, None, taken / ours, f"{error:.0e}"])
        report.notes.append(f"{label}: the rival is the {name}, re-typed from its formula.")
        report.checks.append(Check(f"{label} against the {name}", taken / ours, 1.0))
    with np.errstate(all="ignore"):
        broken = not np.isfinite(_tfdy_step(_points(50, 3), 1000.0, h)).all()
    report.notes.append(f"At beta = 1000 the TransformerDynamics rule {'overflows' if broken else 'stays finite'}.")


def _density(report: Report, quick: bool) -> None:
    """The density against tokens: time to t = 20, and the distance of tokens to the density by their number."""
    B, V, beta = np.diag([4.0, 1.0]), np.diag([1.0, 2.0]), 30.0
    nodes, count, span = (1_024, 2_500, 5.0) if quick else (4_096, 10_000, 20.0)

    def tilted(angle: np.ndarray) -> np.ndarray:
        return np.asarray(1 + np.sin(angle) / 2)

    law = hm.circle_density(tilted, points=nodes)
    tokens = hm.circle_quantiles(count, tilted).points
    flow = hm.SphereFlow(B, V, beta, few_tokens="ignore")  # 100 tokens are among the sizes compared
    ours = seconds(partial(hm.simulate_density, law, flow, time=span, every=1.0, tolerance=1e-6), 1)
    # RK4 has the order that the tolerance of the density asks for at this step.
    theirs = seconds(partial(hm.simulate, tokens, flow, time=span, step=0.05, integrator="rk4", keep="last"), 1)
    label = f"density of {nodes:,} nodes to t = {span:g}, beta = {beta:g}, against {count:,} tokens"
    report.rows.append([label, ours, theirs, None, None, theirs / ours, None])
    report.checks.append(Check(label, theirs / ours, 1.0, unit="times faster"))
    _tokens_to_density(report, flow, tilted, (100, 1_000, 10_000) if quick else (100, 1_000, 10_000, 100_000))
    _same_phases(report, flow, tilted)
    energy = hm.lyapunov(
        hm.simulate_density(hm.circle_density(tilted), hm.SphereFlow(B, B, 10.0), time=3.0, every=0.1)
    ).interaction
    assert energy is not None  # beta is positive and finite
    report.checks.append(
        Check(
            "largest fall of the energy of the density between states", max(0.0, -np.diff(energy).min()), 1e-10, False
        )
    )


def _tokens_to_density(
    report: Report, flow: hm.SphereFlow, law: Callable[[np.ndarray], np.ndarray], sizes: tuple[int, ...]
) -> None:
    """Distance of tokens to the density after both have followed the flow to t = 0.5, by the number of tokens."""
    start = hm.circle_density(law)
    state = hm.simulate_density(start, flow, time=0.5, every=0.5).final
    rng = np.random.default_rng(0)
    for name, exponent, draw in (
        ("quantile", -1.0, lambda n: start.quantiles(n).points),
        ("random", -0.5, lambda n: on_circle(start.quantile(rng.random(n)))),
    ):
        follow = partial(hm.simulate, time=0.5, step=0.05, integrator="rk4", keep="last", progress=False)
        ends = [follow(draw(n), flow).final for n in sizes]
        distances = [float(hm.wasserstein(state, end, metric="geodesic")) for end in ends]
        slope = float(np.polyfit(np.log(sizes), np.log(distances), 1)[0])
        shown = ", ".join(f"{n:,}: {found:.2g}" for n, found in zip(sizes, distances, strict=True))
        report.notes.append(f"W2 of {name} tokens to the density at t = 0.5, slope {slope:.2f}: {shown}.")
        # Single draws of random tokens scatter by a factor of about two around the mean.
        within = 0.05 if name == "quantile" else 0.15
        label = f"W2 of {name} tokens to the density: slope against their number, distance to {exponent:g}"
        report.checks.append(Check(label, abs(slope - exponent), within, False))


def _same_phases(report: Report, flow: hm.SphereFlow, law: Callable[[np.ndarray], np.ndarray]) -> None:
    """Times and least distance of the phases of the density and of 4,000 tokens."""
    tokens = hm.simulate(hm.circle_quantiles(4_000, law).points, flow, time=12.0, step=0.08, progress=False)
    density = hm.simulate_density(hm.circle_density(law), flow, time=12.0, tolerance=1e-6)
    first, second = hm.phases(tokens), hm.phases(density)
    pairs = {
        "least W2": (first.approach_distance, second.approach_distance),
        "closest at t": (first.approach_time, second.approach_time),
        "escape at t": (first.escape_time or np.nan, second.escape_time or np.nan),
    }
    shown = ", ".join(f"{name} {one:.4g} and {other:.4g}" for name, (one, other) in pairs.items())
    report.notes.append(f"Phases of 4,000 tokens and of the density, beta = {flow.beta:g}: {shown}.")
    apart = max(abs(one / other - 1) for one, other in pairs.values())
    report.checks.append(Check("phases of tokens and of the density, largest relative difference", apart, 0.02, False))
