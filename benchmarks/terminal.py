r"""The verdicts on the phases of mean-field transformers against long runs, for random matrices of all signs.

200 pairs (B, V), 50 each in d = 2, 3, 5 and 10, half of them commuting. The first two eigenvalues of B and V run
through all 16 patterns of signs, the others are random; where both products are negative all are, so that the leading
eigenvalue of V B is negative for a quarter of the pairs. Pairs that do not commute are in turn symmetric matrices with
such eigenvalues in independent bases, and Gaussian matrices. Pairs whose verdict is marginal are drawn again: a rate of
concentration below 0.2, a rate of escape below 0.15 in size, a speed of drift below 0.15, a condition number of B above
30.

How runs are judged. Thresholds, lengths and sizes were fixed before the run, on pairs of earlier seeds. Runs are
integrated in a few lines of NumPy (``_terminal_runs.py``), so that they share nothing with the predictions.

Start: scrambled Sobol points, uniform on the sphere, moved by the exact zero-temperature flow to the first time on a
grid at which the median token attends to at least ten others (by the inverse sum of squared attention). Below that a
run is one of separate tokens, not of a law: on spheres of many dimensions uniform tokens of any affordable number are.
The inverse temperature is 100 (d - 1), so that the width of a cluster, over all its d - 1 directions, is comparable.

Number of tokens: the statements are about laws, so tokens are doubled from 128 until two sizes in a row, drawn
independently, give the same answers, up to 512. The last size counts, for agreements and disagreements alike.

Distance to an axis: root mean square chord to the nearer end without the five per cent of tokens that are farthest
(isolated tokens stand still at finite beta), as the root mean square over the last quarter of the run.

A run is as long as the predicted times, and is continued up to four times while the distance to the axis of the limit
still changes by 0.02 or more in its last quarter.

- *limit*: under the zero-temperature field, integrated by RK4 for eight times the predicted time of approach, 100
  tokens are within 0.02 of their predicted limits, or of the planes of their predicted orbits. Not judged where that is
  longer than 10,000.
- *concentrates*: at some time the distance to the axis e of the limit is at most 1.25 w + 0.2, with w the predicted
  width of the cluster at this temperature (for orbits, to their plane, at most 0.2). This is a statement on low
  temperatures: where it fails, a run with 16 times the inverse temperature and 512 tokens is judged in the same way.
  Where W2 decays at a rate r that is slow compared with that of single tokens, c, the least distance falls like
  beta^(-r/2c) only: such a colder run also agrees if the least distance has fallen by half of this power. Both are
  counted.
- *stays* (negative rate): the distance to e is at most 1.25 w + 0.15 in the end.
- *ends* (an end is predicted): the distance to its axis is at most 0.2 in the end.
- *leaves* (no end is predicted): the distance to e is above 1.25 w + 0.15 in the end, or above half the reach of the
  predicted way of its centre where that is shorter.
- *turns* (orbits are predicted, d = 2): the median token passes half of its orbit, which takes all tokens half of the
  predicted period, in the predicted sense in between 0.8 and 1.25 times that time.
- *repels* (a cluster repels itself and its centre is unstable, so that it is not decided whether tokens leave):
  Gaussian clusters at e and -e move away at the predicted rate, to 0.5 %. The matrices commute, so that in the tangent
  space the attention of a Gaussian law is a product over their common eigenvectors: the run is on the great circle
  through e and each of these in turn, with weighted tokens on a grid in place of random ones, at an inverse
  temperature of 10^10, over a fiftieth of the predicted time of escape. It starts with the predicted width, which
  must change at a rate of at most 0.5 % too. Both clusters are displaced by a twentieth of it, alike or to opposite
  sides; the fastest of all counts.
- *no statement*: tokens turn for ever in a plane of three or more dimensions, which they leave once the tokens beside
  it are used up; or clusters that are no equilibrium repel themselves where they form or on their way.
- *bound*: the verdict of the theorem on a run of :func:`hardmax.simulate` from 100 uniform tokens to t = 1 at
  beta = 100 is not "violated".
"""

from __future__ import annotations

import itertools
import math
import multiprocessing
import os
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass

import numpy as np
from threadpoolctl import threadpool_limits

import hardmax as hm
from hardmax.progress import Ticker

from . import _terminal_runs as runs
from ._table import Check, Report

SEED = 90134348
_DIMENSIONS = (2, 3, 5, 10)
_GROUPS = [*itertools.product(_DIMENSIONS, (True, False))]
_SIZES = (128, 256, 512)
_LONGEST = 10_000.0
_GAUSSIAN_BETA = 1e10  # at which clusters are small: the rate is that of the tangent space
_GAUSSIAN_ERROR = 5e-3  # of the rates of Gaussian clusters, relative above a rate of one
_GAUSSIAN_TIME = 0.02  # of these runs, relative to the predicted time of escape
_PATTERNS = [*itertools.product([-1.0, 1.0], repeat=4)]
_KINDS = ("stays", "ends", "leaves", "turns", "repels")


@dataclass(frozen=True, eq=False)
class _Pair:
    B: np.ndarray
    V: np.ndarray
    tokens: np.ndarray
    limit: hm.LowTemperatureLimit
    theory: hm.Rates | None
    """None where tokens turn for ever."""


@dataclass(frozen=True)
class _Answer:
    """What runs of one number of tokens say; None where there is no statement."""

    concentrates: bool | None
    agrees: bool | None
    told: str
    least: float = math.inf
    """Least distance to the axis of the limit."""


@dataclass(frozen=True)
class _Judged:
    """Whether runs agree with each statement; None where there is no statement."""

    limit: bool | None
    concentrates: bool | None
    """None where no number of tokens is a law."""
    colder: bool | None
    """Whether a run that is colder concentrates; None where none was needed."""
    kind: str
    """One of _KINDS, or none."""
    agrees: bool | None
    bound: str
    why: str
    sizes: tuple[int, ...]
    """Numbers of tokens that were run, until two gave the same answers."""


def run(quick: bool = False) -> Report:
    """Count agreements of verdicts and runs."""
    each = 4 if quick else 25
    cases = [(d, commuting, k) for d, commuting in _GROUPS for k in range(each)]
    spawned = multiprocessing.get_context("spawn")
    workers = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
    with ProcessPoolExecutor(workers, mp_context=spawned) as pool, Ticker("pairs", len(cases)) as ticker:
        waiting = {pool.submit(_pair_judged, *case): case for case in cases}
        results = {}
        for one in as_completed(waiting):
            results[waiting[one]] = one.result()
            ticker.advance()
    return _report(results, each)


def _report(results: dict[tuple[int, bool, int], tuple[_Judged, int]], each: int) -> Report:
    """Counts of the agreements of all pairs, with every disagreement in words."""
    columns = ["matrices", "limit", "concentrates", "or when colder", *_KINDS, "no statement", "bound", "disagree"]
    report = Report("Verdicts on the phases against long runs, agreements of statements", columns)
    everything: list[_Judged] = []
    redrawn = 0
    for d, commuting in _GROUPS:
        name = f"d = {d}, {'commuting' if commuting else 'not commuting'}"
        found = []
        for k in range(each):
            judged, again = results[d, commuting, k]
            redrawn += again
            found.append(judged)
            if judged.agrees is False or judged.limit is False:
                report.notes.append(f"{name}, pair {k}: {judged.why}; up to {judged.sizes[-1]} tokens.")
            if judged.colder is False:
                report.notes.append(f"{name}, pair {k}: no cluster forms; {judged.why}.")
        report.rows.append([name, *_counts(found)])
        everything += found
    report.rows.append(["all", *_counts(everything)])
    reasons = Counter(one.why for one in everything if one.kind == "none")
    report.notes += [f"No statement for {count}: {why}." for why, count in sorted(reasons.items())]
    ended = Counter(one.sizes[-1] for one in everything)
    told = ", ".join(f"{count} at {size}" for size, count in sorted(ended.items()))
    report.notes.append(f"Numbers of tokens at which answers settled: {told}.")
    report.notes.append(f"{len(everything)} pairs, {redrawn} drawn again as marginal, seed {SEED}.")
    report.checks += [
        Check(what, sum(bad), 0, at_least=False, unit="of " + str(len(bad)))
        for what, bad in (
            ("limits that disagree", [one.limit is False for one in everything if one.limit is not None]),
            (
                "laws that do not concentrate, also at lower temperature",
                [not (one.concentrates or one.colder) for one in everything if one.concentrates is not None],
            ),
            (
                "verdicts on the terminal phase that disagree",
                [not one.agrees for one in everything if one.kind in ("stays", "ends", "leaves")],
            ),
            (
                "orbits and rates of Gaussian clusters that disagree",
                [not one.agrees for one in everything if one.kind in ("turns", "repels")],
            ),
            ("bounds violated", [one.bound == "violated" for one in everything if one.bound != "not applicable"]),
        )
    ]
    return report


def _pair_judged(d: int, commuting: bool, k: int) -> tuple[_Judged, int]:
    """One pair, and how many were drawn again before it."""
    with threadpool_limits(1):
        rng = np.random.default_rng([SEED, d, commuting, k])
        pair, again = _draw(rng, d, commuting, k)
        return _judged(pair, rng), again


def _counts(found: list[_Judged]) -> list[str | int]:
    def of(chosen: list[bool | None]) -> str:
        stated = [one for one in chosen if one is not None]
        return f"{sum(stated)} of {len(stated)}"

    by_kind = [of([one.agrees for one in found if one.kind == kind]) for kind in _KINDS]
    silent = sum(one.kind == "none" for one in found)
    bound = of([one.bound != "violated" for one in found if one.bound != "not applicable"])
    disagree = sum(one.agrees is False or one.limit is False for one in found)
    colder = [None if one.concentrates is None else one.concentrates or bool(one.colder) for one in found]
    first = [of([one.limit for one in found]), of([one.concentrates for one in found]), of(colder)]
    return [*first, *by_kind, silent, bound, disagree]


def _draw(rng: np.random.Generator, d: int, commuting: bool, k: int) -> tuple[_Pair, int]:
    """A pair that is not marginal, and how many were."""
    for again in itertools.count():
        if commuting or k % 2 == 0:
            b, v = _eigenvalues(rng, d, k if commuting else k // 2)
            first = _turn(rng, d)
            second = first if commuting else _turn(rng, d)
            B, V = first @ np.diag(b) @ first.T, second @ np.diag(v) @ second.T
        else:
            B, V = (2 / math.sqrt(d) * rng.normal(size=(d, d)) for _ in range(2))
        if np.linalg.cond(B) > 30:
            continue
        tokens = hm.sphere_sample(_SIZES[0], d, random_state=rng).points
        limit = hm.low_temperature_limit(tokens, B, V)
        if limit.kind == "orbit":
            return _Pair(B, V, tokens, limit, None), again
        e = limit.leading.basis[:, 0]
        if limit.kind != "exponential" or limit.leading.gap < 0.2 * float(np.linalg.norm(B @ e)):
            continue
        theory = hm.rates(limit)
        rate = theory.terminal.rate
        if rate is None or abs(rate) >= 0.15:
            return _Pair(B, V, tokens, limit, theory), again
    raise AssertionError  # the count does not end


def _eigenvalues(rng: np.random.Generator, d: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    b_signs, v_signs = rng.choice([-1.0, 1.0], size=(2, d))
    pattern = _PATTERNS[k % len(_PATTERNS)]
    b_signs[:2], v_signs[:2] = pattern[:2], pattern[2:]
    if (b_signs[:2] * v_signs[:2] < 0).all():
        v_signs = -b_signs
    b, v = rng.uniform(0.5, 2.0, size=(2, d))
    return b * b_signs, v * v_signs


def _turn(rng: np.random.Generator, d: int) -> np.ndarray:
    return np.asarray(np.linalg.qr(rng.normal(size=(d, d)))[0])


def _judged(pair: _Pair, rng: np.random.Generator) -> _Judged:
    beta = 100.0 * (len(pair.B) - 1)
    answers: list[_Answer] = []
    sizes: list[int] = []
    # In a plane of three or more dimensions only the concentration is judged, of the largest number of tokens.
    for size in _SIZES if pair.theory is not None or len(pair.B) == 2 else _SIZES[-1:]:
        tokens = runs.uniform(size, len(pair.B), rng)
        found = _orbit_answer(pair, tokens, beta) if pair.theory is None else _cluster_answer(pair, tokens, beta)
        if found is None:  # too few tokens for a law
            continue
        answers.append(found)
        sizes.append(size)
        if len(answers) > 1 and (found.concentrates, found.agrees) == (answers[-2].concentrates, answers[-2].agrees):
            break
    last = answers[-1] if answers else _Answer(None, None, "too few tokens for a law")
    kind, agrees, why = _kind(pair), last.agrees, last.told
    if kind == "repels":
        agrees, why = _gaussian_answer(pair, _GAUSSIAN_BETA)
    colder = None if last.concentrates is not False else _concentrates_when_colder(pair, 16 * beta, last.least, rng)
    return _Judged(
        _reaches_limit(pair), last.concentrates, colder, kind, agrees, _bound(pair), why, tuple(sizes) or _SIZES
    )


def _kind(pair: _Pair) -> str:
    """Kind of the statement on what follows the concentration."""
    if pair.theory is None:
        return "turns" if len(pair.B) == 2 else "none"
    terminal = pair.theory.terminal
    if terminal.rate is None:
        return "none"
    if terminal.leaves is None:
        return "repels"
    return "stays" if terminal.rate < 0 else "leaves" if terminal.final is None else "ends"


def _cluster_answer(pair: _Pair, tokens: np.ndarray, beta: float) -> _Answer:
    """Whether tokens concentrate in clusters, and stay, end or leave as predicted."""
    assert pair.theory is not None
    terminal, kind = pair.theory.terminal, _kind(pair)
    least, states = _long_run(pair, tokens, beta)
    width = terminal.width / math.sqrt(beta)
    concentrates = least <= 1.25 * width + 0.2
    end = runs.at_end(runs.distances(states, pair.limit.leading.basis))
    told = f"{terminal}; distance to its axis {end:.3g} in the end, width {width:.3g}"
    if kind == "stays":
        return _Answer(concentrates, end <= 1.25 * width + 0.15, told, least)
    if kind == "leaves":
        gone = min(1.25 * width + 0.15, 0.5 * terminal.reach or math.inf)
        return _Answer(concentrates, end > gone, f"{told}, reach {terminal.reach:.3g}", least)
    if kind == "ends":
        assert terminal.final is not None
        apart = runs.at_end(runs.distances(states, terminal.final[:, None]))
        return _Answer(concentrates, apart <= 0.2, f"{told}, {apart:.3g} to its predicted end", least)
    return _Answer(concentrates, None, str(terminal), least)


def _orbit_answer(pair: _Pair, tokens: np.ndarray, beta: float) -> _Answer | None:
    """Whether tokens come to the plane of their orbits and, on the circle, turn as predicted; None for too few."""
    limit, (B, V) = pair.limit, (pair.B, pair.V)
    assert limit.orbit is not None
    first = runs.start(tokens, B, V, beta, limit.approach_rate)
    if runs.attended(first, beta * B) < runs.ATTENDED:
        return None
    basis, half = limit.leading.basis, 0.5 * float(limit.orbit.periods[0])
    span = 1.3 * half if len(B) == 2 else min(10.0, 2 / limit.approach_rate)
    times = np.linspace(0.0, span, 81)
    states = runs.followed(first, B, V, beta, times)
    if len(B) > 2:
        return _Answer(bool(runs.distances(states, basis).min() <= 0.2), None, "tokens turn for ever, in a plane")
    sense = np.sign(basis[:, 1] @ V @ B @ basis[:, 0])
    turned = sense * np.unwrap(np.arctan2(states @ basis[:, 1], states @ basis[:, 0]), axis=0)
    advance = np.median(turned - turned[0], axis=1)
    passed = np.flatnonzero(advance >= math.pi)
    taken = float(times[passed[0]]) if len(passed) else math.inf
    return _Answer(True, 0.8 <= taken / half <= 1.25, f"{limit}; half an orbit in {taken:.3g}")


def _gaussian_answer(pair: _Pair, beta: float) -> tuple[bool, str]:
    """Whether Gaussian clusters of a commuting pair that repel themselves move away at the predicted rate."""
    assert pair.theory is not None
    rate = pair.theory.terminal.rate
    assert rate is not None
    e = pair.limit.leading.basis[:, 0]
    tangent = np.linalg.svd(e[None])[2][1:].T
    # The eigenvectors of B and V in the tangent space; a sum with weights of its own has no others.
    axes = tangent @ np.linalg.eigh(tangent.T @ (pair.B + math.pi * pair.V) @ tangent)[1]
    found = [_escape(pair, np.stack([e, axis], axis=1), beta, _GAUSSIAN_TIME / rate) for axis in axes.T]
    fastest, changed = max(one[0] for one in found), max(one[1] for one in found)
    close = max(abs(fastest - rate), changed) <= _GAUSSIAN_ERROR * max(1.0, rate)
    told = f"Gaussian clusters move away at the rate {fastest:.4g}, their width changes at the rate {changed:.2g}"
    return close, f"{pair.theory.terminal}; {told}"


def _escape(pair: _Pair, plane: np.ndarray, beta: float, time: float) -> tuple[float, float]:
    """Rate at which displaced Gaussian clusters move away on a great circle, and the one at which their width changes.

    ``plane`` has the place of the cluster and an axis across as its columns.
    """
    B, V = (plane.T @ matrix @ plane for matrix in (pair.B, pair.V))
    variance = math.copysign(1.0, B[0, 0]) * V[0, 0] / (B[1, 1] * V[1, 1] - pair.limit.eigenvalue)
    width = math.sqrt(variance / beta)
    shift = 0.05 * width
    growth = []
    for other in (1.0, -1.0):
        means, widths = runs.moved_gaussians(B, V, beta, width, (shift, other * shift), time)
        growth.append(math.log(max(1e-9, means[0] / shift)) / time)
    return max(growth), float(np.abs(np.log(widths / width)).max()) / time


def _concentrates_when_colder(pair: _Pair, beta: float, before: float, rng: np.random.Generator) -> bool:
    """Whether the largest number of tokens concentrates at a lower temperature, or comes nearer as predicted."""
    tokens = runs.uniform(_SIZES[-1], len(pair.B), rng)
    if pair.theory is None:
        found = _orbit_answer(pair, tokens, beta)
        return found is not None and bool(found.concentrates)
    first = runs.start(tokens, pair.B, pair.V, beta, pair.theory.slowest)
    states = runs.followed(first, pair.B, pair.V, beta, np.linspace(0.0, _span(pair, beta), 81))
    least = float(runs.distances(states, pair.limit.leading.basis).min())
    power = pair.theory.wasserstein / (2 * pair.theory.slowest)
    return least <= max(1.25 * pair.theory.terminal.width / math.sqrt(beta) + 0.2, before * 16 ** (-power / 2))


def _span(pair: _Pair, beta: float) -> float:
    """Length of a run, from the predicted times."""
    assert pair.theory is not None
    terminal = pair.theory.terminal
    if terminal.drifts:
        return min(60.0, 20.0 + 2 * (pair.theory.approach_time(beta, _SIZES[0]) or 0.0))
    return min(160.0, 6 / pair.theory.slowest + 16 / abs(terminal.rate or 1.0))


def _long_run(pair: _Pair, tokens: np.ndarray, beta: float) -> tuple[float, np.ndarray]:
    """Least distance to the axis of the limit, and the last states of a run.

    The run is continued, up to four times its first length, while this distance changes.
    """
    assert pair.theory is not None
    points = runs.start(tokens, pair.B, pair.V, beta, pair.theory.slowest)
    times = np.linspace(0.0, _span(pair, beta), 81)
    least = math.inf
    for _ in range(4):
        states = runs.followed(points, pair.B, pair.V, beta, times)
        offsets = runs.distances(states, pair.limit.leading.basis)
        least = min(least, float(offsets.min()))
        late = offsets[3 * len(offsets) // 4 :]
        if late.max() - late.min() < 0.02:
            break
        points = states[-1]
    return least, states


def _bound(pair: _Pair) -> str:
    """Verdict of the theorem on a short run."""
    flow = hm.SphereFlow(pair.B, pair.V, 100.0, few_tokens="ignore")
    run = hm.simulate(pair.tokens[:100], flow, time=1.0, step=0.01, keep=hm.Every(50), progress=False)
    return hm.check_theorem(run).verdict(run).outcome


def _reaches_limit(pair: _Pair) -> bool | None:
    """Whether tokens under the zero-temperature field, integrated, come to their predicted limits or orbits."""
    limit = np.asarray(pair.limit.positions)[:100]
    time = 8 / pair.limit.approach_rate + 1
    if time > _LONGEST:
        return None
    end = runs.cold(pair.tokens[:100], pair.B, pair.V, time)
    if pair.limit.orbit is not None:
        planes = pair.limit.orbit.planes[:100]
        limit = np.einsum("kdi,kei,ke->kd", planes, planes, end)
    return runs.trimmed(np.linalg.norm(end - limit, axis=1)) <= 0.02
