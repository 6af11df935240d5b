"""The small pretrained model of film reviews that is part of the package."""

from __future__ import annotations

from importlib.resources import as_file, files
from typing import Any

import numpy as np

from .classifier import LeaderClassifier

FILE = "movie_reviews.safetensors"
NAMES = ("negative", "positive")
"""Names of the labels 0 and 1 of film reviews."""


def shipped_model() -> LeaderClassifier:
    """Pretrained model of film reviews in two dimensions with the classes "negative" and "positive".

    ``text/models/movie_reviews.md`` describes its training.

    Returns
    -------
    LeaderClassifier
        The fitted model.
    """
    with as_file(files(__package__).joinpath("models", FILE)) as path:
        model = LeaderClassifier.load(path)
    model.classes_ = named(model.classes_)
    return model


def named(labels: Any) -> np.ndarray:
    """Names of the labels of film reviews, shape (labels,); labels other than 0 and 1 are unchanged.

    >>> named([1, 0]).tolist()
    ['positive', 'negative']
    """
    numbers = np.asarray(labels)
    return np.array(NAMES)[numbers.astype(int)] if np.isin(numbers, (0, 1)).all() else numbers
