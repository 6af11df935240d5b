"""Tables of a record, its inputs and what continues it: names and dates count as in the fit."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import hardmax as hm
from hardmax.errors import InputError

_MONTHS = pd.date_range("2012-01-01", periods=120, freq="MS")


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    t, rng = np.arange(120), np.random.default_rng(0)
    y = 100 + 20 * np.sin(2 * np.pi * t / 12) + rng.normal(0, 4, 120) + t
    return pd.DataFrame({"a": y, "b": -2 * y + rng.normal(size=120)}, index=_MONTHS)


def _fitted(table: Any) -> hm.TimeDelayedTransformer:
    return hm.TimeDelayedTransformer(6, model="td-dmd", random_state=0, progress=False).fit(table)


def test_columns_are_brought_into_the_order_of_the_fit(table: pd.DataFrame) -> None:
    model, swapped = _fitted(table[:96]), table[["b", "a"]]
    expected = model.forecast(3, window=table[60:90]).to_pandas()
    pd.testing.assert_frame_equal(model.forecast(3, window=swapped[60:90]).to_pandas(), expected)
    assert model.backtest(6, series=swapped).rows == model.backtest(6, series=table).rows
    after = model.update(swapped[96:99]).forecast(2).values
    np.testing.assert_array_equal(_fitted(table[:96]).update(table[96:99]).forecast(2).values, after)
    with pytest.raises(InputError, match="window must have the columns a, b, got columns a, c"):
        model.forecast(3, window=table[60:90].rename(columns={"b": "c"}))


@pytest.mark.parametrize(
    ("rows", "place"), [(slice(90, 100), 0), (slice(97, 100), 0), ([96, 98], 1), ([97, 96], 0), ([96, 96], 1)]
)
@pytest.mark.parametrize("kind", ["dates", "zone", "periods", "durations", "days"])
def test_new_samples_must_follow_the_record(table: pd.DataFrame, rows: Any, place: int, kind: str) -> None:
    index: Any = {
        "dates": _MONTHS,
        "zone": _MONTHS.tz_localize("Europe/Madrid"),
        "periods": _MONTHS.to_period("M"),
        "durations": pd.to_timedelta(np.arange(120), unit="h"),
        "days": pd.date_range("2024-01-01", periods=120),
    }[kind]
    table = table.set_axis(index)
    model = _fitted(table[:96])
    with pytest.raises(InputError, match=f"at sample {place}: sort the rows"):
        model.update(table.iloc[rows])
    model.update(table.iloc[96:100])
    assert model.forecast(2).to_pandas().index[0] == index[100]
    assert model.update(table.iloc[100]).update(table.to_numpy()[101:103]).last_time_ > 0


def test_windows_with_holes_or_in_reverse_are_refused(table: pd.DataFrame) -> None:
    model, window = _fitted(table[:96]), table[60:90]
    for wrong in (window.drop(window.index[7]), window[::-1]):
        with pytest.raises(InputError, match="window must have even steps of 30.4"):
            model.forecast(3, window=wrong)
    assert _fitted(table.to_numpy()).forecast(3, window=window).values.shape == (3, 2)


def test_inputs_must_have_the_dates_of_the_record(table: pd.DataFrame) -> None:
    model = hm.TimeDelayedTransformer(6, model="td-dmd", random_state=0, progress=False)
    with pytest.raises(InputError, match="u must have the dates of the record, there 2012-01-01"):
        model.fit(table.a[:100], u=table.b[10:110])
    model.fit(table.a[:100], u=table.b[:100])


def test_columns_of_inputs_are_brought_into_the_order_of_the_fit(table: pd.DataFrame, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    inputs = pd.DataFrame(rng.normal(size=(120, 2)), columns=["valve", "heat"], index=_MONTHS)
    z = table.a + 30 * inputs.valve - 5 * inputs.heat
    model = hm.TimeDelayedTransformer(6, model="td-dmd", random_state=0, progress=False).fit(z[:90], u=inputs[:90])
    model = hm.load_forecaster(model.save(tmp_path / "model", updatable=True))
    swapped = inputs[["heat", "valve"]]
    expected = model.forecast(10, u=inputs[90:100]).values
    np.testing.assert_array_equal(model.forecast(10, u=swapped[90:100]).values, expected)
    window = {"window": z[60:90], "u": swapped[60:100]}
    np.testing.assert_allclose(model.forecast(10, **window).values, expected, rtol=1e-9)
    assert model.backtest(6, series=z, u=swapped).rows == model.backtest(6, series=z, u=inputs).rows
    with pytest.raises(InputError, match="u must follow the record step by step: 2019-07-01"):
        model.forecast(10, u=inputs[91:101])
    with pytest.raises(InputError, match="u must have the columns valve, heat, got columns valve, wind"):
        model.forecast(10, u=inputs[90:100].rename(columns={"heat": "wind"}))
    changed = model.update(z[90:95], u=swapped[90:95]).forecast(5, u=inputs[95:100]).values
    again = hm.load_forecaster(tmp_path / "model").update(z[90:95], u=inputs[90:95])
    np.testing.assert_array_equal(again.forecast(5, u=inputs[95:100]).values, changed)


def test_names_are_those_of_the_first_of_several_tables(table: pd.DataFrame) -> None:
    ahead = _fitted([table[:60], table[["b", "a"]][60:]]).forecast(2).to_pandas()
    assert list(ahead.columns) == ["a", "b"]
    assert (ahead.a > 0).all()
    assert (ahead.b < 0).all()


def test_two_columns_of_one_name_are_both_in_the_forecast(table: pd.DataFrame) -> None:
    ahead = _fitted(table.set_axis(["x", "x"], axis=1)).forecast(3)
    found = ahead.to_pandas(0.9)
    assert list(found.columns) == ["x", "x", "x lower", "x upper", "x lower", "x upper"]
    np.testing.assert_array_equal(found.to_numpy()[:, :2], ahead.values)
    lower, upper = ahead.interval(0.9)
    np.testing.assert_array_equal(found.to_numpy()[:, 2::2], lower)
    np.testing.assert_array_equal(found.to_numpy()[:, 3::2], upper)


def test_masked_values_are_gaps() -> None:
    z = np.sin(np.arange(120) / 5)
    masked = np.ma.masked_array(np.where(np.arange(120) == 50, 1e6, z), mask=np.arange(120) == 50)
    with pytest.raises(InputError, match="got nan at sample 50"):
        _fitted(masked)
    model = hm.TimeDelayedTransformer(6, model="td-dmd", random_state=0, progress=False)
    filled = model.fit(masked, gaps="interpolate").forecast(3).values[:, 0]
    np.testing.assert_allclose(filled, np.sin(np.arange(120, 123) / 5), atol=0.01)


@pytest.mark.parametrize(
    "index",
    [
        _MONTHS,
        _MONTHS + pd.Timedelta(days=14),
        _MONTHS.tz_localize("Europe/Madrid"),
        _MONTHS.to_period("M"),
        pd.date_range("2012-01-31", periods=120, freq="ME"),
        pd.date_range("1990-01-01", periods=120, freq="QS"),
        pd.date_range("1890-12-31", periods=120, freq="YE"),
        pd.bdate_range("2023-01-02", periods=120),
        pd.period_range("2012-01-01", periods=120, freq="D"),
    ],
)
def test_missing_dates_of_the_calendar_are_gaps_in_even_times(table: pd.DataFrame, index: pd.Index) -> None:
    series = table.a.set_axis(index).drop(index[[40, 41, 70]])
    with pytest.raises(InputError, match=r"got 2 missing blocks \(3 samples of .*, the first before sample 40\)"):
        _fitted(series[:-2])
    model = hm.TimeDelayedTransformer(6, model="td-dmd", random_state=0, progress=False)
    ahead = model.fit(series[:-2], irregular="resample").forecast(2).to_pandas()
    assert list(ahead.index) == list(index[-2:])


def test_uneven_dates_follow_no_calendar(table: pd.DataFrame) -> None:
    index = _MONTHS + pd.to_timedelta(np.random.default_rng(0).integers(0, 20, 120), unit="D")
    with pytest.raises(InputError, match="steps that differ from their median"):
        _fitted(table.a.set_axis(index))
    pairs = pd.period_range("1990-01", periods=120, freq="2M")
    assert list(_fitted(table.a[:118].set_axis(pairs[:118])).forecast(2).to_pandas().index) == list(pairs[118:])


def test_rows_of_a_table_go_on_like_tables(table: pd.DataFrame) -> None:
    both = table.set_axis(["load", "wind"], axis=1)
    model = hm.TimeDelayedTransformer(model="persistence", random_state=0, progress=False).fit(both[:90])
    ahead = model.update(both[["wind", "load"]].iloc[90]).forecast(1).to_pandas()
    np.testing.assert_allclose(ahead.iloc[0], both.iloc[90])
    assert ahead.index[0] == both.index[91]
    with pytest.raises(InputError, match="must follow the record step by step"):
        model.update(both.iloc[50])
    with pytest.raises(InputError, match="must have the columns load, wind"):
        model.update(both.iloc[91].rename({"wind": "sun"}))


def test_windows_of_business_days_are_even() -> None:
    days = pd.date_range("2024-01-01", periods=80, freq="B")
    series = pd.Series(np.sin(0.5 * np.arange(80)), index=days)
    model = hm.TimeDelayedTransformer(1, model="td-dmd", seconds=0.3, random_state=0, progress=False).fit(series)
    for first in range(60, 66):
        for length in (2, 3, 5):
            ahead = model.forecast(1, window=series.iloc[first : first + length]).to_pandas()
            assert ahead.index[0] == days[first + length]
    with pytest.raises(InputError, match="must have even steps"):
        model.forecast(1, window=series.iloc[[60, 61, 63]])


def test_time_zones_are_told(table: pd.DataFrame) -> None:
    model = hm.TimeDelayedTransformer(model="drift", random_state=0, progress=False).fit(table[:90])
    with pytest.raises(InputError, match="must have no time zone, got dates in UTC"):
        model.update(table[90:92].tz_localize("UTC"))
    zoned = hm.TimeDelayedTransformer(model="drift", random_state=0, progress=False)
    zoned.fit(table[:90].tz_localize("Europe/Berlin"))
    assert "by the clock of UTC" in str(zoned.report_)
    with pytest.raises(InputError, match="must be in Europe/Berlin, got dates without a time zone"):
        zoned.update(table[90:92])
