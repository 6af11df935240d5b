"""Contents as zarr: a folder, or one file when the name ends in ``.zip``."""

from __future__ import annotations

import tempfile
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import FileError, MissingExtraError
from ..files import PathLike, replacing
from .contents import Contents

MARKER = "zarr.json"
"""The file by which a folder is known to be a zarr store."""

_CHUNK_BYTES = 2**23
_HALF = "it is damaged or half-written; save the run again"


def write_zarr(path: PathLike, contents: Contents) -> None:
    """Write a zarr store, whole or not at all."""
    if not is_zip(path):
        with replacing(path, folder_with=MARKER) as temporary:
            _fill_group(temporary, contents)
        return
    with (
        replacing(path) as temporary,
        tempfile.TemporaryDirectory(dir=temporary.parent, prefix=".") as folder,
    ):
        _fill_group(Path(folder), contents)
        zip_folder(Path(folder), temporary)


def read_zarr(path: PathLike) -> Contents:
    """Read a whole zarr store; a missing or damaged piece is refused, never filled in."""
    zarr = import_zarr()
    if not is_zip(path) and not (Path(path) / MARKER).is_file():
        raise FileError(path, f"is no zarr store: it holds no {MARKER}", "give a file that hardmax saved")
    arrays: dict[str, tuple[tuple[str, ...], np.ndarray]] = {}
    field = "zarr.json"
    store = None
    try:
        pieces = _pieces(path)
        store = zarr.storage.ZipStore(path, mode="r") if is_zip(path) else zarr.storage.LocalStore(path, read_only=True)
        group = zarr.open_group(store, mode="r", zarr_format=3)
        attributes = dict(group.attrs)
        for field in pieces:
            array = group[field]
            missing = array.nchunks - pieces[field]
            if missing > 0:
                raise FileError(path, f"the field {field!r} lacks {missing} of its {array.nchunks} pieces", _HALF)
            axes = tuple(axis or "" for axis in (array.metadata.dimension_names or ()))
            arrays[field] = (axes, np.asarray(array[...]))
    except FileError:
        raise
    except Exception as error:  # codecs, JSON, ZIP and file systems each raise errors of their own
        raise FileError(path, f"the field {field!r} cannot be read ({type(error).__name__}: {error})", _HALF) from error
    finally:
        if store is not None and is_zip(path):
            store.close()
    return Contents(arrays, attributes)


def put_array(group: Any, name: str, axes: tuple[str, ...], values: np.ndarray, *, rows: int | None = None) -> Any:
    """Add an array to a zarr group: compressed without loss, with a checksum, its axes named.

    With ``rows`` the array has that many rows, still empty, and ``values`` is an example of one.
    """
    from zarr.codecs import ZstdCodec

    shape = values.shape if rows is None else (rows, *values.shape)
    array = group.create_array(
        name,
        shape=shape,
        chunks=_chunks(shape, values.dtype.itemsize),
        dtype=values.dtype,
        dimension_names=axes,
        compressors=ZstdCodec(level=1, checksum=True),
        # Pieces that hold only zeros are written too, so that a missing piece can only mean a damaged store.
        config={"write_empty_chunks": True},
    )
    if rows is None:
        array[...] = values
    return array


def zip_folder(folder: Path, target: Path) -> None:
    """Pack a store into one file; its pieces are compressed already."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as packed:
        for file in sorted(folder.rglob("*")):
            if file.is_file():
                packed.write(file, file.relative_to(folder).as_posix())


def is_zip(path: PathLike) -> bool:
    """Whether this name asks for one file instead of a folder."""
    return Path(path).suffix.lower() == ".zip"


def import_zarr() -> Any:
    """The package zarr, or an error that says how to get it."""
    try:
        import zarr
        import zarr.storage
    except ImportError:
        raise MissingExtraError("zarr", "store", "saving and loading runs as zarr") from None
    return zarr


def _pieces(path: PathLike) -> dict[str, int]:
    """How many pieces of each array there are; zarr itself would read a missing one as zeros."""
    if is_zip(path):
        with zipfile.ZipFile(path) as packed:
            names = packed.namelist()
    else:
        names = [file.relative_to(path).as_posix() for file in Path(path).rglob("*") if file.is_file()]
    arrays = [name.removesuffix(f"/{MARKER}") for name in names if name.endswith(f"/{MARKER}")]
    pieces = Counter(name.split("/c/")[0] for name in names if "/c/" in name)
    return {name: pieces[name] for name in arrays}


def _fill_group(folder: Path, contents: Contents) -> None:
    group = import_zarr().open_group(folder, mode="w", zarr_format=3)
    for name, (axes, values) in contents.arrays.items():
        put_array(group, name, axes, values)
    group.attrs.update(contents.attributes)


def _chunks(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Pieces of at most some megabytes: one state at a time, cut along the tokens where it is large."""
    if len(shape) < 3:
        rest = max(1, int(np.prod(shape[1:])))
        return (
            max(1, min(shape[0], _CHUNK_BYTES // (itemsize * rest) or 1)),
            *(max(1, s) for s in shape[1:]),
        )
    tokens = max(1, min(shape[1], _CHUNK_BYTES // (itemsize * shape[2]) or 1))
    return (1, tokens, *shape[2:])
