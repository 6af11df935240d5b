"""A vocabulary that knows the end of a text apart: there people say what they think of the whole.

Words and pairs among the last few words count twice: as everywhere, and as words of their own, "great (at the end)".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from .tokenisation import Tokeniser
from .vocabulary import Vocabulary

AT_THE_END = " (at the end)"
PREFIX = "ending."
"""Before the names of the arrays of what is known at the end."""

_LONGEST = 2
"""Longer grams gained nothing on rows kept aside: few are frequent among so few words."""


@dataclass(frozen=True)
class EndingVocabulary:
    """Words known anywhere in a text, and after their columns those known among its ``last`` words.

    >>> words, counts = EndingVocabulary.learn(["good start, dull end"], Tokeniser(), ngrams=1, min_df=1, last=2)
    >>> words.names()
    ['good', 'start', 'dull', 'end', 'dull (at the end)', 'end (at the end)']
    """

    anywhere: Vocabulary
    ending: Vocabulary
    last: int

    def __len__(self) -> int:
        return len(self.anywhere) + len(self.ending)

    @staticmethod
    def learn(
        texts: Sequence[str], tokeniser: Tokeniser, *, ngrams: int, min_df: int, last: int
    ) -> tuple[EndingVocabulary, sparse.csr_matrix]:
        """Every n-gram in at least ``min_df`` texts, word or pair in so many endings, and the counts of those texts."""
        ends: list[list[str]] = []
        anywhere, counts = Vocabulary.learn(texts, _watched(tokeniser, last, ends), ngrams=ngrams, min_df=min_df)
        ending, at_the_end = Vocabulary.learn(ends, _as_it_is, ngrams=min(ngrams, _LONGEST), min_df=min_df)
        return EndingVocabulary(anywhere, ending, last), sparse.hstack([counts, at_the_end], format="csr")

    def count(self, texts: Sequence[str], tokeniser: Tokeniser) -> sparse.csr_matrix:
        """How often each column occurs in each text."""
        ends: list[list[str]] = []
        counts = self.anywhere.count(texts, _watched(tokeniser, self.last, ends))
        return sparse.csr_matrix(sparse.hstack([counts, self.ending.count(ends, _as_it_is)], format="csr"))

    def select(self, columns: np.ndarray) -> EndingVocabulary:
        """Only these columns, renumbered in increasing order."""
        border = len(self.anywhere)
        first, second = columns[columns < border], columns[columns >= border] - border
        return EndingVocabulary(self.anywhere.select(first), self.ending.select(second), self.last)

    def groups(self) -> np.ndarray:
        """As those of the words known anywhere, and one more group for all that is known at the end."""
        own = self.anywhere.groups()
        return np.append(own, np.full(len(self.ending), own.max(initial=0) + 1))

    def names(self) -> list[str]:
        """The name of each column."""
        return self.anywhere.names() + [name + AT_THE_END for name in self.ending.names()]

    def recipe(self) -> dict[str, Any]:
        """All words, as JSON knows them."""
        return {**self.anywhere.recipe(), "endings": {**self.ending.recipe(), "last": self.last}}

    def arrays(self) -> dict[str, np.ndarray]:
        """Everything but the words themselves, as small arrays."""
        return {**self.anywhere.arrays(), **{PREFIX + name: part for name, part in self.ending.arrays().items()}}


def _watched(tokeniser: Tokeniser, last: int, ends: list[list[str]]) -> Callable[[str], list[str]]:
    """The same tokeniser; the ends of all texts it is given are added to ``ends``, so that each is read only once."""

    def words_of(text: str) -> list[str]:
        words = tokeniser(text)
        ends.append(words[-last:])
        return words

    return words_of


def _as_it_is(words: list[str]) -> list[str]:
    return words
