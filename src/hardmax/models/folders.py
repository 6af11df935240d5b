"""Folders in the layout of Hugging Face: config.json, weights in one file or in shards, and how texts are embedded."""

from __future__ import annotations

import json
import os
import warnings
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open

from ..errors import FileError
from ..scalars import shown
from .stored import DAMAGED, Settings, Weights, require_memory

# Sizes of text files in bytes: settings are some kilobytes, indices of the largest models some megabytes.
_MOST_SETTINGS = 2**24
_MOST_INDEX = 2**26
_MOST_SHARDS = 4096
_FLOATS = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
# Names in files converted from TensorFlow, and those used since.
_OLD_NAMES = {".gamma": ".weight", ".beta": ".bias"}
CONFIG = "config.json"
SAFETENSORS = "model.safetensors"
TORCH = "pytorch_model.bin"


@dataclass(frozen=True)
class Pooling:
    """Pooling of the last tokens of a text to one point."""

    kind: str = "mean"
    """``"mean"`` or ``"first"``."""
    unit_length: bool = False


def read_settings(folder: Path) -> Settings:
    """Settings of the model in a folder, from its config.json."""
    path = file_in(folder, CONFIG)
    if path is None:
        problem = f"holds no {CONFIG}" if folder.is_dir() else "there is no such file or folder"
        raise FileError(folder, problem, "pass a folder in the layout of Hugging Face, or a GGUF file")
    return Settings(path, json_object(path))


def json_object(path: Path, most: int = _MOST_SETTINGS) -> dict[str, Any]:
    """Object in a JSON file of bounded size."""
    found = json_value(path, most)
    if not isinstance(found, dict):
        raise FileError(path, f"must hold an object, not {shown(found)}", DAMAGED)
    return found


def json_value(path: Path, most: int = _MOST_SETTINGS) -> object:
    """Value in a JSON file of bounded size."""
    try:
        return json.loads(bounded_text(path, most))
    except (ValueError, RecursionError) as error:
        raise FileError(path, f"is not JSON ({shown(str(error))})", DAMAGED) from error


def bounded_text(path: Path, most: int) -> str:
    """Text of a file in UTF-8 that is not larger than ``most`` bytes."""
    try:
        size = path.stat().st_size
        if size > most:
            raise FileError(path, f"has {size / 1e6:,.0f} MB, at most {most / 1e6:,.0f} MB are read", DAMAGED)
        return path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise FileError(path, "is not a text in UTF-8", DAMAGED) from error
    except FileError:
        raise
    except OSError as error:
        raise FileError(path, f"cannot be read ({error.strerror or error})", "check its permissions") from error


def file_in(folder: Path, name: object) -> Path | None:
    """File of this name in a folder, None where there is none; names and links must not lead out of the folder."""
    if not isinstance(name, str) or not _is_plain(name):
        raise FileError(folder, f"names the file {shown(name)}, which is not in the folder", DAMAGED)
    path = folder / name
    try:
        if not path.is_file():
            return None
        home, target = folder.resolve(), path.resolve()
    except (OSError, RuntimeError) as error:
        raise FileError(path, f"cannot be read ({error})", DAMAGED) from error
    # The cache of Hugging Face has links from snapshots/<version>/ to blobs/ beside it.
    cached = home.parent.name == "snapshots" and target.parent == home.parent.parent / "blobs"
    if target.parent != home and not cached:
        raise FileError(path, "is a link that leads out of the folder", "pass the folder that holds the files")
    return path


def read_weights(folder: Path, dtype: torch.dtype) -> Weights:
    """Named weights of the model in a folder; sizes are checked against the free memory before anything is read."""
    files = _weight_files(folder)
    shapes: dict[str, tuple[int, ...]] = {}
    readers: dict[str, Callable[[], torch.Tensor]] = {}
    for path in files:
        found = _safetensors(path) if path.suffix == ".safetensors" else _torch_file(path, dtype)
        for name, (shape, reader) in found.items():
            new = next((name.removesuffix(old) + now for old, now in _OLD_NAMES.items() if name.endswith(old)), name)
            shapes[new], readers[new] = shape, reader
    require_memory(folder, shapes.values(), dtype)

    def read(name: str) -> torch.Tensor:
        try:
            tensor = readers[name]()
        except Exception as error:
            raise FileError(folder, f"the tensor {name!r} cannot be read ({shown(str(error))})", DAMAGED) from error
        if tensor.dtype not in _FLOATS:
            kind = str(tensor.dtype).removeprefix("torch.")
            raise FileError(folder, f"the tensor {name!r} holds {kind}", "pass a model that is not quantised")
        return tensor

    return Weights(folder, shapes, read, dtype)


def weight_files(folder: Path) -> list[Path]:
    """Files that hold the weights of the model in a folder, empty where there are none."""
    for whole in (SAFETENSORS, TORCH):
        path = file_in(folder, whole)
        if path is not None:
            return [path]
        index = file_in(folder, f"{whole}.index.json")
        if index is not None:
            return _shards(folder, index, Path(whole).suffix)
    return []


def _weight_files(folder: Path) -> list[Path]:
    found = weight_files(folder)
    if not found:
        problem = f"holds no {SAFETENSORS}, no shards of it, and no {TORCH}"
        raise FileError(folder, problem, "get the weights in the format safetensors")
    return found


def _shards(folder: Path, index: Path, suffix: str) -> list[Path]:
    places = json_object(index, _MOST_INDEX).get("weight_map")
    if not isinstance(places, dict) or not places or not all(isinstance(one, str) for one in places.values()):
        raise FileError(index, "must have a weight_map from names of tensors to names of files", DAMAGED)
    names = sorted(set(places.values()))
    if len(names) > _MOST_SHARDS:
        raise FileError(index, f"names {len(names)} files, at most {_MOST_SHARDS} are read", DAMAGED)
    files = []
    for name in names:
        path = file_in(folder, name)
        if path is None or path.suffix != suffix:
            raise FileError(index, f"names the file {shown(name)}, which is not in the folder", "get the missing file")
        files.append(path)
    return files


Found = Mapping[str, tuple[tuple[int, ...], Callable[[], torch.Tensor]]]


def _safetensors(path: Path) -> Found:
    try:
        file: Any = safe_open(path, framework="pt", device="cpu")
        names = [*file.keys()]
        shapes = {name: tuple(int(size) for size in file.get_slice(name).get_shape()) for name in names}
    except Exception as error:
        raise FileError(path, f"is not a safetensors file ({shown(str(error))})", DAMAGED) from error
    # A copy: a tensor that stays in the file would change, or end the process, when the file is replaced.
    return {name: (shape, lambda name=name: file.get_tensor(name).clone()) for name, shape in shapes.items()}  # type: ignore[misc]


def _torch_file(path: Path, dtype: torch.dtype) -> Found:
    size = path.stat().st_size
    require_memory(path, [(size // 4,)], torch.float32)
    try:
        _refuse_compressed(path, size)
        with path.open("rb") as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch warns of its own old formats
            # Tensors and plain containers only: nothing in the file is run.
            found = torch.load(file, map_location="cpu", weights_only=True)
    except Exception as error:
        problem = f"is not a file of weights ({shown(str(error).partition(chr(10))[0])})"
        raise FileError(path, problem, "get the weights in the format safetensors") from error
    if not isinstance(found, dict):
        raise FileError(path, f"holds {shown(type(found).__name__)}, not named tensors", DAMAGED)
    tensors = {name: one for name, one in found.items() if isinstance(name, str) and isinstance(one, torch.Tensor)}
    for name, one in tensors.items():
        sound = one.layout == torch.strided and one.device.type == "cpu" and not one.is_quantized
        if not sound or one.numel() * one.itemsize > one.untyped_storage().nbytes() or one.nbytes > size:
            raise FileError(path, f"the tensor {name!r} is larger than what the file holds", DAMAGED)
    return {name: (tuple(one.shape), lambda one=one: one.detach()) for name, one in tensors.items()}  # type: ignore[misc]


def _refuse_compressed(path: Path, size: int) -> None:
    """Refuse an archive that grows when it is read: torch stores weights as they are."""
    with path.open("rb") as file:
        if file.read(2) != b"PK":
            return
    with zipfile.ZipFile(path) as archive:
        entries = archive.infolist()
    if any(one.compress_type != zipfile.ZIP_STORED for one in entries) or sum(one.file_size for one in entries) > size:
        raise ValueError("its parts are larger than the file")


def read_pooling(folder: Path, asked: str | None = None) -> tuple[Path, Pooling]:
    """Folder of the transformer, and how texts are embedded, from the modules.json of sentence-transformers.

    Without that file, the folder itself and the mean; ``asked`` replaces what the files say.
    """
    listed = file_in(folder, "modules.json")
    if listed is None:
        return folder, Pooling(asked or "mean")
    modules = json_value(listed)
    if not isinstance(modules, list) or not all(isinstance(one, dict) for one in modules):
        raise FileError(listed, "must hold a list of modules", DAMAGED)
    home, kind, unit_length = folder, "mean", False
    for module in modules:
        name = str(module.get("type", "")).rpartition(".")[2]
        path = module.get("path")
        if name == "Transformer":
            home = _below(folder, listed, path)
        elif name == "Pooling" and asked is None:
            kind = _pooling(_below(folder, listed, path))
        elif name == "Normalize":
            unit_length = True
        elif name not in ("Dropout", "Pooling") and asked is None:
            raise FileError(
                listed, f"has a module {shown(name)}, which is not supported", 'pass pooling="mean" to leave it out'
            )
    return home, Pooling(asked or kind, unit_length)


def _below(folder: Path, listed: Path, name: object) -> Path:
    if name in ("", "."):
        return folder
    wrong = FileError(listed, f"names the folder {shown(name)}, which is not there", DAMAGED)
    if not isinstance(name, str) or not _is_plain(name):
        raise wrong
    try:
        found = (folder / name).is_dir() and not (folder / name).is_symlink()
    except OSError:  # a name that is too long
        raise wrong from None
    if not found:
        raise wrong
    return folder / name


def _is_plain(name: str) -> bool:
    """Whether a name has no folder in it, on any system."""
    return bool(name) and name == os.path.basename(name) and not {"\\", "\0", ":"} & {*name} and name != ".."


def _pooling(folder: Path) -> str:
    path = file_in(folder, CONFIG)
    if path is None:
        raise FileError(folder, f"holds no {CONFIG}", 'get the missing file, or pass pooling="mean"')
    found = json_object(path)
    modes = [name for name, value in found.items() if name.startswith("pooling_mode_") and value is True]
    modes = modes or [f"pooling_mode_{found.get('pooling_mode')}"]
    known = {"mean_tokens": "mean", "mean": "mean", "cls_token": "first", "cls": "first"}
    kind = known.get(modes[0].removeprefix("pooling_mode_")) if len(modes) == 1 else None
    if kind is None:
        raise FileError(path, f"asks for {', '.join(modes)[:80]}, which is not supported", 'pass pooling="mean"')
    return kind
