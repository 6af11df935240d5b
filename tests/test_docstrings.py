"""Docstrings of the public API follow numpydoc: parameters, returned values and fields are all described."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import itertools
import textwrap
import types
from collections.abc import Iterator
from enum import Enum
from importlib import import_module

import pytest
from numpydoc.docscrape import ClassDoc
from numpydoc.validate import validate

import hardmax

PACKAGES = (
    "attention", "datasets", "dynamics", "figures", "forecasting", "geometry", "interpolation", "meanfield",
    "models", "reproduce", "storage", "sweeps", "text", "zoo",
)  # fmt: skip
# No docstring; parameters missing, unknown, in another order or without description; returned values likewise.
CODES = frozenset({"GL08", "PR01", "PR02", "PR03", "PR07", "RT01", "RT03", "YD01"})
CODES_OF_CLASSES = frozenset({"GL08", "PR02", "PR03", "PR07"})


def public_objects() -> Iterator[tuple[str, object]]:
    """Every public function and class, once, by the shortest name that exports it."""
    seen = set()
    names = [name for name in hardmax.__all__ if name != "__version__"]
    homes = [("hardmax", name) for name in names]
    for package in PACKAGES:
        module = import_module(f"hardmax.{package}")
        homes += [(module.__name__, name) for name in dir(module) if not name.startswith("_")]
    for home, name in homes:
        value = getattr(import_module(home), name)
        ours = isinstance(value, (types.FunctionType, type)) and value.__module__.startswith("hardmax")
        if ours and id(value) not in seen:
            seen.add(id(value))
            yield f"{home}.{name}", value


OBJECTS = dict(public_objects())
METHODS = {
    f"{name}.{method}": getattr(value, method)
    for name, value in OBJECTS.items()
    if isinstance(value, type)
    for method, member in vars(value).items()
    if not method.startswith("_") and isinstance(member, (types.FunctionType, classmethod, staticmethod))
    if not (member.__doc__ is None and inspect.getdoc(getattr(value, method)))  # documented in a base class
}


def problems(name: str, codes: frozenset[str]) -> list[str]:
    """What numpydoc finds wrong with one docstring."""
    return [f"{code}: {text}" for code, text in validate(name)["errors"] if code in codes]


def described_fields(cls: type) -> set[str]:
    """Fields of a class with a description: in the class docstring, or in a string below the field."""
    document = ClassDoc(cls)
    found = {
        name.strip().lstrip("*")
        for section in ("Parameters", "Attributes")
        for entry in document[section]
        for name in entry.name.split(",")
    }
    for base in cls.__mro__:
        if base.__module__.startswith("hardmax"):
            tree = ast.parse(textwrap.dedent(inspect.getsource(base)))
            body = tree.body[0].body  # type: ignore[attr-defined]
            for field, text in itertools.pairwise(body):
                if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr):
                    found.add(field.target.id)  # type: ignore[union-attr]
    return found


@pytest.mark.parametrize("name", [name for name, value in OBJECTS.items() if not isinstance(value, type)])
def test_functions_describe_parameters_and_returned_values(name: str) -> None:
    assert problems(name, CODES) == []


@pytest.mark.parametrize("name", METHODS)
def test_methods_describe_parameters_and_returned_values(name: str) -> None:
    assert problems(name, CODES) == []


@pytest.mark.parametrize("name", [name for name, value in OBJECTS.items() if isinstance(value, type)])
def test_classes_describe_their_parameters(name: str) -> None:
    cls = OBJECTS[name]
    assert isinstance(cls, type)
    assert problems(name, CODES_OF_CLASSES) == []
    if issubclass(cls, (Enum, Exception)):
        return
    wanted = (
        {field.name for field in dataclasses.fields(cls)}
        if dataclasses.is_dataclass(cls)
        else set(inspect.signature(cls).parameters) - {"args", "kwargs"}
    )
    assert {field for field in wanted if not field.startswith("_")} - described_fields(cls) == set()
