"""The forecaster goes by scikit-learn's rules for parameters, and results are shown in a few lines."""

from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

import hardmax as hm
from hardmax.errors import InputError
from hardmax.forecasting.forecaster import TimeDelayedTransformer


@pytest.fixture(scope="module")
def model() -> TimeDelayedTransformer:
    t = np.arange(120)
    series = np.stack([np.sin(0.2 * t + k) for k in range(8)], axis=1)
    return TimeDelayedTransformer(3, restarts=1, random_state=0, progress=False).fit(series, dt=0.1)


def test_parameters_are_read_and_changed_by_name() -> None:
    generator = np.random.default_rng(0)
    model = TimeDelayedTransformer(4, pod=3, random_state=generator)
    found = model.get_params()
    assert found["delays"] == 4
    assert found["random_state"] is generator
    assert set(found) == set(model.get_params(deep=False))
    assert model.set_params(delays=7, budget=None) is model
    assert (model.delays, model.budget) == (7, None)
    assert repr(TimeDelayedTransformer(4, pod=3)) == "TimeDelayedTransformer(delays=4, pod=3)"
    with pytest.raises(InputError, match="depth is no parameter.*choose among delays"):
        model.set_params(depth=3)


def test_a_clone_has_the_parameters_and_nothing_learned(model: TimeDelayedTransformer, tmp_path: Path) -> None:
    loaded = hm.load_forecaster(model.save(tmp_path / "model"))
    for fitted in (model, loaded):
        check_is_fitted(fitted)
        copy = clone(fitted)
        assert copy.get_params() == fitted.get_params()
        assert not hasattr(copy, "units_")
        with pytest.raises(NotFittedError):
            check_is_fitted(copy)
    stages: list[str] = []
    reporting = clone(
        TimeDelayedTransformer(3, progress=lambda stage, done, total: stages.append(stage), random_state=1)
    )
    reporting.fit(np.sin(0.3 * np.arange(60)))
    assert stages


def test_results_are_shown_in_a_few_lines(model: TimeDelayedTransformer) -> None:
    ahead = model.forecast(40)
    assert repr(ahead).startswith("Forecast(40 steps of 8 channels, times 12 to 15.9: time reached: 40 steps within")
    assert "array" not in repr(ahead)
    html = ahead._repr_html_()
    assert html.count("<tr>") == 1 + 4 + 1 + 4  # head, first and last steps with an ellipsis between
    assert f"{ahead.values[0, 0]:.4g} ± {ahead.spread[0, 0]:.2g}" in html
    assert "channel 6" in html
    assert "channel 7" not in html
    many = model.forecast(3, window=np.stack([model.last_window_] * 2))
    assert repr(many).startswith("Forecast(2 starts, 3 steps of 8 channels")
    assert "2 starts" in many._repr_html_()
    found = model.backtest(5, 3)
    assert repr(found) == found.text()
    assert found._repr_html_().count("<tr>") == 1 + len(found.rows)
    assert repr(model.report_) == str(model.report_)
    assert model.report_._repr_html_().count("<p>") == len(model.report_.sentences)
    for shown in (repr(ahead), repr(found), repr(model.report_)):
        assert len(shown) < 1200


def test_names_in_html_are_escaped() -> None:
    from hardmax.forecasting.diagnostics.report import Report
    from hardmax.forecasting.forecast import html_table

    assert "<script>" not in html_table("<script>", ["<script>"], [["<script>"]])
    assert "<script>" not in Report(("<script>",))._repr_html_()
