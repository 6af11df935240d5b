"""Runs, limits and layers in files: zarr (a folder, or one ``.zip``) and netCDF, chosen by the suffix.

Everything that a run holds comes back equal: tokens, layers, weights, leaders and followers, the outcome,
and the layer itself, rebuilt from its recipe. The files open in xarray too, with named axes. Layers that do not fit in
memory are written to disk during the run (:class:`ToDisk`).
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch

from ..attention.base import AbstractLayer
from ..attention.layer import HardmaxLayer
from ..dynamics.equilibrium import Equilibrium
from ..dynamics.integrators import FlowStep
from ..dynamics.trajectory import Trajectory
from ..errors import FileError, InputError
from ..files import PathLike, replacing
from ..inputs import as_count
from ..meanfield.limit import LowTemperatureLimit
from ..meanfield.phases import Phases
from ..shapes import Tokens
from . import result_parts
from .array_files import (
    MARKER,
    Contents,
    Reader,
    import_zarr,
    is_zip,
    put_array,
    read_netcdf,
    read_zarr,
    write_netcdf,
    write_zarr,
    zip_folder,
)
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


class ToDisk:
    """Keep rule that writes every ``every``-th layer, and the last one, to a zarr store while the run continues.

    The run that :func:`simulate` returns holds the last layer; :func:`load` reads all that were stored. The file
    appears when the run ends; an older file of that name stays until then, and where the run is interrupted.

    Parameters
    ----------
    path
        Name ending in ``.zarr`` (a folder) or ``.zip`` (one file).
    every
        Layers 0, ``every``, 2 ``every``, … and the last are stored.

    Examples
    --------
    >>> import tempfile
    >>> from hardmax import HardmaxLayer, ToDisk, load, simulate
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = folder + "/run.zarr"
    ...     run = simulate([[1.0, 0.0], [0.5, 0.1]], HardmaxLayer(), depth=9, keep=ToDisk(path, every=4))
    ...     run.layers, load(path).layers
    (array([9]), array([0, 4, 8, 9]))
    """

    def __init__(self, path: PathLike, every: int = 1) -> None:
        if Path(path).suffix.lower() not in (".zarr", ".zip"):
            raise FileError(path, "layers can only be streamed to zarr", "give a name ending in .zarr or .zip")
        self.path = path
        self.every = as_count("every", every, least=1)
        self._open: ExitStack | None = None
        self._group: Any = None
        self._states: Any = None
        self._layers: list[int] = []
        self._last: Tokens | None = None

    def wants(self, layer: int, last: bool) -> bool:
        """Whether a layer is to be stored.

        Parameters
        ----------
        layer
            Number of the layer.
        last
            Whether it is the last one of the run.

        Returns
        -------
        bool
            True where :meth:`store` is to be called.
        """
        return last or layer % self.every == 0

    def store(self, layer: int, tokens: Tokens) -> None:
        """Write one state to disk.

        Parameters
        ----------
        layer
            Number of the layer.
        tokens
            The tokens at that layer, shape (token, coordinate).
        """
        values = tokens.detach().cpu().numpy()
        if self._open is None:
            self._layers = []
            self._open = ExitStack()
            self._group = self._open.enter_context(_unfinished_store(self.path))
            self._states = put_array(self._group, "tokens", ("layer", "token", "coordinate"), values, rows=0)
        self._states.append(values[None])
        self._layers.append(layer)
        self._last = tokens

    def finish(self, run: Trajectory) -> Trajectory:
        """Complete the file with the rest of the run.

        Parameters
        ----------
        run
            The run, with no layers of its own.

        Returns
        -------
        Trajectory
            The run with its last layer.
        """
        if self._open is None or self._last is None:
            raise RuntimeError("finish was called before any layer was stored")
        contents = Contents.of("trajectory", run.tokens)
        layers = np.array(self._layers, dtype=np.int64)
        contents.put("layer", ("layer",), layers)
        if isinstance(run.layer, FlowStep):
            run = replace(run, times=run.layer.length * layers)
        put_run(contents, run)
        for name, (axes, values) in contents.arrays.items():
            put_array(self._group, name, axes, values)
        self._group.attrs.update(contents.attributes)
        still_open, self._open = self._open, None
        still_open.close()
        last = self._last[None].to(torch.float64)
        tokens = (
            last.to(run.tokens) if isinstance(run.tokens, torch.Tensor) else last.cpu().numpy().astype(run.tokens.dtype)
        )
        return replace(run, tokens=tokens, layers=layers[-1:], times=None if run.times is None else run.times[-1:])

    def abandon(self) -> None:
        """Remove the unfinished file; an older file of that name stays as it was."""
        if self._open is not None:
            still_open, self._open = self._open, None
            still_open.__exit__(_Abandoned, _Abandoned(), None)


class _Abandoned(Exception):  # noqa: N818  (nothing went wrong here: it only closes the unfinished store)
    """Raised to leave the unfinished store without moving it into place."""


@contextmanager
def _unfinished_store(path: PathLike) -> Iterator[Any]:
    """A zarr group beside ``path`` that takes its place when the block succeeds."""
    zarr = import_zarr()
    if not is_zip(path):
        with replacing(path, folder_with=MARKER) as temporary:
            yield zarr.open_group(temporary, mode="w", zarr_format=3)
        return
    with replacing(path) as packed, tempfile.TemporaryDirectory(dir=packed.parent, prefix=".") as folder:
        yield zarr.open_group(folder, mode="w", zarr_format=3)
        zip_folder(Path(folder), packed)
