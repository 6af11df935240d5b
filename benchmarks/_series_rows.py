"""Stored rows of the benchmark of real series: one per series, origin and model, appended as they are measured."""

from __future__ import annotations

import ast
import csv
import hashlib
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import hardmax.forecasting

FILE = Path(__file__).parent / "real_series" / "rows.csv"
"""Where the rows are stored."""
_COLUMNS = ("series", "origin", "model", "code", "mase", "in68", "in95", "selected")


@dataclass(frozen=True)
class Measured:
    """Error of a forecast, the shares of the true samples inside its intervals, and the kind of the selected model."""

    mase: float
    inside: tuple[float, ...] = ()
    selected: str = ""


class StoredRows:
    """Rows in a CSV file; later rows replace earlier ones with the same series, origin, model and code.

    Parameters
    ----------
    path
        The file, created with the first row.
    """

    def __init__(self, path: Path = FILE) -> None:
        self.path = path
        self._rows: dict[tuple[str, int, str, str], Measured] = {}
        if path.exists():
            with path.open(newline="", encoding="utf-8") as file:
                for row in csv.DictReader(file):
                    inside = tuple(float(row[name]) for name in ("in68", "in95") if row[name])
                    key = (row["series"], int(row["origin"]), row["model"], row["code"])
                    self._rows[key] = Measured(float(row["mase"]), inside, row["selected"])

    def get(self, series: str, origin: int, model: str, code: str) -> Measured | None:
        """Measurement by this code; None where there is none."""
        return self._rows.get((series, origin, model, code))

    def add(self, series: str, origin: int, model: str, code: str, found: Measured) -> None:
        """Append a measurement to the file."""
        self._rows[series, origin, model, code] = found
        self.path.parent.mkdir(parents=True, exist_ok=True)
        new = not self.path.exists()
        inside = [f"{share:.6g}" for share in found.inside] or ["", ""]
        with self.path.open("a", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            if new:
                writer.writerow(_COLUMNS)
            writer.writerow([series, origin, model, code, repr(found.mase), *inside, found.selected])


_NO_PART_IN_FORECASTS = (
    "classical/files.py",
    "diagnostics/report.py",
    "model_files.py",
    "online.py",
    "recursive_readout.py",
    "sktime_adapter.py",
)
"""Files without effect on the forecasts of a new fit: those of saved models, updates, and sentences of the report."""


@cache
def code_version() -> str:
    """Fingerprint of the code that makes forecasts: changes of comments and docstrings do not change it."""
    folder = Path(hardmax.forecasting.__file__).parent
    found = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        if path.relative_to(folder).as_posix() in _NO_PART_IN_FORECASTS:
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            body = getattr(node, "body", None)
            if isinstance(body, list):
                # Docstrings, also those of constants, are expressions that are strings.
                node.body = [line for line in body if not _is_string(line)]  # type: ignore[attr-defined]
        found.update(_dump(tree).encode())
    return found.hexdigest()[:12]


def _dump(tree: ast.AST) -> str:
    """The same text on every supported version of Python, as written by 3.11."""
    options: dict[str, Any] = {"show_empty": True} if sys.version_info >= (3, 13) else {}
    return ast.dump(tree, **options).replace(", type_params=[]", "")


def _is_string(line: ast.stmt) -> bool:
    return isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant) and isinstance(line.value.value, str)
