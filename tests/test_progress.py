"""Whoever listens hears every tick of the work in this thread, and an error raised there ends it."""

import pytest

import hardmax as hm
from hardmax.progress import Tick, Ticker, listening


class StoppedError(Exception):
    """Somebody pressed cancel."""


def test_a_listener_hears_how_far_the_work_is():
    heard = []
    with listening(heard.append), Ticker("layers", 3) as ticker:
        ticker.advance()
        ticker.advance(2, "the last two")
    assert heard == [Tick("layers", 1.0, 3, ""), Tick("layers", 3.0, 3, "the last two")]


def test_nobody_hears_after_the_block():
    heard = []
    with listening(heard.append):
        pass
    with Ticker("layers", 1) as ticker:
        ticker.advance()
    assert heard == []


def test_training_is_heard_and_can_be_ended():
    texts, labels = ["a dull plot", "a wonderful cast"] * 20, [0, 1] * 20
    heard = []
    with listening(heard.append):
        hm.LeaderClassifier(epochs=4, random_state=0).fit(texts, labels)
    assert heard[-1].done == heard[-1].total
    assert "loss" in heard[-1].note

    def stop(tick: Tick) -> None:
        if tick.done >= 2:
            raise StoppedError

    with listening(stop), pytest.raises(StoppedError):
        hm.LeaderClassifier(epochs=4, random_state=0).fit(texts, labels)


def test_compiling_and_proving_are_heard():
    heard = []
    with listening(heard.append):
        net = hm.interpolate([[[0, 0], [1, 0]], [[0, 0], [0, 1]]], [[[1, 1]], [[2, 2]]])
        net.certify()
    assert {tick.description for tick in heard} >= {"compiling"}
