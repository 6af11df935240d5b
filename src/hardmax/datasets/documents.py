"""Documents and their labels from files: CSV, TSV, JSON lines, Parquet, or plain text with one document per line."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..errors import FileError
from ..tables.delimited import as_numbers, read_cells
from ..tables.dialect import with_points
from ..tables.encodings import SPREADSHEET, decoded, encoding_of
from ..tables.files import file_bytes, read_parquet, require_readable

if TYPE_CHECKING:
    import pandas as pd

TEXT_NAMES = ("text", "review", "document", "sentence", "content")
LABEL_NAMES = ("label", "sentiment", "class", "target", "category")
READABLE = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet", ".txt")
_TRUTH = {"true": True, "false": False}


@dataclass(frozen=True)
class Documents:
    """Texts, and their labels where they are known.

    Attributes
    ----------
    texts
        The documents.
    labels
        The label of each document, shape (documents,); None where labels were not asked for.
    source
        Where the documents are from, in words.
    """

    texts: list[str]
    labels: np.ndarray | None
    source: str


def read_documents(
    path: str | os.PathLike[str],
    *,
    text: str | None = None,
    label: str | None = None,
    labelled: bool = True,
    encoding: str | None = None,
) -> Documents:
    """Documents of a file and their labels.

    Parameters
    ----------
    path
        CSV, TSV, JSON lines, Parquet, or plain text with one document per line; all but Parquet may be compressed
        (``.gz``, ``.xz``, ``.bz2``, ``.zip``). The header of a table shows its separator (``;``, tab, ``,`` or ``|``),
        and lines above it that begin with ``#`` are comments.
    text
        The column of the texts; by default one of the usual names, such as ``text`` or ``review``.
    label
        The column of the labels; by default one of the usual names, such as ``label`` or ``class``.
    labelled
        Whether labels are read; plain text has none.
    encoding
        The encoding of the file. By default it is UTF-8, UTF-16 or else Windows-1252, which ``source`` then says.

    Returns
    -------
    Documents
        The texts, their labels and the name of the file.
    """
    file, kind = require_readable(path, READABLE, "documents", packed=True)
    if kind == ".txt" and labelled:
        raise FileError(path, "plain text has no labels", "use CSV, JSON lines or Parquet")
    source, table, decimal_commas = _read(file, kind, encoding)
    texts = _column(path, table, text, TEXT_NAMES, "text")
    labels = _column(path, table, label, LABEL_NAMES, "label") if labelled else None
    for name, column in (("text", texts), ("label", labels)):
        if column is not None and column.isna().any():
            row = int(np.flatnonzero(column.isna())[0]) + 1
            raise FileError(path, f"the {name} of row {row} is missing", "fill it in or leave the row out")
    if labels is not None and kind in (".csv", ".tsv"):
        labels = _labels(labels, decimal_commas)
    return Documents([str(entry) for entry in texts], None if labels is None else labels.to_numpy(), source)


def _read(file: Path, kind: str, encoding: str | None) -> tuple[str, pd.DataFrame, bool]:
    """The name of the file with a note where it is not Unicode, its table, and whether a comma is a decimal sign."""
    import pandas as pd

    if kind == ".parquet":
        return file.name, read_parquet(file, row_labels=False), False
    raw = file_bytes(file)
    used = encoding or encoding_of(raw)
    remedy = 'save it as text in UTF-8, or name its encoding, for example encoding="latin-1"'
    text = decoded(raw, file, encoding, remedy)
    source = file.name if encoding or used != SPREADSHEET else f"{file.name}, which is not UTF-8 and was read as {used}"
    if kind == ".txt":
        return source, pd.DataFrame({TEXT_NAMES[0]: [line for line in text.splitlines() if line.strip()]}), False
    if kind in (".jsonl", ".ndjson"):
        return source, _from_json_lines(file, text), False
    table = read_cells(text, file, comments=False)
    return source, table.cells.replace("", np.nan), table.dialect.has_decimal_commas


def _from_json_lines(file: Path, text: str) -> pd.DataFrame:
    import pandas as pd

    rows = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise FileError(file, f"line {number} is not JSON ({error})", "write one object per line") from error
        if not isinstance(row, dict):
            raise FileError(file, f"line {number} is not an object", 'write for example {"text": …, "label": …}')
        rows.append(row)
    return pd.DataFrame(rows)


def _labels(column: pd.Series, decimal_commas: bool) -> pd.Series:
    """Labels as numbers or truth values where every cell is one, else as text."""
    words = column.str.strip().str.lower()
    if words.isin(list(_TRUTH)).all():
        return words.map(_TRUTH).astype(bool)
    return as_numbers(with_points(column, certain=decimal_commas))


def _column(path: object, table: pd.DataFrame, wanted: str | None, usual: tuple[str, ...], what: str) -> pd.Series:
    have = ", ".join(map(repr, map(str, table.columns))) or "none"
    if wanted is not None:
        if wanted not in table.columns:
            raise FileError(path, f"has no column {wanted!r} (it has {have})", f"pass {what}=… with one of them")
        return table[wanted]
    found = {str(name).strip().lower(): name for name in reversed(table.columns.tolist())}
    for name in usual:
        if name in found:
            return table[found[name]]
    problem = f"has no column of a usual name for the {what} (it has {have})"
    raise FileError(path, problem, f"name the column with {what}=…")
