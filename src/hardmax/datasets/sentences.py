"""Single sentences of long documents, so that a model learns to answer short texts too."""

from __future__ import annotations

import re

import numpy as np

from .documents import Documents

_TAG = re.compile(r"<[/a-zA-Z][^<>]{0,200}>")
_END = re.compile(r"(?<=[.!?])\s+")
_LETTER = re.compile(r"[^\W\d_]")
_SHORT = 8
"""Sentences of at most so many words are kept wherever they stand: longer ones mostly tell the plot."""


def sentences_of(text: str) -> list[str]:
    """The sentences of a text that say what its author thinks most often: the short ones and the last one, in order.

    A text of one sentence gives none, since it is that sentence already.

    >>> sentences_of("I saw it on a rainy night with three of my oldest friends. Awful! Avoid it.<br />")
    ['Awful!', 'Avoid it.']
    """
    found = [part.strip() for part in _END.split(_TAG.sub(" ", text)) if _LETTER.search(part)]
    if len(found) < 2:
        return []
    return [part for place, part in enumerate(found) if place == len(found) - 1 or len(part.split()) <= _SHORT]


def with_sentences(documents: Documents, share: float) -> tuple[Documents, np.ndarray]:
    """The documents and after them their :func:`sentences_of`, and the weights of all.

    A document weighs 1 and its sentences ``share`` together, however many they are, so that no class gains by being
    written in short sentences; a document of one sentence is both and weighs ``1 + share``. A sentence gets the label
    of its document, which is not always what it says by itself.
    """
    assert documents.labels is not None  # noqa: S101 (only labelled documents get here)
    parts = [sentences_of(text) for text in documents.texts]
    sizes = np.array([len(part) for part in parts])
    texts = documents.texts + [sentence for part in parts for sentence in part]
    labels = np.concatenate([documents.labels, np.repeat(documents.labels, sizes)])
    own = np.where(sizes == 0, 1.0 + share, 1.0)
    weights = np.concatenate([own, np.repeat(share / np.maximum(sizes, 1), sizes)])
    return Documents(texts, labels, f"{documents.source}, and {sizes.sum():,} sentences of them"), weights
