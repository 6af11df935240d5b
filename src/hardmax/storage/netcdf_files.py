"""Contents as netCDF-4, readable by every tool that reads netCDF or HDF5."""

from __future__ import annotations

import hashlib
import io
import os
from typing import Any, BinaryIO

import numpy as np

from ..errors import FileError, MissingExtraError
from ..files import PathLike, replacing
from .contents import Contents

# What netCDF writes into the place of an axis that has no values of its own.
_BARE_AXIS = b"This is a netCDF dimension but not a netCDF variable"

_SEAL = b"hardmax sha256\n"
_CHUNK = 2**20


def write_netcdf(path: PathLike, contents: Contents) -> None:
    """Write a netCDF file, whole or not at all."""
    h5netcdf = _import_h5netcdf()
    # "v110" lifts the limit of 64 kB on an attribute: the recipe of a deep network is longer.
    newer = ("v110", "v110")
    # HDF5 fills memory, not the disk: if it meets a full disk it fails again at every attempt to close the file, long
    # after the error was reported, and prints each failure.
    whole = io.BytesIO()
    with h5netcdf.File(whole, "w", libver=newer) as file:
        _fill(file, contents)
    data = whole.getbuffer()
    with replacing(path) as temporary, temporary.open("wb") as target:
        target.write(data)
        # A checksum at the end: HDF5 ignores what stands behind its end, and drops it when the file is changed.
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
    """Read a whole netCDF file; one that was sealed is checked before HDF5 sees it."""
    _import_h5netcdf()
    import h5py  # type: ignore[import-untyped]

    _require_whole(path)
    arrays: dict[str, tuple[tuple[str, ...], np.ndarray]] = {}
    attributes: dict[str, str | int] = {}
    field = "header"
    try:
        # Below netCDF lies HDF5, which is asked directly: it is the better judge of a damaged file.
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
    """Refuse a sealed file whose bytes are not those that were written.

    A single wrong byte in the tables of HDF5 can send the library round in circles for ever. A file without a seal
    (changed by another tool, or written by one) is read as it is.
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
