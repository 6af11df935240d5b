"""Threads: work as it comes against one thread, on the machine as it is and beside busy processes."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from threadpoolctl import threadpool_limits

import hardmax as hm
from hardmax.datasets.chaotic import lorenz63
from hardmax.reproduce.tour import STOPS, take_tour

from ._load import busy_machine, processors
from ._rivals import tokens
from ._table import Check, Report

_WORST = 1.3
_DENSE = "infinite depth (100,000, 64)"


class _Took(NamedTuple):
    wall: float
    processor: float


def run(quick: bool = False) -> Report:
    """Wall and processor seconds of each work, as it comes and on one thread, by turns."""
    report = Report(
        f"Threads: as it comes against one thread, seconds ({torch.get_num_threads()} threads allowed)",
        ["work", "machine", "as it comes", "one thread", "ratio", "processor", "one thread ", "ratio "],
    )
    worst = {"quiet": _Took(0.0, 0.0), "busy": _Took(0.0, 0.0)}
    dense = None
    for name, work in _works(quick).items():
        work()
        for machine in worst:
            with busy_machine() if machine == "busy" else nullcontext():
                free, alone = _both(work)
            ratio = _Took(free.wall / alone.wall, free.processor / alone.processor)
            worst[machine] = _Took(*map(max, worst[machine], ratio))
            if (name, machine) == (_DENSE, "quiet"):
                dense = ratio.wall
            report.rows.append(
                [name, machine, free.wall, alone.wall, ratio.wall, free.processor, alone.processor, ratio.processor]
            )
    report.notes.append(f"Busy: beside {processors()} processes that never sleep, one for each processor.")
    for machine, ratio in worst.items():
        what = f"as it comes / one thread, {machine} machine, at most"
        report.checks.append(Check(what, ratio.wall, _WORST, at_least=False))
        report.checks.append(Check(what + ", processor time", ratio.processor, _WORST, at_least=False))
    if dense is not None and torch.get_num_threads() > 1:
        report.checks.append(Check(f"{_DENSE} shared by threads / one thread, quiet", dense, 0.8, at_least=False))
    return report


def _both(work: Callable[[], object], seconds: float = 6.0, most: int = 5) -> tuple[_Took, _Took]:
    """Medians of several, by turns, so that what else the machine does concerns both alike."""
    free: list[_Took] = []
    alone: list[_Took] = []
    began = time.monotonic()
    while len(free) < most and (not free or time.monotonic() - began < seconds):
        free.append(_took(work))
        with _limited():
            alone.append(_took(work))
    return _medians(free), _medians(alone)


def _took(work: Callable[[], object]) -> _Took:
    wall, processor = time.perf_counter(), time.process_time()
    work()
    return _Took(time.perf_counter() - wall, time.process_time() - processor)


def _medians(runs: list[_Took]) -> _Took:
    return _Took(*(statistics.median(column) for column in zip(*runs, strict=True)))


@contextmanager
def _limited() -> Iterator[None]:
    """What a user sets: one thread for torch, and one for NumPy and SciPy."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1):
            yield
    finally:
        torch.set_num_threads(before)


def _works(quick: bool) -> dict[str, Callable[[], object]]:
    sizes = [(200, 3), (10**5, 2), (10**4, 8)] if quick else [(200, 3), (10**6, 2), (10**6, 3), (10**5, 8), (10**5, 64)]
    works: dict[str, Callable[[], object]] = {
        f"infinite depth ({n:,}, {d})": partial(hm.equilibrium, tokens("gaussian", n, d), hm.HardmaxLayer(0.5))
        for n, d in sizes
    }
    many = 2_000 if quick else 10_000
    cloud = hm.make_tokens("gaussian", many, 16, random_state=0)
    works[f"softmax, 3 layers ({many:,}, 16)"] = lambda: hm.simulate(cloud, hm.SoftmaxLayer(0.5, beta=2.0), depth=3)
    sphere = hm.make_tokens("gaussian", many, 3, random_state=0)
    sphere /= np.linalg.norm(sphere, axis=1, keepdims=True)
    rotated = np.array([[1.0, 0.5, 0.0], [0.0, 1.0, 0.5], [0.0, 0.0, 1.0]])
    for kind, matrix in {"": np.eye(3), ", B not symmetric": rotated}.items():
        flow = hm.SphereFlow(B=matrix, V=np.eye(3), beta=5.0, few_tokens="ignore")
        works[f"sphere, 4 steps{kind} ({many:,}, 3)"] = partial(hm.simulate, sphere, flow, time=0.2)
    samples = 300 if quick else 2_000
    record = np.asarray(lorenz63(samples).values)
    works[f"forecast: fit ({samples:,}, 3)"] = partial(_fit_forecast, record)
    texts, labels = _texts(200 if quick else 2_000)
    works[f"classifier: fit, {len(texts):,} texts"] = partial(_fit_texts, texts, labels)
    works["demo"] = partial(_demo, quick)
    return works


def _fit_forecast(record: np.ndarray) -> None:
    hm.TimeDelayedTransformer(random_state=0, progress=False).fit(record, dt=0.02)


def _fit_texts(texts: list[str], labels: list[int]) -> None:
    hm.LeaderClassifier(random_state=0, progress=False).fit(texts, labels)


def _demo(quick: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        take_tour(Path(folder) / "demo.html", stops=STOPS[:1] if quick else STOPS)


def _texts(count: int) -> tuple[list[str], list[int]]:
    """Made-up texts of 60 words; one word in ten tells the class."""
    generator = np.random.default_rng(0)
    labels = generator.integers(0, 2, count)
    common = np.array([f"word{k}" for k in range(3_000)])
    telling = np.array([[f"good{k}" for k in range(50)], [f"bad{k}" for k in range(50)]])
    texts = []
    for label in labels:
        words = np.concatenate([generator.choice(common, 54), generator.choice(telling[label], 6)])
        texts.append(" ".join(generator.permutation(words)))
    return texts, labels.tolist()
