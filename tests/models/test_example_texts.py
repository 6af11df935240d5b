"""Example texts suit the model: reactions for those that read nothing else, sentences for all others."""

from __future__ import annotations

from dataclasses import replace

import pytest

import hardmax as hm
from hardmax.models import AbstractTokeniser, Tokenised
from hardmax.models.loading import REACTIONS, SENTENCES, examples_for


class Letters(AbstractTokeniser):
    """One token per letter; letters beside the known ones become one unknown token."""

    def __init__(self, known: str) -> None:
        self.known = known

    def tokenise(self, text: str) -> Tokenised:
        words = ("[CLS]", *(one if one in self.known else "[UNK]" for one in text))
        ids = tuple(0 if word.startswith("[") and len(word) > 1 else 1 + self.known.index(word) for word in words)
        return Tokenised(ids, words, (True, *(False for _ in text)))

    def word(self, token: int) -> str:
        return self.known[token - 1]

    @property
    def size(self) -> int:
        return len(self.known) + 1


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        ("".join(sorted({*REACTIONS[0]})), REACTIONS),
        ("".join(sorted({*"".join(SENTENCES)})), SENTENCES),
        ("".join(sorted({*"".join(SENTENCES + REACTIONS)})), SENTENCES),
    ],
)
def test_texts_suit_the_model(known: str, expected: tuple[str, ...]) -> None:
    random = hm.models.random_transformer(layers=1, heads=1, d=4, vocabulary=120, random_state=0)
    assert examples_for(replace(random, tokeniser=Letters(known))) == expected
