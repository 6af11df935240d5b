"""Data sets to compile, read from files: JSON, or CSV and Parquet in long form.

JSON: ``{"inputs": [[[0, "3/8"], ...], ...], "outputs": [...]}``, or ``"labels"`` in place of ``"outputs"``. Decimals
are read as written, so 0.1 is one tenth. Long form: one row per token with the columns ``sequence``, ``token`` and the
coordinates, and in a second file of the same form the output points; or a column ``label``, the same on all rows of a
sequence.
"""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import FileError, MissingExtraError
from ..tables.encodings import file_text, is_comment, separator_of

if TYPE_CHECKING:
    import pandas as pd

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
    suffix = path.suffix.lower()
    if suffix == ".json":
        if outputs is not None:
            raise FileError(path, "holds inputs and outputs together", "leave out the file of outputs")
        return _from_json(path)
    if suffix not in (".csv", ".parquet"):
        raise FileError(path, f"the suffix {path.suffix!r} names no format we read", "pass .json, .csv or .parquet")
    names, inputs, labels = _long_form(path)
    if outputs is None and labels is None:
        raise FileError(path, "has no column label", "add one, or pass the output points with --outputs FILE")
    if outputs is None:
        return Problem(inputs, None, labels)
    if labels is not None:
        raise FileError(path, "has a column label and a file of outputs", "give one of the two")
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
    except FileNotFoundError:
        raise FileError(path, "does not exist", "check the name") from None
    except FileError:
        raise
    except OSError as error:
        raise FileError(path, f"cannot be read ({error.strerror})", "check the path and its permissions") from None
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
    import pandas as pd

    try:
        table = _text_table(path) if path.suffix.lower() == ".csv" else pd.read_parquet(path)
    except FileNotFoundError:
        raise FileError(path, "does not exist", "check the name") from None
    except ImportError:
        raise MissingExtraError("pyarrow", "store", "reading Parquet files") from None
    except FileError:
        raise
    except (OSError, ValueError) as error:
        raise FileError(path, f"cannot be read ({' '.join(str(error).split())})", _REMEDY) from None
    for column in ("sequence", "token"):
        if column not in table.columns:
            raise FileError(path, f"has no column {column}", _REMEDY)
    coordinates = [c for c in table.columns if c not in ("sequence", "token", "label")]
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


def _text_table(path: Path) -> pd.DataFrame:
    """All cells as text, so that decimals stay exact; decimal commas, where the separator is no comma, as points."""
    import pandas as pd

    text = file_text(path)
    first = next((line for line in text.splitlines() if line.strip() and not is_comment(line)), "")
    mark = separator_of(first) or ","
    table = pd.read_csv(io.StringIO(text), sep=mark, dtype=str, keep_default_na=False, comment="#")
    table.columns = [str(name).strip() for name in table.columns]
    if mark != ",":
        for name in [name for name in table.columns if name not in ("sequence", "token", "label")]:
            table[name] = table[name].str.replace(",", ".", regex=False)
    return table


def _order(token: object) -> tuple[int, float, str]:
    """Numbers by value, everything else by text, behind them."""
    try:
        return (0, float(str(token)), "")
    except ValueError:
        return (1, 0.0, str(token))
