"""The four cases are made as they say, and the page has the claims beside the figures."""

import re

import numpy as np
import pytest

from hardmax.forecasting import Persistence, PublishedLayer
from hardmax.forecasting.models.td_dmd import TimeDelayedDMD
from hardmax.reproduce import forecasting
from hardmax.reproduce.forecasting_cases import airfoil_case, lorenz_case, sinusoid_case, spiral_case, wake_case
from hardmax.reproduce.forecasting_comparison import (
    DMD,
    MLP,
    OURS,
    PAPER,
    UNIFORM,
    WELL,
    attention_table,
    climate,
    overlay,
)


@pytest.mark.parametrize("make", [sinusoid_case, lorenz_case, airfoil_case, spiral_case, wake_case])
def test_windows_and_truth_join_and_are_new(make):
    case = make(quick=True)
    assert case.windows.shape[0] == case.truth.shape[0] >= 3
    steps = np.abs(case.truth[:, 0] - case.windows[:, -1])
    usual = np.abs(np.diff(case.truth, axis=1)).max()
    assert (steps <= 2 * usual).all()
    for start in case.truth[:, 0]:
        assert min(np.abs(z - start).max(axis=1).min() for z in case.training) > 0


def test_errors_are_what_they_say():
    case = sinusoid_case(quick=True)
    exact = case.curves(TimeDelayedDMD(32).fit(case.training, case.dt))
    assert case.error(exact) < 1e-8
    assert case.valid_time(exact) == pytest.approx(case.horizon * case.dt)
    lazy = case.curves(Persistence().fit(case.training, case.dt))
    assert 0.5 < case.error(lazy) < 3.0
    noisy = sinusoid_case(noise=0.05, quick=True)
    assert np.array_equal(noisy.truth, case.truth)
    assert not np.array_equal(noisy.windows, case.windows)


def test_the_page_has_every_case(tmp_path, monkeypatch):
    from hardmax.forecasting.forecaster import TimeDelayedTransformer

    monkeypatch.setattr(
        forecasting,
        "models",
        lambda seconds: {
            "TD-DMD, tuned": TimeDelayedDMD(8),
            forecasting.OURS: TimeDelayedTransformer(seconds=0.3, random_state=0, progress=False),
        },
    )
    monkeypatch.setattr(
        forecasting,
        "attention_variants",
        lambda seconds: {MLP: PublishedLayer(2, hidden=4, steps=2, variant="mlp", seconds=0.2)},
    )
    monkeypatch.setattr(forecasting, "PARTS", forecasting.PARTS[:4:2])
    forecasting.reproduce_forecasting(tmp_path, quick=True)
    page = (tmp_path / forecasting.PAGE).read_text()
    assert "It cannot judge the trained models" in page
    assert "What attention adds" in page
    for part in forecasting.PARTS:
        assert part.claim.split(";")[0].split("'")[0] in page
    assert page.count("data:image/png") == 2
    lines = (tmp_path / "cases.csv").read_text().splitlines()
    assert len(lines) == 1 + 3 * len(forecasting.PARTS)
    added = (tmp_path / "attention.csv").read_text().splitlines()
    assert [line.split(",")[1].strip(' "') for line in added[1:]] == ["NRMSE", "valid time"]
    assert not (tmp_path / "climate.csv").exists()  # too long for a quick run
    assert (tmp_path / "lorenz--63.pdf").is_file()


def test_the_gain_of_attention_is_against_the_better_model_without_it():
    errors = {DMD: 0.2, PAPER: 0.5, UNIFORM: 0.4, WELL: 0.05, MLP: 0.1}
    times = {DMD: 1.0, PAPER: 2.0, UNIFORM: 1.0, WELL: 3.0, MLP: 4.0}
    table = attention_table({"a": errors, "b": times, "c": {DMD: 1.0}}, {"b"})
    gains = [row[-1] for row in table.rows]
    assert gains[0] == pytest.approx(2.0)  # half the error of the MLP
    assert gains[1] == pytest.approx(0.75)  # three quarters of its valid time
    assert gains[2] is None
    assert [row[0] for row in table.rows] == ["a, NRMSE", "b, valid time", "c, NRMSE"]
    assert table.rows[0][1:-1] == (0.2, 0.5, 0.4, 0.05, 0.1)


def test_models_are_drawn_over_each_other_and_judged_on_long_rollouts(monkeypatch):
    from hardmax.forecasting.forecaster import TimeDelayedTransformer
    from hardmax.reproduce import forecasting_comparison

    monkeypatch.setattr(forecasting_comparison, "_CLIMATE_STEPS", 400)
    case = lorenz_case(quick=True)
    fitted = {
        DMD: TimeDelayedDMD(8).fit(case.training, case.dt),
        WELL: PublishedLayer(2, hidden=4, steps=2, seconds=0.2).fit(case.training, case.dt),
        OURS: TimeDelayedTransformer(seconds=0.3, random_state=0, progress=False).fit(case.training, case.dt),
    }
    figure = overlay(case, fitted)
    (ax,) = figure.axes
    drawn = {line.get_gid(): line.get_ydata() for line in ax.lines}
    k = len(case.windows) // 2
    for name in (DMD, WELL):
        path = fitted[name].roll(case.windows[k : k + 1], 300)[0, :, 0]
        inside = np.isfinite(drawn[name])
        assert inside[:5].all()
        np.testing.assert_allclose(drawn[name][inside], path[inside])
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["record", "ours", "truth", DMD, WELL, "68 %", "95 %"]
    shown, table = climate(case, fitted)
    assert [row[0] for row in table.rows] == ["the system", OURS, WELL, DMD]
    distance = {row[0]: row[1] for row in table.rows}
    assert all(0 <= value <= 1 for value in distance.values())
    exponents = {row[0]: row[2] for row in table.rows}
    assert exponents[DMD] < 0.5 < exponents["the system"]  # linear models of bounded data do not separate trajectories
    assert len(shown.axes) == 6


def test_the_wake_is_shown_as_fields_beside_the_benchmark(tmp_path, monkeypatch):
    monkeypatch.setattr(
        forecasting,
        "models",
        lambda seconds: {
            forecasting.OURS: forecasting.TimeDelayedTransformer(seconds=0.3, random_state=0, progress=False)
        },
    )
    monkeypatch.setattr(forecasting, "attention_variants", lambda seconds: {})
    monkeypatch.setattr(forecasting, "PARTS", forecasting.PARTS[4:])
    forecasting.reproduce_forecasting(tmp_path, quick=True)
    page = (tmp_path / forecasting.PAGE).read_text()
    assert "Not in the paper" in page
    assert "the benchmark of Schäfer and Turek (1996) has 0.295–0.305" in page
    assert (tmp_path / "a-confined-cylinder-wake-fields.png").read_bytes()[:4] == b"\x89PNG"
    assert page.count("data:image/png") == 2
    error = float((tmp_path / "cases.csv").read_text().splitlines()[1].split(",")[2])
    assert error < 0.2


def test_the_stop_of_the_tour_forecasts_what_followed(monkeypatch):
    from hardmax.reproduce import tour
    from hardmax.reproduce.report import Section

    monkeypatch.setattr(tour, "_LEARNED", 1000)
    monkeypatch.setattr(tour, "_AHEAD", 100)
    section = Section("A stop")
    tour.show_forecast(section)
    page = section.to_html()
    assert page.count("data:image/png;base64,") == 2
    (good,) = set(re.findall(r"of the true future for (\d+) steps", page))
    assert 5 < int(good) <= 100
    assert "TD-DMD" in page


def test_searches_end_after_the_seconds_that_the_page_states(tmp_path, monkeypatch):
    asked = []
    case = sinusoid_case(quick=True)
    monkeypatch.setattr(forecasting, "PARTS", (forecasting._Part("waves", lambda quick: case, "none"),))
    monkeypatch.setattr(forecasting, "attention_variants", lambda seconds: {})

    def stopped(seconds):
        asked.append(seconds)
        raise RuntimeError

    monkeypatch.setattr(forecasting, "models", stopped)
    for options, expected in (({"seconds": 3.0}, 3.0), ({}, None), ({"quick": True, "seconds": 3.0}, 2.0)):
        with pytest.raises(RuntimeError):
            forecasting.reproduce_forecasting(tmp_path, **options)
        assert asked.pop() == expected
    monkeypatch.setattr(forecasting, "PARTS", ())
    forecasting.reproduce_forecasting(tmp_path, seconds=3.0)
    assert "ended after 3 s of processor time" in (tmp_path / "forecasting.html").read_text(encoding="utf-8")
    assert "ended after 3 s of processor time" in (tmp_path / "cases.md").read_text(encoding="utf-8")
