"""``hardmax forecast``: finds time and channels, tells what it found, writes what was asked, refuses bad input."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import hardmax as hm
from hardmax.cli.app import app
from hardmax.datasets import airfoil, lorenz63


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
    done = _run(wing, "--steps", 20, "--seconds", 1, "--figure", figure, "--save", folder, "--output", table)
    assert done.exit_code == 0, done.output
    for word in ("240 samples of 3 (pitch, plunge, lift)", "time from column 't', 2 apart", "Backtest", "persistence"):
        assert word in done.output
    for word in ("TD-DMD", "NG-RC", "20 steps within the range", "At time 518:"):
        assert word in done.output
    assert figure.read_bytes()[:4] == b"\x89PNG"
    ahead = pd.read_csv(table)
    assert list(ahead) == ["t", "pitch", "plunge", "lift", "pitch spread", "plunge spread", "lift spread"]
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
    done = _run(path, "--seconds", 0.5, "--steps", 4, "--starts", 4)
    assert "no time column, so samples are 1 apart" in done.output
    assert "both forecast this to a thousandth of a standard deviation" in done.output
    assert "periods 20.94" in done.output
    assert "samples are 0.5 apart" in _run(path, "--seconds", 0.5, "--dt", 0.5, "--starts", 0).output


def test_dates_come_back_as_dates_and_constants_as_constants(tmp_path):
    days = pd.date_range("2024-01-01", periods=200, freq="D")
    pd.DataFrame({"date": days, "y": np.sin(0.3 * np.arange(200))}).to_csv(tmp_path / "days.csv", index=False)
    done = _run(tmp_path / "days.csv", "--seconds", 0.5, "--steps", 3, "--starts", 0, "-o", tmp_path / "ahead.csv")
    assert "On 2024-07-21T00:00:00: y" in done.output
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
    from hardmax.reproduce import study
    from hardmax.reproduce.study_models import PERSISTENCE

    begun = study.run_study

    def short(folder, **asked):
        assert asked.get("seconds", 5.0) in (1.0, 4.0)
        begun(folder, seeds=1, settings=["first coordinate"], systems=["Chen"], models=[PERSISTENCE])

    monkeypatch.setattr(study, "run_study", short)
    words = ["reproduce", "forecasting-study", "--folder", str(tmp_path)]
    done = CliRunner().invoke(app, [*words, "--seconds", "4"])
    assert done.exit_code == 0, done.output
    assert "1 of 21 systems, seeds 0, 1 cases of 1 models: 1 fits" in done.output
    monkeypatch.setattr(study, "run_study", None)  # a summary runs nothing
    again = CliRunner().invoke(app, [*words, "--summary"])
    assert again.exit_code == 0, again.output
    assert "persistence" in again.output
    empty = CliRunner().invoke(app, ["reproduce", "forecasting-study", "--folder", str(tmp_path / "x"), "--summary"])
    assert empty.exit_code == 2
