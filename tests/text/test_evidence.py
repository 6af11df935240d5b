"""Evidence of words for classes, also for classes of very different sizes."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from hardmax.text import LeaderClassifier
from hardmax.text.words.counts import evidence


def test_words_are_no_evidence_for_classes_without_them() -> None:
    presence = np.array([[300.0, 0.0, 90.0], [0.0, 200.0, 80.0], [0.0, 0.0, 1.0]])
    found = evidence(presence, np.array([1000.0, 800.0, 2.0]), 2.0)
    assert found[2, 0] == 0
    assert found[2, 1] == 0
    assert found[0, 0] > 0.4
    assert found[1, 1] > 0.4
    assert found[0, 1] == 0


@given(
    st.one_of(
        st.lists(st.integers(1, 50), min_size=3, max_size=6),
        st.tuples(st.integers(1, 50), st.integers(56, 5000)).map(list),
    ),
    st.floats(0.1, 20.0),
)
@settings(deadline=None, max_examples=80)
def test_an_equally_frequent_word_is_no_evidence(sizes: list[int], smoothing: float) -> None:
    of_class = np.array(sizes, dtype=float)
    found = evidence(of_class[:, None] * np.array([[1.0, 0.25]]), of_class, smoothing)
    np.testing.assert_allclose(found, 0.0, atol=1e-12)


def test_evidence_of_two_classes_is_antisymmetric() -> None:
    found = evidence(np.array([[8.0, 1.0], [2.0, 1.0]]), np.array([10.0, 10.0]), 10.0)
    np.testing.assert_array_equal(found[0], -found[1])


def test_classes_of_very_different_sizes_are_classified() -> None:
    rng = np.random.default_rng(0)
    plain = [f"plain{k}" for k in range(30)]
    own = {"large": ["oil", "price"], "middle": ["wheat", "corn"], "small": ["cocoa", "bahia"]}
    texts, labels = [], []
    for name, count in (("large", 100), ("middle", 20), ("small", 3)):
        for _ in range(count):
            texts.append(" ".join([*rng.choice(own[name], 2), *rng.choice(plain, 12)]))
            labels.append(name)
    model = LeaderClassifier(random_state=0, ngrams=1, epochs=200).fit(texts, labels)
    assert model.predict(["plain1 plain2 oil price", "plain3 corn wheat", "bahia cocoa plain4"]).tolist() == [
        "large",
        "middle",
        "small",
    ]


def test_of_two_classes_the_smaller_does_not_take_all_words() -> None:
    rng = np.random.default_rng(0)
    plain = [f"plain{k}" for k in range(300)]
    texts, labels = [], []
    for words, count in ((["oil", "price"], 1000), (["cocoa", "bahia"], 50)):
        for _ in range(count):
            texts.append(" ".join([rng.choice(words), *rng.choice(plain, 12)]))
            labels.append(words[0])
    model = LeaderClassifier(random_state=0, ngrams=1).fit(texts, labels)
    assert model.score(texts, labels) > 0.98
    assert model.predict(["plain1 plain2 oil", "plain3 cocoa plain4", "plain5 plain6"]).tolist() == [
        "oil",
        "cocoa",
        "oil",
    ]


def test_two_classes_of_similar_size_have_equal_smoothing() -> None:
    presence, sizes = np.array([[30.0, 2.0], [10.0, 5.0]]), np.array([105.0, 100.0])
    logs = np.log((presence + 10.0) / (sizes + 20.0)[:, None])
    np.testing.assert_array_equal(evidence(presence, sizes, 10.0)[1], logs[1] - logs[0])
