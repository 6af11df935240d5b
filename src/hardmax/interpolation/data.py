"""Data sets to compile: exact rationals, validated before any work starts, with a hash; from values or from files.

Files are JSON, or CSV and Parquet in long form. JSON: ``{"inputs": [[[0, "3/8"], ...], ...], "outputs": [...]}``, or
``"labels"`` in place of ``"outputs"``. Decimals are read as written, so 0.1 is one tenth. Long form: one row per token
with the columns ``sequence``, ``token`` and the coordinates, and in a second file of the same form the output points;
or a column ``label``, the same on all rows of a sequence.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from ..errors import FileError, InputError
from ..tables.delimited import read_cells
from ..tables.dialect import with_points
from ..tables.files import file_text, read_parquet, require_readable
from .arithmetic.numbers import Vector, rational

if TYPE_CHECKING:
    import pandas as pd


_MOST_NUMBERS = 50_000_000  # a bound on memory, checked while reading


@dataclass(frozen=True)
class DataSet:
    """N pairs of an input set and an output set, in exact rationals, without repetitions."""

    inputs: tuple[tuple[Vector, ...], ...]
    """Distinct tokens of each sequence, d rationals per token."""
    outputs: tuple[tuple[Vector, ...], ...]
    """Output points of each sequence, d rationals per point."""
    token_level: bool = False
    """Whether ``outputs[j][i]`` is the image of ``inputs[j][i]``; otherwise outputs are sets."""
    notes: tuple[str, ...] = field(default=(), compare=False)
    """Remarks on what was removed from the input."""
    repeats_tokens: bool = field(default=False, compare=False)
    """Whether a sequence of the input repeated a token."""

    def __len__(self) -> int:
        return len(self.inputs)

    @property
    def dimension(self) -> int:
        """Coordinates per token, d."""
        return len(self.inputs[0][0])

    @property
    def targets(self) -> int:
        """:math:`M`, the number of output points summed over the sequences."""
        return sum(len(points) for points in self.outputs)

    @property
    def merging(self) -> int:
        """:math:`N'`, the number of sequences with fewer output points than tokens."""
        return sum(len(y) < len(x) for x, y in zip(self.inputs, self.outputs, strict=True))

    @property
    def tokens(self) -> int:
        """Number of tokens summed over the sequences."""
        return sum(len(x) for x in self.inputs)

    def digest(self) -> str:
        """SHA-256 of the data as exact rationals, one token per line.

        Returns
        -------
        str
            Hexadecimal digest.
        """
        sha = hashlib.sha256(b"tokens\n" if self.token_level else b"sets\n")
        for x, y in zip(self.inputs, self.outputs, strict=True):
            for name, points in (("input", x), ("output", y)):
                lines = "\n".join(" ".join(map(str, point)) for point in points)
                sha.update(f"{name}\n{lines}\n".encode())
        return sha.hexdigest()


def read_data(inputs: object, outputs: object, *, token_level: bool = False) -> DataSet:
    """Data set of exact rationals; raises an InputError for data that no network can interpolate."""
    xs = _sequences("inputs", inputs)
    ys = _sequences("outputs", outputs)
    if len(xs) != len(ys):
        raise InputError(
            "outputs",
            f"{len(ys)} entries",
            f"must have one entry per input, {len(xs)}",
            "pair every input with its output",
        )
    dimension = len(xs[0][0])
    if dimension < 2:
        raise InputError(
            "inputs", "d = 1", "must have at least two coordinates", "append a zero to every token and target"
        )
    for argument, sequences in (("inputs", xs), ("outputs", ys)):
        _check_dimension(argument, sequences, dimension)
    if token_level:
        xs, ys, notes, repeated = _pair_tokens(xs, ys)
    else:
        xs, ys, notes, repeated = _as_sets(xs, ys)
    keep, more = _distinct_inputs(xs, ys, token_level)
    return DataSet(tuple(xs[j] for j in keep), tuple(ys[j] for j in keep), token_level, tuple(notes + more), repeated)


def _sequences(argument: str, value: object) -> list[tuple[Vector, ...]]:
    entries = as_list(argument, value)
    if not entries:
        raise InputError(argument, "nothing", "must not be empty", "pass at least one sequence")
    count = 0
    result = []
    for j, entry in enumerate(entries):
        name = f"{argument}[{j}]"
        points = as_list(name, entry)
        if points and not is_list(points[0]):
            if argument == "inputs":
                raise InputError(
                    name, "a list of numbers", "must be a list of tokens", "each token is a list of d numbers"
                )
            points = [points]  # one output point may be given without the brackets of a set of one
        if not points:
            raise InputError(name, "an empty list", "must not be empty", "leave the sequence out or give it tokens")
        result.append(tuple(read_vector(f"{name}[{i}]", point) for i, point in enumerate(points)))
        count += len(points) * len(result[-1][0])
        if count > _MOST_NUMBERS:
            raise InputError(
                argument, f"more than {_MOST_NUMBERS:,} numbers", "is too large to compile", "split the data set"
            )
    return result


def is_list(value: object) -> bool:
    """Whether this is a list of something: a sequence, a set, an array, a tensor or a table of pandas."""
    if isinstance(value, (str, bytes)):
        return False
    return isinstance(value, (Sequence, np.ndarray, torch.Tensor, frozenset, set)) or hasattr(value, "to_numpy")


def as_list(argument: str, value: object, remedy: str = "pass a list of sequences of tokens") -> list[object]:
    """The entries of a list; arrays along their first axis, as plain numbers."""
    if not is_list(value):
        raise InputError(argument, _brief(value), "must be a list", remedy)
    if hasattr(value, "to_numpy"):
        value = value.to_numpy()
    if isinstance(value, np.ma.MaskedArray):
        if np.ma.is_masked(value):
            where = tuple(int(k) for k in np.argwhere(np.ma.getmaskarray(value))[0])
            raise InputError(
                argument, f"a masked value at index {where}", "must not be masked", "remove or impute the masked values"
            )
        value = value.data
    if isinstance(value, (np.ndarray, torch.Tensor)):
        if value.ndim == 0:
            raise InputError(
                argument, _brief(value), "must be a list", "pass an array with a token and a coordinate axis"
            )
        return list(value.tolist())
    return list(value)  # type: ignore[call-overload, no-any-return]


def _brief(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def read_vector(argument: str, value: object) -> Vector:
    """One token, its coordinates taken exactly."""
    if isinstance(value, (set, frozenset)):
        raise InputError(argument, _brief(value), "must be an ordered list of coordinates", "pass a list or a tuple")
    numbers = as_list(argument, value)
    if not numbers:
        raise InputError(argument, "an empty list", "must have coordinates", "give every token d numbers")
    return tuple(rational(argument, number) for number in numbers)


def _check_dimension(argument: str, sequences: list[tuple[Vector, ...]], dimension: int) -> None:
    for j, points in enumerate(sequences):
        for i, point in enumerate(points):
            if len(point) != dimension:
                raise InputError(
                    f"{argument}[{j}][{i}]",
                    f"{len(point)} coordinates",
                    f"must have {dimension} coordinates like inputs[0][0]",
                    "give all tokens and targets the same dimension (pad targets with zeros)",
                )


_Sets = tuple[list[tuple[Vector, ...]], list[tuple[Vector, ...]], list[str], bool]


def _as_sets(xs: list[tuple[Vector, ...]], ys: list[tuple[Vector, ...]]) -> _Sets:
    notes = []
    distinct_xs = [tuple(dict.fromkeys(x)) for x in xs]
    distinct_ys = [tuple(dict.fromkeys(y)) for y in ys]
    repeated = sum(len(a) < len(b) for a, b in zip(distinct_xs, xs, strict=True))
    if repeated:
        notes.append(f"{repeated} of {len(xs)} input sequences repeat tokens; they were compiled as sets")
    for j, (x, y) in enumerate(zip(distinct_xs, distinct_ys, strict=True)):
        if len(y) > len(x):
            raise InputError(
                f"outputs[{j}]",
                f"{len(y)} distinct points for {len(x)} distinct tokens",
                "must not have more points than its input has tokens",
                "equal tokens stay equal in a transformer: add tokens or drop output points",
            )
    return distinct_xs, distinct_ys, notes, bool(repeated)


def _pair_tokens(xs: list[tuple[Vector, ...]], ys: list[tuple[Vector, ...]]) -> _Sets:
    distinct_xs, distinct_ys, notes, repeated = [], [], [], 0
    for j, (x, y) in enumerate(zip(xs, ys, strict=True)):
        if len(x) != len(y):
            raise InputError(
                f"outputs[{j}]", f"{len(y)} points", f"must have one image per token, {len(x)}", "pair every token"
            )
        image: dict[Vector, Vector] = {}
        for i, (token, target) in enumerate(zip(x, y, strict=True)):
            if image.setdefault(token, target) != target:
                raise InputError(
                    f"outputs[{j}][{i}]",
                    "two different images of one repeated token",
                    "must agree on equal tokens",
                    "equal tokens stay equal in a transformer: give them one image",
                )
        repeated += len(image) < len(x)
        distinct_xs.append(tuple(image))
        distinct_ys.append(tuple(image.values()))
    if repeated:
        notes.append(f"{repeated} of {len(xs)} input sequences repeat tokens; they were compiled as sets")
    return distinct_xs, distinct_ys, notes, bool(repeated)


def _distinct_inputs(
    xs: list[tuple[Vector, ...]], ys: list[tuple[Vector, ...]], token_level: bool
) -> tuple[list[int], list[str]]:
    seen: dict[frozenset[Vector], int] = {}
    keep, dropped = [], 0
    for j, x in enumerate(xs):
        first = seen.setdefault(frozenset(x), j)
        if first == j:
            keep.append(j)
            continue
        if token_level:
            same = dict(zip(x, ys[j], strict=True)) == dict(zip(xs[first], ys[first], strict=True))
        else:
            same = set(ys[j]) == set(ys[first])
        if not same:
            raise InputError(
                "inputs",
                f"inputs[{first}] and inputs[{j}], the same set of tokens with different outputs",
                "must be pairwise different as sets",
                "no transformer without positions separates them: remove one or append a position coordinate",
            )
        dropped += 1
    return keep, [f"{dropped} repeated pairs were dropped"] if dropped else []


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
