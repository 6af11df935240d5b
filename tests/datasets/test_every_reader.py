"""The same awkward tables give the same numbers to every reader."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from hardmax.app.forecasting.state import read_data
from hardmax.app.uploads import Upload, numbers_of, rows_of
from hardmax.datasets import read_series
from hardmax.datasets.documents import read_documents
from hardmax.errors import FileError
from hardmax.interpolation.data import read_problem
from hardmax.storage.token_tables import read_tokens

_NAMES = ("sequence", "token", "x", "y")
_VALUES = np.array([[1, 0, 1234.5, 2], [2, 0, -0.25, 3], [3, 0, 7, 4.5], [4, 0, 0.5, 1e3], [5, 0, 6, 8]])


def _tokens(path: Path) -> np.ndarray:
    return read_tokens(path)


def _series(path: Path) -> np.ndarray:
    return read_series(path, time="none").values


def _upload(path: Path) -> np.ndarray:
    return numbers_of(Upload(path.name, path.read_bytes()))[0]


def _series_upload(path: Path) -> np.ndarray:
    return read_data(Upload(path.name, path.read_bytes()), path.parent, fill=False, even=False).series.values


def _problem(path: Path) -> np.ndarray:
    """Coordinates of the one token of every sequence, exact until they are compared."""
    problem = read_problem(path, path)
    points = [[float(Fraction(str(cell))) for cell in sequence[0]] for sequence in problem.inputs]
    return np.column_stack([_VALUES[:, :2], np.array(points)])


def _documents(path: Path) -> np.ndarray:
    """Labels of a column are numbers too; the texts stay as they are written."""
    labels = [read_documents(path, text="token", label=name).labels for name in _NAMES]
    return np.column_stack(labels)


_NUMBERS: dict[str, Callable[[Path], np.ndarray]] = {
    "tokens": _tokens,
    "series": _series,
    "upload": _upload,
    "series upload": _series_upload,
}
_WITH_HEADER = {"problem": _problem, **_NUMBERS}
_WITH_TEXTS = {"documents": _documents, **_WITH_HEADER}

_HEADER = "sequence,token,x,y\n"
_ROWS = "1,0,1234.5,2\n2,0,-0.25,3\n3,0,7,4.5\n4,0,0.5,1e3\n5,0,6,8\n"
_COMMAS = "sequence;token;x;y\n1;0;1.234,5;2\n2;0;-0,25;3\n3;0;7;4,5\n4;0;0,5;1e3\n5;0;6;8\n"
_TABLES = {
    "commas": _HEADER + _ROWS,
    "semicolons and decimal points": (_HEADER + _ROWS).replace(",", ";"),
    "semicolons, decimal commas and thousands points": _COMMAS,
    "tabs": (_HEADER + _ROWS).replace(",", "\t"),
    "tabs and decimal commas": _COMMAS.replace(";", "\t"),
    "bars": (_HEADER + _ROWS).replace(",", "|"),
    "bars and decimal commas": _COMMAS.replace(";", "|"),
    "blank lines": "\n  \n" + _HEADER + "\n" + _ROWS.replace("3,0", "\n3,0") + "\n\n",
    "quoted cells": _HEADER.replace("x", '"x"') + _ROWS.replace("7", '"7"').replace("8", '"8"'),
    "comment above": "# measured in May, by hand\n" + _HEADER + _ROWS,
    "indented comment above": "  # measured in May; by hand\n\n" + _HEADER + _ROWS,
    "Windows line ends": (_HEADER + _ROWS).replace("\n", "\r\n"),
    "no last line end": (_HEADER + _ROWS).rstrip("\n"),
}
_NUMBERS_ONLY = {
    "comment between": _HEADER + _ROWS.replace("3,0", "# a remark\n3,0"),
    "indented comment between": _HEADER + _ROWS.replace("3,0", "   # a remark, with commas, and more\n3,0"),
    "comment behind": _HEADER + _ROWS.replace("4.5\n4", "4.5 # a remark, with a comma\n4").replace("8", "8# end"),
    "comment behind a header": _HEADER.replace("y", "y # four columns") + _ROWS,
    "blanks": (_HEADER + _ROWS).replace(",", " "),
    "several blanks": " " + (_HEADER + _ROWS).replace(",", "    ").replace("\n", "  \n"),
    "blanks and decimal commas": _COMMAS.replace(";", "  "),
    "semicolons at the ends": (_HEADER + _ROWS).replace(",", ";").replace("\n", ";\n"),
}
_ENCODINGS = ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "cp1252")


def _write(folder: Path, text: str, encoding: str = "utf-8") -> Path:
    path = folder / "table.csv"
    path.write_bytes(text.encode(encoding))
    return path


@pytest.mark.parametrize("reader", _WITH_TEXTS)
@pytest.mark.parametrize("table", _TABLES)
def test_every_reader_reads_the_same(tmp_path: Path, table: str, reader: str) -> None:
    np.testing.assert_array_equal(_WITH_TEXTS[reader](_write(tmp_path, _TABLES[table])), _VALUES)


@pytest.mark.parametrize("reader", _WITH_HEADER)
@pytest.mark.parametrize("table", _NUMBERS_ONLY)
def test_every_reader_of_numbers_reads_the_same(tmp_path: Path, table: str, reader: str) -> None:
    np.testing.assert_array_equal(_WITH_HEADER[reader](_write(tmp_path, _NUMBERS_ONLY[table])), _VALUES)


@pytest.mark.parametrize("reader", _NUMBERS)
@pytest.mark.parametrize("table", [name for name in (*_TABLES, *_NUMBERS_ONLY) if "header" not in name])
def test_a_header_may_be_missing(tmp_path: Path, table: str, reader: str) -> None:
    lines = {**_TABLES, **_NUMBERS_ONLY}[table].splitlines(keepends=True)
    text = "".join(line for line in lines if "sequence" not in line)
    # The first of these columns grows evenly, so that a series takes it for the time.
    found = _NUMBERS[reader](_write(tmp_path, text))
    np.testing.assert_array_equal(found, _VALUES[:, 1:] if reader == "series upload" else _VALUES)


@pytest.mark.parametrize("reader", _WITH_TEXTS)
@pytest.mark.parametrize("encoding", _ENCODINGS)
def test_every_reader_knows_the_same_encodings(tmp_path: Path, encoding: str, reader: str) -> None:
    text = "# größe, höhe\n" + _COMMAS
    np.testing.assert_array_equal(_WITH_TEXTS[reader](_write(tmp_path, text, encoding)), _VALUES)


@pytest.mark.parametrize("reader", _NUMBERS)
def test_every_reader_of_numbers_names_the_same_cell(tmp_path: Path, reader: str) -> None:
    path = _write(tmp_path, "# in May\n" + _HEADER + _ROWS.replace("7", "seven"))
    with pytest.raises(FileError, match=r"line 5, column (3|'x') is 'seven', not a number"):
        _NUMBERS[reader](path)


@pytest.mark.parametrize("reader", _WITH_HEADER)
def test_every_reader_names_the_line_with_too_many_cells(tmp_path: Path, reader: str) -> None:
    path = _write(tmp_path, _HEADER + _ROWS.replace("7", "7,7"))
    with pytest.raises(FileError, match=r"line 4 has 5 cells where line 1 has 4: give every line as many cells"):
        _WITH_HEADER[reader](path)


def test_texts_may_hold_what_comments_and_separators_are_elsewhere(tmp_path: Path) -> None:
    """Below the header of documents ``#``, blanks and decimal commas belong to the texts."""
    path = _write(tmp_path, "# reviews\ntext;label\n#1 film, 10/10;1\nnot 1,5 #stars;0\n")
    assert read_documents(path).texts == ["#1 film, 10/10", "not 1,5 #stars"]
    assert rows_of(Upload("a.csv", path.read_bytes()))["text"].tolist() == ["#1 film, 10/10", "not 1,5 #stars"]
    path = _write(tmp_path, "text\none text\nanother text\n")
    assert read_documents(path, labelled=False).texts == ["one text", "another text"]
