"""Models and example texts of the text page."""

from __future__ import annotations

import base64
import warnings
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from urllib.parse import quote_plus

import numpy as np
import pandas

from ...datasets.corpora import movie_reviews, train_and_test
from ...datasets.documents import LABEL_NAMES, TEXT_NAMES, Documents
from ...errors import FileError, MissingExtraError
from ...progress import Tell
from ...text.classifier import LeaderClassifier
from ...text.evaluation import quality
from ...text.explaining.corpus_statistics import Survey, survey
from ...text.pretrained import shipped_model
from ...text.recipes import OWN_PATTERNS, OWN_REMOVED
from ...text.words.documents import NoKnownWordWarning
from ..archives import unpack
from ..uploads import LONGEST, Upload, as_file, example_of

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
_LONGEST_PACKED = 5_500
"""Characters of a packed text in an address, which may have 7,000 in all."""


def kept(text: str, key: str = "text") -> dict[str, str]:
    """The part of an address that brings a text back: its example, itself, or packed; nothing where it is too long."""
    example = example_of(text, EXAMPLES)
    if example is not None:
        return {"example" if key == "text" else f"{key}-example": example}
    if len(text) <= LONGEST and len(quote_plus(text)) <= _LONGEST_PACKED:
        return {key: text}
    packed = base64.urlsafe_b64encode(zlib.compress(text.encode(), 9)).decode().rstrip("=")
    return {f"{key}-packed": packed} if len(packed) <= _LONGEST_PACKED else {key: ""}


def kept_in(state: Mapping[str, str], key: str = "text") -> str | None:
    """The text that :func:`kept` wrote into an address; None where there is none that can be read."""
    example = state.get("example" if key == "text" else f"{key}-example")
    if example in EXAMPLES:
        return EXAMPLES[example][1]
    if key in state:
        return state[key][:MOST_CHARACTERS]
    packed = state.get(f"{key}-packed", "")
    if not packed:
        return None
    try:
        data = base64.urlsafe_b64decode(packed + "=" * (-len(packed) % 4))
        # Letters take at most four bytes; whatever else the data would unpack to is not unpacked.
        return zlib.decompressobj().decompress(data, 4 * MOST_CHARACTERS).decode()[:MOST_CHARACTERS]
    except (ValueError, zlib.error):
        return None


def in_the_link(text: str) -> str:
    """What to say about the length of a text; empty where it is kept whole."""
    said = []
    if len(text) >= MOST_CHARACTERS:
        said.append(f"The box holds {MOST_CHARACTERS:,} characters; what is longer is cut.")
    if text and "" in kept(text).values():
        said.append(f"The text has {len(text):,} characters, too many for the link, which opens an empty box.")
    return " ".join(said)


SUFFIX = ".safetensors"
_SURVEYED = 800
"""Texts for the word map; more give steadier counts of leaders and take longer."""
_FEWEST_TEXTS, _MOST_CLASSES, _FEWEST_TO_EVALUATE = 4, 30, 40
"""Limits of a training table; of fewer than 40 texts a fifth would be too few to measure an accuracy."""
_HELD_OUT = 0.2
"""Share of the texts that measure the accuracy."""
_DEEPEST, _MOST_COORDINATES = 200, 1024
"""Layers and coordinates of a loaded model; bound the time of an explanation."""


@dataclass(frozen=True)
class TextModel:
    """A classifier, and the Python code that makes it."""

    model: LeaderClassifier
    title: str
    code: str
    texts: tuple[str, ...]
    """Texts to survey for the word map."""
    story: str

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
        raise FileError(name, f"holds {len(rows)} texts with a label", f"upload at least {_FEWEST_TEXTS}")
    classes = sorted(set(rows[label]))
    if not 2 <= len(classes) <= _MOST_CLASSES:
        problem = f"the column {label!r} has {len(classes):,} different labels"
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
