"""Sweeps from a file: masks and heads at infinite depth, backtests, and what is refused."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import hardmax as hm
from hardmax.datasets import sinusoids
from hardmax.errors import FileError, HardmaxError, InputError
from hardmax.forecasting.diagnostics.backtest import ANEW
from hardmax.forecasting.forecaster import TimeDelayedTransformer
from hardmax.sweeps.spec import equilibrium, forecast, read_spec, simulate


def test_masks_and_heads_are_parameters_of_a_sweep(tmp_path: Path) -> None:
    spec = tmp_path / "spec.toml"
    spec.write_text(
        "run = 'equilibrium'\nfolder = 'rows'\nseeds = [4]\n"
        "[grid]\ncausal = [false, true]\nheads = [1, 2]\n[fixed]\nn = 40\nmatrix = 'random-spd'\n",
        encoding="utf-8",
    )
    rows = read_spec(spec).perform(progress=False).set_index(["causal", "heads"])
    assert rows["error"].isna().all()
    tokens = hm.make_tokens("gaussian", 40, 2, random_state=4)
    matrices = [hm.make_matrix("random-spd", 2, random_state=4 + head) for head in range(2)]
    for causal in (False, True):
        for heads in (1, 2):
            limit = hm.equilibrium(tokens, hm.HardmaxLayer(0.5, heads=matrices[:heads], causal=causal))
            row = rows.loc[(causal, heads)]
            assert (row["leaders"], row["layers"]) == (len(limit.leaders), limit.layers)
            assert row["undecided"] == (limit.decided_at < 0).sum()
    assert rows["leaders"].nunique() > 2


@pytest.mark.parametrize("beta", [None, 2.0])
def test_a_window_is_a_parameter_of_a_simulation(beta: float | None) -> None:
    tokens = hm.make_tokens("gaussian", 30, 2, random_state=1)
    heads = [np.eye(2)]
    kind = {"causal": True, "window": 3, "heads": heads}
    layer = hm.HardmaxLayer(0.5, **kind) if beta is None else hm.SoftmaxLayer(0.5, beta=beta, **kind)
    spread = hm.simulate(tokens, layer, depth=4).final.std(axis=0).mean()
    found = simulate(n=30, beta=beta, causal=True, window=3, depth=4, random_state=1)
    assert found["spread"] == spread != simulate(n=30, beta=beta, causal=True, depth=4, random_state=1)["spread"]


@pytest.mark.parametrize("given", [{"heads": 0}, {"window": -1}, {"window": 99, "n": 10, "causal": True}])
def test_bad_masks_and_heads_are_refused(given: dict[str, int]) -> None:
    with pytest.raises(InputError, match=next(iter(given))):
        equilibrium(**given)


def test_a_row_is_the_backtest_of_the_model() -> None:
    row = forecast("lorenz63", n=400, observed=2, every=2, delays=6, restarts=1, horizon=20, starts=5, random_state=3)
    from hardmax.datasets import lorenz63

    series = lorenz63(800, random_state=3).every(2).observing(0, 1)
    model = TimeDelayedTransformer(6, restarts=1, random_state=3).fit(series.values, times=series.times)
    found = model.backtest(20, starts=5)
    # A sweep judges the search: the model that is selected without the last quarter.
    assert row["kept"] == found.anew
    own = ANEW if ANEW in found.curves else "TD-TF"
    for told in found.rows:
        if told.model == "TD-TF" != own:
            continue
        name = "TD-TF" if told.model == own else told.model
        assert row[f"{name} error"] == pytest.approx(told.error, rel=1e-3)
        assert row[f"{name} valid time"] == pytest.approx(told.valid_time)
        assert row[f"{name} Lyapunov times"] == pytest.approx(0.9056 * told.valid_time)
    assert (row["starts_made"], row["steps"]) == (5, 20)


def test_seeds_make_other_data_and_the_same_seed_the_same() -> None:
    given = {"n": 120, "delays": 1, "restarts": 1, "horizon": 10, "starts": 3, "budget": 0.2}
    for system in ("lorenz63", "sinusoids", "airfoil", "Rossler"):
        rows = [forecast(system, random_state=seed, **given) for seed in (0, 0, 1)]
        lazy = [row["persistence error"] for row in rows]
        assert lazy[0] == lazy[1] != lazy[2]


def test_noise_and_the_published_recipe() -> None:
    given = {"n": 300, "delays": 8, "restarts": 1, "horizon": 20, "starts": 4}
    clean, noisy = (forecast("sinusoids", noise=noise, **given) for noise in (0.0, 0.1))
    assert clean["TD-TF error"] < 1e-6 < 0.02 < noisy["TD-TF error"]
    published = forecast("sinusoids", recipe="paper", budget=0.5, **given)
    assert published["kept"] == "the published layer, by AdamW"
    assert published["TD-DMD error"] < 1e-6 < published["TD-TF error"]


def test_a_sweep_file_on_a_table_of_ones_own(tmp_path: Path) -> None:
    series = sinusoids(300)
    table = tmp_path / "waves.csv"
    pd.DataFrame({"time": series.times, "y": series.values[:, 0]}).to_csv(table, index=False)
    spec = tmp_path / "spec.toml"
    spec.write_text(
        f"run = 'forecast'\nfolder = 'rows'\n[grid]\ndelays = [1, 12]\n"
        f"[fixed]\nfile = '{table}'\nrestarts = 1\nhorizon = 20\n",
        encoding="utf-8",
    )
    rows = read_spec(spec).perform(progress=False).set_index("delays")
    assert rows["error"].isna().all()
    assert rows.loc[12, "TD-TF error"] < 1e-6 < rows.loc[1, "TD-DMD error"]


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"system": "no such"}, InputError, "is no chaotic system"),
        ({"file": "missing.csv"}, FileError, "missing.csv"),
        ({"recipe": "secret"}, InputError, "recipe must be one of"),
        ({"ablation": "secret"}, InputError, "ablation must be one of"),
        ({"observed": 4}, InputError, "observed must be at most the 3 channels"),
        ({"noise": -1.0}, InputError, "noise"),
        ({"n": 10}, InputError, "n must leave at least 16 samples"),
        ({"starts": 0}, InputError, "starts must be a whole number"),
    ],
)
def test_bad_points_are_refused(given: dict[str, object], error: type[HardmaxError], message: str) -> None:
    with pytest.raises(error, match=message):
        forecast(**({"n": 60, "budget": 0.2} | given))  # type: ignore[arg-type]


def test_a_series_that_never_varies_is_refused(tmp_path: Path) -> None:
    pd.DataFrame({"time": np.arange(40.0), "y": 1.0}).to_csv(tmp_path / "flat.csv", index=False)
    with pytest.raises(InputError, match="never varies"):
        forecast(file=str(tmp_path / "flat.csv"))
