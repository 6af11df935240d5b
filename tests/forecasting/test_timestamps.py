"""Times that come with the data: dates, durations, an index, a coordinate."""

import datetime

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import hardmax as hm
from hardmax.datasets import sinusoids
from hardmax.errors import InputError
from hardmax.forecasting.data.series import read_series
from hardmax.forecasting.data.timestamps import times_in_seconds

VALUES = np.sin(0.3 * np.arange(60))
HOURS = pd.date_range("2024-03-01", periods=60, freq="h")


@pytest.mark.parametrize(
    "times",
    [
        HOURS,
        HOURS.tz_localize("Europe/Berlin"),
        HOURS.astype("datetime64[s]"),
        pd.Series(HOURS),
        pd.Series(HOURS.tz_localize("UTC")),
        HOURS.to_numpy(),
        HOURS - HOURS[0],
        list(HOURS),
        [moment.to_pydatetime() for moment in HOURS.tz_localize("UTC")],
        HOURS.to_period("h"),
    ],
)
def test_dates_and_durations_count_in_seconds(times: object) -> None:
    record = read_series(VALUES, times=times)
    assert record.dt == 3600
    assert record.last_time == 59 * 3600
    assert "second" in record.notes[0]


@pytest.mark.parametrize("step", [datetime.timedelta(hours=1), pd.Timedelta("1h"), np.timedelta64(1, "h"), 3600])
def test_a_time_step_may_be_a_duration(step: object) -> None:
    assert read_series(VALUES, dt=step).dt == 3600


def test_an_index_of_dates_is_the_time_unless_another_is_given() -> None:
    series = pd.Series(VALUES, index=HOURS)
    assert read_series(series).dt == 3600
    assert read_series(pd.DataFrame({"a": series, "b": 2 * series})).dt == 3600
    assert read_series([series[:30], series[30:]]).dt == 3600
    assert read_series(series, dt=1.0).dt == 1
    assert read_series(series, times=np.arange(60) / 10).dt == pytest.approx(0.1)
    assert read_series(series.reset_index(drop=True)).dt == 1


def test_rows_missing_from_an_index_are_seen() -> None:
    gappy = pd.Series(VALUES, index=HOURS).drop(HOURS[[20, 21]])
    with pytest.raises(InputError, match="must be evenly spaced"):
        read_series(gappy)
    filled = read_series(gappy, irregular="resample")
    assert len(filled.trajectories[0]) == 60
    with pytest.raises(InputError, match="must increase"):
        read_series(pd.Series(VALUES, index=HOURS[::-1]))
    with pytest.raises(InputError, match="finite"):
        read_series(VALUES, times=[pd.NaT, *HOURS[1:]])


@pytest.mark.parametrize("rule", ["MS", "ME", "QS", "YE", "B"])
def test_dates_by_the_calendar_are_even(rule: str) -> None:
    index = pd.date_range("2000-01-01", periods=60, freq=rule)
    record = read_series(pd.Series(VALUES, index=index))
    assert record.last_time == pytest.approx((index[-1] - index[0]).total_seconds())
    assert "by the calendar" in record.notes[0]


def test_coordinates_and_series_bring_their_times() -> None:
    array = xr.DataArray(VALUES[:, None], dims=("time", "channel"), coords={"time": 0.5 * np.arange(60)})
    assert read_series(array).dt == 0.5
    assert read_series(array.drop_vars("time")).dt == 1
    made = sinusoids(80)
    assert read_series(made).dt == pytest.approx(made.dt)
    assert len(read_series([made, made]).trajectories) == 2
    model = hm.TimeDelayedTransformer(pod=1, seconds=0.2, random_state=0, progress=False).fit(array)
    assert model.dt_ == 0.5


def test_tables_are_brought_to_one_order_of_columns() -> None:
    one = pd.DataFrame({"a": VALUES, "b": 100 + VALUES})
    record = read_series([one, one[["b", "a"]]])
    np.testing.assert_array_equal(record.trajectories[0], record.trajectories[1])
    with pytest.raises(InputError, match="columns of the first"):
        read_series([one, one.rename(columns={"a": "c"})])


def test_a_column_that_is_no_number_is_named() -> None:
    with pytest.raises(InputError, match=r"column 'when'.*times=table\['when'\]"):
        read_series(pd.DataFrame({"when": HOURS, "a": VALUES}))
    with pytest.raises(InputError, match="column 'name'.*leave it out"):
        read_series(pd.DataFrame({"a": VALUES, "name": ["x"] * 60}))


def test_gaps_at_the_end_are_told_apart() -> None:
    late = np.where(np.arange(60) >= 55, np.nan, VALUES)
    assert "5 of them are at the end" in " ".join(read_series(late, gaps="interpolate").notes)
    early = np.where(np.arange(60) < 5, np.nan, VALUES)
    assert "at the end" not in " ".join(read_series(early, gaps="interpolate").notes)


def test_a_model_shows_its_settings() -> None:
    assert repr(hm.TimeDelayedTransformer()) == "TimeDelayedTransformer()"
    assert repr(hm.TimeDelayedTransformer(4, seconds=2.0)) == "TimeDelayedTransformer(delays=4, seconds=2.0)"


def test_a_linear_model_that_leaves_the_range_has_nothing_that_fades_out() -> None:
    model = hm.TimeDelayedTransformer(model="td-dmd", seconds=0.3, random_state=0, progress=False)
    ahead = model.fit(np.arange(300.0), dt=1.0).forecast(50)
    assert model.report_.numbers["kept"] == "linear"
    assert ahead.left_range_at > 0
    assert "left the training range" in str(ahead.outcome)
    assert "fades out" not in str(ahead.outcome)


@pytest.mark.parametrize("step", ["10us", "1ms", "10ms", "100ms"])
def test_short_even_steps_are_no_rule_of_the_calendar(step: str) -> None:
    index = pd.date_range("2024-03-29", periods=60, freq=step)
    seconds, note = times_in_seconds(index)
    assert "calendar" not in note
    np.testing.assert_allclose(np.diff(seconds), pd.Timedelta(step).total_seconds(), rtol=1e-6)
