"""Packages that rivals come from: imported when one is first made, without the warnings of their import."""

from __future__ import annotations

import warnings
from importlib import import_module
from types import ModuleType

from ...errors import MissingExtraError


def rival_package(name: str, purpose: str) -> ModuleType:
    """The module by this name, or an error that says what it is for and how to get it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return import_module(name)
    except ImportError:
        raise MissingExtraError(name.partition(".")[0], "rivals", purpose) from None
