"""The models of the sentiment page: the published one and the default, trained or loaded from checkpoints."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..datasets.corpora import movie_reviews
from ..datasets.documents import Documents, read_documents
from ..errors import InputError
from ..files import make_folder
from ..text.classifier import LeaderClassifier
from ..text.evaluation import Quality, quality
from ..text.words.documents import NoKnownWordWarning

PUBLISHED = {2: 0.791, 4: 0.823, 8: 0.850, 16: 0.882}
"""Best test accuracy over 100 epochs, from the authors' saved histories."""
# As published.
PUBLISHED_EPOCHS = 100
_TRAINING_SHARE = 0.7
_SEED = 0


@dataclass(frozen=True)
class Reviews:
    """Reviews: the first 70 % for training, the last 30 % for testing, as in the paper."""

    texts: list[str]
    labels: np.ndarray
    split: int
    source: str

    @staticmethod
    def of(data: str | os.PathLike[str] | None, most: int | None = None) -> Reviews:
        """Reviews of a file, or of the installed corpus; at most ``most``."""
        found: Documents = movie_reviews() if data is None else read_documents(data)
        assert found.labels is not None  # noqa: S101 (both ways of reading give labels)
        labels = found.labels[:most]
        if len(np.unique(labels)) != 2:
            raise InputError(
                "data",
                f"{len(np.unique(labels))} classes",
                "must hold reviews of two kinds",
                "pass a file with the columns text and label, for example from `hardmax data imdb`",
            )
        if set(np.unique(labels).tolist()) == {0, 1}:
            labels = np.array(["negative", "positive"])[labels.astype(int)]
        texts = found.texts[:most]
        return Reviews(texts, labels, int(_TRAINING_SHARE * len(texts)), found.source)

    @property
    def training(self) -> tuple[list[str], np.ndarray]:
        """Texts and labels for training."""
        return self.texts[: self.split], self.labels[: self.split]

    @property
    def test(self) -> tuple[list[str], np.ndarray]:
        """Texts and labels for testing."""
        return self.texts[self.split :], self.labels[self.split :]


@dataclass(frozen=True)
class Trained:
    """A trained model with its metrics on the test reviews, with hardmax attention."""

    name: str
    dim: int
    model: LeaderClassifier
    quality: Quality

    @property
    def history(self) -> list[dict[str, float]]:
        """One record per epoch."""
        return self.model.history_

    @property
    def best_test_accuracy(self) -> float:
        """Best test accuracy over the epochs with the trained attention, as the paper reports it."""
        return max(record["held_out_accuracy"] for record in self.history)


def published_model(
    reviews: Reviews,
    dim: int,
    folder: Path,
    *,
    epochs: int,
    device: str | None = None,
    temperature: float | None = None,
    progress: bool | None = None,
) -> Trained:
    """The published model and training; every epoch is evaluated on the test reviews, as in the paper.

    Training resumes from a checkpoint in ``folder``.
    """
    name = f"paper-d{dim}" if temperature is None else f"paper-d{dim}-T{temperature:g}"
    model = LeaderClassifier(
        dim=dim,
        recipe="paper",
        epochs=epochs,
        temperature=temperature,
        device=device,
        random_state=_SEED,
        checkpoint=make_folder(folder) / f"{name}.safetensors",
        progress=progress,
    )
    return _evaluated(name, dim, model, reviews, validation=reviews.test)


def default_model(reviews: Reviews, dim: int, *, progress: bool | None = None) -> Trained:
    """The default model; the test reviews are used only for its final evaluation."""
    model = LeaderClassifier(dim=dim, random_state=_SEED, progress=progress)
    return _evaluated(f"default-d{dim}", dim, model, reviews, validation=None)


def _evaluated(name: str, dim: int, model: LeaderClassifier, reviews: Reviews, validation: Any) -> Trained:
    model.fit(*reviews.training, validation=validation)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoKnownWordWarning)
        return Trained(name, dim, model, quality(model, *reviews.test))
