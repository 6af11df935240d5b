"""The command line of the benchmarks: which to run, how large, and where the results go."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from pathlib import Path

from hardmax.files import write_text

from ._records import record, store
from ._table import Report


def read_arguments(
    prog: str, description: str | None, names: Iterable[str], *, kind: str, quick: str
) -> argparse.Namespace:
    """``names`` to run (all when none was given), ``quick`` and ``json``."""
    known = ", ".join(names)
    parser = argparse.ArgumentParser(prog=prog, description=description)
    parser.add_argument("names", nargs="*", help=f"which to run: {known}; all when left out")
    parser.add_argument("--quick", action="store_true", help=quick)
    parser.add_argument("--json", type=Path, metavar="PATH", help="also write the results to this file")
    parser.add_argument("--record", action="store_true", help="also store each result for the page on benchmarks")
    asked = parser.parse_args()
    if unknown := sorted(set(asked.names) - set(names)):
        parser.error(f"no {kind} called {', '.join(unknown)}; there are {known}")
    asked.names = asked.names or list(names)
    return asked


def tell(reports: Iterable[tuple[str, Report]], asked: argparse.Namespace, prog: str) -> None:
    """Print each report when it is there; write all of them as JSON, and store them for the documentation, if asked."""
    told = []
    size = " --quick" if asked.quick else ""
    for name, report in reports:
        print(f"{report}\n", flush=True)
        told.append({"name": name, **report.as_data()})
        if asked.record:
            stored = prog.removeprefix("python -m benchmarks").replace(".", "") + f"-{name}"
            store(stored.lstrip("-"), record(f"{prog} {name}{size}", told[-1:]))
    if asked.json is not None:
        whole = record(f"{prog} {' '.join(asked.names)}{size}", told)
        write_text(asked.json, json.dumps(whole, indent=1, ensure_ascii=False) + "\n")
