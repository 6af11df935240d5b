"""Phase diagrams: grids of models over two parameters."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import hardmax as hm
from hardmax import zoo

X, Y = ("rho", [0.0, 0.4]), ("gamma", [0.5, 1.5, 2.5])


def diagram(**changes: object) -> hm.PhaseDiagram:
    settings = {"x": X, "y": Y, "measure": "own_weight", "fixed": {"n": 30}, "seeds": 2, **changes}
    return hm.phase_diagram(zoo.long_context, **settings)


def test_means_are_those_of_single_runs() -> None:
    found = diagram()
    assert found.mean.shape == found.deviation.shape == (3, 2)
    for row, gamma in enumerate(Y[1]):
        for column, rho in enumerate(X[1]):
            model = zoo.long_context(gamma, rho, n=30)
            assert found.mean[row, column] == pytest.approx(model.measure("own_weight", model.run()), rel=1e-12)
    table = found.to_pandas()
    assert len(table) == 12
    assert {"rho", "gamma", "seed", "own_weight", "outcome", "seconds"} <= set(table.columns)
    assert "6 runs" not in str(found)
    assert "12 runs" in str(found)


def test_seeds_give_mean_and_deviation() -> None:
    found = hm.phase_diagram(
        "noisy", x=("beta", [0.5, 1.0]), y=("coupling", [0.2, 3.0]), fixed={"n": 20}, seeds=3, time=1.0, step=0.1
    )
    table = found.to_pandas()
    chosen = table[(table["beta"] == 1.0) & (table["coupling"] == 3.0)]["order"]
    assert found.mean[1, 1] == pytest.approx(chosen.mean())
    assert found.deviation[1, 1] == pytest.approx(chosen.std(ddof=0))
    assert found.deviation[1, 1] > 0


def test_the_theory_is_a_curve_over_either_axis() -> None:
    np.testing.assert_allclose(diagram(seeds=1).critical, [[0.0, 1.0], [0.4, 1 / 0.6]])
    swapped = hm.phase_diagram(
        "long_context", x=("gamma", [0.5, 1.5]), y=X, measure="own_weight", fixed={"n": 10}, seeds=1
    )
    np.testing.assert_allclose(swapped.critical, [[1.0, 0.0], [1 / 0.6, 0.4]])
    none = hm.phase_diagram(
        "equiangular", x=("beta", [0.0, 1.0]), y=("rho", [0.0, 0.5]), fixed={"n": 4}, seeds=1, time=0.1
    )
    assert none.critical is None


def test_files(tmp_path: Path) -> None:
    found = diagram(seeds=1)
    found.save(tmp_path / "grid.csv")
    found.save(tmp_path / "grid.json")
    read, wanted = pd.read_csv(tmp_path / "grid.csv"), found.to_pandas()
    assert list(read.columns) == list(wanted.columns)
    pd.testing.assert_frame_equal(read.drop(columns="error"), wanted.drop(columns="error"), check_dtype=False)
    content = json.loads((tmp_path / "grid.json").read_text())
    assert content["mean"] == found.mean.tolist()
    assert content["rho"] == [0.0, 0.4]
    with pytest.raises(hm.InputError, match=r"path must end with .csv or .json"):
        found.save(tmp_path / "grid.txt")


def test_a_diagram_resumes_and_keeps_models_apart(tmp_path: Path) -> None:
    first = diagram(path=tmp_path, seeds=1)
    rows = sorted(tmp_path.glob("*.row.json"))
    times = [row.stat().st_mtime_ns for row in rows]
    again = diagram(path=tmp_path, seeds=1)
    assert [row.stat().st_mtime_ns for row in rows] == times
    np.testing.assert_array_equal(first.mean, again.mean)
    other = diagram(path=tmp_path, seeds=1, measure="cosine")
    assert len(list(tmp_path.glob("*.row.json"))) == 2 * len(rows)
    assert not np.array_equal(other.mean, first.mean)


def test_a_model_that_fails_somewhere_leaves_a_gap() -> None:
    def fragile(rho: float = 0.0, gamma: float = 1.0) -> zoo.FieldModel:
        if rho > 0.3 and gamma > 2:
            return zoo.rank_collapse(n=4)  # has no measure of this name
        return zoo.long_context(gamma, rho, n=10)

    found = hm.phase_diagram(fragile, x=X, y=Y, measure="own_weight", seeds=1)
    assert np.isnan(found.mean[2, 1])
    assert np.isfinite(found.mean[:2]).all()
    assert found.to_pandas()["error"].notna().sum() == 1


def test_it_is_drawn_with_its_theory() -> None:
    ax = diagram(seeds=1).draw()
    assert ax.get_xlabel() == "rho"
    assert ax.get_ylabel() == "gamma"
    line = ax.get_lines()[-1]
    np.testing.assert_allclose(line.get_xydata(), [[0.0, 1.0], [0.4, 1 / 0.6]])
    mesh = ax.collections[0]
    np.testing.assert_allclose(np.asarray(mesh.get_array()).ravel(), diagram(seeds=1).mean.ravel())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"x": ("colour", [0, 1])}, "x is no parameter of the model"),
        ({"x": ("gamma", [0, 1])}, "y must be another parameter than x"),
        ({"x": ("rho", [0.4, 0.0])}, "x must have at least two finite values in increasing order"),
        ({"x": "rho"}, "x must be a parameter and its values"),
        ({"x": ("rho", ["a", "b"])}, "x must have numbers as values"),
        ({"measure": "colour"}, "measure is no measure of long_context"),
        ({"fixed": {"rho": 0.1}}, "fixed is no other parameter of the model"),
        ({"seeds": 0}, "seeds must be a whole number, at least 1"),
        ({"time": 2.0}, "time is not for long_context"),
        ({"step": 0.1}, "step is not for long_context"),
        ({"y": ("gamma", [-1.0, 1.0])}, "gamma must be finite and not negative"),
    ],
)
def test_wrong_arguments_are_named(changes: dict, message: str) -> None:
    with pytest.raises(hm.InputError, match=message):
        diagram(**changes)


def test_models_are_given_by_constructor_or_name() -> None:
    with pytest.raises(hm.InputError, match="model is no model"):
        hm.phase_diagram("sonnet", x=X, y=Y)
    with pytest.raises(hm.InputError, match="model must be the constructor of a model, not a model"):
        hm.phase_diagram(zoo.long_context(), x=X, y=Y)
