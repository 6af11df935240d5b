"""``hardmax sweep``: a file in, rows out; every unreadable file is one clear line."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from hardmax.cli.app import app
from hardmax.sweeps import read_sweep
from hardmax.sweeps.spec import EXAMPLE, RUNS, read_spec

SMALL = """
run = "equilibrium"
folder = "rows"
seeds = [0, 7]
[grid]
n = [10, 20]
[fixed]
law = "ball"
"""


def _run(*arguments: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["sweep", *map(str, arguments)])
    return result.exit_code, result.stdout, result.stderr


def _spec(folder: Path, text: str = SMALL) -> Path:
    path = folder / "spec.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_sweep_from_a_file(tmp_path: Path) -> None:
    spec = _spec(tmp_path)
    assert _run(spec, "--status")[0] == 2  # nothing has been run
    code, said, _ = _run(spec)
    assert code == 0
    assert "4 of 4 rows of equilibrium, 0 failed" in said
    table = read_sweep(tmp_path / "rows")
    assert sorted(zip(table["n"], table["seed"], strict=True)) == [(10, 0), (10, 7), (20, 0), (20, 7)]
    assert set(table["law"]) == {"ball"}
    assert (tmp_path / "rows" / "rows.parquet").is_file()
    code, said, _ = _run(spec, "--status", "--json")
    assert code == 0
    assert json.loads(said)["rows"] == 4
    assert _run(spec, "--quiet", "--jobs", "1") == (0, "", "")


def test_failures_are_rows_and_an_exit_status(tmp_path: Path) -> None:
    code, said, _ = _run(_spec(tmp_path, SMALL.replace("n = [10, 20]", "n = [10, -1]")))
    assert code == 1
    assert "2 failed" in said
    assert "must be a whole number" in said


def test_the_example_is_a_sweep(tmp_path: Path) -> None:
    code, said, _ = _run("--example")
    assert (code, said) == (0, EXAMPLE)
    assert read_spec(_spec(tmp_path, said)).rows == 90
    assert tomllib.loads(EXAMPLE)["run"] in RUNS
    assert all(name in EXAMPLE for name in RUNS)


@pytest.mark.parametrize("name", sorted(RUNS))
def test_every_run_can_be_named(name: str, tmp_path: Path) -> None:
    more = {"meanfield": "time = 1.0", "forecast": "budget = 0.2"}.get(name, "matrix = 'identity'")
    spec = read_spec(_spec(tmp_path, f"run = {name!r}\nfolder = 'rows'\n[grid]\nn = [40]\n[fixed]\n{more}\n"))
    table = spec.perform()
    assert table["error"].tolist() == [None]
    assert len(table.columns) > 6


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("run = [", "is not TOML"),
        ("run = 'equilibrium'", "'folder' is missing"),
        (
            SMALL.replace("equilibrium", "os.system"),
            "run = 'os.system' is no run: use equilibrium, simulate, meanfield, forecast",
        ),
        (SMALL.replace("seeds", "seads"), "'seads' is not known"),
        (SMALL.replace("law", "lore"), "fixed.lore is no parameter of equilibrium: use law, n, d"),
        (SMALL.replace("[0, 7]", "0"), "seeds = 0 must be how many"),
        (SMALL.replace("[10, 20]", "10"), "grid.n must be a list of values: write n = [10]"),
        (SMALL.replace('law = "ball"', "n = 3"), "n is in [grid] and in [fixed]"),
        (SMALL.replace('"rows"', "3"), "folder must be a name"),
        ("jobs = 0" + SMALL, "jobs = 0 must be a positive whole number"),
        ("backend = 1" + SMALL, "backend = 1 must be a word"),
        ("grid = 3\nrun = 'simulate'\nfolder = 'x'", "grid must be a table"),
    ],
)
def test_unreadable_files(text: str, said: str, tmp_path: Path) -> None:
    code, _, complaint = _run(_spec(tmp_path, text))
    assert code == 2
    assert said in complaint
    assert "spec.toml" in complaint


def test_other_bad_input(tmp_path: Path) -> None:
    assert "SPEC must be given" in _run()[2]
    assert "cannot be read" in _run(tmp_path / "none.toml")[2]
    assert "--jobs must be at least 1" in _run(_spec(tmp_path), "--jobs", "0")[2]
    (tmp_path / "spec.toml").write_bytes(b"\xff\xfe")
    assert "is not TOML" in _run(tmp_path / "spec.toml")[2]
