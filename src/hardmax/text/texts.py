"""Telling texts from tables, and saying what is wrong with either."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ..errors import InputError


class NoKnownWordWarning(UserWarning):
    """Some texts hold no word that the model knows; they were given the prior of the classes."""


def as_texts(documents: Any) -> list[str] | None:
    """The texts, if ``documents`` is a sequence of them; None if it is a table of numbers.

    >>> as_texts(["a dull plot", "a fine cast"])
    ['a dull plot', 'a fine cast']
    >>> as_texts([[1, 0], [0, 2]]) is None
    True
    """
    if isinstance(documents, (str, bytes)):
        raise InputError(
            "X", repr(documents)[:60], "must be a sequence of texts, not one text", "pass [text] for a single text"
        )
    if hasattr(documents, "columns") and len(getattr(documents, "columns", ())) == 1:
        only = documents.iloc[:, 0]
        if any(isinstance(entry, str) for entry in only):
            raise InputError(
                "X", f"a table with the column {documents.columns[0]!r}", "must be the texts", "pass the column itself"
            )
    if isinstance(documents, (list, tuple)):
        entries = list(documents)
        if not entries:
            raise InputError("X", "no documents", "must hold at least one text or row", "pass some documents")
    elif getattr(documents, "ndim", None) == 1 and hasattr(documents, "tolist"):
        entries = documents.tolist()
    else:
        return None
    if not any(isinstance(entry, (str, bytes)) for entry in entries):
        return None
    for place, entry in enumerate(entries):
        if not isinstance(entry, str):
            remedy = (
                "decode it first, for example entry.decode('utf-8')" if isinstance(entry, bytes) else "leave it out"
            )
            raise InputError(f"X[{place}]", repr(entry)[:60], "must be a text", remedy)
    return [str(entry) for entry in entries]


def warn_of_unknown(table: Any) -> None:
    """Say how many texts had no known word."""
    empty = int((np.diff(table.indptr) == 0).sum())
    if empty:
        warnings.warn(
            f"{empty} of {table.shape[0]} texts hold no known word and are given the prior of the classes",
            NoKnownWordWarning,
            stacklevel=3,
        )
