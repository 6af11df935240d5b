"""The command line of the benchmarks: which to run, how large, and where the results go."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from pathlib import Path

from hardmax.files import write_text

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
    asked = parser.parse_args()
    if unknown := sorted(set(asked.names) - set(names)):
        parser.error(f"no {kind} called {', '.join(unknown)}; there are {known}")
    asked.names = asked.names or list(names)
    return asked


def tell(reports: Iterable[tuple[str, Report]], path: Path | None) -> None:
    """Print each report when it is there; write all of them as JSON if asked."""
    told = []
    for name, report in reports:
        print(f"{report}\n", flush=True)
        told.append({"name": name, **report.as_data()})
    if path is not None:
        write_text(path, json.dumps(told, indent=1) + "\n")
