"""``hardmax model`` and ``hardmax phase-diagram``: their output agrees with the library."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

import hardmax as hm
from hardmax.cli.app import app
from hardmax.cli.model import MODELS


def _run(*arguments: str) -> Result:
    result = CliRunner().invoke(app, [*arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result


def test_the_help_names_every_model() -> None:
    assert tuple(hm.zoo.MODELS) == MODELS
    told = _run("model").stdout
    for name in MODELS:
        assert f"\n{name} " in "\n" + told


def test_a_model_is_measured_beside_its_theory(tmp_path: Path) -> None:
    path = tmp_path / "run.zip"
    flags = ["--set", "coupling=2", "--n", "50", "--time", "1.5", "--seed", "3", "--save", str(path)]
    data = json.loads(_run("model", "kuramoto", *flags, "--json").stdout)
    model = hm.zoo.kuramoto(coupling=2.0, n=50)
    run = model.run(time=1.5, random_state=3)
    measured, theory = model.compare(run)["order"]
    assert data["measured"]["order"] == measured
    assert data["theory"]["order"] == theory
    assert np.array_equal(hm.load(path).tokens, run.tokens)
    told = _run("model", "kuramoto", *flags[:-2]).stdout
    assert "measured  order = " in told
    assert "theory" in told


def test_a_phase_diagram_is_a_table_and_a_picture(tmp_path: Path) -> None:
    table, picture = tmp_path / "grid.csv", tmp_path / "grid.png"
    axes = ["--x", "rho=0:0.5:2", "--y", "gamma=0.5,3"]
    more = ["--measure", "own_weight", "--set", "n=40", "--seeds", "1", "--save", str(table), "--figure", str(picture)]
    _run("phase-diagram", "long_context", *axes, *more)
    found = hm.phase_diagram(
        "long_context", x=("rho", [0.0, 0.5]), y=("gamma", [0.5, 3.0]), measure="own_weight", fixed={"n": 40}, seeds=1
    )
    assert len(table.read_text().splitlines()) == 1 + len(found.to_pandas())
    assert picture.stat().st_size > 5000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["model", "unknown"], "MODEL is not known"),
        (["model", "kuramoto", "--set", "coupling"], "--set must be NAME=VALUE"),
        (["model", "kuramoto", "--set", "colour=3"], "is no parameter of kuramoto"),
        (["model", "kuramoto", "--depth", "3"], "is for layers"),
        (["phase-diagram", "noisy", "--x", "coupling=1:2"], "--y must be given"),
        (["phase-diagram", "noisy", "--x", "coupling=a", "--y", "beta=1,2"], "--x must be NAME=VALUES"),
        (["phase-diagram", "noisy", "--x", "colour=1,2", "--y", "beta=1,2"], "colour"),
    ],
)
def test_bad_input_is_refused(arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2
    assert message in " ".join(result.output.split())
