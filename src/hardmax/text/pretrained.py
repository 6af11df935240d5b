"""The small model that comes with the package, so that an explanation is one command away."""

from __future__ import annotations

from importlib.resources import as_file, files
from typing import Any

import numpy as np

from .classifier import LeaderClassifier

FILE = "movie_reviews.safetensors"
NAMES = ("negative", "positive")
"""What the labels 0 and 1 of film reviews mean; this is also their order."""


def shipped_model() -> LeaderClassifier:
    """A model of film reviews in two dimensions that answers "negative" or "positive".

    ``text/models/movie_reviews.md`` says how it was made.
    """
    with as_file(files(__package__).joinpath("models", FILE)) as path:
        model = LeaderClassifier.load(path)
    model.classes_ = named(model.classes_)
    return model


def named(labels: Any) -> np.ndarray:
    """The labels of film reviews in words; labels that are not 0 and 1 are left as they are.

    >>> named([1, 0]).tolist()
    ['positive', 'negative']
    """
    numbers = np.asarray(labels)
    return np.array(NAMES)[numbers.astype(int)] if np.isin(numbers, (0, 1)).all() else numbers
