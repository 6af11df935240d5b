"""Compile, prove and run networks of growing size: time, blocks, error, and how they grow with N.

Run with ``python -m benchmarks.interpolation``; ``--quick`` stops at N = 320.
"""

from __future__ import annotations

import argparse
import math
import time
from dataclasses import dataclass

import numpy as np

from hardmax.interpolation import classify_exactly, interpolate

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


def gaussian(
    count: int, seed: int = 0, d: int = 3, n: int = 10, m: int = 3
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Tokens and targets on a grid of step 2^-12; half of the tokens come from a shared pool."""
    generator = np.random.default_rng(seed)

    def grid(*size: int) -> np.ndarray:
        return np.round(generator.normal(size=size) * 4096) / 4096

    pool = grid(count * n // 4 + n, d)
    inputs = [
        np.concatenate([pool[generator.choice(len(pool), n // 2, replace=False)], grid(n - n // 2, d)])
        for _ in range(count)
    ]
    return inputs, [grid(m, d) for _ in range(count)]


def measure(construction: str, count: int) -> Row:
    """Compile and prove one network."""
    inputs, outputs = gaussian(count)
    started = time.perf_counter()
    net = interpolate(inputs, outputs, construction=construction)  # type: ignore[arg-type]
    compiled = time.perf_counter()
    certificate = net.certify(progress=False)
    return Row(
        construction,
        count,
        len(net.blocks),
        net.counts.published,
        compiled - started,
        time.perf_counter() - compiled,
        certificate.float64_error,
        net.report.conditioning,
        certificate.proved,
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
    started = time.perf_counter()
    net = classify_exactly(texts, labels)
    compiled = time.perf_counter()
    proved = net.certify(progress=False).proved
    seconds = time.perf_counter() - compiled
    right = sum(a == b for a, b in zip(net.predict(texts), labels, strict=True)) / count
    return compiled - started, seconds, proved, right


def main(quick: bool = False) -> list[Row]:
    """Print the table and give back its rows."""
    print("construction     N   blocks  published  compile s  prove s  float64 error  range/gap  proved")
    rows: list[Row] = []
    for construction in ("conditioned", "leaders", "fewest"):
        own = [measure(construction, count) for count in (QUICK if quick else SIZES)]
        for r in own:
            print(
                f"{r.construction:12s} {r.sequences:5d} {r.blocks:8d} {r.published:10d} {r.compile_seconds:10.2f} "
                f"{r.prove_seconds:8.2f} {r.float64_error:14.2g} {r.conditioning:10.2g}  {r.proved}",
                flush=True,
            )
        print(f"{construction:12s} compile time grows like N^{growth(own):.2f}", flush=True)
        rows += own
    seconds, proof, proved, right = classify_documents(200 if quick else 1000)
    print(f"documents    compile {seconds:.1f} s, prove {proof:.1f} s, proved {proved}, right in float64 {right:.1%}")
    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller sizes")
    main(parser.parse_args().quick)
