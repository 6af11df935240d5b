r"""The verdicts on the phases of mean-field transformers against long runs, for random matrices of all signs.

200 pairs (B, V), 50 each in d = 2, 3, 5 and 10, half of them commuting. The first two eigenvalues of B and V run
through all 16 patterns of signs, the others are random; where both products are negative all are, so that the leading
eigenvalue of V B is negative for a quarter of the pairs. Pairs that do not commute are in turn symmetric matrices with
such eigenvalues in independent bases, and Gaussian matrices. Pairs whose verdict is marginal are drawn again: a rate of
concentration below 0.2, a rate of escape below 0.15 in size, a speed of drift below 0.15, a condition number of B above
30.

How runs are judged. The thresholds were fixed before the first run, lengths and step sizes after pilot runs. Runs are
integrated here in a few lines of NumPy, so that they share nothing with the predictions.

Start: 120 random tokens, uniform on the sphere, moved by the exact zero-temperature flow to the first time on a grid at
which the median token attends to at least ten others (by the inverse sum of squared attention). Below that a run is one
of separate tokens, not of a law: on spheres of many dimensions uniform tokens of any affordable number are. The inverse
temperature is 100 (d - 1), so that the width of a cluster, over all its d - 1 directions, is comparable.

Distance to an axis: root mean square chord to the nearer end without the five per cent of tokens that are farthest
(isolated tokens stand still at finite beta), as the root mean square over the last quarter of the run.

A run is as long as the predicted times, and is continued up to four times while the distance to the axis of the limit
still changes by 0.02 or more in its last quarter. A disagreement is counted as one; beside it the same run with four
times as many tokens is told.

- *limit*: under the zero-temperature field, integrated by RK4 for eight times the predicted time of approach, 100
  tokens are within 0.02 of their predicted limits, or of the planes of their predicted orbits. Not judged where that is
  longer than 10,000.
- *concentrates*: at some time the distance to the axis e of the limit is at most 1.25 w + 0.2, with w the predicted
  width of the cluster at this temperature. This is a statement on low temperatures and many tokens: where it fails, a
  run with 16 times the inverse temperature and four times as many tokens is judged in the same way. Both are counted.
- *stays* (negative rate): the distance to e is at most 1.25 w + 0.15 in the end.
- *ends* (an end is predicted): the distance to its axis is at most 0.2 in the end.
- *leaves* (no end is predicted): the distance to e is above 1.25 w + 0.15 in the end.
- *no statement*: tokens turn for ever, or clusters repel themselves, so that it is not decided whether they leave.
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
from dataclasses import dataclass, replace

import numpy as np
from threadpoolctl import threadpool_limits

import hardmax as hm
from hardmax.progress import Ticker

from ._table import Check, Report

SEED = 57227339
_DIMENSIONS = (2, 3, 5, 10)
_GROUPS = [*itertools.product(_DIMENSIONS, (True, False))]
_TOKENS = 120
_ATTENDED = 10.0
_TRIM = 0.05
_LONGEST = 10_000.0
_PATTERNS = [*itertools.product([-1.0, 1.0], repeat=4)]


@dataclass(frozen=True, eq=False)
class _Pair:
    B: np.ndarray
    V: np.ndarray
    tokens: np.ndarray
    limit: hm.LowTemperatureLimit
    theory: hm.Rates | None
    """None where tokens turn for ever."""


@dataclass(frozen=True)
class _Judged:
    """Whether a run agrees with each statement; None where there is no statement."""

    limit: bool | None
    concentrates: bool | None
    colder: bool | None
    """Whether a run that is colder concentrates; None where none was needed."""
    kind: str
    """stays, ends, leaves or none."""
    agrees: bool | None
    bound: str
    why: str


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


def _report(results: dict[tuple[int, bool, int], tuple[_Judged, int, str]], each: int) -> Report:
    """Counts of the agreements of all pairs, with every disagreement in words."""
    report = Report(
        "Verdicts on the phases against long runs, agreements of statements",
        [
            *("matrices", "limit", "concentrates", "or when colder", "stays", "ends", "leaves", "no statement"),
            *("bound", "disagree"),
        ],
    )
    everything: list[_Judged] = []
    redrawn = 0
    for d, commuting in _GROUPS:
        name = f"d = {d}, {'commuting' if commuting else 'not commuting'}"
        found = []
        for k in range(each):
            judged, again, second = results[d, commuting, k]
            redrawn += again
            found.append(judged)
            if second:
                report.notes.append(f"{name}, pair {k}: {judged.why}; {second} with {4 * _TOKENS} tokens.")
            if judged.colder is False:
                report.notes.append(f"{name}, pair {k}: no cluster forms; {judged.why}.")
        report.rows.append([name, *_counts(found)])
        everything += found
    report.rows.append(["all", *_counts(everything)])
    reasons = Counter(one.why for one in everything if one.kind == "none")
    report.notes += [f"No statement for {count}: {why}." for why, count in sorted(reasons.items())]
    report.notes.append(f"{len(everything)} pairs, {redrawn} drawn again as marginal, seed {SEED}.")
    report.checks += [
        Check(what, sum(bad), 0, at_least=False, unit="of " + str(len(bad)))
        for what, bad in (
            ("limits that disagree", [one.limit is False for one in everything if one.limit is not None]),
            (
                "clusters that do not form, also at lower temperature",
                [not (one.concentrates or one.colder) for one in everything if one.concentrates is not None],
            ),
            (
                "verdicts on the terminal phase that disagree",
                [not one.agrees for one in everything if one.kind != "none"],
            ),
            ("bounds violated", [one.bound == "violated" for one in everything if one.bound != "not applicable"]),
        )
    ]
    return report


def _pair_judged(d: int, commuting: bool, k: int) -> tuple[_Judged, int, str]:
    """One pair, how many were drawn again before it, and what a run with more tokens says about a disagreement."""
    with threadpool_limits(1):
        pair, again = _draw(np.random.default_rng([SEED, d, commuting, k]), d, commuting, k)
        judged = _judged(pair)
        if judged.agrees is not False and judged.limit is not False:
            return judged, again, ""
        return judged, again, "agrees" if _judged(_with_more(pair, k)).agrees else "disagrees"


def _counts(found: list[_Judged]) -> list[str | int]:
    def of(chosen: list[bool | None]) -> str:
        stated = [one for one in chosen if one is not None]
        return f"{sum(stated)} of {len(stated)}"

    by_kind = [of([one.agrees for one in found if one.kind == kind]) for kind in ("stays", "ends", "leaves")]
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
        tokens = hm.sphere_sample(_TOKENS, d, random_state=rng).points
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


def _with_more(pair: _Pair, k: int) -> _Pair:
    """The same matrices with four times as many tokens, for a second look at a disagreement."""
    tokens = hm.sphere_sample(4 * _TOKENS, len(pair.B), random_state=k).points
    return replace(pair, tokens=tokens, limit=hm.low_temperature_limit(tokens, pair.B, pair.V))


def _turn(rng: np.random.Generator, d: int) -> np.ndarray:
    return np.asarray(np.linalg.qr(rng.normal(size=(d, d)))[0])


def _judged(pair: _Pair) -> _Judged:
    reached, bound = _reaches_limit(pair), _bound(pair)
    if pair.theory is None:
        return _Judged(reached, None, None, "none", None, bound, "tokens turn for ever")
    terminal = pair.theory.terminal
    beta = 100.0 * (len(pair.B) - 1)
    least, states = _long_run(pair, beta)
    e = pair.limit.leading.basis[:, 0]
    width = terminal.width / math.sqrt(beta)
    offsets = _distances(states, e)
    concentrates = least <= 1.25 * width + 0.2
    colder = None if concentrates else _least_when_colder(pair, 16 * beta) <= 0.25 * 1.25 * width + 0.2
    end = _at_end(offsets)
    if terminal.leaves is None:
        why = str(terminal) if terminal.rate is None else "a cluster repels itself, and its centre is unstable"
        return _Judged(reached, concentrates, colder, "none", None, bound, why)
    told = f"{terminal}; distance to its axis {end:.3g} in the end, width {width:.3g}"
    if terminal.rate < 0:
        return _Judged(reached, concentrates, colder, "stays", end <= 1.25 * width + 0.15, bound, told)
    if terminal.final is not None:
        apart = _at_end(_distances(states, terminal.final))
        told += f", {apart:.3g} to its predicted end"
        return _Judged(reached, concentrates, colder, "ends", apart <= 0.2, bound, told)
    return _Judged(reached, concentrates, colder, "leaves", end > 1.25 * width + 0.15, bound, told)


def _least_when_colder(pair: _Pair, beta: float) -> float:
    """Least distance to the axis of the limit in a run of four times as many tokens."""
    more = _with_more(pair, 0)
    time, step = _span(more, beta)
    states = _followed(_start(more, beta), more, beta, time, step)
    return float(_distances(states, pair.limit.leading.basis[:, 0]).min())


def _span(pair: _Pair, beta: float) -> tuple[float, float]:
    """Length of a run, from the predicted times, and its step."""
    assert pair.theory is not None
    terminal = pair.theory.terminal
    if terminal.drifts:
        time = min(60.0, 20.0 + 2 * (pair.theory.approach_time(beta, len(pair.tokens)) or 0.0))
    else:
        time = min(160.0, 6 / pair.theory.slowest + 16 / abs(terminal.rate or 1.0))
    # Clusters that repel themselves, or rest where they attend to both alike, are stiff.
    return time, 0.02 if terminal.drifts or terminal.width > 0 else 0.05


def _long_run(pair: _Pair, beta: float) -> tuple[float, np.ndarray]:
    """Least distance to the axis of the limit, and the last states of a run.

    The run is continued, up to four times its first length, while this distance changes.
    """
    points = _start(pair, beta)
    time, step = _span(pair, beta)
    least = math.inf
    for _ in range(4):
        states = _followed(points, pair, beta, time, step)
        offsets = _distances(states, pair.limit.leading.basis[:, 0])
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


def _unit(points: np.ndarray) -> np.ndarray:
    return np.asarray(points / np.linalg.norm(points, axis=1, keepdims=True))


def _tangent(points: np.ndarray, moved: np.ndarray) -> np.ndarray:
    return np.asarray(moved - (moved * points).sum(axis=1, keepdims=True) * points)


def _cold(points: np.ndarray, pair: _Pair, time: float) -> np.ndarray:
    """Tokens after a time of the zero-temperature flow, by RK4 with steps of at most 0.1 and one over its stiffness."""

    def field(x: np.ndarray) -> np.ndarray:
        return _tangent(x, _unit(x @ pair.B.T) @ pair.V.T)

    count = math.ceil(time * max(10.0, np.linalg.norm(pair.V, 2) * (1 + np.linalg.cond(pair.B))))
    for _ in range(count):
        h = time / count
        k1 = field(points)
        k2 = field(_unit(points + 0.5 * h * k1))
        k3 = field(_unit(points + 0.5 * h * k2))
        k4 = field(_unit(points + h * k3))
        points = _unit(points + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4))
    return points


def _reaches_limit(pair: _Pair) -> bool | None:
    """Whether tokens under the zero-temperature field, integrated, come to their predicted limits or orbits."""
    limit = np.asarray(pair.limit.positions)[:100]
    time = 8 / pair.limit.approach_rate + 1
    if time > _LONGEST:
        return None
    end = _cold(pair.tokens[:100], pair, time)
    if pair.limit.orbit is not None:
        planes = pair.limit.orbit.planes[:100]
        limit = np.einsum("kdi,kei,ke->kd", planes, planes, end)
    return _trimmed(np.linalg.norm(end - limit, axis=1)) <= 0.02


def _shares(points: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Attention of every token to every token."""
    logits = points @ scores.T @ points.T
    logits -= logits.max(axis=1, keepdims=True)
    np.exp(logits, out=logits)
    logits /= logits.sum(axis=1, keepdims=True)
    return logits


def _start(pair: _Pair, beta: float) -> np.ndarray:
    """Tokens at the first time at which the median token attends to enough others."""
    assert pair.theory is not None
    points = pair.tokens
    for _ in range(400):
        if np.median(1 / (_shares(points, beta * pair.B) ** 2).sum(axis=1)) >= _ATTENDED:
            break
        points = _cold(points, pair, 0.1 / pair.theory.slowest)
    return points


def _followed(points: np.ndarray, pair: _Pair, beta: float, time: float, step: float) -> np.ndarray:
    """About 80 states of a run, by Heun's rule in single precision: its rounding is far below the noise of tokens."""
    points, scores, V = (part.astype(np.float32) for part in (points, beta * pair.B, pair.V))

    def field(x: np.ndarray) -> np.ndarray:
        return _tangent(x, _shares(x, scores) @ x @ V.T)

    count = math.ceil(time / step)
    every, states = max(1, count // 80), [points]
    for k in range(1, count + 1):
        first = field(points)
        second = field(_unit(points + step * first))
        points = _unit(points + 0.5 * step * (first + second))
        if k % every == 0:
            states.append(points)
    return np.array(states)


def _trimmed(chords: np.ndarray) -> float:
    kept = np.sort(chords)[: len(chords) - int(_TRIM * len(chords))]
    return math.sqrt(float((kept**2).mean()))


def _distances(states: np.ndarray, axis: np.ndarray) -> np.ndarray:
    """Distance of tokens to the nearer end of an axis in each state."""
    return np.array([_trimmed(np.sqrt(np.maximum(0.0, 2 - 2 * np.abs(state @ axis)))) for state in states])


def _at_end(distances: np.ndarray) -> float:
    return math.sqrt(float((distances[3 * len(distances) // 4 :] ** 2).mean()))
