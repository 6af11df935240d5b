"""Other methods of explanation, on texts with one decisive word."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from benchmarks import faithfulness as measured
from benchmarks import topics as many
from benchmarks._local_surrogate import masks, most_important

from hardmax.text import LeaderClassifier
from hardmax.text.training import loop
from made_up_texts import BAD, GOOD, PLAIN, topics

_RNG = np.random.default_rng(0)
LABELS = np.arange(200) % 2
TEXTS = [" ".join([*_RNG.choice(PLAIN, 12), _RNG.choice(GOOD if label else BAD)]) for label in LABELS]


def test_masks_switch_off_any_number_of_words() -> None:
    shown = masks(6, 400, np.random.default_rng(1))
    assert shown[0].all()
    off = (shown[1:] == 0).sum(axis=1)
    assert set(off.tolist()) == set(range(1, 7))


def test_the_surrogate_finds_the_decisive_word() -> None:
    pytest.importorskip("lime")
    model = LeaderClassifier(random_state=0, ngrams=1).fit(TEXTS, LABELS)
    table, names = model._table(TEXTS[:20]), model.words()
    rng = np.random.default_rng(2)
    named = [names[table[k].indices[most_important(model, table[k], 1, samples=200, rng=rng)[0]]] for k in range(20)]
    assert sum(word in {*GOOD, *BAD} for word in named) >= 18


def test_the_weights_of_the_regression_matter_more_than_random_words() -> None:
    both = measured._regression(TEXTS, LABELS, TEXTS[:60], [1] * 60)
    assert list(both) == ["largest weights", "SHAP, linear closed form"]
    for found in both.values():
        assert found.documents == 60
        assert found.deleted == 1
        assert found.ratio > 3


def test_contributions_are_summed_leader_by_leader() -> None:
    model = LeaderClassifier(random_state=0, ngrams=1).fit(TEXTS, LABELS)
    np.testing.assert_allclose(measured._sums(model, TEXTS[:30]), model.decision_function(TEXTS[:30]), atol=1e-12)


def test_topics_are_compared_with_the_regression(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for part, seed in (("train", 0), ("test", 1)):
        texts, names = topics(200, seed=seed)
        lines = "".join(f"{name}\t{text}\n" for name, text in zip(names, texts, strict=True))
        (tmp_path / f"reuters-r8-{part}.tab").write_text(f"Category\tText\nd\tstring\nclass\t\n{lines}")
    monkeypatch.setenv("HARDMAX_TOPICS", str(tmp_path))
    monkeypatch.setattr(loop, "_LEAST_STEPS_OF_MANY", 200)  # such small texts need no more
    report = many.run(quick=True)
    assert [row[3] for row in report.rows] == ["TF-IDF, regression", "hardmax"]
    assert float(str(report.rows[1][4])) > 0.95
    assert report.checks[0].passed
