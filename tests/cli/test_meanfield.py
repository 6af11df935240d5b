"""``hardmax meanfield`` and its bad input."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import hardmax as hm
from hardmax.cli.app import app

_SHORT = ["--n", "300", "--time", "6", "--step", "0.2"]


def run(*words: str) -> tuple[int, str, str]:
    found = CliRunner().invoke(app, ["meanfield", *words])
    return found.exit_code, found.stdout, found.stderr


def test_a_table_of_phases() -> None:
    status, told, _ = run("--beta", "5,20", *_SHORT)
    assert status == 0
    assert "beta = 5" in told
    assert "closest approach" in told
    assert "two antipodal points" in told


def test_json_figure_film_and_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    files = ["--figure", "w.png", "--animate", "w.gif", "--save", "w.csv"]
    status, told, _ = run("--beta", "20", "--json", "--n", "200", "--time", "2", "--step", "0.5", *files)
    assert status == 0
    data = json.loads(told)
    assert data["runs"][0]["theory"]["rate of concentration"] == 0.5
    assert data["files"] == ["w.png", "w.gif", "w.csv"]
    assert Path("w.png").read_bytes().startswith(b"\x89PNG")
    assert Path("w.gif").read_bytes().startswith(b"GIF8")
    with open("w.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["time"]) for row in rows] == pytest.approx([0, 0.5, 1, 1.5, 2])


def test_runs_are_saved_and_loaded_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    short = ["--n", "200", "--time", "1", "--step", "0.5", "--json"]
    status, told, _ = run("--beta", "2,3", "--save", "run.zarr", *short)
    assert status == 0
    assert json.loads(told)["files"] == ["run-beta-2.zarr", "run-beta-3.zarr"]
    for beta in (2.0, 3.0):
        loaded = hm.load(f"run-beta-{beta:g}.zarr")
        assert loaded.tokens.shape == (3, 200, 2)
        assert loaded.layer.flow.beta == beta
        again = hm.simulate(loaded.tokens[0], loaded.layer.flow, time=1.0, step=0.5, weights=loaded.weights)
        np.testing.assert_allclose(again.tokens, loaded.tokens, rtol=0, atol=1e-13)
    assert run("--beta", "2", "--save", "one.zarr", *short)[0] == 0
    assert hm.phases(hm.load("one.zarr")).beta == 2.0


def test_a_jordan_block_is_followed() -> None:
    status, told, _ = run("--B", "1,1;0,1", "--beta", "3", "--n", "60", "--time", "1", "--step", "0.5")
    assert status == 0
    assert "approached like 1/t" in told


def test_matrices_rows_files_and_three_dimensions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("B.csv").write_text("2,0,0\n0,1,0\n0,0,1\n")
    words = ["--B", "B.csv", "--V", "1,0,0;0,2,0;0,0,0.5", "--beta", "4", "--n", "150", "--time", "1", "--json"]
    status, told, _ = run(*words)
    assert status == 0
    assert json.loads(told)["runs"][0]["escape at t"] is None
    assert run(*words, "--random", "--seed", "3")[0] == 0


def test_tokens_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    points = np.random.default_rng(0).normal(size=(200, 2))
    np.save("tokens.npy", points)
    assert run("--tokens", "tokens.npy", "--beta", "3", "--normalise", "--time", "1", "--quiet") == (0, "", "")
    status, _, complaint = run("--tokens", "tokens.npy", "--beta", "3", "--time", "1")
    assert status == 2
    assert "tokens must lie on the unit sphere" in complaint


def test_few_tokens_are_warned_of() -> None:
    status, _, warned = run("--beta", "300", "--n", "50", "--time", "0.2", "--quiet")
    assert status == 0
    assert "warning: only 0.576 tokens share an attention kernel" in warned
    assert "use n >= 868" in warned


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--V", "0,-1;1,0"], "no low-temperature limit, a leading complex pair"),
        (["--B", "diag:1,0"], "no low-temperature limit, a singular B"),
        (["--beta", "-1"], "--beta must be a number that is not negative, got '-1'"),
        (["--beta", "nan"], "--beta must be a number"),
        (["--beta", "warm"], "--beta must be a number"),
        (["--B", "1,2,3"], "--B must be square"),
        (["--B", "nothing"], "--B is neither a matrix nor a file"),
        (["--B", "diag:1,2", "--V", "diag:1,2,3"], "--V must be 2 x 2"),
        (["--B", "diag:nan,1"], "B must be finite"),
        (["--B", "diag:2"], "must act on two coordinates"),
        (["--time", "0"], "time must be positive"),
        (["--step", "-1"], "step must be positive"),
        (["--step", "9", "--time", "20"], "stability limit"),
        (["--tilt", "2"], "--tilt must lie between -1 and 1"),
        (["--integrator", "magic"], "integrator is not known"),
        (["--precision", "float16"], "precision is not known"),
        (["--figure", "w.doc"], "--figure cannot write .doc"),
        (["--n", "0"], "--n must be at least 1, got 0"),
    ],
)
def test_bad_input(words: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    beta = [] if "--beta" in words else ["--beta", "inf" if "--step" in words else "3"]
    status, told, complaint = run(*words, *beta)
    assert status == 2
    assert told == ""
    assert message in complaint
    assert list(tmp_path.iterdir()) == []
