"""Named arrays with named axes, and attributes as JSON, in netCDF-4 and zarr files."""

from __future__ import annotations

import hashlib
import io
import json
import os
import tempfile
import zipfile
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import numpy as np
import torch

from .._version import __version__
from ..errors import FileError, HardmaxError, MissingExtraError
from ..files import PathLike, replacing
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


# What netCDF writes into the place of an axis that has no values of its own.
_BARE_AXIS = b"This is a netCDF dimension but not a netCDF variable"

_SEAL = b"hardmax sha256\n"
# Bytes per read.
_CHUNK = 2**20


def write_netcdf(path: PathLike, contents: Contents) -> None:
    """Write a netCDF file, whole or not at all."""
    h5netcdf = _import_h5netcdf()
    # "v110" lifts the limit of 64 kB on an attribute: the recipe of a deep network is longer.
    newer = ("v110", "v110")
    # HDF5 writes to memory, not to the disk: on a full disk it would fail again at every attempt to close the file,
    # long after the error was reported, and print each failure.
    whole = io.BytesIO()
    with h5netcdf.File(whole, "w", libver=newer) as file:
        _fill(file, contents)
    with whole.getbuffer() as data, replacing(path) as temporary, temporary.open("wb") as target:
        target.write(data)
        # A checksum at the end: HDF5 ignores bytes behind its end, and drops them when the file is changed.
        target.write(_SEAL + hashlib.sha256(data).digest())


def _fill(file: Any, contents: Contents) -> None:
    for axes, values in contents.arrays.values():
        for axis, size in zip(axes, values.shape, strict=True):
            if axis not in file.dimensions:
                file.dimensions[axis] = size
    for name, (axes, values) in contents.arrays.items():
        checked = {"compression": "gzip", "compression_opts": 1, "fletcher32": True} if values.size else {}
        file.create_variable(name, axes, values.dtype, data=values, **checked)
    for name, value in contents.attributes.items():
        file.attrs[name] = value


def read_netcdf(path: PathLike) -> Contents:
    """Contents of a netCDF file; its checksum, where it has one, is tested before HDF5 reads it."""
    _import_h5netcdf()
    import h5py  # type: ignore[import-untyped]

    _require_whole(path)
    arrays: dict[str, tuple[tuple[str, ...], np.ndarray]] = {}
    attributes: dict[str, str | int] = {}
    field = "header"
    try:
        # HDF5, on which NetCDF is built, detects a damaged file more reliably.
        with h5py.File(path, "r") as file:
            for field, value in file.attrs.items():
                attributes[field] = value.item() if isinstance(value, (np.generic, np.ndarray)) else value
            for field, variable in file.items():
                if not bytes(variable.attrs.get("NAME", b"")).startswith(_BARE_AXIS):
                    arrays[field] = ((), np.asarray(variable[...]))
    except Exception as error:  # HDF5 reports damage by errors of many kinds
        problem = f"the field {field!r} cannot be read ({type(error).__name__}: {error})"
        raise FileError(path, problem, "it is damaged, half-written or no netCDF file; save the run again") from error
    return Contents(arrays, attributes)


def _digest(file: BinaryIO, size: int) -> bytes:
    found = hashlib.sha256()
    while size > 0:
        piece = file.read(min(size, _CHUNK))
        if not piece:
            break
        found.update(piece)
        size -= len(piece)
    return found.digest()


def _require_whole(path: PathLike) -> None:
    """Raise a FileError where the checksum at the end of the file does not match its bytes.

    A single wrong byte in the tables of HDF5 can make that library loop for ever. A file without a checksum (written
    or changed by another tool) is read without this check.
    """
    length = len(_SEAL) + hashlib.sha256().digest_size
    with open(path, "rb") as file:
        size = file.seek(0, os.SEEK_END) - length
        if size < 0:
            return
        file.seek(size)
        seal = file.read(length)
        if not seal.startswith(_SEAL):
            return
        file.seek(0)
        if _digest(file, size) != seal[len(_SEAL) :]:
            problem = "its bytes are not those that were written (the checksum at its end differs)"
            raise FileError(path, problem, "it is damaged; save the run again, or fetch it again")


def _import_h5netcdf() -> Any:
    try:
        import h5netcdf
    except ImportError:
        raise MissingExtraError("h5netcdf", "store", "saving and loading runs as netCDF") from None
    return h5netcdf


MARKER = "zarr.json"
"""The file by which a folder is known to be a zarr store."""

# Chunks of about 8 MB: few files, and one chunk fits in memory easily.
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
    """Contents of a zarr store; raises a FileError where a chunk is missing or damaged."""
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
    """The package zarr, or an error that says how to install it."""
    try:
        import zarr
        import zarr.storage
    except ImportError:
        raise MissingExtraError("zarr", "store", "saving and loading runs as zarr") from None
    return zarr


def _pieces(path: PathLike) -> dict[str, int]:
    """Number of chunks of each array in the store; zarr itself would read a missing one as zeros."""
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
