"""Series are read as they were written, the time column is found, and errors name the place."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from hardmax.datasets import read_series
from hardmax.errors import FileError
from hardmax.tables.dates import MONTH
from hardmax.tables.delimited import _every_digit

_T = 0.25 * np.arange(6)
_X = np.random.default_rng(0).normal(size=(6, 2))


def _written(folder, suffix, values=_X, times=_T):
    path = folder / f"series{suffix}"
    frame = pd.DataFrame({"time": times, "lift": values[:, 0], "drag": values[:, 1]})
    if suffix == ".csv":
        frame.to_csv(path, index=False)
    elif suffix == ".npy":
        np.save(path, frame.to_numpy())
    elif suffix == ".parquet":
        frame.to_parquet(path)
    else:
        frame.set_index("time").to_xarray().to_netcdf(path, engine="h5netcdf")
    return path


@pytest.mark.parametrize("suffix", [".csv", ".npy", ".parquet", ".nc"])
def test_every_kind_of_file_gives_the_same_series(tmp_path, suffix):
    series = read_series(_written(tmp_path, suffix))
    assert np.array_equal(series.values, _X)
    assert np.array_equal(series.times, _T)
    assert series.dt == 0.25
    if suffix != ".npy":
        assert series.names == ("lift", "drag")
        assert series.time_name == "time"


@settings(deadline=None, max_examples=30)
@given(arrays(np.float64, (4, 2), elements=st.floats(-1e300, 1e300, allow_nan=False)))
def test_text_keeps_every_digit(tmp_path_factory, values):
    path = _written(tmp_path_factory.mktemp("digits"), ".csv", values, _T[:4])
    assert np.array_equal(read_series(path).values, values)


@pytest.mark.parametrize(
    ("text", "names", "values", "times"),
    [
        ("t;y\n0,5;1,25\n1,5;2,5\n", ("y",), [[1.25], [2.5]], [0.5, 1.5]),
        ("0 1.5\n0.1 2.5\n0.2 4\n", ("column 2",), [[1.5], [2.5], [4]], [0, 0.1, 0.2]),
        ("a\tb\n3\t1\n1\t2\n", ("a", "b"), [[3, 1], [1, 2]], [0, 1]),
        ("# measured in May\ntime [s],y\n0,1\n2,\n4,3\n", ("y",), [[1], [np.nan], [3]], [0, 2, 4]),
        ("day,y\n2024-01-01,1\n2024-01-02,2\n2024-01-04,3\n", ("y",), [[1], [2], [3]], [0, 86400, 259200]),
        (",y\n0,5\n1,6\n2,7\n", ("y",), [[5], [6], [7]], [0, 1, 2]),
        ("1\n4\n9\n", ("column 1",), [[1], [4], [9]], [0, 1, 2]),
    ],
    ids=["decimal commas", "no header", "no time", "gap and remark", "dates", "row numbers", "one column"],
)
def test_text_of_many_kinds(tmp_path, text, names, values, times):
    path = tmp_path / "data.txt"
    path.write_text(text)
    series = read_series(path)
    assert series.names == names
    assert np.array_equal(series.values, np.array(values, dtype=float), equal_nan=True)
    assert np.allclose(series.times, times)


def test_time_and_channels_can_be_named(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("k,station,a,b\n1,north,5,1\n2,south,7,2\n3,north,6,4\n")
    series = read_series(path, time="b", columns=["a"])
    assert series.names == ("a",)
    assert np.array_equal(series.times, [1, 2, 4])
    assert read_series(path, time="none", columns=["a", "k"]).time_name == ""
    path.write_text("year,flow\n1900,1\n1901,4\n1902,2\n")
    assert read_series(path, columns=["flow"]).times.tolist() == read_series(path).times.tolist() == [1900, 1901, 1902]


def test_netcdf_flattens_fields_and_dates(tmp_path):
    days = np.array(["2024-01-01", "2024-01-02", "2024-01-03"], dtype="datetime64[ns]")
    data = xr.Dataset({"u": (("time", "x"), np.arange(6.0).reshape(3, 2))}, coords={"time": days})
    data.to_netcdf(tmp_path / "field.nc", engine="h5netcdf")
    series = read_series(tmp_path / "field.nc")
    assert series.names == ("u[0]", "u[1]")
    assert np.array_equal(series.times, [0, 86400, 172800])


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.xls", b"", "series of the kind .xls cannot be read: use .csv"),
        ("a.csv", b"", "is empty"),
        (
            "a.csv",
            b"t,y\n0,1\n0,2\n",
            "time does not increase at line 3 of column 't' .0, then 0.: keep one row per time",
        ),
        ("a.csv", b"t,y\n0,1\n2,2\n1,2\n", "time does not increase at line 4 of column 't' .2, then 1.: sort the rows"),
        ("a.csv", b"t,y\n2,1\n1,2\n0,2\n", "time does not increase at line 3 .*: reverse the order of the rows"),
        ("a.csv", b"t,y\n0,1\n1,oops\n", "line 3, column 'y' is 'oops', not a number"),
        ("a.csv", b"t,y\n0,1\n,2\n", "line 3 of the time column 't' is empty"),
        ("a.csv", b"t,y\n0,1\n1,inf\n", "line 3, column 'y' is infinite"),
        ("a.csv", b"t,y,z\n0,1,\n1,2,\n", "column 'z' is empty"),
        ("a.csv", b"t,y\n0,1\n", "holds 1 samples: a series needs at least two"),
        ("a.csv", b"t\n0\n1\n", "has a time column and no channels"),
        ("a.csv", b"a,b\n1,2\n1,2,3\n", "line 3 has 3 cells where line 1 has 2"),
        ("a.csv", b"a,b\n1,2,3\n1,2,3\n", "the header on line 1 names 2 columns and the lines have 3"),
        ("a.csv", b"\xff\xfe\x00", "is not text in UTF-8"),
        ("a.csv", b"a,b,c\n1,2,5\n3,2,1\n", "transpose the table"),
        ("a.npy", b"junk", "is not an NPY file"),
        ("a.parquet", b"junk", "is no whole Parquet file"),
        ("a.nc", b"junk", "is no whole NetCDF file"),
    ],
)
def test_what_is_wrong_is_said(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(FileError, match=message):
        read_series(path)


def test_missing_files_and_columns(tmp_path):
    with pytest.raises(FileError, match="there is no such file"):
        read_series(tmp_path / "nothing.csv")
    path = _written(tmp_path, ".csv")
    with pytest.raises(FileError, match="has no column 'mach': choose among time, lift, drag"):
        read_series(path, columns=["mach"])
    with pytest.raises(FileError, match="has no column 'clock' to take the time from"):
        read_series(path, time="clock")
    np.save(tmp_path / "cube.npy", np.zeros((2, 2, 2)))
    with pytest.raises(FileError, match=r"the array has shape \(2, 2, 2\), not \(samples, channels\)"):
        read_series(tmp_path / "cube.npy")


@pytest.mark.parametrize(
    ("content", "names", "values"),
    [
        (b"time;x\n0.5;1.25\n1.5;2.5\n", ("x",), [[1.25], [2.5]]),
        ("Zeit;Höhe\n0,5;1,25\n1,5;2,5\n".encode("cp1252"), ("Höhe",), [[1.25], [2.5]]),
        ("time,x\n0,1.5\n1,2.5\n".encode("utf-16"), ("x",), [[1.5], [2.5]]),
        (b"time\tx\n0,5\t1,25\n1,5\t12,345\n", ("x",), [[1.25], [12.345]]),
        (b'time,x\n0,"0,125"\n1,"2,5"\n', ("x",), [[0.125], [2.5]]),
        (b"time;x\n0;1.234.567,5\n1;999,25\n", ("x",), [[1234567.5], [999.25]]),
        (b"time|x\n0|1.5\n1|2\n", ("x",), [[1.5], [2]]),
        (b"time,x,\n0,1,\n1,2,\n", ("x",), [[1], [2]]),
        (b"year,x\n1900,1\n1901,4\n", ("x",), [[1], [4]]),
        (
            b"year,day,x\n1900,1,1\n1900,2,4\n1900,1,4\n",
            ("year", "day", "x"),
            [[1900, 1, 1], [1900, 2, 4], [1900, 1, 4]],
        ),
    ],
    ids=["points", "code page", "UTF-16", "tabs", "quoted", "thousands", "bars", "bar at the end", "years", "no time"],
)
def test_text_as_spreadsheets_and_instruments_write_it(tmp_path, content, names, values):
    path = tmp_path / "data.csv"
    path.write_bytes(content)
    series = read_series(path)
    assert series.names == names
    assert np.array_equal(series.values, values)


def test_a_thousand_is_not_taken_for_one_and_a_bit(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text('time,x\n0,"12,345"\n1,"1,500"\n')
    with pytest.raises(FileError, match="line 2, column 'x' is '12,345', not a number"):
        read_series(path)


def test_lines_of_units_are_named_as_such(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("time,x\n[s],[m]\n0,1\n1,2\n")
    with pytest.raises(FileError, match=r"line 2, column 'x' is '\[m\]', not a number: put # before lines"):
        read_series(path)


@pytest.mark.parametrize(
    ("cells", "began", "step"),
    [
        (["31.12.2023 23:00", "01.01.2024 00:00", "01.01.2024 01:00"], "2023-12-31T23:00:00", 3600),
        (["12/31/2023", "01/01/2024", "01/02/2024"], "2023-12-31T00:00:00", 86400),
        (["03/04/2024", "04/04/2024", "05/04/2024"], "2024-04-03T00:00:00", 86400),
        (
            ["2024-03-31T01:30:00+01:00", "2024-03-31T03:30:00+02:00", "2024-03-31T04:30+02:00"],
            "2024-03-31T00:30:00",
            3600,
        ),
    ],
    ids=["day first", "month first", "either", "summer time"],
)
def test_dates_as_people_write_them(tmp_path, cells, began, step):
    path = tmp_path / "data.csv"
    path.write_text("when;x\n" + "".join(f"{cell};{k}\n" for k, cell in enumerate(cells)))
    series = read_series(path)
    assert (series.began, series.dt, series.time_name) == (began, step, "when")
    assert series.dates(series.times)[0] == began


@pytest.mark.parametrize(
    ("first", "rule"), [("2023-11-01", "MS"), ("2023-11-30", "ME"), ("2020-02-29", "QE"), ("2020-01-01", "YS")]
)
def test_months_quarters_and_years_are_even(tmp_path, first, rule):
    stamps = pd.date_range(first, periods=9, freq=rule)
    pd.DataFrame({"date": stamps[:6], "x": np.arange(6.0)}).to_csv(tmp_path / "data.csv", index=False)
    series = read_series(tmp_path / "data.csv")
    assert np.allclose(np.diff(series.times), series.dt)
    ahead = series.times[-1] + series.dt * np.arange(1, 4)
    assert series.dates(ahead).tolist() == [stamp.isoformat() for stamp in stamps[6:]]


@pytest.mark.parametrize(
    ("rule", "months", "missing"), [("MS", 1, [3]), ("ME", 1, [2, 3, 9]), ("QE", 3, [5]), ("YS", 12, [1])]
)
def test_missing_months_are_a_gap_in_even_times(tmp_path, rule, months, missing):
    stamps = pd.date_range("2019-01-01", periods=14, freq=rule)
    kept = stamps[:12].delete(missing)
    pd.DataFrame({"date": kept, "x": np.arange(len(kept))}).to_csv(tmp_path / "data.csv", index=False)
    series = read_series(tmp_path / "data.csv")
    step = months * MONTH
    np.testing.assert_allclose(series.times / step, np.delete(np.arange(12), missing))
    assert series.dates(step * np.array([0, 12, 13])).tolist() == [stamps[k].isoformat() for k in (0, 12, 13)]


def test_dates_that_are_mostly_uneven_months_apart_are_in_seconds(tmp_path):
    stamps = pd.to_datetime(["2019-01-01", "2019-02-01", "2019-05-01", "2019-07-01"])
    pd.DataFrame({"date": stamps, "x": range(4)}).to_csv(tmp_path / "data.csv", index=False)
    assert read_series(tmp_path / "data.csv").times[1] == 31 * 86400


@pytest.mark.parametrize(("version", "told"), [("2.2.3", True), ("3.0.6", True), ("3.1.0", False), ("4.0.0", False)])
def test_pandas_is_told_to_read_every_digit_where_it_would_not(version, told):
    assert ("float_precision" in _every_digit(version)) is told


@pytest.mark.parametrize(
    ("cells", "began", "in_utc", "offset"),
    [
        (["2024-01-01T10:00+01:00", "2024-01-01T11:00+01:00"], "2024-01-01T10:00:00", False, "+01:00"),
        (["2024-01-01 10:00:00-0330", "2024-01-01 11:00:00-0330"], "2024-01-01T10:00:00", False, "-03:30"),
        (["2024-01-01T10:00+01", "2024-01-01T11:00+01"], "2024-01-01T10:00:00", False, "+01:00"),
        (["2024-01-01 10:00:00Z", "2024-01-01 11:00:00Z"], "2024-01-01T10:00:00", False, "Z"),
        (["2024-01-01T10:00+00:00", "2024-01-01T11:00+00:00"], "2024-01-01T10:00:00", False, "Z"),
        (["2024-03-31T01:00+01:00", "2024-03-31T03:00+02:00"], "2024-03-31T00:00:00", True, "Z"),
        (["01.02.2024", "02.02.2024"], "2024-02-01T00:00:00", False, ""),
        (["2024-02-01 10:00", "2024-02-02 10:00"], "2024-02-01T10:00:00", False, ""),
        (["2024-02-01", "2024-02-02"], "2024-02-01T00:00:00", False, ""),
        (["20240201", "20240202"], "2024-02-01T00:00:00", False, ""),
    ],
)
def test_dates_with_one_offset_keep_the_clock_of_the_file(tmp_path, cells, began, in_utc, offset):
    path = tmp_path / "zone.csv"
    path.write_text("time,x\n" + "".join(f"{cell},{k}.5\n" for k, cell in enumerate(cells)))
    series = read_series(path)
    assert (series.began, series.in_utc, series.offset) == (began, in_utc, offset)
    assert series.dates_with_offset(series.times[:1]).tolist() == [began + offset]
    berlin = pd.date_range("2024-03-30", periods=3, freq="h", tz="Europe/Berlin")
    pd.DataFrame({"time": berlin, "x": np.arange(3.0)}).to_parquet(tmp_path / "zone.parquet")
    series = read_series(tmp_path / "zone.parquet")
    assert series.in_utc
    assert series.offset == "Z"
    pd.DataFrame({"time": berlin.tz_convert("UTC"), "x": np.arange(3.0)}).to_parquet(tmp_path / "utc.parquet")
    assert read_series(tmp_path / "utc.parquet").offset == "Z"
    pd.DataFrame({"time": berlin.tz_localize(None), "x": np.arange(3.0)}).to_parquet(tmp_path / "none.parquet")
    assert read_series(tmp_path / "none.parquet").offset == ""


def _compact(first, form, periods, freq="D"):
    return [stamp.strftime(form) for stamp in pd.date_range(first, periods=periods, freq=freq)]


def _read(folder, head, cells):
    path = folder / "data.csv"
    path.write_text(head + "".join(f"{cell},{k}.5\n" for k, cell in enumerate(cells)))
    return read_series(path)


@pytest.mark.parametrize(
    ("head", "cells", "ahead"),
    [
        ("date,x\n", _compact("2024-03-01", "%Y%m%d", 31), "2024-04-01T00:00:00"),
        ("day,x\n", _compact("2024-02-20", "%Y%m%d", 20), "2024-03-11T00:00:00"),
        ("time,x\n", _compact("2024-01-01", "%Y%m%d", 12, "MS"), "2025-01-01T00:00:00"),
        ("week,x\n", _compact("2024-01-01", "%Y%m%d", 12, "7D"), "2024-03-25T00:00:00"),
        ("month,x\n", _compact("2024-01-01", "%Y%m", 12, "MS"), "2025-01-01T00:00:00"),
        ("period,x\n", _compact("2023-06-01", "%Y%m", 20, "MS"), "2025-02-01T00:00:00"),
        ("time,x\n", _compact("2023-06-01", "%Y%m", 20, "MS"), "2025-02-01T00:00:00"),
        ("t,x\n", _compact("2024-02-20", "%Y%m%d", 20), "2024-03-11T00:00:00"),
        ("", _compact("2024-02-20", "%Y%m%d", 20), "2024-03-11T00:00:00"),
    ],
)
def test_dates_without_separators_are_dates(tmp_path, head, cells, ahead):
    series = _read(tmp_path, head, cells)
    assert len(series.names) == 1
    assert np.allclose(np.diff(series.times), series.dt)
    assert series.dates(series.times[-1:] + series.dt)[0] == ahead


@pytest.mark.parametrize(
    ("head", "cells"),
    [
        ("time,x\n", range(200001, 200101)),
        ("time,x\n", range(200001, 200011)),
        ("t,x\n", range(20240301, 20240321)),
        ("date,x\n", range(20240301, 20240340)),
        ("id,x\n", _compact("2024-02-20", "%Y%m%d", 20)),
        ("period,x\n", [202413, 202401, 202402]),
        ("date,x\n", [17991201, 17991202, 17991203]),
        ("year,x\n", range(1871, 1890)),
    ],
)
def test_numbers_that_merely_look_like_dates_stay_numbers(tmp_path, head, cells):
    series = _read(tmp_path, head, cells)
    assert series.began == ""
    found = series.times if series.time_name else series.values[:, 0] if len(series.names) > 1 else None
    assert np.array_equal(found, np.asarray(cells, dtype=float))


def test_a_missing_date_among_compact_ones_is_named(tmp_path):
    with pytest.raises(FileError, match="line 4 of the time column 'date' is empty"):
        _read(tmp_path, "date,x\n", [20240301, 20240302, "", 20240304])
    months = [202401, 202402, 202404, 202405, 202406]
    assert np.round(np.diff(_read(tmp_path, "month,x\n", months).times) / MONTH).tolist() == [1, 2, 1, 1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "month,x\n2014-01-01,1\n2014-02-01,2\n2014-03-01,3\nTotal,6\n",
            "line 5, column 'month' is 'Total', not a date such as '2014-01-01' in line 2: correct the row",
        ),
        (
            "date,x\n31.12.2023,1\n01.01.2024,2\n30.02.2024,3\n",
            "line 4, column 'date' is '30.02.2024', not a date such",
        ),
        (
            "date,x\n1/31/2024,1\n2/1/2024,2\n,\n2024-02-02,3\n",
            "line 5, column 'date' is '2024-02-02', not a date such",
        ),
        ("date,x\n20240301,1\n20240302,2\nTotal,3\n", "line 4, column 'date' is 'Total', not a number"),
        (
            "time,x\n03/01/2024 07:30 AM,1\n03/01/2024 08:30 AM,2\n",
            "line 2, column 'time' is '03/01/2024 07:30 AM', a date in a format that is not known: write dates as",
        ),
        ("Month,x\nJan 2010,1\nFeb 2010,2\n", "'Jan 2010', a date in a format that is not known: .* months as 2024-12"),
        ("when,x\n1 Mar 24,1\n2 Mar 24,2\n", "column 'when' is '1 Mar 24', a date in a format that is not known"),
        ("month,x\n2010M01,1\n2010M02,2\n", "'2010M01', a date in a format that is not known"),
        ("room,x\nnorth 3,1\nnorth 4,2\n", "'north 3', not a number: correct it"),
        ("room,x\n3-4,1\n5-6,2\n", "'3-4', not a number: correct it"),
        (
            't,x\n0,"20,000"\n1,"21,384"\n',
            "'20,000', not a number: .* separator: 20000, or as 20.000 where the comma is a",
        ),
        ('t,x\n0,"2,020,000.5"\n1,"1,021,384"\n', "'2,020,000.5', not a number: .* separator: 2020000.5$"),
    ],
)
def test_cells_that_are_neither_numbers_nor_dates_are_told_with_a_remedy(tmp_path, text, message):
    path = tmp_path / "data.csv"
    path.write_text(text)
    with pytest.raises(FileError, match=message):
        read_series(path)


def test_a_wrong_date_is_told_where_other_columns_are_chosen(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("month,x,y\n2014-01,1,3\n2014-02,2,4\n2014-03,3,5\nTotal,6,12\n")
    with pytest.raises(FileError, match="line 5, column 'month' is 'Total', not a date"):
        read_series(path, columns=["x"])
    assert read_series(path, columns=["x"], time="none").time_name == ""
    path.write_text("month,day,x\n" + "".join(f"{202401 + k // 5},{1 + k % 5},{k}\n" for k in range(20)))
    assert read_series(path).time_name == ""
