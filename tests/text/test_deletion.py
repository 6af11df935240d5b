"""The effect of deleting words: the closed form against evaluating the document again, reasons and counterfactuals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse

from hardmax.errors import InputError
from hardmax.text import LeaderClassifier
from hardmax.text.evaluation import faithfulness
from hardmax.text.explaining.deletion import Deletion
from hardmax.text.model.network import Network
from hardmax.text.words.tokenisation import FUNCTION_WORDS
from made_up_texts import opinions, topics


def _network(positions: np.ndarray, outputs: int, rng: np.random.Generator, alpha: float = 1.0) -> Network:
    return Network(
        embedding=torch.from_numpy(positions),
        decoder=torch.from_numpy(rng.normal(size=(outputs, positions.shape[1]))),
        bias=torch.from_numpy(rng.normal(size=outputs)),
        raw_alpha=torch.tensor(np.log(alpha), dtype=torch.float64),
        least_alpha=0.0,
        depth=8,
        norm_masses=True,
        resting_mass=0.7,
    )


# In the plane ties between words in different places are decided by rounding, which depends on the documents beside.
@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize(("dim", "grid"), [(1, False), (2, False), (4, False), (1, True), (4, True)])
@pytest.mark.parametrize("alpha", [0.05, 1.0])
def test_effects_are_those_of_evaluating_again(outputs: int, dim: int, grid: bool, alpha: float) -> None:
    rng = np.random.default_rng([outputs, dim, grid])
    for count in (1, 2, 7, 25):
        positions = rng.integers(-2, 3, size=(count, dim)).astype(float) if grid else rng.normal(size=(count, dim))
        row = sparse.csr_matrix(rng.uniform(0.5, 3, size=(1, count)))
        prior = rng.normal(size=outputs)
        deletion = Deletion(_network(positions, outputs, rng, alpha), row, prior)
        whole = deletion.logits([np.empty(0, dtype=int)])[0]
        again = whole - deletion.logits([np.array([k]) for k in range(count)])
        np.testing.assert_allclose(deletion.effects(), again, atol=1e-9)
        if count > 3:
            gone = np.array([0, 2])
            after = deletion.effects(gone)
            assert (after[gone] == 0).all()
            before = deletion.logits([gone])[0]
            np.testing.assert_allclose(after[1], before - deletion.logits([np.array([0, 1, 2])])[0], atol=1e-9)


@pytest.fixture(scope="module")
def model() -> LeaderClassifier:
    texts, labels = opinions(300)
    return LeaderClassifier(random_state=0, progress=False).fit(texts, np.where(labels == 1, "good", "bad"))


@pytest.fixture(scope="module")
def of_topics() -> LeaderClassifier:
    return LeaderClassifier(random_state=0, progress=False).fit(*topics(200))


def test_reasons_move_the_logit_at_least_as_much_as_leaders(model: LeaderClassifier) -> None:
    texts = opinions(40, seed=3)[0]
    leaders = faithfulness(model, texts, draws=1)
    reasons = faithfulness(
        model, texts, reasons=lambda k: np.array([r.place for r in model.explain(texts[k]).reasons()]), draws=1
    )
    assert reasons.deleted == leaders.deleted
    assert reasons.named >= leaders.named


def test_the_effects_of_reasons_add_up(of_topics: LeaderClassifier) -> None:
    why = of_topics.explain("the ship and the tide and a tree")
    reasons = why.reasons(3)
    assert len(reasons) == 3
    assert why.deletion is not None
    without = why.deletion.logits([np.array([reason.place for reason in reasons])])[0]
    np.testing.assert_allclose(why.logits - sum(reason.effect for reason in reasons), without, atol=1e-9)
    assert [entry["word"] for entry in why.data()["reasons"]] == [reason.word for reason in why.reasons()]


@pytest.mark.parametrize("count", [0, -1, True, 1.5, "2"])
def test_numbers_of_words_are_checked(model: LeaderClassifier, count: Any) -> None:
    why = model.explain("a superb film")
    with pytest.raises(InputError, match="count must be a positive whole number"):
        why.reasons(count)
    with pytest.raises(InputError, match="most must be a positive whole number"):
        why.counterfactual(count)


def test_a_counterfactual_changes_the_prediction(model: LeaderClassifier, of_topics: LeaderClassifier) -> None:
    why = model.explain("the film was dull and superb and the cast was dreadful")
    found = why.counterfactual()
    assert why.prediction == "bad"
    assert found is not None
    assert found.prediction == "good"
    assert set(found.words) <= {"dull", "dreadful"}
    assert str(found).startswith("Without 'd")
    assert "it would be good" in str(found)
    # Deleted with every n-gram that contains the words, the text is classified as promised.
    assert why.deletion is not None
    gone = [k for k, name in enumerate(why.words) if set(name.split(" ")) & set(found.words)]
    assert why.deletion.logits([np.array(gone)])[0, 0] > 0
    several = of_topics.explain("the ship and a tree with moss").counterfactual()
    assert several is not None
    assert several.prediction == "sea"
    assert of_topics.explain("the ship and the wave and the tide").counterfactual(1) is None
    assert model.explain("xyzzy").counterfactual() is None


def test_leading_words_speak_for_the_prediction(of_topics: LeaderClassifier, model: LeaderClassifier) -> None:
    why = of_topics.explain("the ship and the tide and a tree with music")
    speaking = [leader.contribution[why.output] > 0 for leader in why.leaders]
    assert speaking == sorted(speaking, reverse=True)
    led = why.sentence().split("led by ")[1].split(";")[0]
    for leader, speaks_for in zip(why.leaders, speaking, strict=True):
        assert (repr(leader.word) in led) <= speaks_for
    for text in opinions(20, seed=5)[0]:
        opposed = model.explain(text).sentence().split("against it: ")
        if len(opposed) == 2:
            assert not set(opposed[1].strip("'").split(" ")) <= FUNCTION_WORDS


def test_the_opposing_word_is_no_mark() -> None:
    texts, labels = opinions(200, seed=3)
    # Half of the negative texts end with marks, which no positive text has.
    ends = [" -- ;" if label == 0 and k % 4 < 2 else "" for k, label in enumerate(labels)]
    marked = [text + end for text, end in zip(texts, ends, strict=True)]
    fitted = LeaderClassifier(random_state=0, progress=False).fit(marked, labels)
    why = fitted.explain("wonderful , wonderful -- ;")
    assert min(why.words, key=lambda name: why.effects[why.words.index(name), 0]) in ("-", ";", "- -", "- ;")
    assert "against it: '-" not in why.sentence()
    assert "against it: ';" not in why.sentence()
