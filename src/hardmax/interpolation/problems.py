"""Data sets to compile, read from files: JSON, or CSV and Parquet in long form.

JSON: ``{"inputs": [[[0, "3/8"], ...], ...], "outputs": [...]}``, or ``"labels"`` in place of ``"outputs"``. Decimals
are read as written, so 0.1 is one tenth. Long form: one row per token with the columns ``sequence``, ``token`` and the
coordinates, and in a second file of the same form the output points; or a column ``label``, the same on all rows of a
sequence.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import FileError
from ..tables.delimited import read_cells
from ..tables.dialect import with_points
from ..tables.files import file_text, read_parquet, require_readable

if TYPE_CHECKING:
    import pandas as pd

READABLE = (".json", ".csv", ".parquet")
"""The suffixes of files that hold a data set."""
_KEYS = ("sequence", "token", "label")
"""Columns that are no coordinates."""
_REMEDY = "see `hardmax interpolate --help` for the format"


@dataclass(frozen=True)
class Problem:
    """Data set of a file: inputs with either outputs or labels."""

    inputs: list[list[list[object]]]
    """Tokens of each sequence, numbers or texts of rationals."""
    outputs: list[list[list[object]]] | None
    """Output points of each sequence; None where there are labels."""
    labels: list[object] | None
    """One label per sequence; None where there are outputs."""


def read_problem(path: Path, outputs: Path | None = None) -> Problem:
    """Data set read from a file, by its suffix.

    Parameters
    ----------
    path
        File in JSON, or in CSV or Parquet in long form.
    outputs
        File of the output points in long form, where ``path`` is in long form without labels.

    Returns
    -------
    Problem
        Inputs with either outputs or labels.
    """
    path, suffix = require_readable(path, READABLE, "data sets")
    if suffix == ".json":
        if outputs is not None:
            raise FileError(path, "holds inputs and outputs together", "leave out the file of outputs")
        return _from_json(path)
    names, inputs, labels = _long_form(path)
    if outputs is None and labels is None:
        raise FileError(path, "has no column label", "add one, or pass the output points with --outputs FILE")
    if outputs is None:
        return Problem(inputs, None, labels)
    if labels is not None:
        raise FileError(path, "has a column label and a file of outputs", "give one of the two")
    outputs, _ = require_readable(outputs, READABLE[1:], "output points")
    targets, points, _ = _long_form(outputs)
    unknown = [name for name in targets if name not in set(names)] or [n for n in names if n not in set(targets)]
    if unknown:
        raise FileError(
            outputs, f"sequence {unknown[0]} is in one of the two files only", "give both the same sequences"
        )
    place = {name: k for k, name in enumerate(targets)}
    return Problem(inputs, [points[place[name]] for name in names], None)


def _from_json(path: Path) -> Problem:
    try:
        record = json.loads(file_text(path), parse_float=str, parse_constant=str)
    except (ValueError, RecursionError) as error:
        raise FileError(path, f"is not JSON ({error})", _REMEDY) from None
    if not isinstance(record, dict) or "inputs" not in record or ("outputs" in record) == ("labels" in record):
        raise FileError(path, 'must be an object with "inputs" and either "outputs" or "labels"', _REMEDY)
    for name in ("inputs", "outputs", "labels"):
        if name in record and not isinstance(record[name], list):
            raise FileError(path, f"field {name} must be a list", _REMEDY)
    return Problem(record["inputs"], record.get("outputs"), record.get("labels"))


def _long_form(path: Path) -> tuple[list[str], list[list[list[object]]], list[object] | None]:
    """Names of the sequences in order of appearance, their tokens in the order of ``token``, and their labels."""
    table = _table(path)
    for column in ("sequence", "token"):
        if column not in table.columns:
            raise FileError(path, f"has no column {column}", _REMEDY)
    coordinates = [c for c in table.columns if c not in _KEYS]
    if not coordinates or not len(table):
        raise FileError(path, "holds no coordinates", _REMEDY)
    names: dict[str, list[tuple[object, list[object]]]] = {}
    labels: dict[str, object] = {}
    marks = table["label"].tolist() if "label" in table.columns else None
    rows = table[coordinates].astype(object).to_numpy().tolist()
    for k, (sequence, token) in enumerate(zip(table["sequence"], table["token"], strict=True)):
        name = str(sequence)
        names.setdefault(name, []).append((_order(token), rows[k]))
        if marks is not None and labels.setdefault(name, marks[k]) != marks[k]:
            raise FileError(path, f"sequence {name} has two labels", "give every row of a sequence the same label")
    tokens = [[values for _, values in sorted(own, key=lambda pair: pair[0])] for own in names.values()]  # type: ignore[arg-type, return-value]
    return list(names), tokens, None if marks is None else list(labels.values())


def _table(path: Path) -> pd.DataFrame:
    """The rows of a long form; cells of text stay text, so that decimals stay exact."""
    if path.suffix.lower() == ".parquet":
        return read_parquet(path, row_labels=False)
    table = read_cells(file_text(path), path, comments=True)
    for name in [name for name in table.cells.columns if name not in _KEYS]:
        table.cells[name] = with_points(table.cells[name], certain=table.dialect.has_decimal_commas)
    return table.cells


def _order(token: object) -> tuple[int, float, str]:
    """Numbers by value, everything else by text, behind them."""
    try:
        return (0, float(str(token)), "")
    except ValueError:
        return (1, 0.0, str(token))
