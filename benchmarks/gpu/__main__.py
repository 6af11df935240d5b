"""Run the GPU benchmarks by name, or all of them, print their tables and write them as JSON if asked."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import torch

from benchmarks.gpu import limits, search, softmax, training
from hardmax.files import write_text

_ALL = {"search": search, "softmax": softmax, "limits": limits, "training": training}


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"which to run: {', '.join(_ALL)}; all when left out")
    parser.add_argument("--quick", action="store_true", help="smaller sizes")
    parser.add_argument("--json", type=Path, metavar="PATH", help="also write the results to this file")
    asked = parser.parse_args()
    if unknown := sorted(set(asked.names) - set(_ALL)):
        parser.error(f"no GPU benchmark called {', '.join(unknown)}; there are {', '.join(_ALL)}")
    if not torch.cuda.is_available():
        sys.exit("there is no GPU here: these figures need one")
    reports = []
    for name in asked.names or _ALL:
        report = _ALL[name].run(quick=asked.quick)
        print(f"{report}\n", flush=True)
        reports.append({"name": name, **report.as_data()})
    if asked.json is not None:
        write_text(asked.json, json.dumps(reports, indent=1) + "\n")


if __name__ == "__main__":
    main()
