"""The benchmarks of texts: the rule about baselines, stored parts, and what is measured of the boosting machine."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from benchmarks import corpora
from benchmarks._additive import additive_reasons, dense_gigabytes

from made_up_texts import opinions


@pytest.mark.parametrize(
    ("gap", "warned", "passed"),
    [(0.9, 0.0, True), (1.1, 0.0, False), (1.1, 0.4, False), (1.1, 0.6, True), (-3, 1.0, True)],
)
def test_a_corpus_may_be_behind_only_where_most_fits_warned(gap: float, warned: float, passed: bool) -> None:
    check = corpora.behind("tweets", gap, warned)
    assert check.passed is passed
    assert "tweets" in check.what
    if gap > 1 and warned > 0.5:
        assert "1.1" in check.what


def test_measured_parts_are_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def measure() -> corpora._Found:
        calls.append(1)
        return corpora._Found(0.5, 0.4, 0.1, 2.0, 0.2)

    monkeypatch.delenv("HARDMAX_CORPORA_PARTS", raising=False)
    corpora._stored("tweets", measure)
    monkeypatch.setenv("HARDMAX_CORPORA_PARTS", str(tmp_path))
    found = [corpora._stored(name, measure) for name in ("tweets", "tweets", "letters")]
    assert len(calls) == 3
    assert found[0] == found[1] == measure()


@pytest.mark.slow
def test_reasons_of_an_additive_model() -> None:
    pytest.importorskip("interpret")
    texts, labels = opinions(200)
    fresh, truth = opinions(20, seed=1)
    found = additive_reasons(texts, labels, fresh, truth, [1] * 20, seed=0, draws=3)
    assert found.accuracy > 0.8
    assert found.faithfulness.named > found.faithfulness.random
    assert all(len(names) <= 1 for names in found.names)


def test_size_of_a_dense_table() -> None:
    assert dense_gigabytes(1000, 125_000) == pytest.approx(1.0)
    assert np.isclose(dense_gigabytes(0, 5), 0)
