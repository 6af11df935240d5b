"""The fields of a network file, read one by one; every complaint names the file and the field."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from flint import fmpq

from ..errors import FileError
from .blocks import Block, LowRank, Neuron, OuterProduct
from .numbers import Vector, unit


class NetworkReader:
    """Fields of one JSON file; every complaint names the file and the field."""

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
            return fmpq(value)
        except (ValueError, ZeroDivisionError):
            raise self.wrong(field, f"holds {value[:40]!r}, which is not a rational") from None

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
