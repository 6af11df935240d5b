"""Rows of a sweep: one small file per run, whole or not at all, and the table of all of them."""

from __future__ import annotations

import hashlib
import json
import math
import time
import traceback
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import FileError, InputError, MissingExtraError
from ..files import replacing, write_text
from ..outcomes import Outcome
from ..tables.files import import_pyarrow

if TYPE_CHECKING:
    import pandas as pd

SUFFIX = ".row.json"
TABLE = "rows.parquet"
OWN = ("seed", "outcome", "seconds", "error")
Row = dict[str, Any]


def plain(value: object) -> Any:
    """The value as numbers, strings, lists and dictionaries, for JSON."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Outcome):
        return value.ending.value
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.ndarray) or hasattr(value, "tolist"):
        return np.asarray(value).tolist()
    if isinstance(value, Mapping):
        return {str(name): plain(entry) for name, entry in value.items()}
    if isinstance(value, Iterable):
        return [plain(entry) for entry in value]
    raise InputError(
        "grid",
        f"a {type(value).__name__}",
        "must hold numbers, words, arrays or lists of them",
        "build other objects inside the function from such values",
    )


def key_of(function: str, point: Row) -> str:
    """The name of a point's row: the same for the same function and values, in every process."""
    words = json.dumps([function, point], sort_keys=True)
    return hashlib.sha256(words.encode()).hexdigest()[:24]


def finished(folder: Path) -> dict[str, Row]:
    """The rows that are in a folder, by their keys; hidden files are drafts of processes that were killed."""
    rows = {}
    for file in folder.glob("[!.]*" + SUFFIX):
        try:
            row = json.loads(file.read_text(encoding="utf-8"))
            _ = row["parameters"], row["outcome"], row["results"]
        except (ValueError, TypeError, KeyError) as error:
            raise FileError(
                file, f"is no row of a sweep ({error})", "remove this file and run the sweep again"
            ) from None
        rows[file.name.removesuffix(SUFFIX)] = row
    return rows


def run_one(function: Callable[..., object], point: Row, file: str) -> None:
    """Run one point and write its row: its results, outcome and seconds; a failure is a row too."""
    arguments = {("random_state" if name == "seed" else name): value for name, value in point.items()}
    began = time.perf_counter()
    row: Row = {"parameters": point, "results": {}, "outcome": "finished", "error": None}
    try:
        found = function(**arguments)
        if not isinstance(found, Mapping):
            problem = "must return a mapping of numbers and words"
            raise InputError("function", type(found).__name__, problem, 'return for example {"distance": 0.1}')
        results = {str(name): plain(value) for name, value in found.items()}
        row["outcome"] = results.pop("outcome", "finished")
        row["results"] = results
    except Exception as error:
        row["outcome"] = "failed"
        row["error"] = "".join(traceback.format_exception_only(error)).strip()
    row["seconds"] = round(time.perf_counter() - began, 6)
    write_row(file, row)


def write_row(file: str, row: Row) -> None:
    """Write a row, whole or not at all."""
    write_text(file, json.dumps(row, indent=1) + "\n")


def as_table(rows: list[Row]) -> pd.DataFrame:
    """Rows as a table: parameters, results, outcome, seconds, error."""
    import pandas as pd

    flat = [
        {
            **row["parameters"],
            **row["results"],
            "outcome": row["outcome"],
            "seconds": row.get("seconds", math.nan),
            "error": row.get("error"),
        }
        for row in rows
    ]
    return pd.DataFrame(flat)


def write_table(folder: Path, rows: dict[str, Row]) -> None:
    """All rows as one Parquet table, if pyarrow is there to write it; the row files remain the record."""
    try:
        pyarrow, parquet = import_pyarrow("writing the table of a sweep")
    except MissingExtraError:
        return
    table = as_table([row for _, row in sorted(rows.items())])
    columns = {}
    for name in table.columns:
        values = [None if value is None or value != value else value for value in table[name].tolist()]
        try:
            columns[str(name)] = pyarrow.array(values)
        except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError):  # values of several kinds: their JSON
            columns[str(name)] = pyarrow.array([None if value is None else json.dumps(value) for value in values])
    with replacing(folder / TABLE) as draft:
        parquet.write_table(pyarrow.table(columns), draft)
