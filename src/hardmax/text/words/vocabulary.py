"""Known words and n-grams, and counts of them in texts.

An n-gram is stored as the index of its first n-1 words (a shorter gram) and of its last word, so that the n-grams of
all texts are found by a few array operations per n.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from scipy import sparse

Text = TypeVar("Text")


@dataclass(frozen=True)
class Level:
    """All n-grams of one length n >= 2."""

    prefix: np.ndarray
    """Index of the gram of the first n-1 words, shape (grams,)."""
    last: np.ndarray
    """Index of the last word, shape (grams,)."""
    column: np.ndarray
    """Column of each gram, shape (grams,); -1 if it is only the prefix of a longer one."""


class _WordIndex(dict[str, int]):
    """Index of each word; -1 for an unknown word."""

    def __missing__(self, word: str) -> int:
        return -1


@dataclass(frozen=True)
class Vocabulary:
    """Known words and n-grams, each with a column in a table of counts.

    Use :meth:`learn` to make one from texts.

    Examples
    --------
    >>> from hardmax.text import Tokeniser
    >>> words, counts = Vocabulary.learn(["not bad", "not bad at all", "bad"], Tokeniser(), ngrams=2, min_df=2)
    >>> words.names()
    ['not', 'bad', 'not bad']
    >>> words.count(["bad, not bad"], Tokeniser()).toarray().tolist()
    [[1.0, 2.0, 1.0]]
    """

    words: tuple[str, ...]
    """Single words."""
    columns: np.ndarray
    """Column of each word, shape (words,); -1 if it only occurs inside a known n-gram."""
    longer: tuple[Level, ...] = ()
    """N-grams of two words, of three words, and so on."""
    _index: _WordIndex = field(init=False, repr=False, compare=False)
    _names: list[str] = field(init=False, repr=False, compare=False, default_factory=list)
    """Names of the columns, computed on first use."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "_index", _WordIndex(zip(self.words, range(len(self.words)), strict=True)))

    def __len__(self) -> int:
        return int((self.columns >= 0).sum() + sum((level.column >= 0).sum() for level in self.longer))

    @staticmethod
    def learn(
        texts: Sequence[Text], tokeniser: Callable[[Text], Sequence[str]], *, ngrams: int = 2, min_df: int = 3
    ) -> tuple[Vocabulary, sparse.csr_matrix]:
        """Vocabulary of texts, and their counts.

        Parameters
        ----------
        texts
            Texts, in any form that the tokeniser accepts.
        tokeniser
            Function from a text to its words, such as :class:`Tokeniser`.
        ngrams
            Largest number of words in an n-gram.
        min_df
            Least number of texts in which a word or n-gram occurs.

        Returns
        -------
        vocabulary : Vocabulary
            All words and n-grams that occur in at least ``min_df`` texts.
        counts : scipy.sparse.csr_matrix
            Number of occurrences in each text, shape (texts, columns).
        """
        index: defaultdict[str, int] = defaultdict()
        index.default_factory = index.__len__
        flat, starts = _flatten(texts, tokeniser, index.__getitem__)
        counts = _table(flat, starts, len(index))
        frequent_words = np.flatnonzero(_frequency(counts) >= min_df)
        renumbered = np.full(len(index), -1, dtype=np.int32)
        renumbered[frequent_words] = np.arange(len(frequent_words))
        names = list(index)
        known = tuple(names[k] for k in frequent_words)
        flat = renumbered[flat]
        tables, levels, previous = [counts[:, frequent_words]], [], flat
        total = len(known)
        for _ in range(2, ngrams + 1):
            codes = _codes(previous, flat, starts, len(known))
            # A gram in min_df texts occurs at least min_df times: a cheap filter before texts are counted.
            where, unique = pd.factorize(codes)
            del codes
            enough = (np.bincount(where, minlength=len(unique)) >= min_df) & (unique >= 0)
            grams = np.full(len(unique), -1, dtype=np.int32)
            grams[enough] = np.arange(enough.sum())
            previous = grams[where]
            del where
            table = _table(previous, starts, int(enough.sum()))
            frequent = _frequency(table) >= min_df
            unique = unique[enough][frequent]
            again = np.full(len(frequent) + 1, -1, dtype=np.int32)
            again[:-1][frequent] = np.arange(frequent.sum())
            previous = again[previous]
            tables.append(table[:, frequent])
            levels.append(
                Level(unique // max(len(known), 1), unique % max(len(known), 1), total + np.arange(len(unique)))
            )
            total += len(unique)
        words = Vocabulary(known, np.arange(len(known)), tuple(levels))
        stacked = sparse.hstack(tables, format="csr", dtype=np.float32) if len(tables) > 1 else tables[0]
        return words, stacked

    def count(self, texts: Sequence[Text], tokeniser: Callable[[Text], Sequence[str]]) -> sparse.csr_matrix:
        """Number of occurrences of each known word and n-gram in each text.

        Parameters
        ----------
        texts
            Texts, in any form that the tokeniser accepts.
        tokeniser
            Function from a text to its words; that of :meth:`learn`.

        Returns
        -------
        scipy.sparse.csr_matrix
            Shape (texts, columns).
        """
        flat, starts = _flatten(texts, tokeniser, self._index.__getitem__)
        table = _table(_looked_up(self.columns, flat), starts, len(self))
        previous = flat
        for level in self.longer:
            known = pd.Index(level.prefix * len(self.words) + level.last)
            previous = known.get_indexer(_codes(previous, flat, starts, len(self.words)))
            # Grams of different lengths have different columns, so the sum only joins the tables.
            table = table + _table(_looked_up(level.column, previous), starts, len(self))
        return table

    def select(self, columns: np.ndarray) -> Vocabulary:
        """Vocabulary with only some of the columns.

        Parameters
        ----------
        columns
            Selected columns.

        Returns
        -------
        Vocabulary
            The selected columns, renumbered in increasing order. Prefixes of selected n-grams are stored without a
            column.
        """
        new = np.full(len(self) + 1, -1, dtype=np.int64)  # the last entry is that of "no column", -1
        new[np.sort(columns)] = np.arange(len(columns))
        keep = [new[self.columns] >= 0, *(new[level.column] >= 0 for level in self.longer)]
        for n in range(len(self.longer), 0, -1):
            level = self.longer[n - 1]
            keep[n - 1][level.prefix[keep[n]]] = True
            keep[0][level.last[keep[n]]] = True
        place = [np.cumsum(kept) - 1 for kept in keep]
        longer = tuple(
            Level(
                place[n][level.prefix[keep[n + 1]]],
                place[0][level.last[keep[n + 1]]],
                new[level.column[keep[n + 1]]],
            )
            for n, level in enumerate(self.longer)
        )
        words = tuple(self.words[k] for k in np.flatnonzero(keep[0]))
        return Vocabulary(words, new[self.columns[keep[0]]], longer)

    def groups(self) -> np.ndarray:
        """Group of each column if the recipe separates lengths: its number of words.

        Returns
        -------
        np.ndarray
            Shape (columns,).
        """
        return self.lengths()

    def lengths(self) -> np.ndarray:
        """Number of words of each column.

        Returns
        -------
        np.ndarray
            Shape (columns,).
        """
        found = np.ones(len(self), dtype=np.int64)
        for n, level in enumerate(self.longer, start=2):
            found[level.column[level.column >= 0]] = n
        return found

    def names(self) -> list[str]:
        """Name of each column: its words, separated by blanks.

        Returns
        -------
        list of str
            One name per column.
        """
        if not self._names:
            self._names.extend(self._made_names())
        return list(self._names)

    def _made_names(self) -> list[str]:
        named = [""] * len(self)
        strings = list(self.words)
        for column, word in zip(self.columns, strings, strict=True):
            if column >= 0:
                named[column] = word
        for level in self.longer:
            strings = [strings[p] + " " + self.words[w] for p, w in zip(level.prefix, level.last, strict=True)]
            for column, gram in zip(level.column, strings, strict=True):
                if column >= 0:
                    named[column] = gram
        return named

    def recipe(self) -> dict[str, Any]:
        """Single words and the number of grams of each length, for the header of a file.

        Returns
        -------
        dict
            Can be written as JSON.
        """
        return {"words": list(self.words), "lengths": [len(level.last) for level in self.longer]}

    def arrays(self) -> dict[str, np.ndarray]:
        """Everything except the words themselves, for the tensors of a file.

        Returns
        -------
        dict
            From names to arrays of indices.
        """
        parts = {"words.column": self.columns.astype(np.int32)}
        for n, level in enumerate(self.longer, start=2):
            parts[f"grams{n}.prefix"] = level.prefix.astype(np.int32)
            parts[f"grams{n}.last"] = level.last.astype(np.int32)
            parts[f"grams{n}.column"] = level.column.astype(np.int32)
        return parts

    @staticmethod
    def restore(words: Sequence[str], lengths: Sequence[int], arrays: dict[str, np.ndarray]) -> Vocabulary:
        """Vocabulary from the values of :meth:`recipe` and :meth:`arrays`.

        Parameters
        ----------
        words
            Single words.
        lengths
            Number of grams of each length.
        arrays
            Arrays of :meth:`arrays`.

        Returns
        -------
        Vocabulary
            Equal to the one that was stored.
        """
        levels = tuple(
            Level(*(arrays[f"grams{n}.{part}"].astype(np.int64) for part in ("prefix", "last", "column")))
            for n in range(2, 2 + len(lengths))
        )
        return Vocabulary(tuple(words), arrays["words.column"].astype(np.int64), levels)


def _flatten(
    texts: Sequence[Text], tokeniser: Callable[[Text], Sequence[str]], number: Callable[[str], int]
) -> tuple[np.ndarray, np.ndarray]:
    """Indices of all words, text after text, and the first index of each text."""
    numbers, starts = array("i"), [0]
    for text in texts:
        numbers.extend(map(number, tokeniser(text)))
        starts.append(len(numbers))
    return np.array(numbers, dtype=np.int32), np.array(starts, dtype=np.int64)


def _looked_up(columns: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Entries of ``columns`` at ``places``; -1 stays -1."""
    return np.asarray(np.append(columns, -1)[places])


def _codes(previous: np.ndarray, flat: np.ndarray, starts: np.ndarray, base: int) -> np.ndarray:
    """Code of the gram, one word longer, that ends at each word; -1 if there is none.

    ``previous[i]`` is the shorter gram that ends at word i, so the longer one is ``previous[i-1]`` and word i; at the
    first word of a text there is none.
    """
    # In place, because arrays of 64-bit integers dominate the memory for millions of words.
    codes = np.full(len(flat), -1, dtype=np.int64)
    longer = codes[1:]
    np.multiply(previous[:-1], np.int64(base), out=longer)
    longer += flat[1:]
    longer[(previous[:-1] < 0) | (flat[1:] < 0)] = -1
    codes[starts[:-1][starts[:-1] < len(flat)]] = -1
    return codes


def _table(flat: np.ndarray, starts: np.ndarray, width: int) -> sparse.csr_matrix:
    """Number of occurrences of each index in each text, shape (texts, width); -1 is left out."""
    known = flat >= 0
    before = np.zeros(len(flat) + 1, dtype=np.int32 if len(flat) < 2**31 else np.int64)
    np.cumsum(known, out=before[1:])
    ends = before[starts]
    del before
    data = np.ones(int(known.sum()), dtype=np.float32)
    table = sparse.csr_matrix((data, flat[known].astype(np.int32), ends), shape=(len(starts) - 1, width))
    table.sum_duplicates()
    return table


def _frequency(counts: sparse.csr_matrix) -> np.ndarray:
    """Number of texts in which each column occurs, shape (columns,)."""
    return np.bincount(counts.indices, minlength=counts.shape[1])
