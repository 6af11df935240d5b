"""The study: its rule, its data, its rows, and a summary that is honest about what is missing."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from hardmax.datasets import chaotic_systems
from hardmax.errors import FileError, InputError
from hardmax.files import make_folder
from hardmax.reproduce import forecasting_study, forecasting_study_cases
from hardmax.reproduce.forecasting_study import (
    draw_forecasting_summary,
    read_study,
    summary_tables,
    write_forecasting_summary,
)
from hardmax.reproduce.forecasting_study_cases import (
    COARSE,
    CONTEXT,
    DEVELOPED_ON,
    DMD,
    ESN,
    FIRST,
    FULL,
    MODELS,
    NGRC,
    NOISY,
    OURS,
    PERSISTENCE,
    UNIFORM,
    make_case,
    processor_speed,
    study_systems,
)
from hardmax.sweeps import read_sweep, sweep


def test_the_rule_gives_twenty_systems_that_were_not_looked_at():
    systems = study_systems()
    assert len(systems) == 21
    assert systems[:3] == ("AnishchenkoAstakhov", "BelousovZhabotinsky", "Bouali2")
    assert not set(systems) & set(DEVELOPED_ON)
    names = chaotic_systems()
    places = [names.index(name) for name in systems[:-1]]
    assert set(np.diff(places)) == {6}
    assert set(names[0::6]) & set(DEVELOPED_ON)  # so the earliest offset could not be taken


def test_cases_show_models_what_they_say():
    full, first, noisy = (make_case("Chen", setting, 0) for setting in (FULL, FIRST, NOISY))
    assert full.training.shape == (4000, 3)
    assert np.array_equal(first.training, full.training[:, :1])
    assert np.array_equal(first.truth, noisy.truth)  # judged without noise
    noise = noisy.training - first.training
    assert noise.std() / first.training.std() == pytest.approx(0.02, rel=0.05)
    assert first.windows.shape == (20, CONTEXT, 1)
    assert first.history.shape == (20, 4000, 1)
    assert np.array_equal(first.history[:, -CONTEXT:], first.windows)
    coarse = make_case("Chen", COARSE, 0)
    assert coarse.dt == pytest.approx(5 * full.dt)
    assert coarse.horizon < full.horizon
    with pytest.raises(InputError, match="setting is not known, got 'blind'"):
        make_case("Chen", "blind", 0)


def test_the_fingerprint_tells_data_that_differ_in_one_digit():
    case = make_case("Chen", FULL, 0)
    truth = case.truth.copy()
    assert replace(case, truth=truth).fingerprint == case.fingerprint
    truth[3, 7, 1] = np.nextafter(truth[3, 7, 1], np.inf)
    assert replace(case, truth=truth).fingerprint != case.fingerprint


def test_the_speed_of_the_processor_counts_its_own_time(monkeypatch):
    ticks = iter([0.0, 0.5, 1.0, 1.25, 2.0, 3.0])
    monkeypatch.setattr(forecasting_study_cases, "time", SimpleNamespace(thread_time=lambda: next(ticks)))
    processor_speed.cache_clear()
    assert processor_speed() == pytest.approx(4.0)
    assert processor_speed() == pytest.approx(4.0)
    processor_speed.cache_clear()


def test_no_start_lies_in_the_training_data():
    case = make_case("Chen", FULL, 0)
    for sample in case.truth[:, 0]:
        assert np.abs(case.training - sample).max(axis=1).min() > 0


def test_a_row_is_what_a_plain_loop_finds():
    case = make_case("Chen", FIRST, 1)
    row = forecasting_study.study_row(FIRST, "Chen", PERSISTENCE, 1.0, 1)
    valid = []
    for window, truth in zip(case.windows, case.truth, strict=True):
        steps = 0
        while steps < len(truth) and abs(window[-1, 0] - truth[steps, 0]) / case.training.std() <= 0.4:
            steps += 1
        valid.append(steps * case.dt / case.lyapunov_time)
    assert row["valid_times"] == pytest.approx(valid, abs=1e-6)
    assert row["valid_time"] == pytest.approx(np.mean(valid))
    assert (row["diverged"], row["starts"]) == (0, 20)


def test_a_study_goes_on_where_it_stopped(tmp_path, monkeypatch):
    chosen = {"seconds": 0.2, "seeds": 2, "settings": [FIRST], "systems": ["Chen"], "models": [PERSISTENCE]}
    forecasting_study.run_forecasting_study(tmp_path, **chosen)
    assert len(read_study(tmp_path)) == 2
    monkeypatch.setitem(MODELS, PERSISTENCE, None)  # a second fit would fail
    forecasting_study.run_forecasting_study(tmp_path, **chosen)
    assert set(read_study(tmp_path)["outcome"]) == {"finished"}
    with pytest.raises(InputError, match="models is not part of the study, got 'oracle'"):
        forecasting_study.run_forecasting_study(tmp_path, models=["oracle"])


def _made_up(folder, rows):
    """Rows as the study writes them, from (setting, system, model, seed, valid time)."""

    def row(setting, system, model, random_state):
        value = rows[setting, system, model, random_state]
        if value is None:
            raise RuntimeError("it did not fit")
        times = np.full(20, value)
        return {
            "valid_time": value,
            "valid_times": times,
            "diverged": int(model == ESN),
            "starts": 20,
            "climate": 0.1,
            "fit_seconds": 1.0,
        }

    for setting, system, model, seed in rows:
        point = {"setting": setting, "system": system, "model": model}
        sweep(row, [point], path=make_folder(folder / "rows"), seeds=[seed])


def test_a_summary_compares_complete_cases_only(tmp_path):
    rows = {}
    for k, system in enumerate(study_systems()[:6]):
        for model, value in ((PERSISTENCE, 0.1), (DMD, 0.5), (NGRC, 2.0), (ESN, 1.0), (OURS, 3.0 + k)):
            rows[FIRST, system, model, 0] = value
    rows[FIRST, study_systems()[6], OURS, 0] = 0.0  # its rivals have not finished
    rows[FIRST, study_systems()[0], UNIFORM, 0] = 3.0
    rows[NOISY, "Chen", OURS, 0] = None  # failed
    _made_up(tmp_path, rows)
    tables = {table.title: table for table in summary_tables(read_study(tmp_path))}
    first = tables["First coordinate"]
    assert [row[0] for row in first.rows] == [OURS, NGRC, ESN, DMD, PERSISTENCE]
    assert first.rows[0][1:3] == (1.0, 5.5)  # the unfinished case counts for nobody
    assert first.rows[2][4] == "6 of 120"
    assert "6 of 21 systems, seeds 0, 6 cases of 5 models: 30 fits" in first.note
    against = {row[1]: row for row in tables["TD-TF against each other model"].rows}
    assert against[NGRC][2:8] == (6, 6, 0, 0, "0.031", "0.031")
    assert UNIFORM not in against
    assert tables["Ablation: attention against its replacements"].rows[0][1:6] == (UNIFORM, 1, 0, 0, 1)
    assert tables["Failed rows"].rows[0] == (1, "RuntimeError: it did not fit")
    assert [t.title for t in write_forecasting_summary(tmp_path)] == list(tables)
    assert (tmp_path / "study.html").read_text().count("<table") == len(tables)
    picture = draw_forecasting_summary(read_study(tmp_path))
    assert [ax.get_title(loc="left") for ax in picture.axes] == [FIRST]  # the only setting with a complete case
    assert picture.axes[0].get_yticklabels()[-1].get_text() == OURS
    assert len((tmp_path / "rows.csv").read_text().splitlines()) == len(read_sweep(tmp_path / "rows")) + 1
    assert "First coordinate" in (tmp_path / "summary.md").read_text()
    assert (tmp_path / "study.svg").read_text().startswith("<?xml")


def test_variants_are_ranked_in_our_place_and_late_rivals_apart(tmp_path):
    rows = {}
    for system in study_systems()[:3]:
        for model, value in ((PERSISTENCE, 0.1), (DMD, 0.5), (NGRC, 2.0), (ESN, 1.0), (OURS, 3.0), (UNIFORM, 1.5)):
            rows[FIRST, system, model, 0] = value
    rows[FIRST, study_systems()[0], "MLP", 0] = 2.5
    _made_up(tmp_path, rows)
    tables = {table.title: table for table in summary_tables(read_study(tmp_path))}
    ranks = {row[0]: row[1] for row in tables["First coordinate"].rows}
    assert ranks == {OURS: 1.0, NGRC: 2.0, UNIFORM: 2.0, ESN: 3.0, DMD: 4.0, PERSISTENCE: 5.0}
    every = tables["First coordinate, every model"]
    assert [(row[0], row[1]) for row in every.rows][:3] == [(OURS, 1.0), ("MLP", 2.0), (NGRC, 3.0)]
    assert "1 of 21 systems" in every.note


def test_nothing_to_summarise_is_said(tmp_path):
    make_folder(tmp_path / "rows")
    with pytest.raises(FileError, match="holds no finished rows: run the study first"):
        write_forecasting_summary(tmp_path)
