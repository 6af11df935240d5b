"""Larger data: thousands of documents, hundreds of Gaussian sequences, softmax with forty."""

from __future__ import annotations

import numpy as np
import pytest

from hardmax.interpolation import classify_exactly, interpolate


def words(count: int, d: int, generator: np.random.Generator) -> np.ndarray:
    return generator.normal(size=(count, d)).round(3)


def documents(count: int, d: int, generator: np.random.Generator) -> list[np.ndarray]:
    """Documents of ten to sixty words, drawn from a vocabulary with frequent and rare words."""
    vocabulary = words(2_000, d, generator)
    frequency = 1.0 / np.arange(1, len(vocabulary) + 1)
    frequency /= frequency.sum()
    return [
        vocabulary[np.unique(generator.choice(len(vocabulary), generator.integers(10, 60), p=frequency))]
        for _ in range(count)
    ]


def gaussian(count: int, generator: np.random.Generator, d: int = 3, n: int = 10, m: int = 3) -> tuple[list, list]:
    """Tokens and targets on a grid of step 2^-12; half of the tokens come from a shared pool."""
    grid = lambda size: np.round(generator.normal(size=size) * 4096) / 4096  # noqa: E731
    pool = grid((count * n // 4 + n, d))
    inputs = [
        np.concatenate([pool[generator.choice(len(pool), n // 2, replace=False)], grid((n - n // 2, d))])
        for _ in range(count)
    ]
    return inputs, [grid((m, d)) for _ in range(count)]


@pytest.mark.parametrize("construction", ["leaders", "conditioned"])
def test_documents_with_random_labels(construction: str) -> None:
    generator = np.random.default_rng(5)
    texts = documents(60, 8, generator)
    labels = generator.integers(0, 2, size=len(texts)).tolist()
    net = classify_exactly(texts, labels, construction=construction)
    assert net.certify().proved
    # The words are decimals rounded to binary: distances that agree in decimal differ by a hair, and are not relied on.
    assert net.report.conditioning < 1e9
    assert net.predict(texts) == labels


@pytest.mark.slow
def test_a_thousand_documents_with_random_labels() -> None:
    generator = np.random.default_rng(6)
    texts = documents(1_000, 8, generator)
    labels = generator.integers(0, 5, size=len(texts)).tolist()
    for construction in ("leaders", "conditioned"):
        net = classify_exactly(texts, labels, construction=construction)
        assert net.certify().proved
        assert net.predict(texts) == labels


def test_conditioned_is_accurate_in_float64() -> None:
    inputs, outputs = gaussian(120, np.random.default_rng(1))
    certificate = interpolate(inputs, outputs, construction="conditioned").certify()
    assert certificate.proved
    assert certificate.float64_error < 1e-11


@pytest.mark.slow
def test_thousands_of_sequences() -> None:
    inputs, outputs = gaussian(2_560, np.random.default_rng(0))
    certificate = interpolate(inputs, outputs, construction="conditioned").certify()
    assert certificate.proved
    assert certificate.float64_error <= 1e-8


@pytest.mark.slow
@pytest.mark.parametrize("temperature", ["0.1", "1", "100"])
def test_softmax_with_forty_sequences(temperature: str) -> None:
    inputs, outputs = gaussian(40, np.random.default_rng(2))
    net = interpolate(inputs, outputs, attention="softmax", temperature=temperature)
    certificate = net.certify()
    assert certificate.proved
    assert certificate.float64_error < 1e-8
    assert net.counts.blocks <= net.counts.published / 3
