"""Documented modules that have moved: importing one still works for a release, with a warning."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

# Old module -> the package that exports its public names. Left out: modules whose name is now that of an exported
# function, since importing one would set it as an attribute of the package, in place of the function.
MOVED = {
    "hardmax.datasets.lorenz": "hardmax.datasets",
    "hardmax.datasets.reviews": "hardmax.datasets",
    "hardmax.datasets.sentences": "hardmax.datasets",
    "hardmax.forecasting.ablation": "hardmax.forecasting",
    "hardmax.forecasting.error_growth": "hardmax.forecasting",
    "hardmax.forecasting.linear": "hardmax.forecasting",
    "hardmax.forecasting.paper": "hardmax.forecasting",
    "hardmax.forecasting.polynomial": "hardmax.forecasting",
    "hardmax.forecasting.reading": "hardmax.forecasting",
    "hardmax.forecasting.report": "hardmax.forecasting",
    "hardmax.forecasting.rivals": "hardmax.forecasting",
    "hardmax.forecasting.rolling": "hardmax.forecasting",
    "hardmax.forecasting.skill": "hardmax.forecasting",
    "hardmax.reproduce.study_cases": "hardmax.reproduce",
    "hardmax.storage.tables": "hardmax.storage",
    "hardmax.text.explanation": "hardmax.text",
    "hardmax.text.shipped": "hardmax.text",
    "hardmax.text.vocabulary": "hardmax.text",
}


class _MovedModule(ModuleType):
    """Stands for a module that has moved: its names are those that the package exports."""

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(MOVED[self.__name__]), name)


class _Finder(MetaPathFinder, Loader):
    """Finds the modules of :data:`MOVED`; asked after all other finders have failed."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return ModuleSpec(name, self) if name in MOVED else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _MovedModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        warnings.warn(
            f"{module.__name__} has moved and will be removed: import its public names from {MOVED[module.__name__]}",
            DeprecationWarning,
            stacklevel=2,
        )


def install() -> None:
    """Let Python find the modules that have moved."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.append(_Finder())
