"""Documents and their labels from files and folders.

A file is CSV, TSV, JSON lines, Parquet, a spreadsheet, or plain text with one document per line; a folder has one
document per file.
"""

from __future__ import annotations

import json
import os
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..errors import FileError
from ..tables.delimited import as_numbers, read_cells
from ..tables.dialect import with_points
from ..tables.files import SPREADSHEET, decoded, encoding_of, file_bytes, read_parquet, require_readable

if TYPE_CHECKING:
    import pandas as pd

TEXT_NAMES = ("text", "review", "document", "sentence", "content")
LABEL_NAMES = ("label", "sentiment", "class", "target", "category")
READABLE = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet", ".txt")
_SHEET = ".xlsx"
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
    files
        The file of each document, relative to the folder that was read; empty if the documents are not from a folder.
    """

    texts: list[str]
    labels: np.ndarray | None
    source: str
    files: tuple[str, ...] = ()


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
        CSV, TSV, JSON lines, Parquet, a spreadsheet (``.xlsx``, first sheet; needs ``openpyxl``), or plain text with
        one document per line; text files may be compressed (``.gz``, ``.xz``, ``.bz2``, ``.zip``). Or a folder whose
        text files (``.txt``) are one document each; the folders in it are their labels. The header of a table shows its
        separator (``;``, tab, ``,`` or ``|``), and lines above it that begin with ``#`` are comments.
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
    if Path(path).is_dir():
        return _read_folder(Path(path), labelled=labelled, encoding=encoding)
    if Path(path).suffix.lower() == _SHEET:
        file, kind = require_readable(path, (_SHEET,), "documents")
    else:
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
    if kind == _SHEET:
        return file.name, _from_spreadsheet(file), False
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


def _read_folder(folder: Path, *, labelled: bool, encoding: str | None) -> Documents:
    """One document per text file of a folder and of the folders in it, which are the labels, in order of names."""
    files = sorted(file for file in folder.rglob("*.txt") if file.is_file())
    if labelled:
        files = [file for file in files if file.parent != folder]
    if not files:
        problem = "holds no text files" + (" in folders named after their labels" if labelled else "")
        raise FileError(folder, problem, "put each document into a file that ends in .txt")
    remedy = 'save it as text in UTF-8, or name its encoding, for example encoding="latin-1"'
    texts = [decoded(file_bytes(file), file, encoding, remedy) for file in files]
    labels = np.array([file.relative_to(folder).parts[0] for file in files]) if labelled else None
    names = tuple(file.relative_to(folder).as_posix() for file in files)
    return Documents(texts, labels, f"{len(files):,} files of {folder.name}", names)


def _from_spreadsheet(file: Path) -> pd.DataFrame:
    import pandas as pd

    try:
        return pd.read_excel(file, sheet_name=0)
    except ImportError as error:
        raise FileError(file, "needs the package openpyxl", "pip install openpyxl, or save it as CSV") from error
    except (ValueError, OSError, KeyError, zipfile.BadZipFile) as error:
        raise FileError(file, f"is no spreadsheet ({error})", "save it as .xlsx or CSV") from error


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
