"""Documents and their labels from files: CSV, TSV, JSON lines, Parquet, or plain text with one document a line."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from ..errors import FileError, MissingExtraError
from ..tables.encodings import SPREADSHEET, UTF16_MARKS

TEXT_NAMES = ("text", "review", "document", "sentence", "content")
LABEL_NAMES = ("label", "sentiment", "class", "target", "category")
_PACKED = (".gz", ".xz", ".bz2", ".zip")
READABLE = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet", ".txt")


@dataclass(frozen=True)
class Documents:
    """Texts, and their labels where they are known."""

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
    """The documents of a file; ``text`` and ``label`` name columns where the usual names do not fit.

    Without an ``encoding`` it is UTF-8, UTF-16 or else the Windows code page of western Europe, which ``source`` says.
    """
    file = Path(path).expanduser()
    if not file.is_file():
        raise FileError(path, "there is no such file", "check the name and the folder")
    suffixes = [suffix.lower() for suffix in file.suffixes]
    kind = suffixes[-2] if len(suffixes) > 1 and suffixes[-1] in _PACKED else (suffixes or [""])[-1]
    if kind not in READABLE:
        raise FileError(path, f"the suffix {kind!r} names no kind of documents", f"use one of {', '.join(READABLE)}")
    if kind == ".txt" and labelled:
        raise FileError(path, "plain text has no labels", "use CSV, JSON lines or Parquet")
    source, table = _read(file, kind, encoding)
    texts = _column(path, table, text, TEXT_NAMES, "text")
    labels = _column(path, table, label, LABEL_NAMES, "label") if labelled else None
    for name, column in (("text", texts), ("label", labels)):
        if column is not None and column.isna().any():
            row = int(np.flatnonzero(column.isna())[0]) + 1
            raise FileError(path, f"the {name} of row {row} is missing", "fill it in or leave the row out")
    return Documents([str(entry) for entry in texts], None if labels is None else labels.to_numpy(), source)


def _read(file: Path, kind: str, encoding: str | None) -> tuple[str, pd.DataFrame]:
    """What to call the file, and the table in it, in the first of the encodings that may be meant and fits."""
    guesses = [encoding] if encoding is not None else _guesses(file)
    for guess in guesses:
        try:
            table = _table(file, kind, guess)
        except UnicodeError as error:
            if guess != guesses[-1]:
                continue
            problem = f"is not {guesses[0]} text ({error})"
            raise FileError(file, problem, "name its encoding (--encoding), for example latin-1") from error
        except LookupError as error:
            raise FileError(file, f"cannot be read ({error})", "name an encoding such as latin-1") from error
        except (ValueError, OSError, pd.errors.ParserError) as error:
            if isinstance(error, FileError):
                raise
            raise FileError(file, f"cannot be read as {kind} ({error})", "check the file") from error
        break
    return file.name if guess == guesses[0] else f"{file.name}, which is not UTF-8 and was read as {guess}", table


def _guesses(file: Path) -> list[str]:
    with file.open("rb") as stream:
        return ["utf-16"] if stream.read(2) in UTF16_MARKS else ["utf-8", SPREADSHEET]


def _table(file: Path, kind: str, encoding: str) -> pd.DataFrame:
    if kind == ".txt":
        return pd.DataFrame({TEXT_NAMES[0]: [line for line in _lines(file, encoding) if line.strip()]})
    if kind == ".parquet":
        try:
            return pd.read_parquet(file)
        except ImportError as error:
            raise MissingExtraError("pyarrow", "store", "reading Parquet files") from error
    if kind in (".jsonl", ".ndjson"):
        rows = []
        for number, line in enumerate(_lines(file, encoding), start=1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except json.JSONDecodeError as error:
                raise FileError(file, f"line {number} is not JSON ({error})", "write one object a line") from error
            if not isinstance(row, dict):
                raise FileError(file, f"line {number} is not an object", 'write for example {"text": …, "label": …}')
            rows.append(row)
        return pd.DataFrame(rows)
    sep = "\t" if kind == ".tsv" else _separator(file, encoding)
    return pd.read_csv(file, sep=sep, encoding=encoding, keep_default_na=False, na_values=[""])


def _lines(file: Path, encoding: str) -> list[str]:
    return file.read_text(encoding=encoding).removeprefix("\ufeff").splitlines()


def _separator(file: Path, encoding: str) -> str:
    """The comma, or what spreadsheets of half of Europe write in its place; the line of names tells."""
    names = pd.read_csv(file, nrows=0, encoding=encoding).columns
    return next((mark for mark in (";", "\t") if len(names) == 1 and mark in str(names[0])), ",")


def _column(path: object, table: pd.DataFrame, wanted: str | None, usual: tuple[str, ...], what: str) -> pd.Series:
    have = ", ".join(map(repr, map(str, table.columns))) or "none"
    if wanted is not None:
        if wanted not in table.columns:
            raise FileError(path, f"has no column {wanted!r} (it has {have})", f"pass --{what} with one of them")
        return table[wanted]
    found = {str(name).strip().lower(): name for name in reversed(table.columns.tolist())}
    for name in usual:
        if name in found:
            return table[found[name]]
    raise FileError(path, f"has no column of a usual name for the {what} (it has {have})", f"pass --{what} COLUMN")
