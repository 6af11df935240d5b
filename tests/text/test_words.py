"""Words, n-grams and their counts, against scikit-learn's CountVectorizer."""

from __future__ import annotations

import sys
import unicodedata

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer

from hardmax.errors import InputError, MissingExtraError
from hardmax.text import Tokeniser, Vocabulary
from hardmax.text.recipes import words_with
from hardmax.text.words.tokenisation import EVERY_MARK, STOP_WORDS, lemmatiser

_TEXTS = st.lists(st.text(alphabet="ab c'!<>éд’", max_size=30), min_size=1, max_size=12)


def test_words_of_several_scripts() -> None:
    assert Tokeniser()("L’été n'est PAS fini! Это не плохо; 42 x_y") == [
        "l'été",
        "n'est",
        "pas",
        "fini",
        "!",
        "это",
        "не",
        "плохо",
        "42",
        "x",
        "y",
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("फिल्म अच्छी है।", ["फिल्म", "अच्छी", "है"]),
        ("படம் நன்று", ["படம்", "நன்று"]),
        ("كِتَاب جميل", ["كِتَاب", "جميل"]),
        ("שָׁלוֹם", ["שָׁלוֹם"]),
        ("می\u200cخواهم", ["می\u200cخواهم"]),
        ("cafe\u0301, café", ["café", "café"]),
        ("😀😡 great❤️ ❤", ["😀", "😡", "great", "❤", "❤"]),
        ("👩\u200d👩\u200d👧 👍🏽 🇩🇪", ["👩\u200d👩\u200d👧", "👍🏽", "🇩🇪"]),
    ],
)
def test_signs_stay_with_their_letters_and_emoji_are_words(text: str, words: list[str]) -> None:
    words = [unicodedata.normalize("NFC", word) for word in words]
    assert Tokeniser()(text) == words
    assert Tokeniser(pattern=EVERY_MARK)(text)[: len(words)][0] == words[0]
    assert [word for _, _, word in Tokeniser().spans(text)] == words


def test_every_sign_of_scripts_with_blanks_stays_with_its_letter() -> None:
    """Against Unicode's own names of all signs."""
    scripts = ("COMBINING", "CYRILLIC", "HEBREW", "ARABIC", "DEVANAGARI", "BENGALI", "GURMUKHI", "GUJARATI", "ORIYA")
    scripts += ("TAMIL", "TELUGU", "KANNADA", "MALAYALAM", "SINHALA")
    for code in range(0x300, 0xE00):
        sign = chr(code)
        if unicodedata.category(sign) in ("Mn", "Mc") and unicodedata.name(sign, "").startswith(scripts):
            assert len(Tokeniser()("ק" + sign + "ק")) == 1, unicodedata.name(sign)
    for stop in "।॥،؛։׃":
        assert Tokeniser()("ק" + stop + "ק") == ["ק", "ק"]


def test_tags_are_left_out_and_comparisons_are_not_tags() -> None:
    assert Tokeniser()("one<br />two <b>three</b> 1 < two") == ["one", "two", "three", "1", "two"]


def test_numbers_and_ratings_are_words() -> None:
    assert Tokeniser()("I gave it 7.5/10, no: 8/10. In 1999.") == [
        *["i", "gave", "it", "7.5/10", "no", "8/10", "in", "1999"]
    ]
    assert Tokeniser(pattern=EVERY_MARK)("Dull... **** :-) (1/10).") == [
        *["dull", "...", "****", ":-)", "(", "1/10", ")", "."]
    ]


def test_stop_list_keeps_negations_and_opinions() -> None:
    assert not STOP_WORDS & {"not", "no", "never", "nor", "don't", "very", "too", "only", "good", "bad", "but"}
    assert Tokeniser(stop_words=["plot"])("no plot") == ["no"]


@pytest.mark.parametrize("bad", ["german", [1, 2]])
def test_unusable_stop_words(bad: object) -> None:
    with pytest.raises(InputError, match="stop_words"):
        Tokeniser(stop_words=bad)  # type: ignore[arg-type]


@pytest.mark.parametrize("pattern", ["[a-z", "(a)b"])
def test_unusable_pattern(pattern: str) -> None:
    with pytest.raises(InputError, match="pattern"):
        Tokeniser(pattern=pattern)


def test_lemmas_without_the_package_name_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "simplemma", None)
    with pytest.raises(MissingExtraError, match=r"pip install .*\(the extra: text\)"):
        Tokeniser(lemmas="xx")


def test_lemmas_are_dictionary_forms() -> None:
    assert Tokeniser(lemmas="en")("the plots were films") == ["the", "plot", "be", "film"]
    assert Tokeniser(lemmas="de")("sie gingen") == ["sie", "gehen"]
    assert Tokeniser(lemmas="en", stop_words=["be"])("it was dull") == ["it", "dull"]


def test_lemmas_of_no_known_language() -> None:
    with pytest.raises(InputError, match="language"):
        Tokeniser(lemmas="xx")


@settings(deadline=None, max_examples=60)
@given(st.text(alphabet="abC '’!<br/>éÉдßİ\n1.", max_size=40))
def test_spans_are_the_positions_of_the_words(text: str) -> None:
    tokeniser = Tokeniser()
    spans = tokeniser.spans(text)
    if len(text.lower()) == len(text):
        assert [word for _, _, word in spans] == tokeniser(text)
    assert all(tokeniser(text[start:end]) == [word] for start, end, word in spans)


@settings(deadline=None, max_examples=60)
@given(_TEXTS, st.integers(1, 3), st.integers(1, 2))
def test_counts_agree_with_a_plain_counter(texts: list[str], ngrams: int, min_df: int) -> None:
    tokeniser = Tokeniser()
    words, counts = Vocabulary.learn(texts, tokeniser, ngrams=ngrams, min_df=min_df)
    if len(words) == 0:
        return
    rival = CountVectorizer(
        tokenizer=tokeniser, token_pattern=None, lowercase=False, ngram_range=(1, ngrams), vocabulary=words.names()
    )
    expected = rival.transform(texts).toarray()
    np.testing.assert_array_equal(counts.toarray(), expected)
    np.testing.assert_array_equal(words.count(texts, tokeniser).toarray(), expected)
    assert ((expected > 0).sum(axis=0) >= min_df).all()


@settings(deadline=None, max_examples=40)
@given(_TEXTS, st.data())
def test_a_selection_counts_the_same(texts: list[str], data: st.DataObject) -> None:
    tokeniser = Tokeniser()
    words, counts = Vocabulary.learn(texts, tokeniser, ngrams=3, min_df=1)
    columns = np.array(sorted(data.draw(st.sets(st.integers(0, max(len(words) - 1, 0))))), dtype=int)
    if len(words) == 0:
        return
    chosen = words.select(columns)
    again = Vocabulary.restore(**{**chosen.recipe(), "arrays": chosen.arrays()})
    assert chosen.names() == again.names() == [words.names()[column] for column in columns]
    for some in (chosen, again):
        np.testing.assert_array_equal(some.count(texts, tokeniser).toarray(), counts.toarray()[:, columns])


def test_groups_are_the_numbers_of_words() -> None:
    words, counts = Vocabulary.learn(["a b c", "a b c"], Tokeniser(), ngrams=3, min_df=1)
    assert words.groups().tolist() == [name.count(" ") + 1 for name in words.names()]
    some = words.select(np.array([1, 3, 5]))
    assert some.groups().tolist() == [name.count(" ") + 1 for name in some.names()]
    assert counts.shape[1] == 6


def test_no_gram_crosses_two_texts() -> None:
    words, _ = Vocabulary.learn(["a b", "c d"], Tokeniser(), ngrams=2, min_df=1)
    assert words.names() == ["a", "b", "c", "d", "a b", "c d"]


PUBLISHED = Tokeniser(**words_with("paper", {}))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        # Each step by hand: what the authors' pipeline does, in its order.
        ("See http://a.b/c?d=1 and www.imdb.com/x9 now", ["See"]),  # links go whole; "and" and "now" are function words
        ("A<br /><br />fine<b>st</b> hour", ["Afinest", "hour"]),  # tags go without a blank, as published
        ("an 8th8 10/10 rating", ["th", "rating"]),  # digits go
        ("a naïve café’s “charm”", ["nave", "cafs", "charm"]),  # what is not ASCII goes
        ("sooooo goooood, AAAH hmmmm", ["soo", "good", "AAH", "hmm"]),  # at most two equal letters in a row
        ("don't, it's wasn't couldn't", []),  # the apostrophe parts words, and both parts are function words
        ("The THE the movie", ["The", "THE", "movie"]),  # capitals stay, and are no function words
        ("cannot gonna wanna go, GIMME lemme", ["gon", "na", "wan", "na", "go", "GIM", "ME", "lem"]),
        ("stories boxes women wishes heroes lives Movies", ["story", "box", "woman", "wish", "hero", "life", "Movies"]),
        ("loved worst better acting says boss James", ["loved", "worst", "better", "acting", "say", "boss", "James"]),
        ("yourself us whose", ["us", "whose"]),
    ],
)
def test_words_as_published(text: str, words: list[str]) -> None:
    assert PUBLISHED(text) == words
    assert [word for _, _, word in PUBLISHED.spans(text)] == words


def test_stop_words_are_removed_before_and_after_lemmas() -> None:
    both = Tokeniser(stop_words=["cuts", "film"], lemmas="en-plurals")
    assert both("cuts cut films film plots") == ["cut", "plot"]


def test_spans_in_a_text_with_deletions() -> None:
    text = "A sooooo naïve <i>plot</i>"
    assert [text[start:end] for start, end, _ in PUBLISHED.spans(text)] == ["A", "soo", "naïve", "plot"]


def test_removed_must_be_patterns() -> None:
    with pytest.raises(InputError, match="removed"):
        Tokeniser(removed="a+")
    with pytest.raises(InputError, match="removed"):
        Tokeniser(removed=["("])
    assert Tokeniser(removed=["x+"]).recipe()["removed"] == ["x+"]


def test_plurals_without_the_package_name_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    lemmatiser.cache_clear()
    monkeypatch.setitem(sys.modules, "simplemma", None)
    with pytest.raises(MissingExtraError, match="text"):
        Tokeniser(**words_with("paper", {}))
