"""Figures of forecasts show the given numbers and warnings."""

import numpy as np
import pytest

import hardmax as hm
from drawn import artists, words
from hardmax.datasets import airfoil
from hardmax.errors import InputError
from hardmax.figures import (
    draw_backtest,
    draw_climate,
    draw_eigenvalues,
    draw_fields,
    draw_forecast,
    draw_lag_attention,
    draw_phase_portrait,
    figure_bytes,
)
from hardmax.figures.forecast_page import number_format
from hardmax.forecasting.diagnostics.backtest import Backtest, BacktestRow
from hardmax.outcomes import Ending, Outcome

_RECORD = np.column_stack([np.sin(0.1 * np.arange(300)), np.cos(0.1 * np.arange(300))])


def _forecast(left=0):
    values = np.column_stack([np.sin(0.1 * np.arange(300, 350)), np.cos(0.1 * np.arange(300, 350))])
    spread = np.linspace(0, 0.5, 50)[:, None] * np.ones(2)
    times = 0.1 * np.arange(300, 350)
    return hm.Forecast(values, spread, times, Outcome(Ending.TIME_REACHED, "50 steps"), left)


@pytest.fixture(scope="module")
def model():
    return hm.TimeDelayedTransformer(restarts=1, random_state=0).fit(airfoil(300, initial_pitch=0.1).values, dt=2.0)


def test_a_forecast_goes_on_from_the_record_with_its_fan():
    ahead = _forecast()
    figure = draw_forecast(_RECORD, ahead, dt=0.1, names=("lift", "drag"), truth=ahead.values + 0.01)
    top, below = figure.axes
    (line,) = artists(top, "ahead")
    assert np.allclose(line.get_ydata(), np.concatenate([_RECORD[-1:, 0], ahead.values[:, 0]]))
    assert np.allclose(line.get_xdata()[1:], ahead.times)
    (record,) = artists(below, "record")
    assert np.allclose(record.get_ydata(), _RECORD[-100:, 1])
    assert len(artists(top, "fan")) == 2
    assert artists(top, "truth")
    assert "lift" in words(figure)
    assert "training range" not in words(figure)
    assert figure_bytes(figure)[:4] == b"\x89PNG"


def test_bands_are_intervals_and_missing_where_the_spread_is_not_known():
    ahead = _forecast()
    narrow = hm.Forecast(ahead.values, 0.04 * ahead.spread, ahead.times, ahead.outcome, 0)
    figure = draw_forecast(_RECORD, narrow, dt=0.1)
    wide, slim = artists(figure.axes[0], "fan")
    for fan, width in ((wide, 1.96), (slim, 0.9945)):
        corners = fan.get_paths()[0].vertices
        for step in (10, 30, 49):
            heights = corners[np.isclose(corners[:, 0], ahead.times[step]), 1]
            middle, spread = ahead.values[step, 0], width * narrow.spread[step, 0]
            assert (heights.min(), heights.max()) == pytest.approx((middle - spread, middle + spread), abs=1e-5)
    legend = figure.axes[0].get_legend()
    assert [text.get_text() for text in legend.get_texts()] == ["record", "forecast", "68 %", "95 %"]
    unknown = hm.Forecast(ahead.values, np.full((50, 2), np.nan), ahead.times, ahead.outcome, 0)
    figure = draw_forecast(_RECORD, unknown, dt=0.1)
    assert not artists(figure.axes[0], "fan")
    assert "the spread is unknown" in words(figure)


def test_bands_keep_the_bounds_of_the_model_and_are_those_of_its_intervals():
    sunny = np.clip(np.sin(2 * np.pi * np.arange(120) / 12), 0, None) + 0.05 * np.random.default_rng(0).random(120)
    model = hm.TimeDelayedTransformer(model="seasonal-naive", season=12, lower=0, random_state=0)
    ahead = model.fit(sunny).forecast(24)
    band = ahead.interval(0.9)
    (fan,) = artists(draw_forecast(sunny, ahead, dt=1.0, levels=[0.9]).axes[0], "fan")
    corners = fan.get_paths()[0].vertices
    assert corners[:, 1].min() >= 0
    for step in (0, 12, 23):
        heights = corners[np.isclose(corners[:, 0], ahead.times[step]), 1]
        assert (heights.min(), heights.max()) == pytest.approx((band.lower[step, 0], band.upper[step, 0]))


def test_numbers_of_a_page_have_the_digits_of_their_widths():
    write = number_format(np.array([31467.97, 27310.2]), np.array([367.6]))
    assert [write(31467.97), write(0.0), write(-0.2)] == ["31468", "0", "0"]
    write = number_format(np.array([380.9, 1.4e-14]), np.array([0.17, 12.0]))
    assert [write(380.9), write(1.4e-14)] == ["380.90", "0.00"]
    assert number_format(np.array([12.3456789]), np.array([1e-9]))(12.3456789) == "12.3457"  # at most six digits
    assert number_format(np.array([0.0]), np.array([0.57]))(1.1484) == "1.148"
    assert number_format(np.array([2.5e-12]), np.array([1e-13]))(2.5e-12) == "2.5e-12"
    assert number_format(np.array([3.0]), np.array([np.nan]))(3.0) == "3"


def test_the_step_that_left_the_range_is_told_and_many_channels_are_counted():
    assert "leaves the training range at step 7" in words(draw_forecast(_RECORD, _forecast(left=7), dt=0.1))
    many = hm.Forecast(np.zeros((5, 8)), np.ones((5, 8)), np.arange(5.0), Outcome(Ending.TIME_REACHED, ""), 0)
    assert "6 of 8 channels" in words(draw_forecast(np.zeros((9, 8)), many, dt=1.0))
    with pytest.raises(InputError, match="must be one forecast of 8 channels"):
        draw_forecast(np.zeros((9, 8)), _forecast(), dt=1.0)


def test_fields_share_their_colours_and_the_difference_has_its_own():
    x, y = np.linspace(0, 8, 40), np.linspace(0, 2, 11)
    truth = np.sin(x)[:, None] * np.cos(y)
    hidden = np.zeros((40, 11), dtype=bool)
    hidden[5:8, 4:7] = True
    figure = draw_fields(
        0.5 * truth, truth, truth + 1e-3, x=x, y=y, hidden=hidden, name="swirl", ahead="3 units of time ahead"
    )
    panels = figure.axes[:4]
    images = [artists(ax, "field")[0] for ax in panels]
    assert np.allclose(images[1].get_array(), truth.T)
    assert np.allclose(images[3].get_array(), 1e-3)
    assert images[0].get_clim() == images[1].get_clim() == images[2].get_clim()
    assert images[3].get_clim() == pytest.approx((-1e-3, 1e-3))
    assert "swirl" in words(figure)
    assert "forecast, 3 units of time ahead" in words(figure)
    assert figure_bytes(draw_fields(*np.zeros((3, 6, 6))))[:4] == b"\x89PNG"
    with pytest.raises(InputError, match="must be three of one shape"):
        draw_fields(truth, truth, truth[1:])


def test_phase_portraits_of_one_channel_use_its_past():
    ax = draw_phase_portrait(_RECORD, _forecast().values)
    assert np.allclose(artists(ax, "ahead")[0].get_xydata(), _forecast().values)
    ax = draw_phase_portrait(_RECORD[:, 0], _forecast().values[:, 0], lag=5)
    assert np.allclose(artists(ax, "record")[0].get_ydata(), _RECORD[5:, 0])
    assert "5 samples ago" in words(ax.figure)
    with pytest.raises(InputError, match="ahead must have 2, got 1 channels"):
        draw_phase_portrait(_RECORD, _RECORD[:, 0])


def test_a_climate_needs_a_long_forecast():
    figure = draw_climate(_RECORD, _RECORD[:200], dt=0.1, channel=1)
    left, right = figure.axes
    (line,) = artists(right, "ahead")
    peak = line.get_xdata()[np.argmax(line.get_ydata())]
    assert peak == pytest.approx(1 / (2 * np.pi), abs=0.06)
    assert artists(left, "ahead")
    with pytest.raises(InputError, match="too short for a spectrum"):
        draw_climate(_RECORD, _RECORD[:20], dt=0.1)


def test_eigenvalues_lie_where_the_model_has_them(model):
    ax = draw_eigenvalues(model, window=airfoil(200, initial_pitch=0.2).values)
    drawn = np.concatenate([np.asarray(a.get_offsets()) for a in artists(ax, "eigenvalues")])
    values = model.eigenvalues()
    assert len(drawn) == len(values)
    assert np.allclose(np.sort(np.hypot(*drawn.T)), np.sort(np.abs(values)))
    assert artists(ax, "local eigenvalues")


def test_attention_is_drawn_as_shares(model):
    ax = draw_lag_attention(model)
    heights = [bar.get_height() for bar in ax.patches]
    assert sum(heights) == pytest.approx(1.0)


def test_a_backtest_is_curves_and_a_table():
    rows = (BacktestRow("TD-TF", 0.1, 0.05, 3.0, 0), BacktestRow("persistence", 1.0, 0.9, 0.1, 2))
    curves = {"TD-TF": np.array([0.0, 0.1, 0.2]), "persistence": np.array([0.5, 1.0, np.inf])}
    figure = draw_backtest(Backtest(rows, curves, np.array([1.0, 2.0, 3.0]), 5, "linear"))
    assert len(artists(figure.axes[0], "curve")) == 2
    (table,) = figure.axes[1].tables
    cells = {cell.get_text().get_text() for cell in table.get_celld().values()}
    assert {"persistence", "2 of 5", "0.05"} <= cells
    figure_bytes(figure)  # infinite errors are drawn too
