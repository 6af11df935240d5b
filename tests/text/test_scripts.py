"""Scripts: texts without spaces between words, and case folding and marks of many scripts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hardmax.text import LeaderClassifier, Tokeniser
from hardmax.text.words.tokenisation import CHARACTERS, EVERY_MARK, written_without_spaces

CHINESE = {1: ["好看", "精彩", "喜欢", "推荐"], 0: ["难看", "无聊", "失望", "浪费"]}
JAPANESE = {1: ["素晴らしい", "面白い", "大好き", "最高"], 0: ["退屈", "つまらない", "最悪", "残念"]}
THAI = {1: ["สนุกมาก", "ชอบ", "ยอดเยี่ยม", "ประทับใจ"], 0: ["น่าเบื่อ", "แย่มาก", "ผิดหวัง", "เสียเวลา"]}
PLAIN = {
    "Chinese": "这本书的内容作者电影我们看了",
    "Japanese": "この映画は物語と音楽を見ました",
    "Thai": "หนังเรื่องนี้เราไปดูเมื่อวาน",
}


def _texts(words: dict[int, list[str]], plain: str, count: int = 160) -> tuple[list[str], np.ndarray]:
    rng = np.random.default_rng(0)
    labels = np.arange(count) % 2
    texts = []
    for label in labels:
        cut = int(rng.integers(2, len(plain) - 2))
        texts.append(plain[:cut] + str(rng.choice(words[int(label)])) + plain[cut:])
    return texts, labels


@pytest.mark.parametrize(
    ("language", "words"), [("Chinese", CHINESE), ("Japanese", JAPANESE), ("Thai", THAI)], ids=lambda p: str(p)[:8]
)
def test_scripts_without_spaces_are_recognised_and_learned(
    language: str, words: dict[int, list[str]], tmp_path: Path
) -> None:
    texts, labels = _texts(words, PLAIN[language])
    assert written_without_spaces(texts)
    model = LeaderClassifier(random_state=0, progress=False).fit(texts[:100], labels[:100])
    assert (model.predict(texts[100:]) == labels[100:]).mean() > 0.95
    why = model.explain(texts[101])
    assert len(why.word_weights()) > 10
    model.save(tmp_path / "model.safetensors")
    again = LeaderClassifier.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(again.decision_function(texts), model.decision_function(texts))


def test_texts_that_were_cut_into_words_stay_cut() -> None:
    cut = ["这 本 书 很 好看", "内容 非常 精彩 ， 我 喜欢"] * 30
    assert not written_without_spaces(cut)
    model = LeaderClassifier(random_state=0).fit(cut, [0, 1] * 30)
    assert "好看" in model.words()
    settings = {"token_pattern": r"\w+"}
    own = LeaderClassifier(random_state=0, **settings).fit(["这本书很好看", "内容精彩"] * 10, [0, 1] * 10)
    assert "这本书很好看" in own.words()


def test_a_quotation_does_not_change_how_a_text_is_read() -> None:
    assert not written_without_spaces(["The word 書 means book, and 本 means book too.", "Plain English text."])
    assert not written_without_spaces([])
    assert not written_without_spaces(["", "12 !"])


def test_characters_and_words_in_one_text() -> None:
    tokens = Tokeniser(pattern=CHARACTERS[None])("iPhone 手机很好！ don't 8/10 ありがとう ผู้ชาย")
    assert tokens[:7] == ["iphone", "手", "机", "很", "好", "！", "don't"]
    assert "8/10" in tokens
    assert "ผู้" in tokens  # with its marks
    marked = Tokeniser(pattern=CHARACTERS[EVERY_MARK])("好，bad. ...")
    assert marked == ["好", "，", "bad", ".", "..."]


@pytest.mark.parametrize(
    ("written", "folded"),
    [
        ("ÉCOLE École e\u0301cole", {"école"}),  # accents, composed and not
        ("МОСКВА Москва", {"москва"}),
        ("ΑΘΗΝΑ Αθηνα", {"αθηνα"}),
        ("ԵՐԵՎԱՆ Երեվան", {"երեվան"}),
        ("हिन्दी हिन्दी", {"हिन्दी"}),
        ("שָׁלוֹם", {"שָׁלוֹם"}),
        ("مرحبا مرحبا", {"مرحبا"}),
        ("한국어 한국어", {"한국어"}),
    ],
)
def test_words_of_many_scripts_are_folded(written: str, folded: set[str]) -> None:
    assert set(Tokeniser()(written)) == folded
    # The pattern for characters reads all of them as the default does.
    assert set(Tokeniser(pattern=CHARACTERS[None])(written)) == folded
