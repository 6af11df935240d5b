"""Words at the end of a text: separate columns, names and marks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hardmax.errors import FileError, InputError
from hardmax.tensor_files import read, write
from hardmax.text import LeaderClassifier, Tokeniser
from hardmax.text.model.fitted_model import KIND
from hardmax.text.recipes import Recipe
from hardmax.text.words.document_endings import AT_THE_END, EndingVocabulary
from made_up_texts import PLAIN

_TEXTS = st.lists(st.text(alphabet="abc ", max_size=16), min_size=1, max_size=6)
_RECIPE = Recipe(by_length=True, endings=2, ngrams=2, cone=float("inf"))


def _verdicts(count: int, seed: int) -> tuple[list[str], np.ndarray]:
    """Every text says both "good" and "bad", and only the last word tells which is meant."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.arange(count) % 2)
    order = [("bad", "good") if label else ("good", "bad") for label in labels]
    return [" ".join([one, *rng.choice(PLAIN, 8), other]) for one, other in order], labels


@pytest.fixture(scope="module")
def model() -> LeaderClassifier:
    return LeaderClassifier(recipe=_RECIPE, random_state=0).fit(*_verdicts(200, 0))


def _by_a_plain_counter(names: list[str], text: str, last: int) -> list[int]:
    words = Tokeniser()(text)
    found = []
    for name in names:
        gram = name.removesuffix(AT_THE_END).split()
        part = words[-last:] if name.endswith(AT_THE_END) else words
        found.append(sum(part[k : k + len(gram)] == gram for k in range(len(part))))
    return found


@settings(deadline=None, max_examples=60)
@given(_TEXTS, st.integers(1, 3), st.integers(1, 4), st.integers(1, 2), st.data())
def test_counts_agree_with_a_plain_counter(
    texts: list[str], ngrams: int, last: int, min_df: int, data: st.DataObject
) -> None:
    words, counts = EndingVocabulary.learn(texts, Tokeniser(), ngrams=ngrams, min_df=min_df, last=last)
    expected = np.array([_by_a_plain_counter(words.names(), text, last) for text in texts]).reshape(len(texts), -1)
    np.testing.assert_array_equal(counts.toarray(), expected)
    np.testing.assert_array_equal(words.count(texts, Tokeniser()).toarray(), expected)
    assert ((expected > 0).sum(axis=0) >= min_df).all()
    columns = np.array(sorted(data.draw(st.sets(st.integers(0, max(len(words) - 1, 0))))), dtype=int)
    if len(words) > 0:
        some = words.select(columns)
        assert some.names() == [words.names()[column] for column in columns]
        np.testing.assert_array_equal(some.count(texts, Tokeniser()).toarray(), expected[:, columns])
        assert some.groups().shape == columns.shape


def test_the_end_decides(model: LeaderClassifier) -> None:
    fresh, truth = _verdicts(100, 1)
    assert model.score(fresh, truth) == 1
    told = model.explain(fresh[0])
    assert told.leaders[0].word.endswith(AT_THE_END)
    assert told.leaders[0].word in str(told)
    assert told.leaders[0].word in told.to_html()


def test_words_are_marked_at_their_positions(model: LeaderClassifier) -> None:
    text = "good cast and good plot but it was bad"
    told = model.explain(text)
    weights = told.word_weights()
    assert sum(weight for _, _, weight, _ in weights) == pytest.approx(told.contributions.sum(), abs=1e-12)
    by_place = {(start, text[start:end]): (weight, leads) for start, end, weight, leads in weights}
    value = dict(zip(told.words, told.contributions[:, 0], strict=True))
    assert "bad" + AT_THE_END in value
    assert "good" + AT_THE_END not in value
    # A word at the end holds its own worth, that at the end, and its shares of the pairs it is in.
    pairs = [gram for gram in value if " bad" in gram]
    expected = value["bad"] + value["bad" + AT_THE_END] + sum(value[gram] / 2 for gram in pairs)
    assert by_place[len(text) - 3, "bad"][0] == pytest.approx(expected)
    assert by_place[len(text) - 3, "bad"][1]


def test_a_text_shorter_than_its_end(model: LeaderClassifier) -> None:
    told = model.explain("bad")
    assert set(told.words) == {"bad", "bad" + AT_THE_END}
    (_, _, weight, leads), *others = told.word_weights()
    assert weight == pytest.approx(told.contributions.sum())
    assert leads
    assert not others


def test_selected_words(tmp_path: Path) -> None:
    fitted = LeaderClassifier(recipe=_RECIPE, max_words=3, random_state=0).fit(*_verdicts(200, 0))
    assert sum(name.endswith(AT_THE_END) for name in fitted.words()) >= 2
    fitted.save(tmp_path / "model.safetensors")
    again = LeaderClassifier.load(tmp_path / "model.safetensors")
    assert again.words() == fitted.words()
    fresh, truth = _verdicts(50, 1)
    assert again.score(fresh, truth) == 1


def test_a_damaged_end_is_refused(model: LeaderClassifier, tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    model.save(path)
    header, arrays = read(path, KIND)
    arrays["ending.words.column"] = arrays["ending.words.column"].copy()
    arrays["ending.words.column"][:2] = 1
    write(path, KIND, header, arrays)
    with pytest.raises(FileError, match="each of its words once"):
        LeaderClassifier.load(path)
    del header["vocabulary"]["endings"]
    write(path, KIND, header, arrays)
    with pytest.raises(FileError, match="the vocabulary names"):
        LeaderClassifier.load(path)


def test_invalid_settings_are_refused() -> None:
    with pytest.raises(InputError, match="endings must be a positive whole number"):
        Recipe(endings=0)
    with pytest.raises(InputError, match="endings cannot be distinguished from the padding"):
        Recipe(endings=3, cut=128)
