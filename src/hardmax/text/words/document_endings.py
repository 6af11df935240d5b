"""A vocabulary with separate columns for the last words of a text, where reviews usually state their verdict.

Words and pairs among the last few words count twice: as anywhere in the text, and as words of their own, such as
"great (at the end)".
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
"""Prefix of the names of the arrays of the second vocabulary in a file."""

_LONGEST = 2
"""Longer grams gained nothing on validation rows: few are frequent among so few words."""


@dataclass(frozen=True)
class EndingVocabulary:
    """Vocabulary of words anywhere in a text, followed by the columns of those among its ``last`` words.

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
        """Vocabulary of words and n-grams in at least ``min_df`` texts or endings, and the counts of the texts."""
        ends: list[list[str]] = []
        anywhere, counts = Vocabulary.learn(
            texts, _collecting_ends(tokeniser, last, ends), ngrams=ngrams, min_df=min_df
        )
        ending, at_the_end = Vocabulary.learn(ends, _unchanged, ngrams=min(ngrams, _LONGEST), min_df=min_df)
        return EndingVocabulary(anywhere, ending, last), sparse.hstack([counts, at_the_end], format="csr")

    def count(self, texts: Sequence[str], tokeniser: Tokeniser) -> sparse.csr_matrix:
        """Number of occurrences of each column in each text, shape (texts, columns)."""
        ends: list[list[str]] = []
        counts = self.anywhere.count(texts, _collecting_ends(tokeniser, self.last, ends))
        return sparse.csr_matrix(sparse.hstack([counts, self.ending.count(ends, _unchanged)], format="csr"))

    def select(self, columns: np.ndarray) -> EndingVocabulary:
        """Vocabulary with only these columns, renumbered in increasing order."""
        border = len(self.anywhere)
        first, second = columns[columns < border], columns[columns >= border] - border
        return EndingVocabulary(self.anywhere.select(first), self.ending.select(second), self.last)

    def groups(self) -> np.ndarray:
        """Number of words of each column, shape (columns,); one more group for all columns at the end of a text."""
        own = self.anywhere.groups()
        return np.append(own, np.full(len(self.ending), own.max(initial=0) + 1))

    def lengths(self) -> np.ndarray:
        """Number of words of each column, shape (columns,)."""
        return np.append(self.anywhere.lengths(), self.ending.lengths())

    def names(self) -> list[str]:
        """Name of each column."""
        return self.anywhere.names() + [name + AT_THE_END for name in self.ending.names()]

    def recipe(self) -> dict[str, Any]:
        """Single words and the number of grams of each length, for the header of a file."""
        return {**self.anywhere.recipe(), "endings": {**self.ending.recipe(), "last": self.last}}

    def arrays(self) -> dict[str, np.ndarray]:
        """Everything except the words themselves, for the tensors of a file."""
        return {**self.anywhere.arrays(), **{PREFIX + name: part for name, part in self.ending.arrays().items()}}


def _collecting_ends(tokeniser: Tokeniser, last: int, ends: list[list[str]]) -> Callable[[str], list[str]]:
    """A tokeniser that appends the last words of each text to ``ends``, so that each text is read only once."""

    def words_of(text: str) -> list[str]:
        words = tokeniser(text)
        ends.append(words[-last:])
        return words

    return words_of


def _unchanged(words: list[str]) -> list[str]:
    return words
