"""Compile, prove and run networks of growing size: time, blocks, float error, and how they grow with N."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np

from hardmax.interpolation import classify_exactly, interpolate
from hardmax.interpolation.evaluation.certificate import float64_error, prove
from hardmax.reproduce.interpolation import gaussian_data

from ._table import Check, Report

SIZES = (320, 640, 1280, 2560)
QUICK = (80, 160, 320)


@dataclass(frozen=True)
class Row:
    """One network."""

    construction: str
    sequences: int
    blocks: int
    published: int
    compile_seconds: float
    prove_seconds: float
    float64_error: float
    conditioning: float
    proved: bool


def measure(construction: str, count: int) -> Row:
    """Compile and prove one network."""
    inputs, outputs = gaussian_data(count, 3, np.random.default_rng(0))
    started = time.process_time()
    net = interpolate(inputs, outputs, construction=construction, progress=False)  # type: ignore[arg-type]
    compiled = time.process_time()
    proof = prove(net.blocks, net.data, None, progress=False)
    proved = time.process_time()
    return Row(
        construction,
        count,
        len(net.blocks),
        net.counts.published,
        compiled - started,
        proved - compiled,
        float64_error(net),
        net.report.conditioning,
        not proof.failures,
    )


def growth(rows: list[Row]) -> float:
    """The exponent p of compile time ~ N^p, between the smallest and the largest size."""
    first, last = rows[0], rows[-1]
    return math.log(last.compile_seconds / first.compile_seconds) / math.log(last.sequences / first.sequences)


def classify_documents(count: int = 1000, d: int = 8) -> tuple[float, float, bool, float]:
    """Documents of random words with random labels: seconds to compile and prove, proved, share right in float64."""
    generator = np.random.default_rng(1)
    vocabulary = generator.normal(size=(2000, d)).round(3)
    frequency = 1 / np.arange(1, 2001)
    texts = [
        vocabulary[np.unique(generator.choice(2000, generator.integers(10, 60), p=frequency / frequency.sum()))]
        for _ in range(count)
    ]
    labels = generator.integers(0, 2, size=count).tolist()
    started = time.process_time()
    net = classify_exactly(texts, labels, progress=False)
    compiled = time.process_time()
    proved = not prove(net.blocks, net.data, None, progress=False).failures
    seconds = time.process_time() - compiled
    right = sum(a == b for a, b in zip(net.predict(texts), labels, strict=True)) / count
    return compiled - started, seconds, proved, right


def run(quick: bool = False) -> Report:
    """Gaussian sequences (d = 3, n = 10, m = 3, half of the tokens shared), then documents with random labels."""
    report = Report(
        "Exact interpolation: compiled and proved, in seconds of one core",
        ["network", "blocks", "published", "compile s", "prove s", "float64 error", "range/gap", "proved"],
    )
    for construction in ("conditioned", "leaders", "fewest"):
        rows = [measure(construction, count) for count in (QUICK if quick else SIZES)]
        for r in rows:
            name = f"{r.construction}, N = {r.sequences:,}"
            cells = [r.compile_seconds, r.prove_seconds, f"{r.float64_error:.1e}", f"{r.conditioning:.1e}"]
            report.rows.append([name, r.blocks, r.published, *cells, "yes" if r.proved else "NO"])
        if construction == "conditioned" and not quick:
            last = rows[-1]
            report.checks += [
                Check("compile N = 2,560", last.compile_seconds, 60.0, at_least=False, unit="s"),
                Check("float64 error, N = 2,560", last.float64_error, 1e-8, at_least=False, unit=""),
                Check("growth exponent in N, 320 to 2,560", growth(rows), 1.3, at_least=False, unit=""),
                Check("proof over compile time", last.prove_seconds / last.compile_seconds, 5.0, at_least=False),
            ]
    count = 200 if quick else 1000
    seconds, proof, proved, right = classify_documents(count)
    report.notes.append(
        f"{count:,} documents of random words, random labels: compiled in {seconds:.1f} s, proved in {proof:.1f} s."
    )
    report.checks.append(Check("documents right in float64", 100 * right * proved, 100.0, unit="%"))
    return report


if __name__ == "__main__":
    print(run())
