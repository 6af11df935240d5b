"""The small model that comes with the package, so that an explanation is one command away."""

from __future__ import annotations

from importlib.resources import as_file, files

from .classifier import LeaderClassifier

FILE = "movie_reviews.safetensors"


def shipped_model() -> LeaderClassifier:
    """A model of film reviews in two dimensions; ``text/models/movie_reviews.md`` says how it was made."""
    with as_file(files(__package__).joinpath("models", FILE)) as path:
        return LeaderClassifier.load(path)
