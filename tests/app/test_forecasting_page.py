"""The forecasting page without a browser: series, fits, files and what is refused."""

import csv
import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from bokeh.document import Document
from bokeh.models import DatetimeTickFormatter, NoOverlap
from matplotlib.colors import to_hex

import hardmax as hm
from hardmax.app.archives import pack, unpack
from hardmax.app.forecasting.page import ForecastingPage
from hardmax.app.forecasting.state import (
    MOST_CHANNELS,
    code_of,
    code_of_loaded,
    fit_and_forecast,
    forecast_table,
    forecast_with,
    make_data,
    model_archive,
    read_data,
    read_model,
    systems,
)
from hardmax.app.forecasting.view import backtest_table
from hardmax.app.look import DAY, NIGHT
from hardmax.app.shell import frame, frame_variables
from hardmax.app.uploads import Upload
from hardmax.figures import figure_bytes
from visits import Visit, run_code

_SMALL = {"system": "airfoil", "samples": "160", "steps": "40", "seconds": "0.5"}


def _quiet(stage: str, done: float, total: float | None) -> None:
    """Nobody listens."""


@pytest.fixture(scope="module")
def fitted():
    """A small fit."""
    return fit_and_forecast(make_data("airfoil", 160, 40), 0.5, 40, _quiet)


@pytest.fixture(scope="module")
def visit():
    """A visit with a small fit done."""
    opened = Visit(ForecastingPage(), _SMALL)
    opened.page._begin()
    opened.settle()
    yield opened
    opened.close()


def test_a_forecast_is_never_of_the_series_before():
    opened = Visit(ForecastingPage(), _SMALL)
    page = opened.page
    page._begin()  # the series is still being made
    opened.settle()
    assert page._fit.data.series.names == ("pitch", "plunge", "lift")
    page._which.value = "sinusoids"
    page._begin()
    opened.settle()
    assert page._fit.data is page._data
    assert page._data.series.source != "airfoil"
    assert page._fit_for == page._now.fit_key
    page._which.value = "airfoil"
    opened.session.jobs.cancel()
    opened.settle()
    assert page._fit is not None  # of the series before, which is still shown, and marked
    assert page._changed.visible
    page._begin()
    opened.settle()
    assert page._fit.data.series.names == ("pitch", "plunge", "lift")
    assert not page._changed.visible
    page._count.value = 200
    page._begin()
    page._which.value = "sinusoids"  # another choice than that for which it was asked
    opened.settle()
    assert page._fit is None
    opened.close()


def test_every_system_has_a_known_future():
    for name in list(systems())[:3]:
        data = make_data(name, 80, 20)
        assert len(data.values) == 80
        assert data.future is not None
        assert len(data.future[1]) == 20
        assert data.future[0][0] == pytest.approx(data.times[-1] + data.series.dt)


def test_an_unknown_system_is_refused():
    with pytest.raises(hm.InputError, match="is not known"):
        make_data("moon", 80, 20)


def test_the_fan_shows_what_the_library_forecasts(visit):
    shown = visit.page._fan._ahead.data
    assert np.array_equal(shown["t"][1:], visit.page._fit.forecast.times)
    assert np.array_equal(shown["y"][1:], visit.page._fit.forecast.values[:, 0])
    assert len(visit.page._fan._truth.data["t"]) == 40
    assert "Outcome" in visit.page._outcome.object
    assert not visit.page._waiting.visible
    assert len(visit.page.figure().axes) == 3


@pytest.mark.parametrize("channel", [0, 2])
def test_the_shaded_areas_are_the_intervals_of_the_forecast(visit, channel):
    visit.page._channels.widgets[0].value = channel
    shown = visit.page._fit.forecast
    for level in (0.68, 0.95):
        drawn, band = visit.page._fan._bands[level].data, shown.interval(level)
        assert np.array_equal(drawn["t"], shown.times)
        assert np.allclose(drawn["low"], band.lower[:, channel])
        assert np.allclose(drawn["high"], band.upper[:, channel])
    assert "shaded: intervals that hold 68 % and 95 % of the samples" in visit.page._key.object
    visit.page._channels.widgets[0].value = 0


def test_intervals_of_a_bounded_model_stay_within_the_bound(tmp_path):
    random = np.random.default_rng(0)
    level = np.maximum(0.0, 1 + np.sin(0.2 * np.arange(200)) + 0.3 * random.normal(size=200))
    table = Upload("river.csv", ("level\n" + "\n".join(f"{x:.6f}" for x in level)).encode())
    values = read_data(table, tmp_path, fill=False, even=False).values
    model = hm.TimeDelayedTransformer(budget=0.5, random_state=0, lower=0.0).fit(values)
    saved = Upload("m.safetensors", (model.save(tmp_path / "saved") / "model.safetensors").read_bytes())
    opened = Visit(ForecastingPage(), {"seconds": "0.5", "steps": "30"})
    opened.page._take(table)
    opened.page._load(saved)
    forecast = opened.page._fit.forecast
    assert (forecast.values - 2 * forecast.spread).min() < 0
    lows = opened.page._fan._bands[0.95].data["low"]
    assert len(lows) == 30
    assert min(lows) >= 0
    opened.close()


def test_a_model_without_held_out_errors_is_shown_without_intervals(fitted):
    opened = Visit(ForecastingPage(), _SMALL)
    bare = replace(fitted.forecast, spread=np.full_like(fitted.forecast.spread, np.nan), distribution=None)
    fit = replace(fitted, forecast=bare)
    opened.page._show_fit(fit, opened.page._now.fit_key)
    assert "no intervals: the file of the model holds no held-out errors" in opened.page._key.object
    assert all(len(source.data["t"]) == 0 for source in opened.page._fan._bands.values())
    assert len(opened.page._fan._ahead.data["t"]) == 41
    assert forecast_table(fit).splitlines()[0].count(b",") == 6
    assert len(opened.page.figure().axes) == 3
    opened.close()


def test_a_model_file_of_the_first_format_forecasts_without_intervals():
    tensors = Path(__file__).parents[1] / "forecasting" / "files" / "forecaster_format_1" / "model.safetensors"
    opened = Visit(ForecastingPage(), {"steps": "30"})
    rows = "\n".join(f"{0.1 * k:.1f},{np.sin(0.1 * k):.6f},{np.cos(0.1 * k):.6f}" for k in range(90))
    opened.page._take_new(Upload("s.csv", f"time,y,z\n{rows}\n".encode()))
    opened.page._load(Upload("model.safetensors", tensors.read_bytes()))
    assert "no intervals" in opened.page._key.object
    assert len(opened.page._fan._ahead.data["t"]) == 31
    figure_bytes(opened.page.figure(), "png")
    opened.close()


def test_the_saved_figure_has_the_colours_of_the_page(visit):
    for dark, light in ((True, NIGHT), (False, DAY)):
        visit.session.lighting.switch(dark)
        figure = visit.page.figure()
        assert to_hex(figure.get_facecolor()) == light.card
        for ax in figure.axes:
            assert to_hex(ax.get_facecolor()) == light.card
            assert to_hex(ax.lines[0].get_color()) == light.ink
            assert to_hex(ax.yaxis.label.get_color()) == light.soft
        frame_of_key = figure.axes[0].get_legend().get_frame()
        assert to_hex(frame_of_key.get_facecolor()) == light.card
        assert frame_of_key.get_edgecolor()[3] == 0  # no frame
        assert light.card.encode() in figure_bytes(figure, "svg")


def test_how_a_table_is_read_does_not_count_for_the_next_one():
    opened = Visit(ForecastingPage(), _SMALL)
    page, rows = opened.page, b"y,z\n" + b"1,2\n2,3\n" * 40
    page._take_new(Upload("first.csv", rows))
    page._fill.value = page._even.value = True
    opened.settle()
    assert page._data.gaps == "interpolate"
    with pytest.raises(hm.FileError):
        page._take_new(Upload("broken.csv", b"\xff\xfe\x00"))
    assert (page._fill.value, page._even.value, page._upload.name) == (True, True, "first.csv")
    page._take_new(Upload("second.csv", rows))
    assert (page._fill.value, page._even.value, page._data.gaps) == (False, False, "refuse")
    assert not {"fill", "even"} & set(page.state())
    page._history.step(-1)
    opened.settle()
    assert (page._fill.value, page._even.value, page._upload.name) == (True, True, "first.csv")
    assert {"fill", "even"} <= set(page.state())
    again = Visit(ForecastingPage(), page.state())
    assert (again.page._fill.value, again.page._even.value, again.page._data.gaps) == (True, True, "interpolate")
    again.close()
    opened.close()


def test_eigenvalues_and_attention_are_those_of_the_model(visit):
    found = visit.page._fit.model.eigenvalues()
    dots = visit.page._model._circle._source.data
    assert np.array_equal(dots["x"] + 1j * dots["y"], found)
    assert "unit circle" in visit.page._model._spectrum_words.object
    if visit.page._model._lags.plot.visible:
        assert visit.page._model._lags._source.data["share"].sum() == pytest.approx(1.0)
    else:
        assert "was not trained" in visit.page._model._attention_words.object


def _refusing(what: str) -> Callable[[], None]:
    def refuse() -> None:
        raise hm.InputError(what, None, "was not trained for this model", "fit longer")

    return refuse


def test_parts_that_a_model_does_not_have_are_hidden_on_a_page_that_is_open(fitted, caplog, monkeypatch):
    opened = Visit(ForecastingPage(), _SMALL)
    page = opened.page
    # A browser has the page: its panes then carry style sheets that Panel itself would refuse.
    frame(opened.body, opened.session, frame_variables([], "", "")).server_doc(Document())
    page._show_fit(fitted, page._now.fit_key)
    assert page._model._circle.plot.visible
    for what, circle in (("attention", True), ("eigenvalues", False)):
        monkeypatch.setattr(fitted.model, what, _refusing(what))
        opened.session.guarded(page._show_fit)(fitted, page._now.fit_key)
        opened.settle()
        assert opened.message == ""
        assert caplog.records == []
        assert page._model._circle.plot.visible == circle
        assert not page._model._lags.plot.visible
        assert "was not trained" in page._model._attention_words.object
    opened.close()


def test_a_series_that_is_made_late_does_not_replace_an_upload():
    opened = Visit(ForecastingPage(), _SMALL)
    opened.page._make()  # ends when the page settles, after the upload
    rows = "time,height\n" + "".join(f"{k / 10},{np.sin(k / 10)}\n" for k in range(80))
    opened.page._take(Upload("waves.csv", rows.encode()))
    opened.settle()
    assert opened.page._data.series.names == ("height",)
    assert opened.page.state().get("system") != "airfoil"
    opened.close()


def test_another_channel_and_the_address(visit):
    visit.page._channels.widgets[0].value = 2
    assert visit.page._fan.plot.yaxis[0].axis_label.text == "lift"
    assert np.array_equal(visit.page._fan._seen.data["y"][-1], visit.page._data.values[-1, 2])
    assert visit.page.state() == {
        "samples": "160",
        "steps": "40",
        "seconds": "0.5",
        "system": "airfoil",
        "channel": "2",
        "fit": "1",
    }
    visit.page._channels.widgets[0].value = 0


def test_the_backtest_stands_beside_the_baselines(visit):
    visit.page._backtest()
    visit.settle()
    assert visit.page._backtest_card.visible
    for model in ("TD-TF", "persistence", "TD-DMD"):
        assert f"<b>{model}</b>" in visit.page._table.object
    for name, source in visit.page._errors._sources.items():
        assert (len(source.data["t"]) > 0) == (f"<b>{name}</b>" in visit.page._table.object)


def test_files_can_be_read_again(fitted, tmp_path):
    rows = list(csv.reader(io.StringIO(forecast_table(fitted).decode())))
    assert rows[0][:7] == ["time", "pitch", "pitch spread", "plunge", "plunge spread", "lift", "lift spread"]
    assert rows[0][7:11] == ["pitch lower 68 %", "pitch upper 68 %", "pitch lower 95 %", "pitch upper 95 %"]
    numbers = np.array(rows[1:], dtype=float)
    assert np.array_equal(numbers[:, 0], fitted.forecast.times)
    assert np.array_equal(numbers[:, 1:7:2], fitted.forecast.values)
    band = fitted.forecast.interval(0.95)
    assert np.array_equal(numbers[:, 9::4], band.lower)
    assert np.array_equal(numbers[:, 10::4], band.upper)
    files = unpack(Upload("model.zip", model_archive(fitted, tmp_path)), (".safetensors", ".json"))
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    again = hm.load_forecaster(tmp_path)
    assert np.array_equal(again.forecast(40).values, fitted.forecast.values)


def test_a_model_comes_back_and_goes_on_as_before(fitted, tmp_path):
    archive = Upload("model.zip", model_archive(fitted, tmp_path))
    tensors = Upload("m.safetensors", unpack(archive, (".safetensors",))["model.safetensors"])
    for upload in (archive, tensors):
        again = forecast_with(read_model(upload, tmp_path), upload, fitted.data, 40)
        assert np.array_equal(again.forecast.values, fitted.forecast.values)
        assert np.allclose(again.forecast.times, fitted.forecast.times)
    assert not list(tmp_path.iterdir())
    opened = Visit(ForecastingPage(), _SMALL)
    opened.page._load(archive)
    assert np.array_equal(opened.page._fit.forecast.values, fitted.forecast.values)
    assert "model.zip is loaded" in opened.message
    assert "Outcome" in opened.page._outcome.object
    assert "load_forecaster('model.safetensors')" in opened.page.code()
    opened.page._backtest()
    opened.settle()
    assert "<b>TD-DMD</b>" in opened.page._table.object
    (tmp_path / "model.safetensors").write_bytes(tensors.data)
    assert run_code(opened.page.code() + "print(ahead.values.shape)\n", tmp_path).splitlines()[-1] == "(40, 3)"
    opened.page._which.value = "sinusoids"
    opened.settle()
    with pytest.raises(hm.InputError, match="fitted to 3 channels and the series has 1"):
        opened.page._load(archive)
    opened.close()


def test_a_model_of_another_time_step_is_refused(fitted, tmp_path):
    model = read_model(Upload("model.zip", model_archive(fitted, tmp_path)), tmp_path)
    with pytest.raises(hm.InputError, match="fitted to samples 2 apart and the series has them 0.02 apart"):
        forecast_with(model, Upload("model.zip", b""), make_data("lorenz", 160, 10), 10)


def test_models_that_the_page_cannot_show_are_refused(tmp_path):
    z = np.sin(0.3 * np.arange(80))
    forced = hm.TimeDelayedTransformer(3, seconds=0.2, random_state=0).fit(z, u=np.cos(np.arange(80)))
    fields = hm.TimeDelayedTransformer(3, seconds=0.2, random_state=0, pod=1).fit(z[:, None] * np.ones(5))
    for model, words in ((forced, "a model with inputs"), (fields, "a model of fields")):
        data = (model.save(tmp_path / "saved") / "model.safetensors").read_bytes()
        with pytest.raises(hm.FileError, match=f"m.safetensors: holds {words}"):
            read_model(Upload("m.safetensors", data), tmp_path)


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("model.zip", b"PK\x03\x04" + bytes(60), "is no ZIP archive"),
        ("model.zip", pack({"model.pkl": b"\x80\x04\x95"}), "holds no file that ends in .safetensors"),
        ("model.zip", pack({"other.safetensors": b"1"}), "holds no model.safetensors"),
        ("model.zip", pack({"model.safetensors": b"\x80\x04\x95" + bytes(99)}), "was not written by hardmax"),
        ("m.safetensors", bytes(8), "was not written by hardmax"),
        ("m.safetensors", (10**18).to_bytes(8, "little") + b"{}", "was not written by hardmax"),
    ],
)
def test_strange_models_give_a_message(tmp_path, name, data, words):
    with pytest.raises(hm.FileError, match=words) as caught:
        read_model(Upload(name, data), tmp_path)
    assert name in str(caught.value)
    assert str(tmp_path) not in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_the_code_gives_the_same_forecast(fitted, tmp_path):
    code = code_of(fitted.data, 0.5, 40) + "print('shape', ahead.values.shape)\n"
    printed = run_code(code, tmp_path)
    assert "shape (40, 3)" in printed
    assert "persistence" in printed
    assert (tmp_path / "model" / "model.safetensors").is_file()


def test_the_code_of_a_model_from_a_file_reads_gaps_and_uneven_times_as_the_page_does(tmp_path):
    times = np.delete(0.1 * np.arange(130), [20, 21, 70])
    rows = "\n".join(f"{t:.3f},{np.sin(t):.6f}" if k != 50 else f"{t:.3f}," for k, t in enumerate(times))
    table = Upload("holes.csv", f"time,level\n{rows}\n".encode())
    data = read_data(table, tmp_path, fill=True, even=True)
    fit = fit_and_forecast(data, 0.5, 20, _quiet)
    unpacked = unpack(Upload("model.zip", model_archive(fit, tmp_path)), (".safetensors",))
    (tmp_path / "holes.csv").write_bytes(table.data)
    (tmp_path / "model.safetensors").write_bytes(unpacked["model.safetensors"])
    shown = "assert len(known) == 130\nprint('first', repr(float(ahead.values[0, 0])))\n"
    first = f"first {float(fit.forecast.values[0, 0])!r}"
    printed = run_code(code_of(data, 0.5, 20, ended=True) + shown, tmp_path)
    assert first in printed
    assert "persistence" in printed
    model = read_model(Upload("model.safetensors", unpacked["model.safetensors"]), tmp_path)
    (tmp_path / "model.safetensors").write_bytes(unpacked["model.safetensors"])
    loaded = forecast_with(model, Upload("model.zip", b""), data, 20)
    printed = run_code(code_of_loaded(data, "model.zip", 20) + shown, tmp_path)
    assert f"first {float(loaded.forecast.values[0, 0])!r}" in printed


def test_steps_of_a_table_with_missing_rows_are_told_in_days(tmp_path):
    days = [np.datetime64("2024-01-01") + k for k in range(90) if k % 7 < 5]
    rows = "\n".join(f"{day},{np.sin(0.3 * k):.4f}" for k, day in enumerate(days))
    data = read_data(Upload("weekdays.csv", f"date,close\n{rows}\n".encode()), tmp_path, fill=False, even=False)
    assert data.interval == "mostly 1 day apart"
    with pytest.raises(hm.InputError, match="samples of 1 day, .*: tick Resample uneven times$") as caught:
        data.regular()
    assert "86400" not in str(caught.value)
    numbered = read_data(Upload("v.csv", b"v\n" + b"1\n2\n3\n" * 20), tmp_path, fill=False, even=False)
    assert numbered.interval == ""
    opened = Visit(ForecastingPage(), _SMALL)
    assert opened.page._count.visible
    opened.page._take(Upload("v.csv", b"v\n" + b"1\n2\n3\n" * 20))
    assert opened.page._about.object.endswith("v.csv: 60 samples of 1 channel</p>")
    assert not opened.page._count.visible  # all samples of a table are learned from
    opened.page._which.value = "airfoil"
    opened.settle()
    assert opened.page._count.visible
    opened.close()


def test_dates_of_days_have_no_hours(tmp_path):
    rows = "\n".join(f"{np.datetime64('2024-01-01') + k},{np.sin(0.3 * k):.4f}" for k in range(80))
    data = read_data(Upload("days.csv", f"date,close\n{rows}\n".encode()), tmp_path, fill=False, even=False)
    table = forecast_table(fit_and_forecast(data, 0.5, 3, _quiet)).decode().splitlines()
    assert [line.partition(",")[0] for line in table] == ["date", "2024-03-21", "2024-03-22", "2024-03-23"]


def test_every_row_of_a_backtest_is_explained(fitted):
    found = fitted.backtest(_quiet)
    first = found.rows[0]
    words = backtest_table(
        replace(found, rows=[*found.rows, replace(first, model="selected anew")], anew="a"), fitted.data
    )
    words = words.partition("</table>")[2]
    for row in found.rows:
        assert row.model in words
    assert "selects is the row “selected anew” (a)" in words
    assert "The intervals of TD-TF held" in words


def test_a_table_of_ones_own(tmp_path):
    opened = Visit(ForecastingPage(), _SMALL)
    times = 0.1 * np.arange(120)
    rows = "\n".join(f"{t:.3f},{np.sin(t):.6f}" for t in times)
    opened.page._take(Upload("waves.csv", f"time,=$height$\n{rows}\n".encode()))
    assert opened.page._data.series.names == ("=$height$",)
    assert opened.page._data.future is None
    assert "system" not in opened.page.state()
    opened.page._begin()
    opened.settle()
    assert opened.page._fit.forecast.times[0] == pytest.approx(12.0)
    assert (
        forecast_table(opened.page._fit)
        .splitlines()[0]
        .startswith(b"time,'=$height$,'=$height$ spread,'=$height$ lower 68 %,")
    )
    assert "read_series('waves.csv')" in opened.page.code()
    figure_bytes(opened.page.figure(), "png")
    assert "waves.csv: 120 samples" in opened.page._about.object
    opened.page._which.value = "sinusoids"
    opened.settle()
    assert opened.page._data.future is not None
    opened.page._which.value = "upload"
    assert opened.page._data.series.source == "waves.csv"
    opened.close()


def test_dates_come_back_as_dates():
    opened = Visit(ForecastingPage(), _SMALL)
    rows = "\n".join(f"2024-02-{1 + k // 24:02d} {k % 24:02d}:00,{np.sin(0.4 * k):.6f}" for k in range(96))
    opened.page._take(Upload("hours.csv", f"date,level\n{rows}\n".encode()))
    axis = opened.page._fan.plot.xaxis[0]
    assert axis.axis_label.text == "date"
    assert isinstance(axis.formatter, DatetimeTickFormatter)
    assert isinstance(axis.major_label_policy, NoOverlap)  # dates would run into each other on a phone
    assert "1 hour apart" in opened.page._about.object
    opened.page._begin()
    opened.settle()
    drawn = opened.page._fan._ahead.data["t"][1]
    assert np.datetime64(int(drawn), "ms") == np.datetime64("2024-02-05T00:00:00")
    table = forecast_table(opened.page._fit).decode().splitlines()
    assert table[0].startswith("date,level,level spread,level lower 68 %,")
    assert table[1].startswith("2024-02-05T00:00:00,")
    opened.page._which.value = "sinusoids"
    opened.settle()
    assert not isinstance(opened.page._fan.plot.xaxis[0].formatter, DatetimeTickFormatter)
    opened.close()


def test_gaps_are_refused_and_then_filled(tmp_path):
    opened = Visit(ForecastingPage(), _SMALL)
    values = [f"{np.sin(0.2 * k):.6f}" for k in range(120)]
    values[50] = ""
    opened.page._take(Upload("gaps.csv", ("y,z\n" + "\n".join(f"{v},{k % 7}" for k, v in enumerate(values))).encode()))
    opened.page._begin()
    opened.settle()
    assert "tick Fill gaps by interpolation" in opened.message
    opened.page._fill.value = True
    opened.page._begin()
    opened.settle()
    assert opened.page._fit is not None
    assert "gaps='interpolate'" in opened.page.code()
    assert len(opened.page.figure().axes) == 2
    opened.close()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (",".join(map(str, range(10**6))).encode(), "1,000,000 columns"),
        (b"PK\x03\x04" + bytes(500), "is a ZIP archive"),
        (b"\xff\xfe\x00", "is not text in UTF-8"),
        (b"a,b\nx,y\n", "series.csv"),
        (b"a,b\n1,2\n2,y\n", "remove that column from the table"),
        (b"time,b\n2,2\n1,3\n", "remove the column if it is no time"),
        (b"", "is empty"),
        (("a," * MOST_CHANNELS + "a\n" + ("1," * MOST_CHANNELS + "2\n") * 90).encode(), "channels"),
        (b"y\n" + b"1\n" * 6000, "6,000 samples"),
    ],
)
def test_hostile_tables_give_a_message(tmp_path, data, words):
    with pytest.raises(hm.HardmaxError) as caught:
        read_data(Upload("series.csv", data), tmp_path, fill=False, even=False)
    assert words in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_series_that_do_not_move_are_told_so(tmp_path):
    opened = Visit(ForecastingPage(), _SMALL)
    opened.page._take(Upload("flat.csv", b"y\n" + b"1\n" * 100))
    opened.page._begin()
    opened.settle()
    assert opened.page._fit is not None
    assert "Nothing varies" in opened.page._report.object
    assert "no dynamics" in opened.page._model._spectrum_words.object
    opened.close()


def test_a_fit_can_be_cancelled():
    opened = Visit(ForecastingPage(), _SMALL)
    opened.page._begin()
    opened.session.jobs.cancel()
    opened.settle()
    assert opened.page._fit is None
    assert opened.page._waiting.visible
    opened.close()


@pytest.mark.parametrize(
    "state", [{"seconds": "nan"}, {"seconds": "x"}, {"samples": "9" * 99}, {"steps": "-4", "channel": "77"}]
)
def test_an_address_that_makes_no_sense_does_no_harm(state):
    page = ForecastingPage()
    page.restore(state)
    assert 0.5 <= page._choices.seconds <= 20
    assert page._choices.samples <= 5000
    assert page._choices.steps == 200
