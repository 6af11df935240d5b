"""Run the benchmarks by name, or all of them, print their tables and write them as JSON if asked."""

from __future__ import annotations

import importlib
import pkgutil

import benchmarks

from ._command import read_arguments, tell


def main() -> None:
    """The command line."""
    modules = (module for module in pkgutil.iter_modules(benchmarks.__path__) if not module.ispkg)
    names = [module.name for module in modules if not module.name.startswith("_")]
    asked = read_arguments(
        "python -m benchmarks",
        benchmarks.__doc__,
        names,
        kind="benchmark",
        quick="smaller sizes: seconds instead of minutes",
    )
    found = ((name, importlib.import_module(f"benchmarks.{name}").run(quick=asked.quick)) for name in asked.names)
    tell(found, asked, "python -m benchmarks")


if __name__ == "__main__":
    main()
