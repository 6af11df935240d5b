"""Validation of documents and labels, for texts and for tables."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Set
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import column_or_1d

from ...errors import InputError

# With 50 rows the standard error of an accuracy is at most 7 %; with fewer, epochs cannot be compared.
_FEWEST_VALIDATION_ROWS = 50
_NO_SEVERAL = (
    "for several labels per text fit scikit-learn's MultiOutputClassifier or OneVsRestClassifier around this "
    "classifier, with a table of zeros and ones (MultiLabelBinarizer)"
)
_NO_RATINGS = "pass one of a few labels per text, such as rounded stars: there is no regression on ratings"


class NoKnownWordWarning(UserWarning):
    """Some texts contain no known word; their prediction is that of the class prior."""


def as_texts(documents: Any) -> list[str] | None:
    """A list of the texts if ``documents`` is a sequence of texts; None if it is a table of numbers.

    >>> as_texts(["a dull plot", "a fine cast"])
    ['a dull plot', 'a fine cast']
    >>> as_texts([[1, 0], [0, 2]]) is None
    True
    """
    if isinstance(documents, (str, bytes)):
        raise InputError(
            "X", repr(documents)[:60], "must be a sequence of texts, not one text", "pass [text] for a single text"
        )
    if hasattr(documents, "columns"):
        for name, column in documents.items():
            if any(isinstance(entry, str) for entry in column):
                got = f"a table with the column {name!r} of texts"
                raise InputError("X", got, "must be texts alone, or numbers alone", f"pass the column: table[{name!r}]")
    if isinstance(documents, (list, tuple)):
        entries = list(documents)
        if not entries:
            raise InputError("X", "no documents", "must hold at least one text or row", "pass some documents")
    elif getattr(documents, "ndim", None) == 1 and hasattr(documents, "tolist"):
        entries = documents.tolist()
    elif isinstance(documents, np.ndarray) and documents.ndim == 2 and documents.dtype.kind in "US":
        raise InputError(
            "X", f"texts of shape {documents.shape}", "must be one text per document", "pass one column of it"
        )
    elif isinstance(documents, (Iterator, Set, Mapping)) and not sparse.issparse(documents):
        raise InputError("X", type(documents).__name__, "must be a list of texts, in order", "pass list(…) of it")
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
    """Warn if some texts contain no known word."""
    empty = int((np.diff(table.indptr) == 0).sum())
    if empty:
        warnings.warn(
            f"{empty} of {table.shape[0]} texts hold no known word; their prediction is that of the class prior",
            NoKnownWordWarning,
            stacklevel=4,  # the caller of predict and the like
        )


def as_rows(document: Any) -> Any:
    """One text, or one row of numbers, as a list or table with a single document."""
    if isinstance(document, str):
        return [document]
    if sparse.issparse(document) or hasattr(document, "columns"):
        return document
    row = np.asarray(document)
    return row if row.dtype.kind in "USO" else np.atleast_2d(row)


def _several_per_text(y: Any) -> bool:
    """Whether the labels are a table with several columns, or a list of lists or sets."""
    shape = getattr(y, "shape", None)
    if shape is not None:
        return len(shape) == 2 and shape[1] > 1
    return isinstance(y, (list, tuple)) and any(
        isinstance(entry, (list, tuple, set, frozenset, np.ndarray)) and len(entry) != 1 for entry in y
    )


def labels_for(y: Any, texts: list[str] | None) -> np.ndarray:
    """Validated labels, shape (texts,); empty for a table, whose labels are validated together with it."""
    if texts is None:
        return np.empty(0)
    if y is None:
        raise InputError("y", "None", "must hold a label for each text (requires y)", "pass the labels")
    if _several_per_text(y):
        problem = "must hold one label per text"
        raise InputError("y", "several labels per text", problem, _NO_SEVERAL)
    labels = column_or_1d(y, warn=True)
    unknown = np.flatnonzero([entry is None or entry != entry for entry in labels.tolist()])
    if len(unknown):
        place = int(unknown[0])
        raise InputError(
            f"y[{place}]", repr(labels[place]), "must be a label (y holds NaN or None)", "leave such documents out"
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the same warnings come from the classifier's own check
        kind = type_of_target(labels)
    if kind.startswith("continuous"):
        shown = f"{len(labels)} numbers such as {labels[0]}"
        raise InputError("y", shown, "must be classes, not continuous values", _NO_RATINGS)
    if len(labels) != len(texts):
        raise InputError("y", f"{len(labels)} labels", f"must match the {len(texts)} texts", "pass one label per text")
    return np.asarray(labels)


def validation_mask(labels: np.ndarray, fraction: float, rng: np.random.Generator) -> np.ndarray:
    """Mask of the validation rows, the same fraction of each class, shape (documents,); none if they were too few."""
    if isinstance(fraction, bool) or not 0 <= fraction < 1:
        raise InputError("validation_fraction", repr(fraction), "must be at least 0 and below 1", "pass 0.05")
    mask = np.zeros(len(labels), dtype=bool)
    if fraction * len(labels) < _FEWEST_VALIDATION_ROWS:
        return mask
    for number in np.unique(labels):
        members = rng.permutation(np.flatnonzero(labels == number))
        mask[members[: int(fraction * len(members))]] = True
    return mask
