"""``hardmax forecast``: finds time and channels, tells what it found, writes what was asked, refuses bad input."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import hardmax as hm
from hardmax.cli.app import app
from hardmax.cli.forecast_report import _chaos, _verdict
from hardmax.datasets import airfoil, lorenz63
from hardmax.forecasting.diagnostics.backtest import ANEW, Backtest, BacktestRow


def _run(*words):
    return CliRunner().invoke(app, ["forecast", *map(str, words)])


@pytest.fixture(scope="module")
def wing(tmp_path_factory):
    series = airfoil(240, initial_pitch=0.1)
    path = tmp_path_factory.mktemp("wing") / "wing.csv"
    pd.DataFrame(series.values, columns=series.names).assign(t=series.times).to_csv(path, index=False)
    return path


def test_everything_at_once(wing, tmp_path):
    figure, folder, table = tmp_path / "out.png", tmp_path / "model", tmp_path / "ahead.csv"
    words = ("--steps", 20, "--seconds", 0, "--window", 8)
    done = _run(wing, *words, "--figure", figure, "--save", folder, "--output", table)
    assert done.exit_code == 0, done.output
    for word in ("240 samples of 3 (pitch, plunge, lift)", "time from column 't', 2 apart", "Backtest", "persistence"):
        assert word in done.output
    for word in ("TD-DMD", "NG-RC", "20 steps within the range", "At time 518:"):
        assert word in done.output
    assert figure.read_bytes()[:4] == b"\x89PNG"
    ahead = pd.read_csv(table)
    columns = ["t", "pitch", "plunge", "lift", "pitch spread", "plunge spread", "lift spread"]
    assert list(ahead)[:7] == columns
    assert list(ahead)[7:9] == ["pitch lower", "pitch upper"]
    assert (ahead["lift lower"] < ahead["lift upper"]).all()
    assert "Time: reading" in done.output
    assert ahead["t"].tolist() == pytest.approx(np.arange(480, 520, 2))
    truth = airfoil(260, initial_pitch=0.1).values[240:]
    assert np.abs(ahead[["pitch", "plunge", "lift"]].to_numpy() - truth).max() < 0.05 * truth.std()
    # The kept model says the same, without fitting.
    again = _run(wing, "--model", folder, "--steps", 20, "--json")
    values = json.loads(again.stdout)["forecast"]["values"]
    assert np.allclose(values, ahead[["pitch", "plunge", "lift"]])
    assert hm.load_forecaster(folder).channels_ == 3


def test_the_published_recipe_is_judged_like_the_default(wing):
    done = _run(wing, "--steps", 5, "--seconds", 0.5, "--recipe", "paper", "--columns", "lift")
    assert done.exit_code == 0, done.output
    for word in ("The published model with", "Backtest on the last quarter", "TD-TF", "TD-DMD", "NG-RC", "Forecast:"):
        assert word in done.output


def test_json_is_json_alone(wing):
    data = json.loads(_run(wing, "--steps", 5, "--seconds", 0.5, "--columns", "lift", "--starts", 0, "--json").stdout)
    assert data["channels"] == ["lift"]
    assert data["backtest"] is None
    assert len(data["forecast"]["values"]) == 5
    assert data["time_column"] == "t"


def test_gaps_and_uneven_times_on_request(tmp_path):
    series = lorenz63(400, 0.05)
    values, times = series.values[:, 0].copy(), series.times.copy()
    values[50:53] = np.nan
    times[100:] += 0.02
    path = tmp_path / "rough.csv"
    pd.DataFrame({"time": times, "x": values}).to_csv(path, index=False)
    plain = _run(path, "--seconds", 0.5)
    assert plain.exit_code == 2
    assert "has gaps" in plain.output
    filled = _run(path, "--seconds", 0.5, "--gaps", "interpolate")
    assert "must be evenly spaced" in filled.output
    both = _run(path, "--seconds", 0.5, "--gaps", "interpolate", "--resample", "--starts", 0, "--steps", 5)
    assert both.exit_code == 0, both.output
    assert "interpolated" in both.output
    assert "resampled" in both.output


def test_without_time_samples_are_numbered(tmp_path):
    path = tmp_path / "plain.npy"
    np.save(path, np.sin(0.3 * np.arange(200)))
    done = _run(path, "--seconds", 0, "--window", 8, "--steps", 4, "--starts", 4)
    assert "no time column, so samples are 1 apart" in done.output
    assert "both forecast this to a thousandth of a standard deviation" in done.output
    assert "periods 20.94" in done.output
    assert "samples are 0.5 apart" in _run(path, "--seconds", 0.5, "--dt", 0.5, "--starts", 0).output


def test_dates_come_back_as_dates_and_constants_as_constants(tmp_path):
    days = pd.date_range("2024-01-01", periods=200, freq="D")
    pd.DataFrame({"date": days, "y": np.sin(0.3 * np.arange(200))}).to_csv(tmp_path / "days.csv", index=False)
    done = _run(tmp_path / "days.csv", "--seconds", 0.5, "--steps", 3, "--starts", 0, "-o", tmp_path / "ahead.csv")
    assert "On 2024-07-21: y" in done.output
    assert pd.read_csv(tmp_path / "ahead.csv")["date"].tolist() == [f"2024-07-{d}T00:00:00" for d in (19, 20, 21)]
    np.save(tmp_path / "flat.npy", np.full(60, 7.0))
    still = _run(tmp_path / "flat.npy", "--steps", 4)
    assert still.exit_code == 0, still.output
    assert "Nothing varies" in still.output
    assert "column 1 7 ± 0" in still.output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--steps", "0"], "--steps must be at least 1, got 0"),
        (["--steps", "many"], "--steps must be a whole number"),
        (["--gaps", "ignore"], "--gaps must be refuse or interpolate"),
        (["--starts", "-3"], "--starts must not be negative"),
        (["--figure", "out.jpg"], "--figure cannot write .jpg"),
        (["--output", "out.xls"], "--output writes CSV only"),
        (["--columns", "mach"], "has no column 'mach'"),
        (["--recipe", "secret"], "recipe"),
        (["--window", "5000"], "too few samples"),
        (["--model", "m", "--save", "s"], "--save cannot be used with --model"),
    ],
)
def test_bad_options_are_refused(wing, words, message):
    done = _run(wing, *words)
    assert done.exit_code == 2
    assert message in " ".join(done.output.split())


def test_a_kept_model_knows_its_channels_and_step(wing, tmp_path):
    assert _run(wing, "--seconds", 0.5, "--starts", 0, "--save", tmp_path / "kept").exit_code == 0
    other = _run(wing, "--model", tmp_path / "kept", "--columns", "lift")
    assert "has 1 channels and the model knows 3" in other.output
    path = tmp_path / "coarse.csv"
    table = pd.read_csv(wing)
    table[::2].to_csv(path, index=False)
    assert "has samples 4 apart and the model was fitted to 2" in _run(path, "--model", tmp_path / "kept").output


def test_help_teaches():
    text = " ".join(_run("--help").output.split())
    for word in ("valid time", "--gaps", "--resample", "hardmax forecast data.csv --steps 200", "persistence"):
        assert word in text


def test_the_study_runs_and_sums_up_from_the_command_line(tmp_path, monkeypatch):
    import hardmax.reproduce
    from hardmax.reproduce.forecasting_study_cases import PERSISTENCE

    begun = hardmax.reproduce.run_forecasting_study

    def short(folder, **asked):
        assert asked.get("seconds", 5.0) in (1.0, 4.0)
        begun(folder, seeds=1, settings=["first coordinate"], systems=["Chen"], models=[PERSISTENCE])

    monkeypatch.setattr(hardmax.reproduce, "run_forecasting_study", short)
    words = ["reproduce", "forecasting-study", "--folder", str(tmp_path)]
    done = CliRunner().invoke(app, [*words, "--seconds", "4"])
    assert done.exit_code == 0, done.output
    assert "1 of 21 systems, seeds 0, 1 cases of 1 models: 1 fits" in done.output
    monkeypatch.setattr(hardmax.reproduce, "run_forecasting_study", None)  # a summary runs nothing
    again = CliRunner().invoke(app, [*words, "--summary"])
    assert again.exit_code == 0, again.output
    assert "persistence" in again.output
    empty = CliRunner().invoke(app, ["reproduce", "forecasting-study", "--folder", str(tmp_path / "x"), "--summary"])
    assert empty.exit_code == 2


def _plant(folder, samples=200):
    u = np.sign(np.sin(0.037 * np.arange(samples)))
    z = np.zeros(samples)
    for k in range(1, samples):
        z[k] = 0.95 * z[k - 1] + 0.1 * u[k]
    table = pd.DataFrame({"t": 0.5 * np.arange(samples), "valve": u, "level": z})
    table[:-20].to_csv(folder / "plant.csv", index=False)
    table[["t", "valve"]][-20:].to_csv(folder / "plan.csv", index=False)
    return table


def test_inputs_from_outside_and_a_kept_model_that_knows_its_columns(tmp_path):
    table = _plant(tmp_path)
    plant, plan, kept = tmp_path / "plant.csv", tmp_path / "plan.csv", tmp_path / "kept"
    words = ("--ahead", plan, "--steps", 20, "--json")
    done = _run(plant, "--inputs", "valve", *words, "--seconds", 0.5, "--starts", 0, "--save", kept)
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["channels"] == ["level"]
    assert np.allclose(np.ravel(told["forecast"]["values"]), table["level"][-20:], atol=1e-9)
    # The columns of a later file may stand in another order: the kept model finds its own.
    table[["level", "t", "valve"]][:-20].to_csv(plant, index=False)
    again = _run(plant, "--model", kept, *words)
    assert again.exit_code == 0, again.output
    assert np.allclose(json.loads(again.stdout)["forecast"]["values"], told["forecast"]["values"])
    (kept / "columns.json").write_text("[]")
    assert "does not name columns" in _run(plant, "--model", kept, *words).output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--inputs", "valve"], "--inputs must be known for the steps ahead, got valve: pass a file with 200 rows"),
        (["--ahead", "plan.csv"], "--ahead holds inputs to come"),
        (["--inputs", "tap", "--ahead", "plan.csv"], "has no column 'tap' for --inputs: choose among valve, level"),
        (["--inputs", "valve", "--ahead", "plan.csv"], "has the inputs of 20 steps: give 200 rows, or pass --steps 20"),
        (["--inputs", "valve,level", "--ahead", "plan.csv"], "leave no channel to forecast"),
    ],
)
def test_inputs_that_do_not_fit_are_refused(tmp_path, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    _plant(tmp_path)
    done = _run("plant.csv", *words)
    assert done.exit_code == 2
    assert message in " ".join(done.output.split())


def test_remedies_are_options_and_a_kept_model_takes_rough_data(tmp_path):
    values = np.sin(0.3 * np.arange(200))
    rough = tmp_path / "rough.csv"
    pd.DataFrame({"t": np.arange(200.0), "x": values}).to_csv(tmp_path / "smooth.csv", index=False)
    pd.DataFrame({"t": np.arange(200.0), "x": np.where(np.arange(200) == 198, np.nan, values)}).to_csv(
        rough, index=False
    )
    refused = _run(rough, "--seconds", 0.5)
    assert "pass --gaps interpolate to fill them linearly, or split the series at its gaps\n" in refused.output
    pd.DataFrame({"t": np.arange(200.0) ** 1.1, "x": values}).to_csv(tmp_path / "uneven.csv", index=False)
    assert "pass --resample to interpolate" in _run(tmp_path / "uneven.csv").output
    kept = tmp_path / "kept"
    assert _run(tmp_path / "smooth.csv", "--seconds", 0.5, "--starts", 0, "--save", kept).exit_code == 0
    assert "--gaps interpolate" in _run(rough, "--model", kept).output
    assert _run(rough, "--model", kept, "--gaps", "interpolate").exit_code == 0


def test_time_from_dates_is_told_in_units_of_the_clock(tmp_path):
    months = pd.date_range("2001-01-01", periods=100, freq="MS")
    pd.DataFrame({"when": months, "y": np.sin(0.3 * np.arange(100))}).to_csv(tmp_path / "months.csv", index=False)
    figure = tmp_path / "months.svg"
    done = _run(tmp_path / "months.csv", "--seconds", 30, "--steps", 6, "--figure", figure)
    assert "time from column 'when', one month apart" in done.output
    assert "periods 20.94 (months)" in done.output
    assert "On 2009-10-01: y" in done.output
    assert "<!-- 2009 -->" in figure.read_text()  # the axis has years, not seconds


def test_a_given_time_step_goes_before_a_column_of_dates(tmp_path):
    path, table = tmp_path / "days.csv", tmp_path / "ahead.csv"
    days = pd.date_range("2024-01-01", periods=80)
    pd.DataFrame({"day": days, "x": np.sin(0.3 * np.arange(80))}).to_csv(path, index=False)
    done = _run(path, "--dt", 0.5, "--steps", 4, "--starts", 0, "--seconds", 0.3, "--output", table)
    assert done.exit_code == 0, done.output
    assert "samples are 0.5 apart" in done.output
    assert "At time 41.5" in done.output
    assert pd.read_csv(table)["time"].tolist() == pytest.approx([40.0, 40.5, 41.0, 41.5])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--dt", 0), "--dt must be a positive number, got 0"),
        (("--window", 0), "--window must be at least 1, got 0"),
        (("--seconds", -1), "--seconds must be a positive number, or 0 for no limit, got -1"),
        (("--recipe", "cake"), "--recipe must be family or paper, got 'cake'"),
    ],
)
def test_options_are_refused_by_their_own_names(wing, words, message):
    done = _run(wing, *words)
    assert done.exit_code == 2
    assert message in done.output


def test_a_column_of_words_is_left_out_by_an_option(tmp_path):
    path = tmp_path / "notes.csv"
    pd.DataFrame({"x": np.arange(40.0), "note": "ok"}).to_csv(path, index=False)
    done = _run(path)
    assert done.exit_code == 2
    assert "choose the columns to use with --columns" in " ".join(done.output.split())


def _lines(text):
    return [line for line in text.splitlines() if line.startswith("forecast: ")]


def test_stages_are_told_from_the_start_on_the_error_stream(wing, tmp_path):
    done = _run(wing, "--steps", 5, "--seconds", 2, "--starts", 4, "--figure", tmp_path / "out.svg", "--json")
    assert json.loads(done.stdout)["forecast"]["values"]
    told = _lines(done.stderr)
    stages = [line.split(";")[0].removeprefix("forecast: ") for line in told]
    assert stages[0] == "reading"
    assert "at most about 2 s left" in told[0]
    fit = ["delay windows", "linear models", "polynomials", "attention", "reservoirs", "selection"]
    fit += ["bounded rollouts and refit", "simple models", "validation errors"]
    assert stages[1:19] == [f"{part}: {stage}" for part in ("fit", "backtest") for stage in fit]
    assert stages[19:] == ["figure", "reading the model"]
    assert all(" s so far" in line for line in told)
    assert "about" in told[5]


def test_there_is_a_budget_and_what_it_cuts_short_is_told(wing, monkeypatch):
    from hardmax.forecasting.search import time_budget

    ticks = iter(range(10**9))
    # Every look at the clock takes a second: wall time passes however fast the machine is.
    monkeypatch.setattr(time_budget.time, "monotonic", lambda: float(next(ticks)))
    cut = json.loads(_run(wing, "--steps", 5, "--starts", 4, "--json").stdout)
    assert cut["report"]["budget_ended"]
    assert any("cut short by its budget of 33 s" in sentence for sentence in cut["report"]["sentences"])
    monkeypatch.undo()
    whole = json.loads(_run(wing, "--steps", 5, "--starts", 0, "--seconds", 0, "--window", 4, "--json").stdout)
    assert not whole["report"]["budget_ended"]


def test_a_model_of_an_earlier_version_says_that_its_spread_is_not_known(tmp_path):
    kept = Path(__file__).parents[1] / "forecasting" / "files" / "forecaster_format_1"
    t = np.arange(80)
    np.savetxt(tmp_path / "z.csv", np.stack([np.sin(0.2 * t), np.full(80, 2.0)], axis=1), delimiter=",")
    words = ("--model", kept, "--steps", 5, "--figure", tmp_path / "out.png")
    done = _run(tmp_path / "z.csv", *words)
    assert done.exit_code == 0, done.output
    assert "(spread not known: fit again with this version)" in done.stdout
    assert json.loads(_run(tmp_path / "z.csv", *words, "--json").stdout)["forecast"]["spread"][0] == [None, 0.0]


_QUICK = ("--steps", 6, "--seconds", 0.5, "--starts", 0)


@pytest.fixture(scope="module")
def sales(tmp_path_factory):
    months = pd.date_range("2015-01-01", periods=60, freq="MS")
    k = np.arange(60)
    path = tmp_path_factory.mktemp("sales") / "sales.csv"
    values = np.exp(0.02 * k + 0.3 * np.sin(2 * np.pi * k / 12))
    pd.DataFrame({"month": months.strftime("%Y-%m-%d"), "sold": values}).to_csv(path, index=False)
    return path


def test_a_page_of_results_has_figure_backtest_and_intervals(sales, tmp_path):
    page = tmp_path / "page.html"
    done = _run(
        sales, "--steps", 6, "--seconds", 2, "--starts", 3, "--transform", "log", "--lower", 0, "--report", page
    )
    assert done.exit_code == 0, done.output
    assert "Wrote" in done.output
    text = page.read_text(encoding="utf-8")
    for word in ("Forecast of sales.csv", "data:image/png;base64,", "seasonal naive", "nominal 95 %", "<td>2020-06-01"):
        assert word in text
    assert "(5 months)" not in text
    assert "(6 months)" in text
    assert "Logarithms were fitted." in text
    assert "--report writes HTML only" in _run(sales, *_QUICK, "--report", tmp_path / "page.pdf").output


def test_a_simple_kind_is_told_without_parts_that_it_lacks(sales):
    done = _run(sales, *_QUICK, "--kind", "median")
    assert done.exit_code == 0, done.output
    said = " ".join(done.output.split())
    assert "Selected the median of the last" in said
    assert "for the best TD-DMD" not in said  # it was not compared
    assert "its linear part" not in said.lower()


def test_several_files_are_fitted_one_by_one(sales, wing, tmp_path):
    done = _run(sales, wing, *_QUICK, "--columns", "sold", "--output", tmp_path / "ahead.csv")
    assert done.exit_code != 0  # the second file has no such column
    done = _run(sales, wing, *_QUICK, "--output", tmp_path / "ahead.csv", "--interval", 0.5)
    assert done.exit_code == 0, done.output
    assert "sales.csv: 60 samples" in done.output
    assert "wing.csv: 240 samples" in done.output
    assert "(50 %:" in done.output
    assert list(pd.read_csv(tmp_path / "ahead-sales.csv"))[:2] == ["month", "sold"]
    assert len(pd.read_csv(tmp_path / "ahead-wing.csv")) == 6
    found = json.loads(_run(sales, wing, *_QUICK, "--json").stdout)
    assert [one["samples"] for one in found] == [60, 240]
    assert {"reading", "fit"} <= set(found[0]["seconds"])


def test_files_of_one_name_are_written_apart(sales, tmp_path):
    table, quick = pd.read_csv(sales), (*_QUICK, "--kind", "drift")
    for place, factor in (("north", 1.0), ("south", 2.0)):
        (tmp_path / place).mkdir()
        table.assign(sold=factor * table["sold"]).to_csv(tmp_path / place / "sales.csv", index=False)
    files = [tmp_path / place / "sales.csv" for place in ("north", "south")]
    done = _run(*files, *quick, "--output", tmp_path / "ahead.csv", "--save", tmp_path / "model")
    assert done.exit_code == 0, done.output
    north, south = (pd.read_csv(tmp_path / f"ahead-{place}-sales.csv") for place in ("north", "south"))
    np.testing.assert_allclose(2 * north["sold"], south["sold"])
    assert (tmp_path / "model" / "south-sales").is_dir()
    twice = _run(files[0], files[0], *quick, "--output", tmp_path / "ahead.csv")
    assert twice.exit_code == 2
    assert "and another would both be written as 'north-sales'" in " ".join(twice.output.split())


def test_errors_name_the_file_and_the_column(sales, tmp_path):
    table = pd.read_csv(sales).assign(price=lambda rows: 3.0 - rows["sold"])
    table.to_csv(tmp_path / "negative.csv", index=False)
    said = " ".join(_run(sales, tmp_path / "negative.csv", *_QUICK, "--kind", "drift", "--lower", 0).output.split())
    assert "--lower is passed by the data: column 'price' reaches" in said
    assert "got 0.0 in " in said
    assert "negative.csv: pass a bound" in said.replace("- ", "-")
    table.loc[7, "price"] = np.nan
    table.to_csv(tmp_path / "gaps.csv", index=False)
    said = " ".join(_run(tmp_path / "gaps.csv", *_QUICK).output.split())
    assert "got nan at sample 7, column 'price' (1 in all): pass --gaps interpolate" in said


def test_missing_months_are_told_and_filled_by_the_calendar(sales, tmp_path):
    path, ahead = tmp_path / "holes.csv", tmp_path / "ahead.csv"
    pd.read_csv(sales).drop([20, 21]).to_csv(path, index=False)
    said = " ".join(_run(path, *_QUICK).output.split())
    assert "1 missing block (2 samples of" in said
    assert "the first before 2016-11-01): pass --resample to interpolate" in said
    done = _run(path, *_QUICK, "--kind", "drift", "--resample", "--output", ahead)
    assert done.exit_code == 0, done.output
    assert pd.read_csv(ahead)["month"].str[:10].tolist() == [f"2020-0{k}-01" for k in range(1, 7)]


def test_many_columns_are_reduced_to_modes(tmp_path):
    t = np.arange(90)
    rng = np.random.default_rng(0)
    values = np.stack([np.sin(0.3 * t), np.cos(0.3 * t)], axis=1) @ rng.standard_normal((2, 12))
    path, table = tmp_path / "many.csv", tmp_path / "ahead.csv"
    pd.DataFrame(values, columns=[f"p{k}" for k in range(12)]).to_csv(path, index=False)
    done = _run(path, *_QUICK, "--pod", 2, "--output", table, "--save", tmp_path / "model")
    assert done.exit_code == 0, done.output
    ahead = pd.read_csv(table)
    expected = np.stack([np.sin(0.3 * np.arange(90, 96)), np.cos(0.3 * np.arange(90, 96))], axis=1)
    assert ahead.shape == (6, 1 + 4 * 12)
    again = json.loads(_run(path, "--model", tmp_path / "model", "--steps", 6, "--json").stdout)
    np.testing.assert_allclose(again["forecast"]["values"], ahead[[f"p{k}" for k in range(12)]])
    truth = expected @ np.linalg.lstsq(np.stack([np.sin(0.3 * t), np.cos(0.3 * t)], axis=1), values, rcond=None)[0]
    assert np.abs(ahead[[f"p{k}" for k in range(12)]].to_numpy() - truth).max() < 0.2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--interval", 1.5), "--interval must be between 0 and 1"),
        (("--transform", "sqrt"), "--transform must be none, auto or log"),
        (("--season", "x"), "--season"),
        (("--season", 1), "--season"),
        (("--pod", 0), "--pod"),
        (("--model", "somewhere", "--lower", 0), "--lower cannot be used with --model"),
        (("--lower", 1e9), "lower is passed by the data"),
        (("--kind", "nothing"), "--kind must be one of auto, family, td-dmd,"),
        (("--kind", "reservoir"), "--kind needs 600 samples before the held-out part, and the record has 48 there"),
    ],
)
def test_new_options_refuse_what_they_cannot_use(sales, words, said):
    done = _run(sales, *_QUICK, *words)
    assert done.exit_code != 0
    assert said in " ".join(done.output.split())


@pytest.mark.parametrize(
    ("exponent", "told"),
    [(np.nan, "cannot be measured"), (-np.inf, "is not chaotic"), (0.0, "is not chaotic"), (2.0, "is chaotic")],
)
def test_an_exponent_that_rounding_hides_is_not_called_order(exponent, told):
    model = SimpleNamespace(
        report_=SimpleNamespace(numbers={"kept": "nonlinear"}),
        lyapunov_exponent=lambda steps: exponent,
        dt_=0.02,
        forcing_=None,
    )
    assert told in next(_chaos(model, lorenz63(50, random_state=0)))


def test_a_nonlinear_model_with_inputs_has_no_exponent_and_is_told_without():
    model = SimpleNamespace(report_=SimpleNamespace(numbers={"kept": "nonlinear"}), forcing_=object())
    assert list(_chaos(model, lorenz63(20))) == []


def test_inputs_to_come_have_the_dates_that_follow_the_record(tmp_path):
    days = pd.date_range("2024-01-01", periods=90)
    table = pd.DataFrame({"day": days, "valve": np.sin(np.arange(90.0)), "level": np.cos(np.arange(90.0))})
    plant, plan = tmp_path / "plant.csv", tmp_path / "plan.csv"
    table[:80].to_csv(plant, index=False)
    words = (plant, "--inputs", "valve", "--ahead", plan, "--steps", 5, "--kind", "td-dmd", *_QUICK)
    table[["day", "valve"]][80:].to_csv(plan, index=False)
    assert _run(*words).exit_code == 0
    table[["day", "valve"]][82:].to_csv(plan, index=False)
    late = _run(*words)
    assert late.exit_code == 2
    assert "has the inputs of 2024-03-23 in row 1, where 2024-03-21 follows the record" in " ".join(late.output.split())


def test_half_hours_are_told_in_hours_and_without_exponents(tmp_path):
    times = pd.date_range("2024-03-01", periods=240, freq="30min")
    load = 30000 + 5000 * np.sin(2 * np.pi * np.arange(240) / 48)
    noise = 300 * np.random.default_rng(0).standard_normal(240)
    pd.DataFrame({"time": times, "load": load + noise}).to_csv(tmp_path / "load.csv", index=False)
    page = tmp_path / "load.html"
    words = ("--steps", 20, "--kind", "seasonal-naive", "--season", 48, "--seconds", 2, "--starts", 3)
    said = " ".join(_run(tmp_path / "load.csv", *words, "--interval", 0.8, "--report", page).output.split())
    assert "30 minutes apart" in said
    assert "20 steps (10 hours)" in said
    assert "On 2024-03-06 09:30: load " in said
    assert "e+0" not in said.partition("On 2024")[2]
    text = page.read_text(encoding="utf-8")
    assert "<td>2024-03-06 00:00</td>" in text
    assert "80 %" in text
    assert "e+0" not in text.partition("<h2>Forecast</h2>")[2]
    assert "<title>Forecast of load.csv</title>" in text


@pytest.mark.parametrize(
    ("days", "told"),
    [
        ([*range(30), *range(33, 60)], "1 missing block (3 samples of one day, the first before 2024-02-03)"),
        ([*range(30), *range(30, 120, 3)], "steps of one day up to 2024-01-31 and of 3 days from there on"),
        (
            [k for k in range(60) if k % 7 < 5],
            "pass --time-column none, and the channels as --columns, to count",
        ),
    ],
)
def test_uneven_dates_are_told_as_dates(tmp_path, days, told):
    dates = pd.Timestamp("2024-01-01") + pd.to_timedelta(days, unit="D")
    pd.DataFrame({"day": dates, "x": np.sin(np.arange(len(days)))}).to_csv(tmp_path / "days.csv", index=False)
    done = _run(tmp_path / "days.csv", *_QUICK)
    assert done.exit_code == 2
    said = " ".join(done.output.split())
    assert told in said
    assert "pass a list" not in said


def test_json_has_the_dates_and_intervals_of_the_forecast(sales):
    found = json.loads(_run(sales, *_QUICK, "--kind", "drift", "--interval", 0.8, "--json").stdout)["forecast"]
    assert found["dates"][0] == "2020-01-01T00:00:00"
    assert found["interval"]["level"] == 0.8
    ends = found["interval"]
    lower, middle, upper = (np.array(part) for part in (ends["lower"], found["values"], ends["upper"]))
    assert (lower < middle).all()
    assert (middle < upper).all()


def test_dates_by_the_clock_of_utc_are_told(tmp_path):
    cells = [date.isoformat() for date in pd.date_range("2024-03-30", periods=60, freq="h", tz="Europe/Berlin")]
    pd.DataFrame({"time": cells, "x": np.sin(np.arange(60.0))}).to_csv(tmp_path / "zone.csv", index=False)
    said = " ".join(_run(tmp_path / "zone.csv", *_QUICK, "--kind", "drift").output.split())
    assert "one hour apart (dates by the clock of UTC)" in said


def test_resampled_dates_are_told_in_words_and_counted(tmp_path):
    days = pd.date_range("2024-01-01", periods=60)
    table = pd.DataFrame({"day": days, "x": np.sin(np.arange(60.0)), "u": np.cos(np.arange(60.0))})
    holes, plan = tmp_path / "holes.csv", tmp_path / "plan.csv"
    table[:55].drop([20, 21, 40]).to_csv(holes, index=False)
    table[["day", "u"]][55:].to_csv(plan, index=False)
    words = ("--resample", "--kind", "td-dmd", *_QUICK)
    for more, step in (((), 6), (("--inputs", "u", "--ahead", plan), 5)):
        said = " ".join(_run(holes, *words, *more, "--steps", step).output.split())
        assert "52 samples of" in said
        assert "), resampled to 55 even ones; time from column 'day', one day apart." in said
        assert "resampled to an even step of one day by linear interpolation" in said
    told = json.loads(_run(holes, *words, "--json").stdout)["report"]["sentences"]
    assert "Samples were resampled to an even step of one day by linear interpolation." in told
    table.to_csv(holes, index=False)
    assert "60 samples of 2 (x, u); time" in " ".join(_run(holes, *words).output.split())


@pytest.mark.parametrize(
    ("label", "mases", "told"),
    [
        (
            "the last season of 12 samples, repeated",
            {"TD-TF": 0.7, ANEW: 0.9, "seasonal naive": 0.7},
            "MASE 0.7 against 0.9; the selected model itself does as well, MASE 0.7.",
        ),
        (
            "ARIMA, season 12",
            {"TD-TF": 0.5, ANEW: 0.9, "seasonal naive": 0.7},
            "MASE 0.7 against 0.9; the selected model itself does better, MASE 0.5.",
        ),
        (
            "TD-DMD, window 62, truncated",
            {"TD-TF": 0.9, "TD-DMD": 0.7},
            "MASE 0.7 against 0.9: the selected model is of that kind too, with other parameters.",
        ),
        ("ARIMA, season 12", {"TD-TF": 0.9, "seasonal naive": 0.7}, "pass --kind seasonal-naive to select it."),
        ("ARIMA", {"TD-TF": 0.102049, "persistence": 0.1}, "does as well as persistence"),
    ],
)
def test_a_kind_is_not_recommended_to_a_model_of_it_or_a_better_one(label, mases, told):
    rows = tuple(BacktestRow(name, mase, mase, 1.0, 0, mase) for name, mase in mases.items())
    said = _verdict(Backtest(rows, {}, np.arange(1.0, 5.0), 4, label), "months", 1.0)
    assert told in said
    assert ("--kind" in told) == ("--kind" in said)


def _hours(folder, name, form, hours=60, zone=None, first="2024-02-01"):
    path = folder / name
    cells = [date.strftime(form) for date in pd.date_range(first, periods=hours, freq="h", tz=zone)]
    pd.DataFrame({"time": cells, "x": np.sin(np.arange(hours) / 3), "u": np.cos(np.arange(hours) / 3)}).to_csv(
        path, index=False
    )
    return path


@pytest.mark.parametrize(
    ("form", "zone", "offset", "told"),
    [
        ("%Y-%m-%dT%H:%MZ", None, "Z", "(dates by the clock of UTC)"),
        ("%Y-%m-%dT%H:%M+01:00", None, "+01:00", "(dates by the clock of UTC+01:00)"),
        ("%Y-%m-%dT%H:%M%z", "Europe/Berlin", "Z", "(dates by the clock of UTC)"),
        ("%Y-%m-%d %H:%M", None, "", "one hour apart."),
    ],
)
def test_forecast_dates_have_the_offset_of_the_file(tmp_path, form, zone, offset, told):
    path = _hours(tmp_path, "hours.csv", form, zone=zone, first="2024-03-30")
    ahead, page, kept = tmp_path / "ahead.csv", tmp_path / "page.html", tmp_path / "kept"
    words = (path, "--columns", "x", "--steps", 6)
    done = _run(*words, *_QUICK[2:], "--kind", "drift", "--output", ahead, "--report", page, "--save", kept)
    assert done.exit_code == 0, done.output
    written = pd.read_csv(ahead, dtype=str)["time"]
    said = " ".join(done.output.split())
    assert told in said
    # Midnight in Berlin is 23:00 in UTC.
    assert written.iloc[-1] == f"2024-04-01T{'16' if zone else '17'}:00:00{offset}"
    assert f"On {written.iloc[-1].removesuffix(offset)[:16].replace('T', ' ')}{offset}: x" in said
    assert f"<td>{written.iloc[0].removesuffix(offset)[:16].replace('T', ' ')}{offset}</td>" in page.read_text("utf-8")
    again = json.loads(_run(*words, "--model", kept, "--json").stdout)["forecast"]["dates"]
    assert again == written.tolist()


def test_inputs_to_come_may_have_another_offset_than_the_record(tmp_path):
    record = _hours(tmp_path, "record.csv", "%Y-%m-%dT%H:%M+01:00")
    words = (record, "--inputs", "u", *_QUICK, "--kind", "td-dmd", "--ahead")
    same = _hours(tmp_path, "same.csv", "%Y-%m-%dT%H:%MZ", hours=6, first="2024-02-03 11:00")
    assert _run(*words, same).exit_code == 0
    late = _hours(tmp_path, "late.csv", "%Y-%m-%dT%H:%MZ", hours=6, first="2024-02-03 12:00")
    done = _run(*words, late)
    assert done.exit_code == 2
    assert "has the inputs of 2024-02-03 13:00 in row 1, where 2024-02-03 12:00" in " ".join(done.output.split())
    naive = _hours(tmp_path, "naive.csv", "%Y-%m-%d %H:%M", hours=6, first="2024-02-03 12:00")
    assert _run(*words, naive).exit_code == 0


@pytest.mark.parametrize(
    ("first", "step", "told"), [(1709278200, 3600, "1709512200"), (100000, 0.001, "100000.065"), (0, 0.1, "6.5")]
)
def test_large_times_are_told_with_all_digits(tmp_path, first, step, told):
    times = first + step * np.arange(60)
    pd.DataFrame({"timestamp": times, "x": np.sin(np.arange(60.0))}).to_csv(tmp_path / "epoch.csv", index=False)
    page = tmp_path / "page.html"
    done = _run(tmp_path / "epoch.csv", *_QUICK, "--kind", "drift", "--report", page)
    assert f"At time {told}: x" in " ".join(done.output.split())
    assert f"<td>{told}</td>" in page.read_text("utf-8")
