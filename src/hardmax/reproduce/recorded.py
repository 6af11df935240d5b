"""Recorded results of full runs: they stand beside a quick run, and on the pages of the papers in the documentation.

``python -m hardmax.reproduce.recorded REPORT`` takes over the finished parts of a full ``hardmax reproduce all``.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..files import write_text

RECORDED = Path(__file__).with_name("recorded.json")


def recorded_runs(path: Path = RECORDED) -> dict[str, dict[str, Any]]:
    """Recorded full runs by part of the report.

    Parameters
    ----------
    path
        File of the records; the one that ships when left out.

    Returns
    -------
    dict
        By name of the part: command, date, machine, seconds, a note, and the claims with their verdicts.
    """
    found: dict[str, dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    return found


def measured_in_full(part: str, claim: dict[str, str], path: Path = RECORDED) -> str:
    """What the recorded full run of a part measured for a claim, with its verdict; a dash where there is none."""
    for one in recorded_runs(path).get(part, {}).get("claims", []):
        if (one["where"], one["statement"]) == (claim["where"], claim["statement"]):
            return f"{one['measured']} ({one['verdict']})"
    return "–"


def record_report(report: str | os.PathLike[str], path: Path = RECORDED) -> list[str]:
    """Take over the parts of a full report that have claims.

    Parameters
    ----------
    report
        Folder of a report of :func:`hardmax.reproduce.reproduce_all`, not of a quick one.
    path
        File of the records.

    Returns
    -------
    list of str
        Names of the parts that were taken over.
    """
    told = json.loads((Path(report) / "report.json").read_text(encoding="utf-8"))
    if told["quick"]:
        raise InputError("report", os.fspath(report), "must be a full run", "run hardmax reproduce all without --quick")
    records = recorded_runs(path) if path.exists() else {}
    taken = [part for part in told["parts"] if part["claims"]]
    for part in taken:
        records[part["name"]] = {
            "command": part["command"],
            "date": part["date"],
            "machine": told["machine"],
            "version": told["version"],
            "seconds": part["seconds"],
            "note": "",
            "claims": part["claims"],
        }
    write_text(path, json.dumps(records, indent=1, ensure_ascii=False) + "\n")
    return [part["name"] for part in taken]


if __name__ == "__main__":
    print("recorded:", ", ".join(record_report(sys.argv[1])))
