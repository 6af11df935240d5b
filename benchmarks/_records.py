"""Records of benchmark runs: results with their command, date and machine, stored as JSON in ``benchmarks/results``.

The page on benchmarks is made from these files by ``docs/_extensions/benchmark_records.py``.
"""

from __future__ import annotations

import datetime
import json
import os
import platform
import re
from collections.abc import Iterable
from pathlib import Path

import hardmax
from hardmax.files import make_folder, write_text

from ._table import Check, Report

RESULTS = Path(__file__).parent / "results"


def record(
    command: str, results: Iterable[dict[str, object]], *, date: str = "", machine: str = ""
) -> dict[str, object]:
    """Results of one command with its date (today) and the machine in words (this one)."""
    return {
        "command": command,
        "date": date or datetime.date.today().isoformat(),
        "machine": machine or this_machine(),
        "version": hardmax.__version__,
        "results": list(results),
    }


def store(name: str, told: dict[str, object]) -> Path:
    """Write a record under the name of its benchmark."""
    return write_text(make_folder(RESULTS) / f"{name}.json", json.dumps(told, indent=1, ensure_ascii=False) + "\n")


def this_machine() -> str:
    """Processor and cores in words, without the name of the machine."""
    kind = platform.machine()
    try:
        listed = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        listed = ""
    if found := re.search(r"^model name\s*:\s*(.+)$", listed, flags=re.MULTILINE):
        kind = found[1].strip()
    return f"{kind}, {os.cpu_count()} cores"


_CHECK = re.compile(r"(PASS|missed)\s+(.*): (\S+) ?(.*?) \(target (>=|<=) (\S+) ?(.*)\)$")


def read_printed(text: str) -> list[Report]:
    """Reports read back from what the benchmarks printed; cells stay as they were printed."""
    lines = text.splitlines()
    starts = [k - 1 for k, line in enumerate(lines) if k and line and set(line) == {"="}]
    return [_one(lines[start:end]) for start, end in zip(starts, [*starts[1:], len(lines)], strict=True)]


def _one(lines: list[str]) -> Report:
    rule = lines[3]
    spans = [found.span() for found in re.finditer(r"-+", rule)]
    # Columns are as wide as their longest cell, so a row is cut where the rule is.
    report = Report(lines[0].strip(), [lines[2][a:b].strip() for a, b in spans])
    for line in lines[4:]:
        if found := _CHECK.match(line):
            _, what, value, unit, sign, target, _ = found.groups()
            check = Check(what, _number(value), _number(target), at_least=sign == ">=", unit=unit)
            report.checks.append(check)
        elif line.startswith("  ") and line.strip():
            report.notes.append(line.strip())
        elif line.strip() and not line.startswith("$"):
            report.rows.append([line[a:b].strip() or None for a, b in spans])
    return report


def _number(text: str) -> float:
    return float(text.replace(",", ""))
