"""Models and example texts of the text page."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
import pandas

from ...datasets.corpora import movie_reviews, train_and_test
from ...datasets.documents import LABEL_NAMES, TEXT_NAMES, Documents
from ...errors import FileError, MissingExtraError
from ...outcomes import counted
from ...progress import Tell
from ...text.classifier import LeaderClassifier
from ...text.evaluation import quality
from ...text.explaining.corpus_statistics import Survey, survey
from ...text.pretrained import shipped_model
from ...text.recipes import OWN_PATTERNS, OWN_REMOVED
from ...text.words.documents import NoKnownWordWarning
from ..archives import unpack
from ..kept import Kept
from ..uploads import Upload, as_file, rows_of

EXAMPLES: dict[str, tuple[str, str]] = {
    "cast": (
        "A dull plot, a wonderful cast",
        "The plot is dull and the ending is a mess, but what a wonderful cast! Every scene with the two sisters is "
        "funny, warm and beautifully played, and the music stays with you. Flawed, and still one of the best evenings "
        "I have had this year.",
    ),
    "waste": (
        "A waste of two hours",
        "Two hours of my life that I will not get back. The dialogue is terrible, the effects look cheap, and nobody "
        "seems to know why they are in this film. I wanted to like it. It is boring from the first minute, and the "
        "worst thing I have seen in years.",
    ),
    "quiet": (
        "A quiet masterpiece",
        "A small, quiet film about a lighthouse keeper and his daughter. Nothing much happens, and it is perfect: "
        "superb acting, stunning pictures of the sea, and a last scene that is moving without a single word. "
        "Highly recommended.",
    ),
    "mixed": (
        "Neither here nor there",
        "It starts well and then forgets where it wanted to go. Some jokes are great, others fall flat. The children "
        "loved it; I looked at my watch. Not bad, not good.",
    ),
    "irony": (
        "Irony is hard",
        "Oh, brilliant. Another film in which a brilliant detective brilliantly solves a case that a child could "
        "solve. I laughed, though not where I was meant to.",
    ),
}
"""Name in an address, title, text."""


MOST_CHARACTERS = 20_000
"""Characters of a text; more take long to explain and to draw."""
SUFFIX = ".safetensors"
_SURVEYED = 800
"""Texts for the word map; more give steadier counts of leaders and take longer."""
_FEWEST_TEXTS, _MOST_CLASSES, _FEWEST_TO_EVALUATE = 4, 30, 40
"""Limits of a training table; of fewer than 40 texts a fifth would be too few to measure an accuracy."""
_HELD_OUT = 0.2
"""Share of the texts that measure the accuracy."""
_DEEPEST, _MOST_COORDINATES = 200, 1024
"""Layers and coordinates of a loaded model; bound the time of an explanation."""


MODELS, TABLES = (SUFFIX, ".zip"), (".csv", ".tsv")
"""How the names of files of models and of tables to train on end."""


@dataclass(frozen=True)
class Origin:
    """The upload that a model was made from: its own file, or a table that it was trained on."""

    upload: Upload
    columns: tuple[int, int] | None = None
    """Numbers of the columns of texts and labels; None for the file of a model."""

    def query(self, store: Kept) -> dict[str, str]:
        """The part of an address that names the stored upload; empty where it could not be stored."""
        name = store.keep(self.upload)
        if name is None:
            return {}
        return {"model": name} if self.columns is None else {"table": name, "columns": "{},{}".format(*self.columns)}

    @classmethod
    def read(cls, query: Mapping[str, str], store: Kept) -> Origin | None:
        """The origin that an address names; None where it names none, or one that is not stored."""
        model = store.read(query.get("model", ""), MODELS)
        if model is not None:
            return cls(model)
        table = store.read(query.get("table", ""), TABLES)
        text, _, label = query.get("columns", "")[:9].partition(",")
        return cls(table, (int(text), int(label))) if table and text.isdecimal() and label.isdecimal() else None

    def model(self, folder: Path, tell: Tell) -> TextModel:
        """The model: read from its file, or trained again on the table, which gives the same one."""
        if self.columns is None:
            return load_model(self.upload, folder)
        table, name = rows_of(self.upload), self.upload.name
        columns = [str(column) for column in table.columns]
        if max(self.columns) >= len(columns):
            raise FileError(name, f"has {len(columns)} columns", "upload the table that the link was made with")
        text, label = (columns[k] for k in self.columns)
        documents = documents_of(name, table, text, label)
        whole = len(documents.texts) == len(table)
        return replace(train_model(documents, text, label, tell, whole=whole), origin=self)


@dataclass(frozen=True)
class TextModel:
    """A classifier, and the Python code that makes it."""

    model: LeaderClassifier
    title: str
    code: str
    texts: tuple[str, ...]
    """Texts to survey for the word map."""
    story: str
    origin: Origin | None = None
    """None for the shipped model."""

    def survey(self) -> Survey:
        """Leaders and predictions of the model on its texts."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NoKnownWordWarning)
            return survey(self.model, list(self.texts))


_BYTES_PER_WORD = 150
"""About what a word of a vocabulary takes in memory, beside its coordinates."""


@dataclass(frozen=True, eq=False)
class TextState:
    """A state of the history of the page: the texts, the words that are struck out, the model and the layer."""

    typed: str
    struck: tuple[str, ...]
    other: str | None
    """The second text; None while there is none beside the first."""
    using: TextModel
    layer: int = 0

    def shows(self, other: TextState) -> bool:
        """Whether both differ at most in the layer, which the player sets."""
        same = (self.typed, self.struck, self.other) == (other.typed, other.struck, other.other)
        return same and self.using is other.using

    def weigh(self) -> dict[int, int]:
        """Bytes of its texts and of a model of the visitor, by their ``id``."""
        parts = {id(text): len(text) for text in (self.typed, self.other) if text is not None}
        if self.using is shipped():
            return parts
        model = self.using.model
        size = model.network_.embedding.nbytes + _BYTES_PER_WORD * len(model.words())
        size += 0 if self.using.origin is None else len(self.using.origin.upload.data)
        return parts | {id(self.using): size + sum(map(len, self.using.texts))}


@cache
def reviews() -> Documents | None:
    """Test reviews of the corpus, which the shipped model was not trained on; None if it is not installed."""
    try:
        return train_and_test(movie_reviews())[1]
    except (MissingExtraError, FileError):
        return None


@cache
def shipped() -> TextModel:
    """The model of film reviews that comes with the package, shared by all visits."""
    corpus = reviews()
    texts = tuple(text for _, text in EXAMPLES.values())
    if corpus is not None:
        texts = (*texts, *corpus.texts[:_SURVEYED])
    model = shipped_model()
    return TextModel(
        model=model,
        title="film reviews (shipped)",
        code="from hardmax.text import shipped_model\n\nmodel = shipped_model()",
        texts=texts,
        story=f"A small model of film reviews in {model.network_.embedding.shape[1]} dimensions with "
        f"{len(model.words()):,} words and word pairs.",
    )


@cache
def shipped_survey() -> Survey:
    """The survey of the shipped model, shared by all visits."""
    return shipped().survey()


def load_model(upload: Upload, folder: Path) -> TextModel:
    """The classifier in an uploaded file, or in a ZIP archive of one."""
    data = upload.data
    if upload.suffix == ".zip":
        found = unpack(upload, (SUFFIX,))
        if len(found) != 1:
            raise FileError(upload.name, f"holds {len(found)} models", "upload an archive with one model")
        data = next(iter(found.values()))
    with as_file(folder / f"model{SUFFIX}", data, upload.name) as path:
        model = LeaderClassifier.load(path)
    _check(upload.name, model)
    return TextModel(
        model=model,
        title=upload.name,
        code=f'model = hm.LeaderClassifier.load("model{SUFFIX}")   # the file you loaded',
        texts=shipped().texts,  # the same words on the map for the shipped model, saved and loaded again
        story=f"Your model, with {len(model.words()):,} words and {len(model.classes_)} classes.",
        origin=Origin(upload),
    )


def _check(name: str, model: LeaderClassifier) -> None:
    """Refuse a valid model that could block the server."""
    if not hasattr(model, "vocabulary_"):
        raise FileError(name, "is a model of tables, not of texts", "load a model that was fitted on texts")
    pattern, removed = model.tokeniser_.pattern, set(model.tokeniser_.removed)
    if (pattern is not None and pattern not in OWN_PATTERNS) or not removed <= OWN_REMOVED:
        remedy = "use it in Python instead"
        raise FileError(name, "has a custom pattern for words, which may take for ever", remedy)
    depth, coordinates = model.recipe_.depth, model.network_.embedding.shape[1]
    if depth > _DEEPEST or coordinates > _MOST_COORDINATES:
        problem = f"has {depth} layers and {coordinates} coordinates, more than are shown here"
        raise FileError(name, problem, f"load a model of at most {_DEEPEST} layers and {_MOST_COORDINATES} coordinates")


def usual_column(columns: list[str], what: str) -> str:
    """The most likely column of texts or labels, by name."""
    usual = TEXT_NAMES if what == "text" else LABEL_NAMES
    lowered = {column.lower(): column for column in columns}
    for name in usual:
        if name in lowered:
            return lowered[name]
    return columns[0] if what == "text" else columns[-1]


def documents_of(name: str, table: pandas.DataFrame, text: str, label: str) -> Documents:
    """Texts and labels from two columns of a table, after checks of their numbers."""
    if text == label:
        raise FileError(name, f"uses the column {text!r} for texts and labels", "choose two different columns")
    rows = table[(table[text].str.strip() != "") & (table[label].str.strip() != "")]
    if len(rows) < _FEWEST_TEXTS:
        raise FileError(
            name,
            f"holds {counted(len(rows), 'text')} with a label",
            f"upload at least {_FEWEST_TEXTS}",
        )
    classes = sorted(set(rows[label]))
    if not 2 <= len(classes) <= _MOST_CLASSES:
        problem = f"the column {label!r} has {counted(len(classes), 'different label')}"
        raise FileError(name, problem, f"choose a column with 2 to {_MOST_CLASSES}")
    return Documents(rows[text].tolist(), rows[label].to_numpy(dtype=str), name)


def train_model(documents: Documents, text: str, label: str, tell: Tell, *, whole: bool = True) -> TextModel:
    """A model fitted on the documents; with enough of them, a fifth is held out to measure the accuracy.

    ``whole`` is False where rows of the table were left out, which the code then says.
    """
    enough = len(documents.texts) >= _FEWEST_TO_EVALUATE
    share = _HELD_OUT if enough else 0.0
    training, test = train_and_test(documents, share)
    model = LeaderClassifier(random_state=0, progress=tell).fit(training.texts, training.labels)
    evaluated = "There were too few texts to hold some out and measure the accuracy."
    if enough:
        assert test.labels is not None  # noqa: S101 (they come with labels)
        known = np.isin(test.labels, model.classes_)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NoKnownWordWarning)
            found = quality(model, [t for t, k in zip(test.texts, known, strict=True) if k], test.labels[known])
        evaluated = f"On {found.documents:,} held-out texts the accuracy is {found.accuracy:.1%}."
    return TextModel(
        model=model,
        title=f"trained on {documents.source}",
        code=(
            "from hardmax.datasets import read_documents, train_and_test\n\n"
            f"documents = read_documents({documents.source!r}, text={text!r}, label={label!r})"
            f"{'' if whole else '   # without its rows that lack a text or a label'}\n"
            f"training, test = train_and_test(documents, {share:g})\n"
            "model = hm.LeaderClassifier(random_state=0).fit(training.texts, training.labels.astype(str))"
        ),
        texts=tuple(documents.texts[:_SURVEYED]),
        story=f"Trained on {len(training.texts):,} texts: {len(model.words()):,} words. {evaluated}",
    )


def model_bytes(model: TextModel, folder: Path) -> bytes:
    """The file of a model."""
    path = folder / f"download{SUFFIX}"
    try:
        model.model.save(path)
        return path.read_bytes()
    finally:
        path.unlink(missing_ok=True)
