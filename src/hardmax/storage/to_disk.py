"""Layers written to disk during a run, where they do not fit in memory."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ..dynamics.integrators import FlowStep
from ..dynamics.trajectory import Trajectory
from ..errors import FileError
from ..files import PathLike, replacing
from ..inputs import as_count
from ..shapes import Tokens
from .array_files import MARKER, import_zarr, is_zip, put_array, zip_folder
from .contents import Contents
from .trajectories import put_run


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
