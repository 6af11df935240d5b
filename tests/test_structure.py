"""The structure of the source: small folders, few files with a single importer, no import cycle, deferred or not."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import hardmax

ROOT = Path(hardmax.__file__).parent
MODULES = {
    ".".join(("hardmax", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__"): path
    for path in ROOT.rglob("*.py")
}


def imports(module: str, path: Path) -> Iterator[str]:
    """The modules of hardmax that a file imports anywhere: at the top, in functions and for type checkers alone."""
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in MODULES)
        elif isinstance(node, ast.ImportFrom):
            parents = package.split(".")
            above = parents[: len(parents) - node.level + 1] if node.level else []
            origin = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                name = f"{origin}.{alias.name}"
                if name in MODULES or origin in MODULES:
                    yield name if name in MODULES else origin


GRAPH = {module: set(imports(module, path)) - {module} for module, path in MODULES.items()}


def test_the_walk_finds_imports_in_functions_and_for_type_checkers() -> None:
    assert "hardmax.dynamics.equilibrium" in GRAPH["hardmax"]  # for type checkers
    assert "hardmax.app.server" in GRAPH["hardmax.cli.explore"]  # in a function


def test_no_import_cycle_also_among_deferred_imports() -> None:
    # A package that exports lazily names its modules for type checkers; its modules may import the package's version.
    graph = {
        module: {name for name in names if MODULES[name].name != "__init__.py"}
        for module, names in GRAPH.items()
        if MODULES[module].name != "__init__.py"
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        raise AssertionError(" -> ".join(error.args[1])) from None


def test_no_folder_has_more_than_25_files() -> None:
    files: dict[Path, int] = defaultdict(int)
    for path in MODULES.values():
        files[path.parent] += 1
    assert {str(folder): count for folder, count in files.items() if count > 25} == {}


def test_few_internal_files_have_a_single_importer() -> None:
    importers: dict[str, set[str]] = defaultdict(set)
    for module, names in GRAPH.items():
        for name in names:
            importers[name].add(module)
    # Files for another reason: a package, a module that its package exports, a command and its work, parts of a page,
    # and a program that is run by `python -m` and read by the documentation.
    pattern = re.compile(r"hardmax\.cli\.\w+_(run|report)|hardmax\.app\.\w+\.\w+|hardmax\.reproduce\.recorded")
    single = [
        module
        for module in sorted(MODULES)
        if len(importers[module]) == 1
        and MODULES[module].name != "__init__.py"
        and all(MODULES[name].name != "__init__.py" for name in importers[module])
        and "hardmax.cli.app" not in importers[module]
        and not pattern.fullmatch(module)
    ]
    assert len(single) < 40, single


# What is filled step by step: parameters in training, tuned settings, states and margins that a run collects.
FILLED = {
    "InMemory",
    "LagTrial",
    "Learner",
    "Margins",
    "Network",
    "TrainingState",
    "_Echo",
    "_Hodmd",
    "_Network",
    "_Sindy",
}


def _dataclasses(path: Path) -> Iterator[tuple[str, bool]]:
    """The dataclasses of a file, and whether they are frozen."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        for decorator in node.decorator_list if isinstance(node, ast.ClassDef) else ():
            called = isinstance(decorator, ast.Call)
            name = decorator.func if called else decorator
            if isinstance(name, ast.Name) and name.id == "dataclass":
                flags = {flag.arg: ast.literal_eval(flag.value) for flag in decorator.keywords} if called else {}
                yield node.name, flags.get("frozen", False)


def test_values_are_frozen() -> None:
    found = {name: frozen for path in MODULES.values() for name, frozen in _dataclasses(path)}
    assert {name for name, frozen in found.items() if not frozen} == FILLED
