"""The words and n-grams a model knows, and documents as rows of their counts.

An n-gram is kept as its first n-1 words (a gram one shorter) and its last word, so a text of any length is
looked up with a few array operations for each n.
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
    last: np.ndarray
    column: np.ndarray
    """The column of each gram; -1 where it only leads to a longer one."""


class _Known(dict[str, int]):
    def __missing__(self, word: str) -> int:
        return -1


@dataclass(frozen=True)
class Vocabulary:
    """Known words and n-grams, each with a column.

    >>> from hardmax.text import Tokeniser
    >>> words, counts = Vocabulary.learn(["not bad", "not bad at all", "bad"], Tokeniser(), ngrams=2, min_df=2)
    >>> words.names()
    ['not', 'bad', 'not bad']
    >>> words.count(["bad, not bad"], Tokeniser()).toarray().tolist()
    [[1.0, 2.0, 1.0]]
    """

    words: tuple[str, ...]
    columns: np.ndarray
    """The column of each word; -1 where it only occurs inside a known n-gram."""
    longer: tuple[Level, ...] = ()
    _index: _Known = field(init=False, repr=False, compare=False)
    _names: list[str] = field(init=False, repr=False, compare=False, default_factory=list)
    """The names of the columns, once somebody has asked for them."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "_index", _Known(zip(self.words, range(len(self.words)), strict=True)))

    def __len__(self) -> int:
        return int((self.columns >= 0).sum() + sum((level.column >= 0).sum() for level in self.longer))

    @staticmethod
    def learn(
        texts: Sequence[Text], tokeniser: Callable[[Text], Sequence[str]], *, ngrams: int = 2, min_df: int = 3
    ) -> tuple[Vocabulary, sparse.csr_matrix]:
        """Every n-gram that occurs in at least ``min_df`` texts, and the counts of those texts."""
        index: defaultdict[str, int] = defaultdict()
        index.default_factory = index.__len__
        flat, starts = _flatten(texts, tokeniser, index.__getitem__)
        counts = _table(flat, starts, len(index))
        kept = np.flatnonzero(_frequency(counts) >= min_df)
        renumbered = np.full(len(index), -1, dtype=np.int32)
        renumbered[kept] = np.arange(len(kept))
        names = list(index)
        known = tuple(names[k] for k in kept)
        flat = renumbered[flat]
        tables, levels, previous = [counts[:, kept]], [], flat
        total = len(known)
        for _ in range(2, ngrams + 1):
            codes = _codes(previous, flat, starts, len(known))
            # A gram in min_df texts occurs at least min_df times: one cheap cut before the texts are counted.
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
        """How often each column occurs in each text."""
        flat, starts = _flatten(texts, tokeniser, self._index.__getitem__)
        table = _table(_looked_up(self.columns, flat), starts, len(self))
        previous = flat
        for level in self.longer:
            known = pd.Index(level.prefix * len(self.words) + level.last)
            previous = known.get_indexer(_codes(previous, flat, starts, len(self.words)))
            # Columns of different lengths differ, so the sum only sets them side by side.
            table = table + _table(_looked_up(level.column, previous), starts, len(self))
        return table

    def select(self, columns: np.ndarray) -> Vocabulary:
        """Only these columns, renumbered in increasing order; grams on the way to a chosen one are kept as steps."""
        new = np.full(len(self) + 1, -1, dtype=np.int64)  # the last entry answers for "no column", -1
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
        """Which columns belong together: those with as many words, numbered by how many these are."""
        found = np.ones(len(self), dtype=np.int64)
        for n, level in enumerate(self.longer, start=2):
            found[level.column[level.column >= 0]] = n
        return found

    def names(self) -> list[str]:
        """The name of each column: its words with blanks between."""
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
        """The single words and how many grams of each length there are, as JSON knows them."""
        return {"words": list(self.words), "lengths": [len(level.last) for level in self.longer]}

    def arrays(self) -> dict[str, np.ndarray]:
        """Everything but the words themselves, as small arrays."""
        parts = {"words.column": self.columns.astype(np.int32)}
        for n, level in enumerate(self.longer, start=2):
            parts[f"grams{n}.prefix"] = level.prefix.astype(np.int32)
            parts[f"grams{n}.last"] = level.last.astype(np.int32)
            parts[f"grams{n}.column"] = level.column.astype(np.int32)
        return parts

    @staticmethod
    def restore(words: Sequence[str], lengths: Sequence[int], arrays: dict[str, np.ndarray]) -> Vocabulary:
        """What :meth:`recipe` and :meth:`arrays` described."""
        levels = tuple(
            Level(*(arrays[f"grams{n}.{part}"].astype(np.int64) for part in ("prefix", "last", "column")))
            for n in range(2, 2 + len(lengths))
        )
        return Vocabulary(tuple(words), arrays["words.column"].astype(np.int64), levels)


def _flatten(
    texts: Sequence[Text], tokeniser: Callable[[Text], Sequence[str]], number: Callable[[str], int]
) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of all words, text after text, and where each text starts."""
    numbers, starts = array("i"), [0]
    for text in texts:
        numbers.extend(map(number, tokeniser(text)))
        starts.append(len(numbers))
    return np.array(numbers, dtype=np.int32), np.array(starts, dtype=np.int64)


def _looked_up(columns: np.ndarray, places: np.ndarray) -> np.ndarray:
    """The entries of ``columns`` at ``places``; -1 stays -1."""
    return np.asarray(np.append(columns, -1)[places])


def _codes(previous: np.ndarray, flat: np.ndarray, starts: np.ndarray, base: int) -> np.ndarray:
    """The code of the gram one word longer that ends at each place, or -1 where there is none.

    ``previous[i]`` is the shorter gram that ends at place i, so the longer one at i is ``previous[i-1]`` and the
    word at i; at the first place of a text there is none.
    """
    # In place, because with millions of words every array of long numbers tells.
    codes = np.full(len(flat), -1, dtype=np.int64)
    longer = codes[1:]
    np.multiply(previous[:-1], np.int64(base), out=longer)
    longer += flat[1:]
    longer[(previous[:-1] < 0) | (flat[1:] < 0)] = -1
    codes[starts[:-1][starts[:-1] < len(flat)]] = -1
    return codes


def _table(flat: np.ndarray, starts: np.ndarray, width: int) -> sparse.csr_matrix:
    """Counts of numbers in each text; -1 is left out."""
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
    """In how many texts each column occurs."""
    return np.bincount(counts.indices, minlength=counts.shape[1])
