"""The benchmarks measure what they say: rivals search for the same thing, tables and checks read as meant."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from benchmarks import forecasting, study
from benchmarks import series as real_series
from benchmarks._measure import growth
from benchmarks._real_series import SERIES, RealSeries
from benchmarks._rivals import RIVALS, Rival, tokens
from benchmarks._series_rows import Measured, StoredRows
from benchmarks._table import Check, Report

from hardmax.attention.reference import dense_choice
from hardmax.forecasting import Persistence
from hardmax.forecasting.models.td_dmd import TimeDelayedDMD
from hardmax.reproduce.forecasting_cases import sinusoid_case


@pytest.mark.parametrize("name", RIVALS)
def test_rivals_search_for_the_largest_score(name: str) -> None:
    points = tokens("gaussian", 300, 3)
    choice = dense_choice(torch.from_numpy(points), torch.from_numpy(points), 1e-6)
    asked = np.arange(0, 300, 7)
    rival = Rival(1.0, asked, RIVALS[name](points)(points[asked]))
    assert rival.wrong(choice) == 0
    assert rival.extrapolated


def test_wrong_answers_are_counted() -> None:
    points = torch.tensor([[1.0, 0.0], [1.0, 1.0], [1.0, -1.0]], dtype=torch.float64)
    choice = dense_choice(points, points, 1e-14)
    # The first token listens to all three alike, the others each to one.
    assert Rival(1.0, np.arange(3), np.array([2, 1, 1])).wrong(choice) == pytest.approx(1 / 3)


def test_checks_say_whether_a_target_was_reached() -> None:
    assert str(Check("speed", 31.0, 30.0, unit="times")).startswith("PASS    speed: 31 times (target >= 30 times)")
    assert str(Check("memory", 1200.0, 1000.0, at_least=False, unit="MB")).startswith("missed  memory: 1,200 MB")


def test_a_report_is_data_first() -> None:
    report = Report("Title", ["case", "seconds"], [["a", 0.01234], ["longer", None]], ["note"], [Check("x", 1.0, 2.0)])
    text = str(report)
    assert "0.0123" in text
    assert "note" in text
    data = report.as_data()
    assert data["rows"] == [["a", 0.01234], ["longer", None]]
    assert data["checks"] == [
        {"what": "x", "value": 1.0, "target": 2.0, "at_least": True, "unit": "x", "passed": False}
    ]


def test_growth_is_the_exponent() -> None:
    assert growth(2.0, 2000.0, 10) == pytest.approx(3.0)


def test_forecasts_are_judged_by_their_rollouts(monkeypatch: pytest.MonkeyPatch) -> None:
    case = sinusoid_case(quick=True)
    for name in ("NextGenerationReservoir", "HigherOrderDMD", "Sindy", "EchoState"):
        monkeypatch.setattr(forecasting, name, lambda seconds: Persistence())
    monkeypatch.setattr(forecasting, "TimeDelayedDMD", lambda seconds: TimeDelayedDMD(32))
    monkeypatch.setattr(forecasting, "TimeDelayedTransformer", lambda **_: TimeDelayedDMD(2))
    report = Report("Forecasting", ["case", "model", "NRMSE", "valid time", "fit s", "roll s"])
    found = forecasting._compared(case, 0.1, True, report)
    assert len(report.rows) == 6
    assert report.rows[1][2] < 1e-8 < report.rows[0][2]  # the long window is exact, the short one is not
    check = forecasting._ratio("what", {"TD-TF": 3e-13, "TD-DMD": 1e-14}, "TD-DMD", 2.0, 1e-12)
    assert check.value == 1.0  # nothing but rounding is compared
    assert found["persistence"][0] > 0.5


def test_origins_of_real_series_leave_one_horizon() -> None:
    assert real_series.places(100, 10, 3) == [70, 80, 90]
    assert real_series.places(72, 12, 4) == [39, 46, 53, 60]  # closer together in short series


def test_errors_of_real_series_are_mase_and_ranks_are_shared_in_ties(monkeypatch: pytest.MonkeyPatch) -> None:
    season = np.tile([0.0, 1.0, 3.0, 2.0], 20)
    values = season + 0.1 * np.arange(80)
    series = RealSeries("line and season", "none", "none.csv", 0, (4,), 8)
    monkeypatch.setattr(real_series, "_ours", lambda *_: Measured(0.0, (0.5, 1.0), "mean"))
    monkeypatch.setattr(real_series, "find_spec", lambda name: None)
    found = real_series.measure(series, values, origins=2)
    # A season later the line is 0.4 higher, and 0.8 two seasons later: 0.6 on average, in units of 0.4.
    assert [m.mase for m in found["seasonal naive"]] == pytest.approx([1.5, 1.5])
    assert [m.inside for m in found["TD-TF"]] == [(0.5, 1.0)] * 2
    errors = {"a": {"x": 1.0, "y": 2.0, "z": 2.0}, "b": {"x": 3.0, "y": 1.0, "z": 2.0}}
    assert real_series._ranks(errors, ["a", "b"], ["x", "y", "z"]) == [2.0, 1.75, 2.25]


def test_our_intervals_are_compared_with_the_samples_after_the_origin() -> None:
    rng = np.random.default_rng(0)
    values = np.tile([0.0, 5.0, 3.0, 9.0], 20) + rng.normal(0, 0.5, 80)
    series = RealSeries("season", "none", "none.csv", 0, (4,), 8)
    moved = np.where(np.arange(80) < 72, values, values + 50.0)
    found, far = (real_series._ours(some, 72, series, 0.2, 1.0) for some in (values, moved))
    assert found.mase < 1.5
    assert found.inside[1] >= max(found.inside[0], 0.5)
    assert far.mase == pytest.approx(50.0, abs=2.0)
    assert far.inside == (0.0, 0.0)
    low, high = real_series.coverage_checks("x", [0.7, 0.99])[:2], real_series.coverage_checks("x", [0.7, 0.99])[2:]
    assert [check.passed for check in (*low, *high)] == [True, True, True, False]


def _study_rows() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Stored rows of three systems, and rows of ours on two of them with one of NG-RC on the data of each."""
    names = {study.OURS: 2.0, study.NGRC: 3.0, study.ESN: 1.0, study.UNIFORM: 9.0}
    stored = pd.DataFrame(
        [
            {"setting": "full state", "system": system, "seed": 0, "model": name, "valid_time": valid}
            for system in ("Chen", "Lorenz '63", "Coullet")
            for name, valid in names.items()
        ]
    )
    measured = {"code": "new", "setting": "full state", "seed": 0, "in68": 0.7, "in95": 0.95, "fit_seconds": 7.0}
    measured |= {"speed": 20.0, "diverged": 0, "starts": 20}
    stored = stored.assign(fit_seconds=2.0, diverged=3)
    rows = [
        {"system": "Chen", "model": study.OURS, "valid_time": 0.1, "data": "a", "code": "old"},
        {"system": "Chen", "model": study.OURS, "valid_time": 4.0, "data": "a"},
        {"system": "Lorenz '63", "model": study.OURS, "valid_time": 2.5, "data": "b", "diverged": 1},
        {"system": "Chen", "model": study.NGRC, "valid_time": 5.0, "data": "a"},
        {"system": "Lorenz '63", "model": study.NGRC, "valid_time": 0.5, "data": "other"},
    ]
    return pd.DataFrame([measured | row for row in rows]), stored


def test_ours_is_ranked_in_place_of_the_stored_one_among_rivals_on_the_same_data() -> None:
    rows, stored = _study_rows()
    report = study.summary(rows, stored)
    # On Chen NG-RC was measured again, 5.0; on Lorenz its new row is of other data, so that the stored 3.0 counts.
    expected = ["full state", 2, 2.0, 2.0, 3.25, 2.0, 1, pytest.approx(0.7), pytest.approx(0.95)]
    expected += [1.0, 3.0, "0 : 2", "2 : 0", 7.0]
    assert report.rows == [expected]
    assert [check.passed for check in report.checks] == [True, False, True, True, True, True]
    assert report.checks[0].value == 0.0
    assert "2 fits on 2 systems, seeds 0" in report.notes[0]
    assert report.notes[1].startswith("1 rows of")
    assert "in 0 of 2 cases" in report.notes[1]
    assert "6 of NG-RC" in report.notes[2]
    assert report.notes[2].endswith("of TD-TF 1 of 40.")
    assert study.slowness(rows, stored) == 1.0
    # Of a case that was fitted twice by the same code the last row counts, everywhere.
    twice = pd.concat([rows[rows["code"] == "new"].assign(valid_time=9.0, diverged=7), rows[rows["code"] == "new"]])
    again = study.summary(twice[twice["model"] == study.OURS], stored)
    assert again.rows[0][4] == report.rows[0][4]
    assert again.notes[0] == report.notes[0]
    assert again.notes[2] == report.notes[2]


def test_the_budget_of_the_study_follows_the_time_of_ngrc_on_the_stored_data() -> None:
    rows, stored = _study_rows()
    rows.loc[rows["model"] == study.NGRC, "valid_time"] = [3.0, 3.1]
    assert study.slowness(rows, stored) == pytest.approx(7.0 / 2.0)
    assert "in 1 of 2 cases" in study.summary(rows, stored).notes[1]


def test_rows_of_the_study_count_for_their_code_and_rivals_for_any(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, _ = _study_rows()
    monkeypatch.setattr(study, "AGAIN", tmp_path / "again.csv")
    assert study._done() == set()
    rows.to_csv(study.AGAIN, index=False)
    monkeypatch.setattr(study, "code_version", lambda: "old")
    full = "full state"
    rivals = {(full, "Chen", study.NGRC, 0), (full, "Lorenz '63", study.NGRC, 0)}
    assert study._done() == {(full, "Chen", study.OURS, 0)} | rivals
    fits = study.cases()
    assert len(fits) == len(set(fits)) == 21 * 4 * 3 * 3


@pytest.mark.parametrize("jobs", [1, 3])
def test_the_study_fits_what_is_missing_with_equal_work(
    jobs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # NG-RC gives the stored valid time on Lorenz '63 alone, and takes twice as long as it did.
    _, stored = _study_rows()
    full = "full state"
    made: list[tuple[str, str, float]] = []

    def fit(setting: str, system: str, model: str, seed: int, seconds: float) -> dict[str, object]:
        made.append((system, model, seconds))
        before = stored[(stored["system"] == system) & (stored["model"] == model)]["valid_time"].iloc[0]
        valid = before if system == "Lorenz '63" else before + 1.0
        row = {"setting": setting, "system": system, "model": model, "seed": seed, "valid_time": valid, "starts": 20}
        row |= {"code": "new", "fit_seconds": 4.0, "diverged": 0, "data": system, "speed": 20.0}
        return row | {"in68": 0.7, "in95": 0.95}

    models = (study.NGRC, study.OURS, study.ESN)
    todo = [(full, system, model, 0) for system in ("Chen", "Lorenz '63") for model in models]
    stored_file = tmp_path / "stored.csv"
    stored.to_csv(stored_file, index=False)
    monkeypatch.setattr(study, "STORED", stored_file)
    monkeypatch.setattr(study, "AGAIN", tmp_path / "again.csv")
    monkeypatch.setattr(study, "cases", lambda: [todo[3], *todo[:3], *todo[4:]])
    monkeypatch.setattr(study, "_row", fit)
    monkeypatch.setattr(study, "Parallel", lambda **_: lambda fits: [one(*rest) for one, rest, _ in fits])
    monkeypatch.setenv("STUDY_JOBS", str(jobs))
    report = study.run()
    assert [row[0] for row in report.rows] == [full]
    # The echo state network is fitted on the data that are not the stored ones, and ours has twice the time.
    chen = {("Chen", study.NGRC, 5.0), ("Chen", study.OURS, 10.0), ("Chen", study.ESN, 5.0)}
    assert len(made) == 5
    assert set(made) == chen | {("Lorenz '63", study.NGRC, 5.0), ("Lorenz '63", study.OURS, 10.0)}
    if jobs > 1:
        assert [model for _, model, _ in made] == [study.NGRC, study.NGRC, study.OURS, study.OURS, study.ESN]
    made.clear()
    study.run()
    assert not [model for _, model, _ in made if model != study.OURS]  # what is stored is not fitted again


def test_rows_of_series_are_stored_and_count_for_their_code_alone(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "rows.csv"
    rows = StoredRows(path)
    rows.add("a, monthly", 12, "TD-TF", "one", Measured(0.1 + 0.2, (0.5, 1.0), "mean, season 12"))
    rows.add("a, monthly", 12, "drift", "rule", Measured(2.0))
    again = StoredRows(path)
    assert again.get("a, monthly", 12, "TD-TF", "one") == Measured(0.1 + 0.2, (0.5, 1.0), "mean, season 12")
    assert again.get("a, monthly", 12, "drift", "rule") == Measured(2.0)
    assert again.get("a, monthly", 12, "TD-TF", "two") is None
    assert again.get("a, monthly", 13, "TD-TF", "one") is None
    again.add("a, monthly", 12, "drift", "rule", Measured(3.0))
    assert StoredRows(path).get("a, monthly", 12, "drift", "rule") == Measured(3.0)


def test_the_development_part_is_named_and_comes_first() -> None:
    marks = [series.development for series in SERIES]
    assert marks == sorted(marks, reverse=True)
    assert 8 <= sum(marks) < len(marks) - 20
    assert len({series.name for series in SERIES}) == len(SERIES)
