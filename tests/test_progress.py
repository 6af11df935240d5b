"""Progress goes to a function when one is given, and an error raised there ends the work."""

import itertools

import numpy as np
import pytest

import hardmax as hm
from hardmax.progress import StageLog, Ticker, in_stages


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


def test_without_a_terminal_each_stage_is_one_line_with_the_time_left(capsys, monkeypatch):
    now = iter([0.0, 0.0, 2.0, 3.0, 6.0, 6.0])
    monkeypatch.setattr("hardmax.progress.time.monotonic", lambda: next(now))
    with in_stages("fit", {"search": 1.0, "refit": 3.0}, progress=True, most=60.0) as stages:
        stages.begin("search")
        stages.beat()
        stages.begin("refit")
        stages.beat(0.5)
    assert capsys.readouterr().err.splitlines() == [
        "fit: search; 0.0 s so far, at most about 60 s left",
        "fit: refit; 3.0 s so far, about 9 s left",
    ]


def test_stages_of_short_work_are_not_shown_unless_asked_for(capsys, monkeypatch):
    now = [0.0]
    monkeypatch.setattr("hardmax.progress.time.monotonic", lambda: now[0])
    with in_stages("fit", {"search": 1.0, "refit": 3.0}) as stages:
        stages.begin("search")
        now[0] = 0.9
        stages.begin("refit")
        assert capsys.readouterr().err == ""
        now[0] = 1.1
        stages.beat()
    assert capsys.readouterr().err.startswith("fit: refit; 1.1 s so far")
    with in_stages("fit", {"search": 1.0}, progress=False) as stages:
        now[0] = 99.0
        stages.begin("search")
    assert capsys.readouterr().err == ""


def test_on_a_terminal_stages_move_a_bar(capsys, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    with StageLog("fit", most=30.0) as log:
        log("search", 0.0, 1.0)
        log("refit", 0.5, 1.0)
        shown = log._bar
        assert shown is not None
        assert shown.tasks[0].description == "refit"
        assert shown.tasks[0].completed == 0.5
        assert shown.tasks[0].fields["left"] == "about 0 s left"
    assert "so far" not in capsys.readouterr().err


def test_the_time_left_is_never_more_than_the_work_may_take(capsys, monkeypatch):
    now = [0.0]
    monkeypatch.setattr("hardmax.progress.time.monotonic", lambda: now[0])
    with StageLog("fit", most=10.0) as log:
        now[0] = 8.0
        log("search", 0.1, 1.0)
    assert capsys.readouterr().err == "fit: search; 8.0 s so far, about 2 s left\n"
