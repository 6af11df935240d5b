"""Tables with names and dates in, tables with names and dates out; many series in one call; the interface of sktime."""

import datetime
import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from sklearn.base import clone

import hardmax as hm
from hardmax.errors import InputError, MissingExtraError
from hardmax.forecasting import FittedSeries, fit_each, sktime_forecaster
from hardmax.forecasting.data.labels import Labels, labels_of
from hardmax.forecasting.forecaster import TimeDelayedTransformer

_SETTINGS: dict[str, Any] = {"restarts": 1, "random_state": 0, "progress": False}


def _wave(samples: int = 48) -> np.ndarray:
    return 10 + np.sin(2 * np.pi * np.arange(samples) / 12)


def _fit(data: Any, **more: Any) -> TimeDelayedTransformer:
    return TimeDelayedTransformer(3, **_SETTINGS).fit(data, **more)


@pytest.mark.parametrize(
    ("index", "expected"),
    [
        (pd.date_range("1957-01-01", periods=48, freq="MS"), ["1961-01-01", "1961-02-01", "1961-03-01"]),
        (pd.date_range("1957-01-31", periods=48, freq="ME"), ["1961-01-31", "1961-02-28", "1961-03-31"]),
        (pd.date_range("2000-03-31", periods=48, freq="QE-DEC"), ["2012-03-31", "2012-06-30", "2012-09-30"]),
        (pd.date_range("2024-01-01", periods=48, freq="B"), ["2024-03-07", "2024-03-08", "2024-03-11"]),
        (
            pd.date_range("2024-01-01", periods=48, freq="h"),
            ["2024-01-03", "2024-01-03 01:00", "2024-01-03 02:00"],
        ),
        (pd.date_range("2024-01-07", periods=48, freq="W"), ["2024-12-08", "2024-12-15", "2024-12-22"]),
        (
            pd.DatetimeIndex([pd.Timestamp("2000-01-15") + pd.DateOffset(months=k) for k in range(48)]),
            ["2004-01-15", "2004-02-15", "2004-03-15"],
        ),
    ],
)
def test_dates_go_on_by_the_rule_of_the_index(index: pd.DatetimeIndex, expected: list[str], tmp_path: Path) -> None:
    model = _fit(pd.Series(_wave(), index=index.rename("when"), name="sales"))
    table = model.forecast(3).to_pandas()
    assert list(table.index) == [pd.Timestamp(date) for date in expected]
    assert table.index.name == "when"
    assert list(table.columns) == ["sales"]
    np.testing.assert_array_equal(table["sales"], model.forecast(3).values[:, 0])
    again = hm.load_forecaster(model.save(tmp_path / "model"))
    pd.testing.assert_frame_equal(again.forecast(3).to_pandas(), table)


def test_periods_durations_and_time_zones_come_back_as_they_were() -> None:
    periods = _fit(pd.Series(_wave(), index=pd.period_range("1957-01", periods=48, freq="M"))).forecast(2).to_pandas()
    assert list(map(str, periods.index)) == ["1961-01", "1961-02"]
    assert isinstance(periods.index, pd.PeriodIndex)
    zone = pd.date_range("2024-03-30", periods=48, freq="h", tz="Europe/Berlin")
    ahead = _fit(pd.Series(_wave(), index=zone)).forecast(2)
    assert list(ahead.to_pandas().index) == [zone[-1] + pd.Timedelta(hours=k) for k in (1, 2)]
    assert ahead.to_xarray()["time"].dtype.kind == "M"
    spans = _fit(pd.Series(_wave(), index=pd.to_timedelta(np.arange(48) * 5, unit="s"))).forecast(2).to_pandas()
    assert [span.total_seconds() for span in spans.index] == [240.0, 245.0]


def test_numbers_have_times_and_channel_names() -> None:
    ahead = _fit(np.stack([_wave(), _wave() ** 2], axis=1), dt=0.5).forecast(2)
    table = ahead.to_pandas(interval=0.9)
    assert list(table.columns[:2]) == ["channel 1", "channel 2"]
    assert {"channel 2 lower", "channel 2 upper"} <= set(table.columns)
    np.testing.assert_allclose(table.index, [24.0, 24.5])
    assert (table["channel 1 lower"] < table["channel 1 upper"]).all()


def test_dates_go_on_after_an_update() -> None:
    index = pd.date_range("2020-01-31", periods=48, freq="ME")
    model = _fit(pd.Series(_wave(), index=index))
    model.update(_wave(50)[48:, None])
    assert list(model.forecast(2).to_pandas().index) == list(pd.to_datetime(["2024-03-31", "2024-04-30"]))


def test_resampled_dates_count_from_the_first() -> None:
    days = pd.date_range("2024-01-01", periods=50, freq="D").delete([20, 21])
    model = _fit(pd.Series(np.sin(np.arange(48.0)), index=days), irregular="resample")
    assert list(model.forecast(2).to_pandas().index) == list(pd.to_datetime(["2024-02-20", "2024-02-21"]))


def test_windows_with_dates_have_forecasts_with_dates() -> None:
    data = pd.DataFrame({"a": _wave(), "b": _wave() ** 2}, index=pd.date_range("2020-01-01", periods=48, freq="MS"))
    model = _fit(data)
    ahead = model.forecast(2, window=data.iloc[:24])
    assert list(ahead.to_pandas().index) == list(pd.to_datetime(["2022-01-01", "2022-02-01"]))
    many = model.forecast(2, window=np.stack([data.to_numpy()[:9], data.to_numpy()[9:18]])).to_pandas(0.8)
    assert many.shape == (4, 6)
    assert many.index.names == ["start", "time"]
    assert list(many.columns[:2]) == ["a", "b"]


def test_an_xarray_dataset_is_refused_with_the_way_to_an_array() -> None:
    days = pd.date_range("2024-01-01", periods=60)
    table = xr.Dataset({"a": ("time", _wave(60)), "b": ("time", _wave(60) + 1)}, coords={"time": days})
    model = hm.TimeDelayedTransformer(model="drift", random_state=0, progress=False)
    with pytest.raises(InputError, match=r"series must be an array of real numbers, got Dataset: .*to_dataarray"):
        model.fit(table)
    model.fit(table.to_dataarray().T)
    assert list(model.forecast(2).to_pandas()) == ["a", "b"]
    with pytest.raises(InputError, match="window must be an array of real numbers, got Dataset"):
        model.forecast(2, window=table)
    with pytest.raises(InputError, match="samples must be an array of real numbers, got Dataset"):
        model.update(table)


def test_a_data_set_of_xarray_has_dimensions_and_names() -> None:
    index = pd.date_range("2020-01-01", periods=48, freq="MS")
    array = xr.DataArray(
        np.stack([_wave(), _wave() ** 2], axis=1), dims=("month", "place"), coords={"month": index, "place": ["a", "b"]}
    )
    ahead = _fit(array).forecast(3)
    found = ahead.to_xarray(interval=0.5)
    assert found["forecast"].dims == ("time", "channel")
    assert list(found["channel"].to_numpy()) == ["a", "b"]
    assert str(found["time"].to_numpy()[0])[:10] == "2024-01-01"
    np.testing.assert_array_equal(found["upper"], ahead.interval(0.5).upper)
    many = _fit(_wave()).forecast(2, window=np.stack([_wave()[:20, None]] * 3)).to_xarray()
    assert dict(many.sizes) == {"start": 3, "time": 2, "channel": 1}


def test_results_show_dates() -> None:
    ahead = _fit(pd.Series(_wave(), index=pd.date_range("2020-01-31", periods=48, freq="ME"), name="sales")).forecast(3)
    assert "times 2024-01-31 to 2024-03-31" in repr(ahead)
    assert "2024-02-29" in ahead._repr_html_()
    assert "<th>sales</th>" in ahead._repr_html_()


def _fitted(series: object) -> TimeDelayedTransformer:
    return TimeDelayedTransformer(model="persistence", random_state=0, progress=False).fit(series)


def test_an_index_of_python_dates_counts_as_dates() -> None:
    days = [datetime.date(2024, 1, 1) + datetime.timedelta(days=k) for k in range(60)]
    table = _fitted(pd.Series(_wave(60), index=days)).forecast(2).to_pandas()
    assert [str(day.date()) for day in table.index] == ["2024-03-01", "2024-03-02"]


def test_nullable_numbers_of_pandas_are_numbers_with_gaps() -> None:
    wave = pd.Series(_wave(60), name="load")
    table = pd.DataFrame({"load": wave.astype("Float64"), "count": pd.array([1, 2, 3] * 20, dtype="Int64")})
    plain = _fitted(table.astype(float)).forecast(3)
    np.testing.assert_array_equal(_fitted(table).forecast(3).values, plain.values)
    table.iloc[5, 0] = pd.NA
    with pytest.raises(InputError, match=r"series has gaps, got nan at sample 5, channel 0 \(1 in all\)"):
        _fitted(table)
    with pytest.raises(InputError, match="column 'word': leave it out, or convert it first"):
        _fitted(pd.DataFrame({"load": wave, "word": ["a"] * 60}))


def test_infinite_values_are_called_infinite() -> None:
    series = _wave(60)
    series[7] = np.inf
    with pytest.raises(InputError, match="has infinite values, which count as gaps, got inf at sample 7"):
        _fitted(series)


def test_arrays_of_xarray_keep_their_name_and_have_time_first() -> None:
    days = pd.date_range("2024-01-01", periods=60)
    load = xr.DataArray(_wave(60), dims="time", coords={"time": days}, name="load")
    assert list(_fitted(load).forecast(2).to_pandas().columns) == ["load"]
    both = xr.DataArray(np.stack([_wave(60)] * 2), dims=("sensor", "time"), coords={"time": days, "sensor": ["a", "b"]})
    with pytest.raises(InputError, match=r"must have time first.*array\.transpose\('time', 'sensor'\)"):
        _fitted(both)
    assert list(_fitted(both.transpose("time", "sensor")).forecast(2).to_pandas().columns) == ["a", "b"]


def test_a_last_sample_far_from_all_others_is_told() -> None:
    noise = np.random.default_rng(0).standard_normal(100)
    assert "The last sample" not in str(_fitted(noise).report_)
    noise[-1] = 1000.0
    days = pd.date_range("2024-01-01", periods=100)
    report = str(_fitted(pd.DataFrame({"calm": noise[::-1], "load": noise}, index=days)).report_)
    assert "The last sample of load differs from the one before it by 1e+03, earlier samples by" in report
    assert "calm" not in report


def test_labels_of_plain_data_are_empty() -> None:
    assert labels_of(np.zeros(4), 3.0, 4) == Labels()
    assert labels_of([1.0, 2.0], 1.0, 2) == Labels()


def test_clones_have_bounds_and_transforms() -> None:
    model = TimeDelayedTransformer(3, lower=[0.0, None], transform="log")
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert repr(copy) == "TimeDelayedTransformer(delays=3, transform='log', lower=[0.0, None])"


def test_series_of_different_kinds_are_fitted_in_one_call() -> None:
    months = pd.Series(1e3 * _wave(60), index=pd.date_range("2020-01-01", periods=60, freq="MS"))
    model = TimeDelayedTransformer(3, **_SETTINGS)
    fitted = fit_each({"months": months, "numbers": np.stack([_wave(40)] * 2, axis=1)}, model)
    assert isinstance(fitted, FittedSeries)
    assert not model.__sklearn_is_fitted__()
    assert len(fitted) == 2
    assert "one model each: months, numbers" in repr(fitted)
    ahead = fitted.forecast(4)
    assert [one.values.shape for one in ahead.values()] == [(4, 1), (4, 2)]
    np.testing.assert_array_equal(ahead["months"].values, model.fit(months).forecast(4).values)
    wide = pd.DataFrame({"a": months, "b": months.iloc[12:] / 7})
    table = fit_each(wide, model).to_pandas(3, interval=0.9)
    assert list(table.columns) == ["forecast", "lower", "upper"]
    assert table.index.names[0] == "series"
    assert str(table.loc["b"].index[0])[:10] == "2025-01-01"
    assert list(fit_each([months.rename("x"), months.rename("y")], model).models) == ["x", "y"]
    assert list(fit_each([_wave(), _wave(40)], model).models) == ["1", "2"]


def test_one_model_of_all_series_forecasts_each_in_its_own_units() -> None:
    rng = np.random.default_rng(0)
    waves = {
        f"s{k}": 10.0**k * (k + np.sin(0.5 * np.arange(60) + k) + 0.01 * rng.standard_normal(60)) for k in range(4)
    }
    fitted = fit_each(waves, TimeDelayedTransformer(4, **_SETTINGS), together=True, dt=2.0)
    assert len({id(model) for model in fitted.models.values()}) == 1
    for k, ahead in enumerate(fitted.forecast(6).values()):
        truth = 10.0**k * (k + np.sin(0.5 * np.arange(60, 66) + k))
        assert np.abs(ahead.values[:, 0] - truth).max() < 0.3 * 10.0**k
        np.testing.assert_allclose(ahead.times, 2.0 * np.arange(60, 66))
        np.testing.assert_allclose(ahead.quantiles([0.5])[0], ahead.values, rtol=1e-9)
        lower, upper = ahead.interval(0.9)
        assert ((lower < ahead.values) & (ahead.values < upper)).all()


def test_what_is_no_list_of_series_is_refused_and_errors_name_the_series() -> None:
    for wrong in (_wave(), {}, [], 3.0):
        with pytest.raises(InputError, match="series must"):
            fit_each(wrong)
    with pytest.raises(InputError, match="series 'b' has too few samples"):
        fit_each({"a": _wave(), "b": _wave(5)}, TimeDelayedTransformer(3, **_SETTINGS))
    with pytest.raises(InputError, match="model must be a TimeDelayedTransformer"):
        fit_each([_wave()], 3)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="lower cannot be used with together=True"):
        fit_each([_wave(), _wave()], TimeDelayedTransformer(3, lower=0), together=True)


@pytest.mark.skipif(importlib.util.find_spec("sktime") is not None, reason="sktime is installed")
def test_without_sktime_its_interface_is_refused_with_the_command_that_installs_it() -> None:
    with pytest.raises(MissingExtraError, match="the interface of sktime needs the package sktime: pip install"):
        sktime_forecaster()


@pytest.mark.skipif(importlib.util.find_spec("sktime") is None, reason="sktime is not installed")
@pytest.mark.filterwarnings("ignore")
def test_the_interface_of_sktime_gives_its_tables() -> None:
    y = pd.Series(_wave(), index=pd.period_range("2020-01", periods=48, freq="M"), name="sales")
    estimator = TimeDelayedTransformer(3, **_SETTINGS)
    forecaster = sktime_forecaster(estimator).fit(y, fh=[1, 3])
    expected = estimator.fit(y).forecast(3)
    found = forecaster.predict()
    np.testing.assert_allclose(found.to_numpy().ravel(), expected.values[[0, 2], 0])
    assert list(map(str, found.index)) == ["2024-01", "2024-03"]
    band = forecaster.predict_interval(coverage=[0.9])
    np.testing.assert_allclose(band.to_numpy()[:, 0], expected.interval(0.9).lower[[0, 2], 0])
    assert clone(forecaster).get_params()["estimator__delays"] == 3
    both = pd.DataFrame({"a": _wave(), "b": _wave() ** 2}, index=y.index)
    assert list(sktime_forecaster(estimator).fit(both, fh=[1, 2]).predict_quantiles(alpha=[0.5]).shape) == [2, 2]
    numbered = sktime_forecaster(estimator).fit(pd.Series(_wave()), fh=[2])
    assert list(numbered.predict().index) == [49]
    with pytest.raises(Exception, match="in-sample|after the record"):
        forecaster.predict(fh=[-1, 0])
