"""Run the benchmarks by name, or all of them, print their tables and write them as JSON if asked."""

from __future__ import annotations

import argparse
import importlib
import json
import pkgutil
from pathlib import Path

import benchmarks
from hardmax.files import write_text


def main() -> None:
    """The command line."""
    modules = (module for module in pkgutil.iter_modules(benchmarks.__path__) if not module.ispkg)
    names = [module.name for module in modules if not module.name.startswith("_")]
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=benchmarks.__doc__)
    parser.add_argument("names", nargs="*", help=f"which to run: {', '.join(names)}; all when left out")
    parser.add_argument("--quick", action="store_true", help="smaller sizes: seconds instead of minutes")
    parser.add_argument("--json", type=Path, metavar="PATH", help="also write the results to this file")
    asked = parser.parse_args()
    unknown = sorted(set(asked.names) - set(names))
    if unknown:
        parser.error(f"no benchmark called {', '.join(unknown)}; there are {', '.join(names)}")
    reports = []
    for name in asked.names or names:
        report = importlib.import_module(f"benchmarks.{name}").run(quick=asked.quick)
        print(f"{report}\n", flush=True)
        reports.append({"name": name, **report.as_data()})
    if asked.json is not None:
        write_text(asked.json, json.dumps(reports, indent=1) + "\n")


if __name__ == "__main__":
    main()
