"""The reproduction: its files, its numbers against a count of our own, and what a violation would look like."""

import csv
import json
import os
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

import hardmax as hm
from hardmax.errors import FileError
from hardmax.figures import figure_bytes, save_figure
from hardmax.reproduce import clustering, report
from hardmax.reproduce.clustering import (
    draw_system,
    facts_table,
    layers_by_size,
    layers_table,
    run_systems,
    violations_table,
)


def _save_one_pdf(drawn, path, **options):
    """A figure as PNG, large only where its size is tested; as PDF only the smallest: every PDF embeds fonts."""
    if path.suffix == ".pdf" and path.stem != "layers-until-decided":
        path.write_bytes(b"%PDF")
        return path
    return save_figure(drawn, path, **(options if path.stem == "figure-2" else {"dpi": 40}))


@pytest.fixture(scope="module")
def small():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clustering, "TOKENS", (5, 20))
        patch.setattr(clustering, "DIMENSIONS", (2, 3))
        patch.setattr(clustering, "_QUICK", (2, 2))
        patch.setattr(report, "save_figure", _save_one_pdf)
        patch.setattr(clustering, "figure_bytes", lambda drawn, **_: figure_bytes(drawn, dpi=40))
        yield


@pytest.fixture(scope="module")
def written(small, tmp_path_factory):
    folder = tmp_path_factory.mktemp("reproduced") / "new" / "folder"
    return folder, clustering.reproduce_clustering(folder, quick=True, progress=False)


def test_everything_is_written_and_the_page_shows_it(written):
    folder, report = written
    tables = {f"{name}.{kind}" for name in ("facts", "layers-until-decided") for kind in ("csv", "json", "md")}
    pictures = {
        f"{name}.{kind}" for name in ("figure-1", "figure-2", "layers-until-decided") for kind in ("png", "pdf")
    }
    assert set(os.listdir(folder)) == tables | pictures | {"clustering.html"}
    page = (folder / "clustering.html").read_text(encoding="utf-8")
    assert page == report.to_html()
    assert page.count("data:image/png;base64,") == 3
    assert "Fact 6" in page
    assert "Violations, and where" not in page
    with Image.open(folder / "figure-2.png") as picture:
        assert min(picture.size) > 1500


def test_tables_on_disk_say_the_same(written):
    folder, _ = written
    for name in ("facts", "layers-until-decided"):
        with (folder / f"{name}.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
        loaded = json.loads((folder / f"{name}.json").read_text())
        assert len(rows) == len(loaded["rows"])
        for row, same in zip(rows, loaded["rows"], strict=True):
            assert row == {key: "" if value is None else str(value) for key, value in same.items()}


def test_systems_are_the_same_every_time_and_half_have_exact_ties():
    first, again = draw_system(20, 2, 1), draw_system(20, 2, 1)
    assert np.array_equal(first.tokens, again.tokens)
    assert first.layer.alpha == again.layer.alpha
    assert np.array_equal(first.tokens, np.round(first.tokens))
    assert first.layer.A is None
    general = draw_system(20, 2, 0)
    assert not np.array_equal(general.tokens, np.round(general.tokens))
    assert hm.check_assumptions(general.tokens, general.layer).hold
    assert 0.05 <= general.layer.alpha <= 3.0


def test_numbers_are_those_of_the_systems(small):
    trials = run_systems(3, 2, progress=False)
    assert len(trials) == 2 * 2 * 3
    table = layers_table(trials)
    for row in table.rows:
        n, d = row[:2]
        limits = []
        for number in range(3):
            system = draw_system(n, d, number)
            limits.append(hm.equilibrium(system.tokens, system.layer))
        assert row[2:4] == (3, 0)
        assert row[4] == round(np.mean([limit.layers for limit in limits]), 2)
        assert row[5] == max(limit.layers for limit in limits)
        assert row[8] == sum(int((limit.emerged_at > 0).sum()) for limit in limits)
        assert row[9] == sum(int(limit.on_faces.sum()) for limit in limits)
        assert sorted(layers_by_size(trials)[n, d]) == sorted(limit.layers for limit in limits)


def test_all_six_facts_are_checked_and_hold(small):
    rows = facts_table(run_systems(2, 2, progress=False)).rows
    assert [row[0][:6] for row in rows[:6]] == [f"Fact {k}" for k in range(1, 7)]
    assert len(rows) >= 10
    for statement, checked, violations, *_ in rows:
        assert checked > 0, statement
        assert violations == 0, statement


def test_a_violation_would_be_counted_and_shown(small, monkeypatch):
    trials = run_systems(1, 1, progress=False)
    broken = replace(trials[0].findings[0], holds=False, worst=0.5)
    trials[0] = replace(trials[0], findings=(broken, *trials[0].findings[1:]))
    (row,) = [row for row in facts_table(trials).rows if row[0] == broken.statement]
    assert row[2] == 1
    assert row[3] == 0.5
    (found,) = violations_table(trials).rows
    assert found == (trials[0].n, trials[0].d, trials[0].number, broken.statement, broken.sentence)
    monkeypatch.setattr(clustering, "figure_bytes", lambda *_, **__: b"\x89PNG\r\n\x1a\n")
    pictures = dict.fromkeys(("figure-1", "figure-2", "layers-until-decided"), Figure())
    tables = {"facts": facts_table(trials), "layers-until-decided": layers_table(trials)}
    assert "Violations, and where they were found" in clustering._page(pictures, tables, trials).to_html()


def test_undecided_systems_are_counted_apart(small):
    trials = run_systems(2, 0, progress=False)
    trials[0] = replace(trials[0], layers=-1)
    row = layers_table(trials).rows[0]
    assert row[3] == 1
    assert len(layers_by_size(trials)[5, 2]) == 1


def test_threads_are_left_as_they_were(small):
    import torch

    before = torch.get_num_threads()
    run_systems(1, 0, progress=False)
    assert torch.get_num_threads() == before


def test_output_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(FileError, match="cannot be made a folder"):
        clustering.reproduce_clustering(tmp_path / "file", quick=True, progress=False)
