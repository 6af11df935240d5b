"""Contents of a saved file, whatever its format: named arrays with named axes, and attributes as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import torch

from .._version import __version__
from ..errors import FileError, HardmaxError
from ..files import PathLike
from ..shapes import Array

FORMAT = 1
"""The number of the layout written now; files of every lower number stay readable."""

_AGAIN = "the file is damaged or was changed by hand; save the run again"
_T = TypeVar("_T")


@dataclass(frozen=True)
class Contents:
    """Arrays (name to axes and values) and attributes (name to text or whole number)."""

    arrays: dict[str, tuple[tuple[str, ...], np.ndarray]] = field(default_factory=dict)
    attributes: dict[str, str | int] = field(default_factory=dict)

    @classmethod
    def of(cls, content: str, sample: Array) -> Contents:
        """Contents with their kind, the version that wrote them, and the kind of array to return."""
        kind = "torch" if isinstance(sample, torch.Tensor) else "numpy"
        attributes: dict[str, str | int] = {
            "format": FORMAT,
            "content": content,
            "written_by": f"hardmax {__version__}",
            "kind": kind,
            "dtype": str(sample.dtype).removeprefix("torch."),
        }
        return cls({}, attributes)

    def put(self, name: str, axes: tuple[str, ...], values: Array) -> None:
        """Add an array."""
        plain = values.detach().cpu().numpy() if isinstance(values, torch.Tensor) else np.asarray(values)
        self.arrays[name] = (axes, plain)

    def put_words(self, name: str, words: Mapping[str, object]) -> None:
        """Add an attribute that is a JSON object."""
        self.attributes[name] = json.dumps(words)


@dataclass(frozen=True)
class Reader:
    """Contents read from a file, checked field by field; every error names the file and the field."""

    path: PathLike
    contents: Contents

    def __post_init__(self) -> None:
        number = self.contents.attributes.get("format")
        if not isinstance(number, (int, np.integer)) or "content" not in self.contents.attributes:
            raise FileError(self.path, "has no field 'format'", "give a file that hardmax saved")
        if number > FORMAT:
            problem = f"has format {number}, and this version reads formats up to {FORMAT}"
            raise FileError(self.path, problem, "install a newer version of hardmax")

    def bad(self, name: str, problem: str) -> FileError:
        """FileError that names a field of the file and its problem."""
        return FileError(self.path, f"the field {name!r} {problem}", _AGAIN)

    def has(self, name: str) -> bool:
        """Whether there is an array of this name."""
        return name in self.contents.arrays

    def text(self, name: str) -> str:
        """An attribute that is text."""
        value = self.contents.attributes.get(name)
        if not isinstance(value, str):
            raise self.bad(name, "is missing" if value is None else f"is {value!r}, not text")
        return value

    def whole(self, name: str) -> int:
        """An attribute that is a whole number, zero or more."""
        value = self.contents.attributes.get(name)
        if not isinstance(value, (int, np.integer)) or value < 0:
            raise self.bad(name, "is missing" if value is None else f"is {value!r}, not a whole number")
        return int(value)

    def words(self, name: str) -> dict[str, Any]:
        """An attribute that is a JSON object."""
        try:
            value = json.loads(self.text(name))
        except (ValueError, RecursionError) as error:
            raise self.bad(name, f"is not JSON ({error})") from error
        if not isinstance(value, dict):
            raise self.bad(name, "is not a JSON object")
        return value

    def numbers(self, name: str, shape: tuple[int | None, ...], kinds: str = "f") -> Array:
        """An array of this shape (None: any size) and kind of number, as the kind of array that was saved."""
        values = self.plain(name, shape, kinds)
        if kinds == "f":
            dtype = self.text("dtype")
            if dtype not in ("float32", "float64"):
                raise self.bad("dtype", f"is {dtype!r}, not float32 or float64")
            values = values.astype(dtype, copy=False)
        return torch.from_numpy(values) if self.text("kind") == "torch" else values

    def plain(self, name: str, shape: tuple[int | None, ...], kinds: str = "f") -> np.ndarray:
        """An array of this shape (None: any size) and kind of number, always as a NumPy array."""
        if not self.has(name):
            raise self.bad(name, "is missing")
        values = self.contents.arrays[name][1]
        if values.dtype.kind not in kinds:
            raise self.bad(name, f"holds {values.dtype}")
        fits = values.ndim == len(shape) and all(w in (None, s) for w, s in zip(shape, values.shape, strict=True))
        if not fits:
            raise self.bad(name, f"has shape {values.shape}, not {shape}".replace("None", "any"))
        return values

    def axes(self, name: str) -> int:
        """Number of axes of an array."""
        if not self.has(name):
            raise self.bad(name, "is missing")
        return self.contents.arrays[name][1].ndim

    def made(self, name: str, make: Callable[[], _T]) -> _T:
        """The value that ``make`` builds from the field ``name``; its errors become errors about the file."""
        try:
            return make()
        except HardmaxError as error:
            if isinstance(error, FileError):
                raise
            raise self.bad(name, f"cannot be used ({error})") from error
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
            raise self.bad(name, f"is incomplete or wrong ({type(error).__name__}: {error})") from error
