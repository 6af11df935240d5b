"""Runs, limits and layers in files: zarr (a folder, or one ``.zip``) and netCDF, chosen by the suffix.

Everything that a run holds comes back equal: tokens, layers, weights, leaders and followers, the outcome,
and the layer itself, rebuilt from its recipe. The files open in xarray too, with named axes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np

from ..attention.base import AbstractLayer
from ..attention.layer import HardmaxLayer
from ..dynamics.equilibrium import Equilibrium
from ..dynamics.trajectory import Trajectory
from ..errors import FileError, InputError
from ..files import PathLike
from ..meanfield.limit import LowTemperatureLimit
from ..meanfield.phases import Phases
from . import result_parts
from .array_files import read_netcdf, read_zarr, write_netcdf, write_zarr
from .contents import Contents, Reader
from .layer_recipes import get_layer, put_layer
from .result_parts import limit_contents, phases_contents, read_limit, read_phases

_ZARR = (".zarr", ".zip")
_NETCDF = (".nc", ".nc4", ".h5")
SAVEABLE = (*_ZARR, *_NETCDF)
"""The suffixes of files that hold a whole run."""


Saved: TypeAlias = Trajectory | Equilibrium | Phases | LowTemperatureLimit
"""Values that can be saved to one file."""


def save(value: Saved, path: PathLike) -> None:
    """Save a run, a limit or phases, whole or not at all; an older file of that name stays until then.

    Parameters
    ----------
    value
        What :func:`simulate`, :func:`equilibrium`, :func:`phases` or :func:`low_temperature_limit` returned.
    path
        The file: ``.zarr`` (a folder), ``.zip`` (zarr in one file) or ``.nc`` (NetCDF).
    """
    suffix = saveable_suffix(path, "saved")
    if isinstance(value, Trajectory):
        contents = _trajectory_contents(value)
    elif isinstance(value, Equilibrium):
        contents = _equilibrium_contents(value)
    elif isinstance(value, Phases):
        contents = phases_contents(value)
    elif isinstance(value, LowTemperatureLimit):
        contents = limit_contents(value)
    else:
        kind = f"a {type(value).__name__}"  # type: ignore[unreachable]
        remedy = (
            "save what simulate, equilibrium, phases or low_temperature_limit returned; models and networks have a "
            "method save of their own, tables a method to_pandas"
        )
        problem = "must be a Trajectory, an Equilibrium, Phases or a LowTemperatureLimit"
        raise InputError("value", kind, problem, remedy)
    write = write_zarr if suffix in _ZARR else write_netcdf
    write(path, contents)


def load(path: PathLike, *, layers: Sequence[type[AbstractLayer]] = ()) -> Saved:
    """Run, limit or phases from a file of :func:`save` or :class:`ToDisk`.

    Parameters
    ----------
    path
        The file: ``.zarr``, ``.zip`` or ``.nc``.
    layers
        Classes of layers of your own, dataclasses that are rebuilt from the numbers in the file. A layer of another
        class is loaded as a description of it, which cannot be run.

    Returns
    -------
    Trajectory, Equilibrium, Phases or LowTemperatureLimit
        What was saved.
    """
    suffix = saveable_suffix(path, "loaded")
    path = Path(path).expanduser()
    if not path.exists():
        raise FileError(path, "there is no such file", "check the name and the folder")
    reader = Reader(path, read_zarr(path) if suffix in _ZARR else read_netcdf(path))
    content = reader.text("content")
    read = _READERS.get(content)
    if read is None:
        raise reader.bad("content", f"is {content!r}, not one of {', '.join(map(repr, _READERS))}")
    return read(reader, layers)


def saveable_suffix(path: PathLike, verb: str) -> str:
    """The suffix of a file that can hold a run, refused when it cannot."""
    suffix = Path(path).suffix.lower()
    if suffix not in SAVEABLE:
        problem = f"runs cannot be {verb} as {suffix or 'a file without suffix'}"
        others = (
            "; models and networks are loaded by LeaderClassifier.load, load_forecaster and ExactTransformer.load"
            if verb == "loaded"
            else ""
        )
        raise FileError(path, problem, f"use {', '.join(SAVEABLE)}{others}")
    return suffix


def put_run(contents: Contents, run: Trajectory) -> None:
    """Add everything about a run but its tokens and layers."""
    put_layer(contents, run.layer)
    result_parts.put_outcome(contents, run.outcome)
    result_parts.put_weights(contents, run.weights)
    result_parts.put_assumptions(contents, run.assumptions)
    if run.seed is not None:
        contents.attributes["seed"] = run.seed
    if run.times is not None:
        contents.put("time", ("layer",), run.times)
    if run.leadership is not None:
        result_parts.put_leadership(contents, run.leadership)


def _trajectory_contents(run: Trajectory) -> Contents:
    contents = Contents.of("trajectory", run.tokens)
    contents.put("tokens", ("layer", "token", "coordinate"), run.tokens)
    contents.put("layer", ("layer",), np.asarray(run.layers, dtype=np.int64))
    put_run(contents, run)
    return contents


def _equilibrium_contents(limit: Equilibrium) -> Contents:
    contents = Contents.of("equilibrium", limit.positions)
    contents.attributes["layers"] = limit.layers
    contents.put("positions", ("token", "coordinate"), limit.positions)
    put_layer(contents, limit.layer)
    result_parts.put_outcome(contents, limit.outcome)
    result_parts.put_weights(contents, limit.weights)
    result_parts.put_assumptions(contents, limit.assumptions)
    result_parts.put_leadership(contents, limit.leadership)
    if limit.head_choices is not None:
        contents.put("head_choices", ("head", "token"), limit.head_choices)
    if limit.reasons is not None:
        contents.put("reasons", ("token",), limit.reasons)
    return contents


def _read_trajectory(reader: Reader, classes: Sequence[type[AbstractLayer]]) -> Trajectory:
    layers = reader.plain("layer", (None,), "i")
    tokens = reader.numbers("tokens", (len(layers), None, None))
    count = tokens.shape[1]
    known = "assumptions" in reader.contents.attributes
    return Trajectory(
        tokens=tokens,
        layers=layers,
        outcome=result_parts.get_outcome(reader),
        layer=get_layer(reader, classes),
        times=reader.plain("time", (len(layers),)) if reader.has("time") else None,
        weights=result_parts.get_weights(reader, count),
        leadership=result_parts.get_leadership(reader, count) if reader.has("follows") else None,
        assumptions=result_parts.get_assumptions(reader) if known else None,
        seed=reader.whole("seed") if "seed" in reader.contents.attributes else None,
    )


def _read_equilibrium(reader: Reader, classes: Sequence[type[AbstractLayer]]) -> Equilibrium:
    positions = reader.numbers("positions", (None, None))
    count = positions.shape[0]
    layer = get_layer(reader, classes)
    if not isinstance(layer, HardmaxLayer):
        raise reader.bad("layer", f"is {layer}, not a hardmax layer")
    return Equilibrium(
        positions=positions,
        leadership=result_parts.get_leadership(reader, count),
        layers=reader.whole("layers"),
        outcome=result_parts.get_outcome(reader),
        assumptions=result_parts.get_assumptions(reader),
        layer=layer,
        weights=result_parts.get_weights(reader, count),
        head_choices=reader.numbers("head_choices", (None, count), "i") if reader.has("head_choices") else None,
        reasons=reader.numbers("reasons", (count,), "i") if reader.has("reasons") else None,
    )


_READERS: dict[str, Callable[[Reader, Sequence[type[AbstractLayer]]], Saved]] = {
    "trajectory": _read_trajectory,
    "equilibrium": _read_equilibrium,
    "phases": lambda reader, _: read_phases(reader),
    "low-temperature limit": lambda reader, _: read_limit(reader),
}
