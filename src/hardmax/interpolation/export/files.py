"""Networks as JSON and safetensors files.

A folder holds ``network.json``, where every number is an exact rational as a string, and ``network.safetensors`` with
the same weights rounded to float64, stacked over the blocks.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import secrets
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from flint import fmpq
from safetensors.numpy import save as save_tensors

from ...errors import FileError, InputError
from ...files import make_folder, write_bytes, write_text
from ..arithmetic.numbers import Vector, unit
from ..data import DataSet, read_data
from ..evaluation.counts import count_blocks
from ..network import Block, CompiledNetwork, LowRank, Neuron, OuterProduct, Report, stacked

# Rationals of the format, so that every reader accepts the same files: fmpq alone also takes " 3/-8 ".
_RATIONAL = re.compile(r"-?[0-9]+(/[0-9]+)?", re.ASCII)


class NetworkReader:
    """Reader of the fields of one JSON file; every error names the file and the field."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def wrong(self, field: str, problem: str) -> FileError:
        return FileError(self.path, f"field {field} {problem}", "restore the file or save the network again")

    def get(self, record: object, field: str, kind: type | tuple[type, ...]) -> Any:
        name = field.rsplit(".", 1)[-1]
        if not isinstance(record, dict) or name not in record:
            raise self.wrong(field, "is missing")
        value = record[name]
        if not isinstance(value, kind) or (
            isinstance(value, bool) and bool not in (kind if isinstance(kind, tuple) else (kind,))
        ):
            raise self.wrong(field, f"has the wrong type {type(value).__name__}")
        return value

    def number(self, value: object, field: str) -> fmpq:
        if not isinstance(value, str):
            raise self.wrong(field, f"must hold rationals as strings, not {value!r}")
        try:
            if _RATIONAL.fullmatch(value) is None:
                raise ValueError(value)
            return fmpq(value)
        except (ValueError, ZeroDivisionError):
            raise self.wrong(field, f"holds {value[:40]!r}, which is not a rational") from None

    def real(self, record: object, field: str) -> float:
        """Number of the file as a float; infinite where it is too large for one."""
        value = self.get(record, field, (int, float))
        try:
            return float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf

    def vector(self, value: object, field: str, length: int) -> Vector:
        if not isinstance(value, list) or len(value) != length:
            raise self.wrong(field, f"must be a list of {length} rationals")
        return tuple(self.number(x, field) for x in value)

    def rows(self, value: object, field: str, count: int, length: int) -> list[Vector]:
        if not isinstance(value, list) or len(value) != count:
            raise self.wrong(field, f"must have {count} rows")
        return [self.vector(row, field, length) for row in value]

    def matrix(self, value: object, field: str, d: int) -> LowRank:
        if isinstance(value, list):
            rows = self.rows(value, field, d, d)
            return tuple(OuterProduct(unit(d, i), row) for i, row in enumerate(rows) if any(row))
        left = self.get(value, f"{field}.left", list)
        right = self.rows(self.get(value, f"{field}.right", list), f"{field}.right", len(left), d)
        left = self.rows(left, f"{field}.left", len(left), d)
        return tuple(OuterProduct(a, b) for a, b in zip(left, right, strict=True))

    def block(self, record: object, field: str, d: int, width: int) -> Block:
        readings = self.get(record, f"{field}.U", list)
        h = len(readings)
        if h > width:
            raise self.wrong(f"{field}.U", f"has {h} neurons, more than the width {width}")
        U = self.rows(readings, f"{field}.U", h, d)
        b = self.vector(self.get(record, f"{field}.b", list), f"{field}.b", h)
        W = self.rows(self.get(record, f"{field}.W", list), f"{field}.W", d, h)
        neurons = tuple(Neuron(U[r], b[r], tuple(W[i][r] for i in range(d))) for r in range(h))
        stage = record.get("stage", "") if isinstance(record, dict) else ""
        return Block(
            self.number(self.get(record, f"{field}.eta", str), f"{field}.eta"),
            neurons,
            self.number(self.get(record, f"{field}.rho", str), f"{field}.rho"),
            self.matrix(self.get(record, f"{field}.B", (list, dict)), f"{field}.B", d),
            self.matrix(self.get(record, f"{field}.V", (list, dict)), f"{field}.V", d),
            str(stage),
        )


# Increased when files of an earlier version can no longer be read by the same code.
FORMAT = 1
JSON_NAME, TENSORS_NAME = "network.json", "network.safetensors"
_MOST_BYTES = 4_000_000_000  # a bound on memory; larger files are refused


def save(network: CompiledNetwork, path: Path) -> Path:
    """Folder to which both files were written; the JSON file, which contains the hash of the other, is last."""
    tensors = save_tensors(stacked(network.blocks, network.dimension))
    counts = count_blocks(network)
    record = {
        "format": FORMAT,
        "d": network.dimension,
        "width": network.width,
        "attention": network.attention,
        "tau": None if network.temperature is None else str(network.temperature),
        "construction": network.construction,
        "classes": None if network.classes is None else _labels(network, path),
        "class_targets": [_texts(y) for y in network.class_targets],
        "data": {
            "token_level": network.data.token_level,
            "inputs": [[_texts(x) for x in tokens] for tokens in network.data.inputs],
            "outputs": [[_texts(y) for y in points] for points in network.data.outputs],
            "sha256": network.data.digest(),
        },
        "claims": {
            "blocks": len(network.blocks),
            "parameters": counts.parameters,
            "published_bound": counts.published,
            "cuts": network.report.cuts,
            "flat": network.report.flat,
            "range_over_gap": _json_number(network.report.conditioning),
            "gap": _json_number(network.report.gap),
            "gain": None if network.report.gain is None else str(network.report.gain),
        },
        "notes": list(network.notes),
        "tensors_sha256": hashlib.sha256(tensors).hexdigest(),
        "blocks": [_block_record(block, network.dimension) for block in network.blocks],
    }
    text = json.dumps(record, ensure_ascii=False) + "\n"
    with _folder(path.expanduser()) as folder:
        write_bytes(folder / TENSORS_NAME, tensors)
        write_text(folder / JSON_NAME, text)
    return path


@contextmanager
def _folder(path: Path) -> Iterator[Path]:
    """Folder to write into; a new folder gets its name only when all files in it are complete."""
    if path.exists():
        yield make_folder(path)
        return
    make_folder(path.parent)
    draft = make_folder(path.with_name(f".{path.name[:60]}.{secrets.token_hex(4)}"))
    try:
        yield draft
        os.replace(draft, path)
    except OSError as error:
        raise FileError(path, f"cannot be written ({error.strerror})", "choose a folder with permission") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _labels(network: CompiledNetwork, path: Path) -> list[object]:
    labels = [c.item() if isinstance(c, np.generic) else c for c in network.classes or ()]
    for label in labels:
        if not isinstance(label, (str, int, float, bool)):
            raise FileError(path, f"the label {label!r} cannot be stored", "use strings or numbers as labels")
    return list(labels)


def _json_number(value: float) -> float | int:
    """The number, or for infinity, which is not JSON, an integer that is too large for a float."""
    return 10**309 if value == math.inf else value


def _texts(vector: Sequence[fmpq]) -> list[str]:
    return [str(c) for c in vector]


def _matrix_record(matrix: LowRank) -> dict[str, list[list[str]]]:
    return {"left": [_texts(t.left) for t in matrix], "right": [_texts(t.right) for t in matrix]}


def _block_record(block: Block, d: int) -> dict[str, object]:
    return {
        "stage": block.stage,
        "eta": str(block.eta),
        "U": [_texts(n.reading) for n in block.neurons],
        "b": _texts([n.bias for n in block.neurons]),
        "W": [_texts([n.writing[i] for n in block.neurons]) for i in range(d)],
        "rho": str(block.rho),
        "B": _matrix_record(block.B),
        "V": _matrix_record(block.V),
    }


def json_path(path: Path) -> Path:
    """Path of ``network.json`` for a folder; a file stands for itself."""
    path = path.expanduser()
    return path if path.name == JSON_NAME or path.is_file() else path / JSON_NAME


def _read_json(path: Path) -> dict[str, Any]:
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise FileError(path, f"is larger than {_MOST_BYTES:,} bytes", "this is not a network that net.save wrote")
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise FileError(path, "does not exist", "pass the folder that net.save wrote") from None
    except UnicodeDecodeError:
        raise FileError(path, "is not text in UTF-8", "restore the file or save the network again") from None
    except OSError as error:
        raise FileError(path, f"cannot be read ({error.strerror})", "check the path and its permissions") from None
    try:
        record = json.loads(text, object_pairs_hook=_without_duplicates, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:  # also for integers of more digits than Python converts
        raise FileError(
            path, f"is not complete JSON ({error})", "it is truncated or damaged: save the network again"
        ) from None
    if not isinstance(record, dict):
        raise FileError(path, "is not a network", "pass the folder that net.save wrote")
    return record


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) != len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"a key appears twice in one object: {max(names, key=names.count)[:40]!r}")
    return record


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def load(path: Path) -> CompiledNetwork:
    """Network read from ``network.json``; its claims are not checked here, see :func:`hardmax.verify`."""
    return read_network(json_path(path))[0]


def read_network(path: Path) -> tuple[CompiledNetwork, dict[str, Any]]:
    """Network and raw record of a ``network.json``."""
    record, reader = _read_json(path), NetworkReader(path)
    if "kind" in record:  # a field of certificates, which networks do not have
        raise FileError(path, "is the certificate of an equilibrium, not a network", "check it with verify/verify.py")
    version = reader.get(record, "format", int)
    if version != FORMAT:
        raise FileError(path, f"has format {version}, this version reads {FORMAT}", "update hardmax")
    d = reader.get(record, "d", int)
    width = reader.get(record, "width", int)
    if d < 2 or width < 1:
        raise reader.wrong("d" if d < 2 else "width", "is too small")
    attention = reader.get(record, "attention", str)
    if attention not in ("hardmax", "softmax"):
        raise reader.wrong("attention", f"must be hardmax or softmax, not {attention!r}")
    heat = reader.number(reader.get(record, "tau", str), "tau") if attention == "softmax" else None
    if heat is not None and heat <= 0:
        raise reader.wrong("tau", "must be positive")
    data = _data(reader, reader.get(record, "data", dict), d)
    records = reader.get(record, "blocks", list)
    blocks = tuple(reader.block(block, f"blocks[{k}]", d, width) for k, block in enumerate(records))
    if not blocks:
        raise reader.wrong("blocks", "is empty")
    claims = reader.get(record, "claims", dict)
    classes = reader.get(record, "classes", (list, type(None)))
    report = Report(
        cuts=reader.get(claims, "claims.cuts", int),
        conditioning=reader.real(claims, "claims.range_over_gap"),
        gap=reader.real(claims, "claims.gap"),
        flat=reader.get(claims, "claims.flat", bool),
        gain=None if claims.get("gain") is None else reader.number(claims["gain"], "claims.gain"),
    )
    network = CompiledNetwork(
        data=data,
        blocks=blocks,
        construction=reader.get(record, "construction", str),
        width=width,
        attention=attention,
        temperature=heat,
        report=report,
        classes=None if classes is None else tuple(classes),
        class_targets=tuple(reader.vector(y, "class_targets", d) for y in reader.get(record, "class_targets", list)),
        notes=tuple(str(note) for note in reader.get(record, "notes", list)),
    )
    return network, record


def _data(reader: NetworkReader, record: dict[str, Any], d: int) -> DataSet:
    token_level = reader.get(record, "data.token_level", bool)
    sides = []
    for side in ("inputs", "outputs"):
        name = f"data.{side}"
        sequences = reader.get(record, name, list)
        if not all(isinstance(tokens, list) and tokens for tokens in sequences):
            raise reader.wrong(name, "must be a list of lists of tokens")
        sides.append([[reader.vector(x, f"{name}[{j}]", d) for x in tokens] for j, tokens in enumerate(sequences)])
    try:
        data = read_data(*sides, token_level=token_level)
    except InputError as error:
        raise reader.wrong("data", f"is not a data set: {error}") from None
    if len(data) != len(sides[0]):
        raise reader.wrong("data", "repeats a pair")
    return data
