"""Time budgets: what they end, what they leave unchanged, and that the report says so."""

import numpy as np
import pytest

from hardmax.errors import InputError
from hardmax.forecasting.forecaster import TimeDelayedTransformer
from hardmax.forecasting.search import time_budget as time_module
from hardmax.forecasting.search.time_budget import TimeBudget


class _Hands:
    """A clock that is set by the test."""

    def __init__(self) -> None:
        self.processor = self.wall = 0.0

    def thread_time(self) -> float:
        return self.processor

    def monotonic(self) -> float:
        return self.wall


@pytest.fixture
def hands(monkeypatch: pytest.MonkeyPatch) -> _Hands:
    found = _Hands()
    monkeypatch.setattr(time_module, "time", found)
    return found


def test_without_budgets_nothing_is_cut(hands: _Hands) -> None:
    time_budget = TimeBudget()
    hands.processor = hands.wall = 1e9
    assert time_budget.within(0.01)
    assert time_budget.time_for_selection()
    assert time_budget.affordable(40, 8) == 40
    assert time_budget.used() == 0
    assert not time_budget.ended


def test_processor_time_does_not_count_what_others_do(hands: _Hands) -> None:
    time_budget = TimeBudget(10.0)
    hands.wall = 1e9
    assert time_budget.within(0.1)
    hands.processor = 3.2
    assert time_budget.within(0.5)
    assert not time_budget.ended
    hands.processor = 3.4
    assert not time_budget.within(0.5)
    assert time_budget.ended
    assert time_budget.time_for_selection()
    assert time_budget.used() == pytest.approx(0.34)


@pytest.mark.parametrize("which", ["processor", "wall"])
def test_every_budget_leaves_time_for_what_comes_after_the_search(hands: _Hands, which: str) -> None:
    time_budget = TimeBudget(10.0) if which == "processor" else TimeBudget(None, 10.0)
    setattr(hands, "wall" if which == "processor" else "processor", 1e9)
    assert time_budget.within()
    assert time_budget.affordable(40, 8) == 40
    setattr(hands, which, 6.5)
    assert time_budget.within()
    assert time_budget.affordable(40, 8) == (40 if which == "processor" else 13)
    setattr(hands, which, 6.7)
    assert not time_budget.within()
    assert time_budget.time_for_ranking()
    setattr(hands, which, 8.1)
    assert not time_budget.time_for_ranking()
    assert time_budget.time_for_selection()
    setattr(hands, which, 9.1)
    assert not time_budget.time_for_selection()
    assert TimeBudget(2.0, 10.0).affordable(40, 8) == TimeBudget(10.0, 2.0).affordable(40, 8) == 10


def test_a_check_foresees_another_piece_of_work_as_long_as_the_longest(hands: _Hands) -> None:
    time_budget = TimeBudget(10.0)
    # The limit of the selection is 9: with pieces of 0.3 it goes on at 8.6, after one of 1.0 it ends at 8.1.
    for processor, left in ((7.7, True), (8.0, True), (8.3, True), (8.6, True), (8.8, False)):
        hands.processor = processor
        assert time_budget.time_for_selection() is left
    hands.processor = 0.0
    time_budget = TimeBudget(10.0)
    for processor, left in ((7.1, True), (8.1, False)):
        hands.processor = processor
        assert time_budget.time_for_selection() is left
    # Pieces of the ranking do not count for the selection.
    hands.processor = 0.0
    time_budget = TimeBudget(10.0)
    for processor in (2.0, 8.3):
        hands.processor = processor
        time_budget.time_for_ranking()
    assert time_budget.time_for_selection()


def test_simple_models_have_what_is_left_and_a_share_in_any_case(hands: _Hands) -> None:
    time_budget = TimeBudget(10.0)
    hands.processor = 2.0
    left = time_budget.comparison()
    hands.processor = 9.4
    assert left()
    assert not time_budget.ended
    hands.processor = 9.6
    assert not left()
    assert time_budget.ended
    hands.processor = 0.0
    time_budget = TimeBudget(10.0)
    hands.processor = 9.5
    left = time_budget.comparison()
    hands.processor = 10.9
    assert left()
    hands.processor = 11.1
    assert not left()
    left = TimeBudget(None, 10.0).comparison()
    hands.wall = 9.4
    assert left()
    hands.wall = 9.6
    assert not left()


def test_a_model_without_a_selection_searches_for_its_whole_budget(hands: _Hands) -> None:
    time_budget = TimeBudget(10.0, for_the_search=1.0)
    hands.processor = 9.9
    assert time_budget.within()
    hands.processor = 10.1
    assert not time_budget.within()


def _waves() -> np.ndarray:
    return np.sin(0.21 * np.arange(200)) + 0.5 * np.cos(0.07 * np.arange(200)) ** 3


def test_a_fit_that_is_over_before_its_budget_is_the_same_every_time() -> None:
    fits = [
        TimeDelayedTransformer(8, restarts=1, random_state=0, budget=budget, progress=False).fit(_waves())
        for budget in (None, 1e6)
    ]
    np.testing.assert_array_equal(fits[0].forecast(20).values, fits[1].forecast(20).values)
    for model in fits:
        assert model.report_.numbers["budget_ended"] is False
        assert "cut short" not in str(model.report_)


@pytest.mark.parametrize("recipe", ["family", "paper"])
def test_a_search_cut_short_forecasts_and_says_so(recipe: str) -> None:
    model = TimeDelayedTransformer(8, recipe=recipe, random_state=0, budget=1e-3, progress=False).fit(_waves())
    assert np.isfinite(model.forecast(20).values).all()
    assert np.isfinite(model.forecast(20).spread).all()
    assert model.report_.numbers["budget_ended"] is True
    assert "cut short by its budget of 0.001 s" in str(model.report_)
    found = model.backtest(10, 4)
    assert {"TD-TF", "persistence", "mean", "TD-DMD", "NG-RC", "analogue"} <= {row.model for row in found.rows}
    assert found.row("TD-TF").error < np.inf


@pytest.mark.parametrize("value", [0, -1.0, np.nan, np.inf, "soon", True])
def test_budgets_that_are_no_time_are_refused(value: object) -> None:
    with pytest.raises(InputError, match="budget must be a positive number.*pass budget=10, or None"):
        TimeDelayedTransformer(budget=value).fit(_waves())  # type: ignore[arg-type]
