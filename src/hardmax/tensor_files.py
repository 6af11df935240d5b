"""Files of models and checkpoints: safetensors with the recipe as JSON in the header."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from .errors import FileError
from .files import replacing

# Raised when stored fields change their meaning; older files must still load.
FORMAT = 1
_KEY = "hardmax"


def write(path: str | os.PathLike[str], kind: str, recipe: dict[str, Any], arrays: dict[str, np.ndarray]) -> Path:
    """Path of the written file, with arrays and a JSON recipe; the file appears whole or not at all."""
    header = json.dumps({"kind": kind, "format": FORMAT, **recipe}, ensure_ascii=False)
    with replacing(path) as draft:
        save_file({name: np.asarray(part, order="C") for name, part in arrays.items()}, draft, metadata={_KEY: header})
    return Path(path)


def read(path: str | os.PathLike[str], kind: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The recipe and the arrays, by name, of a file of this kind."""
    file = Path(path).expanduser()
    if not file.is_file():
        raise FileError(path, "there is no such file", "check the name and the folder")
    try:
        with safe_open(file, framework="numpy") as parts:
            metadata = parts.metadata() or {}
            arrays = {name: parts.get_tensor(name) for name in parts.keys()}  # noqa: SIM118 (not a dict)
        header = json.loads(metadata[_KEY])
    except (SafetensorError, OSError, KeyError, ValueError, TypeError) as error:
        raise FileError(
            path, f"was not written by hardmax ({type(error).__name__}: {error})", f"pass a {kind} written by hardmax"
        ) from error
    if not isinstance(header, dict) or header.get("kind") != kind:
        found = header.get("kind") if isinstance(header, dict) else header
        raise FileError(path, f"holds {found!r}, not a {kind}", f"pass a {kind} written by hardmax")
    if header.get("format") != FORMAT:
        raise FileError(
            path,
            f"has format {header.get('format')!r}, this version reads format {FORMAT}",
            "install the version of hardmax that wrote it, or train again",
        )
    return header, arrays


def require(path: object, arrays: dict[str, np.ndarray], name: str, shape: tuple[int | None, ...]) -> np.ndarray:
    """The array called ``name``, if it has this shape (None: any length); an error that names it otherwise."""
    if name not in arrays:
        raise FileError(path, f"has no tensor {name!r}", "the file is damaged; write it again")
    found = arrays[name].shape
    if len(found) != len(shape) or any(
        want is not None and want != have for want, have in zip(shape, found, strict=True)
    ):
        wanted = "(" + ", ".join("any" if want is None else str(want) for want in shape) + ")"
        raise FileError(
            path, f"tensor {name!r} has shape {found}, the recipe says {wanted}", "the file is damaged; write it again"
        )
    if arrays[name].dtype.kind == "f" and not np.isfinite(arrays[name]).all():
        raise FileError(
            path, f"tensor {name!r} holds numbers that are not finite", "the file is damaged; write it again"
        )
    return arrays[name]


def field(path: object, header: dict[str, Any], name: str, kind: type | tuple[type, ...]) -> Any:
    """The entry ``name`` of a recipe, if it is of this kind."""
    if not isinstance(header.get(name), kind):
        raise FileError(path, f"the recipe's {name!r} is {header.get(name)!r}", "the file is damaged; write it again")
    return header[name]
