"""Saved models come back and forecast as before, without torch; damaged files are refused."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

import hardmax as hm
from hardmax.datasets import lorenz63
from hardmax.errors import FileError, InputError
from hardmax.forecasting.forecaster import TimeDelayedTransformer
from hardmax.forecasting.model_files import FILE


def _series(samples: int = 900) -> np.ndarray:
    t = np.arange(samples)
    return np.stack([np.sin(0.2 * t) * np.sin(0.031 * t) ** 3, np.full(samples, 2.0)], axis=1)


@pytest.fixture(scope="module")
def model() -> TimeDelayedTransformer:
    return TimeDelayedTransformer(random_state=0, restarts=2, delays=60).fit(_series(), dt=0.1)


@pytest.fixture
def saved(model: TimeDelayedTransformer, tmp_path: Path) -> Path:
    return model.save(tmp_path / "model")


def test_a_saved_model_forecasts_the_same_bits(model: TimeDelayedTransformer, saved: Path) -> None:
    again = hm.load_forecaster(saved)
    before, after = model.forecast(50), again.forecast(50)
    np.testing.assert_array_equal(before.values, after.values)
    np.testing.assert_array_equal(before.spread, after.spread)
    np.testing.assert_array_equal(before.times, after.times)
    np.testing.assert_array_equal(model.eigenvalues(), again.eigenvalues())
    np.testing.assert_array_equal(model.attention().shares, again.attention().shares)
    assert str(again.report_) == str(model.report_)
    assert again.explained_beyond_linear_ == model.explained_beyond_linear_
    assert again.delays == 60
    assert json.loads((saved / "report.json").read_text())["sentences"]
    with pytest.raises(InputError, match="series is needed"):
        again.backtest(20)


def test_forecasting_from_a_file_needs_no_torch(saved: Path) -> None:
    code = (
        "import sys, hardmax as hm; f = hm.load_forecaster(sys.argv[1]); v = f.forecast(20).values; f.attention();"
        "assert v.shape == (20, 2); bad = {'torch', 'scipy', 'sklearn'} & set(sys.modules); assert not bad, bad"
    )
    subprocess.run([sys.executable, "-c", code, str(saved)], check=True)


def test_every_kind_of_model_survives(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    u = rng.uniform(-1, 1, 200).cumsum()
    z = np.convolve(u, [0.3, 0.2, 0.1])[:200]
    forced = TimeDelayedTransformer(random_state=0, seconds=0.3).fit(z, u=u)
    fields = rng.standard_normal((2, 12)).T @ np.stack([np.sin(0.3 * np.arange(80)), np.cos(0.3 * np.arange(80))])
    reduced = TimeDelayedTransformer(random_state=0, seconds=0.3, pod=2).fit(fields.T.reshape(80, 3, 4))
    still = TimeDelayedTransformer().fit(np.ones(40))
    paper = TimeDelayedTransformer(recipe="paper", delays=4, random_state=0, seconds=0.5).fit(z)
    ahead = {"u": np.zeros((5, 1))}
    for name, model, given in (("u", forced, ahead), ("pod", reduced, {}), ("still", still, {}), ("paper", paper, {})):
        again = hm.load_forecaster(model.save(tmp_path / name))
        np.testing.assert_array_equal(again.forecast(5, **given).values, model.forecast(5, **given).values)
    reduced_again = hm.load_forecaster(tmp_path / "pod")
    np.testing.assert_array_equal(
        reduced_again.reconstruct(reduced_again.forecast(3)), reduced.reconstruct(reduced.forecast(3))
    )


def _rewrite(folder: Path, change: object) -> None:
    path = folder / FILE
    with safe_open(path, framework="numpy") as parts:
        header = json.loads(parts.metadata()["hardmax"])
        arrays = {name: parts.get_tensor(name) for name in parts.keys()}  # noqa: SIM118
    change(header, arrays)  # type: ignore[operator]
    save_file(arrays, path, metadata={"hardmax": json.dumps(header)})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda h, a: h.update(format=99), "has format 99"),
        (lambda h, a: h.update(kind="leader classifier"), "not a time-delayed transformer"),
        (lambda h, a: h.pop("dt"), "'dt' is None"),
        (lambda h, a: h.update(settings={"nonsense": 1}), "cannot be used"),
        (lambda h, a: h["predictor"].update(members=[]), "'members' are none"),
        (lambda h, a: h["predictor"].update(outputs=3), "damaged"),
        (lambda h, a: a.pop("units.mean"), "has no tensor 'units.mean'"),
        (lambda h, a: a.update({"units.scale": -a["units.scale"]}), "must be positive"),
        (lambda h, a: a.update({"member0.readout": a["member0.readout"][:-1]}), "'member0.readout' has shape"),
        (lambda h, a: a.update({"member0.readout": a["member0.readout"] * np.nan}), "not finite"),
        (lambda h, a: a.update({"last_window": a["last_window"][:2]}), "samples"),
        (lambda h, a: h["predictor"]["attentive"].update(degree=10**9), "says degree 1000000000"),
        (lambda h, a: h["predictor"]["attentive"]["networks"][0].update(lags=10**11), "says 100000000000 lags"),
        (lambda h, a: a.update({"linear.linear.columns": a["linear.linear.columns"] + 10**6}), "outside the window"),
    ],
)
def test_damaged_files_are_refused(saved: Path, change: object, message: str) -> None:
    _rewrite(saved, change)
    with pytest.raises(FileError, match=message):
        hm.load_forecaster(saved)


def test_the_growth_of_differences_is_saved_and_may_be_absent(tmp_path: Path) -> None:
    z = lorenz63(900, 0.05).values
    model = TimeDelayedTransformer(12, horizon=60, restarts=1, random_state=0, progress=False).fit(z, dt=0.05)
    saved = model.save(tmp_path / "model")
    far = model.forecast(200)
    again = hm.load_forecaster(saved)
    np.testing.assert_array_equal(again.forecast(200).interval(0.9).upper, far.interval(0.9).upper)
    _rewrite(saved, lambda h, a: a.pop("errors.amplified"))
    without = hm.load_forecaster(saved)
    np.testing.assert_array_equal(without.forecast(200).values, far.values)
    np.testing.assert_array_equal(without.forecast(60).spread, far.spread[:60])
    assert (without.forecast(200).spread != far.spread).any()
    _rewrite(saved, lambda h, a: a.update({"errors.amplified": np.full((5, 3), 0.5)}))
    with pytest.raises(FileError, match="the growth of differences must be at least 1"):
        hm.load_forecaster(saved)


def test_what_is_no_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="there is no such folder"):
        hm.load_forecaster(tmp_path / "missing")
    with pytest.raises(FileError, match="there is no such file"):
        hm.load_forecaster(tmp_path)
    (tmp_path / FILE).write_bytes(b"not a model")
    with pytest.raises(FileError, match="was not written by hardmax"):
        hm.load_forecaster(tmp_path)
