"""Modules that have moved can still be imported, with a warning that names their package."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from hardmax._moved import MOVED

NAMES = {
    "hardmax.datasets.lorenz": "lorenz63",
    "hardmax.datasets.reviews": "movie_reviews",
    "hardmax.datasets.sentences": "with_sentences",
    "hardmax.forecasting.ablation": "Ablation",
    "hardmax.forecasting.linear": "TimeDelayedDMD",
    "hardmax.forecasting.paper": "fit_paper",
    "hardmax.forecasting.polynomial": "NextGenerationReservoir",
    "hardmax.forecasting.reading": "LagAttention",
    "hardmax.forecasting.report": "Report",
    "hardmax.forecasting.rivals": "EchoState",
    "hardmax.forecasting.rolling": "Fade",
    "hardmax.forecasting.skill": "valid_times",
    "hardmax.reproduce.study_cases": "study_systems",
    "hardmax.storage.tables": "read_tokens",
    "hardmax.text.explanation": "Leader",
    "hardmax.text.shipped": "shipped_model",
    "hardmax.text.vocabulary": "Vocabulary",
}


_CODE = """
import importlib, json, sys, warnings
names = json.loads(sys.argv[1])
found = {}
for module, name in names.items():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        value = getattr(importlib.import_module(module), name)
    found[module] = [f"{value.__module__}.{value.__qualname__}", *(str(warning.message) for warning in caught)]
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def found() -> dict[str, list[str]]:
    """What importing all old modules in a fresh process gave: the value, and the warnings."""
    command = [sys.executable, "-c", _CODE, json.dumps(NAMES)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def test_every_moved_module_is_tried() -> None:
    assert NAMES.keys() == MOVED.keys()


@pytest.mark.parametrize("module", MOVED)
def test_an_old_import_works_with_a_warning(module: str, found: dict[str, list[str]]) -> None:
    value, *warnings = found[module]
    expected = getattr(import_module(MOVED[module]), NAMES[module])
    assert value == f"{expected.__module__}.{expected.__qualname__}"
    assert any(f"import its public names from {MOVED[module]}" in warning for warning in warnings)


def test_no_moved_module_hides_an_exported_name() -> None:
    for module, package in MOVED.items():
        assert module.rpartition(".")[2] not in dir(import_module(package))


def test_other_modules_are_not_invented() -> None:
    with pytest.raises(ModuleNotFoundError):
        import_module("hardmax.text.no_such_module")


def test_the_page_of_moved_modules_is_true() -> None:
    root = Path(__file__).parents[1]
    documented, _, everything = (
        (root / "docs" / "project" / "moved-modules.rst").read_text(encoding="utf-8").partition("All modules\n---")
    )
    assert dict(re.findall(r"^   ``(hardmax\.[\w.]+)``, ``(\S+)``$", documented, flags=re.MULTILINE)) == MOVED
    rows = re.findall(r'^   ``([\w.]+)``, "(.*)"$', everything, flags=re.MULTILINE)
    assert len(rows) > 200
    for before, now in rows:
        for module in re.findall(r"``([\w.]+)``", now):
            path = root / "src" / "hardmax" / module.replace(".", "/")
            assert path.is_dir() or path.with_suffix(".py").is_file(), f"{before}: {module}"
