"""Progress goes to a function when one is given, and an error raised there ends the work."""

import itertools

import numpy as np
import pytest

import hardmax as hm
from hardmax.progress import Ticker


class StoppedError(Exception):
    """Somebody pressed cancel."""


def test_a_function_is_told_the_stage_and_how_far_it_is():
    told = []
    with Ticker("layers", 3, progress=lambda *news: told.append(news)) as ticker:
        ticker.advance()
        ticker.advance(2, "the last two")
    assert told == [("layers", 1.0, 3), ("the last two", 3.0, 3)]


def test_training_tells_every_step_and_can_be_ended():
    texts, labels = ["a dull plot", "a wonderful cast"] * 20, [0, 1] * 20
    told = []
    hm.LeaderClassifier(epochs=4, random_state=0, progress=lambda *news: told.append(news)).fit(texts, labels)
    assert told[-1][1] == told[-1][2]
    assert "loss" in told[-1][0]

    def stop(stage: str, done: float, total: float | None) -> None:
        if done >= 2:
            raise StoppedError

    with pytest.raises(StoppedError):
        hm.LeaderClassifier(epochs=4, random_state=0, progress=stop).fit(texts, labels)


def test_a_forecaster_is_heard_often_and_can_be_ended():
    series = np.sin(0.3 * np.arange(150))
    told = []
    hm.TimeDelayedTransformer(seconds=0.5, random_state=0, progress=lambda *news: told.append(news)).fit(series, dt=0.1)
    assert len(told) > 10
    assert all(before[1] <= after[1] for before, after in itertools.pairwise(told))

    def stop(stage: str, done: float, total: float | None) -> None:
        raise StoppedError

    with pytest.raises(StoppedError):
        hm.TimeDelayedTransformer(random_state=0, progress=stop).fit(series, dt=0.1)
