"""The reproduction of the mean field: its files and its numbers."""

import csv
import json
from dataclasses import replace
from pathlib import Path

import pytest

from hardmax.reproduce import meanfield


@pytest.mark.slow
def test_everything_is_written(tmp_path: Path) -> None:
    report = meanfield.reproduce_meanfield(tmp_path, quick=True, progress=False)
    names = {"distances", "scaling-in-beta", "durations", "least-distance", "terminal-phase", "phase-diagram", "sphere"}
    assert {path.stem for path in tmp_path.glob("*.png")} == names
    assert {path.stem for path in tmp_path.glob("*.pdf")} == names
    page = (tmp_path / meanfield.PAGE).read_text(encoding="utf-8")
    assert page.count("data:image/png") == 7
    assert len(report.sections) == 8
    sphere = json.loads((tmp_path / "sphere.json").read_text())["rows"]
    assert sphere[2]["W2 to the circle of the limit"] == pytest.approx(0.012, abs=0.002)
    with open(tmp_path / "phases.csv", encoding="utf-8", newline="") as file:
        assert [float(row["least W2"]) for row in csv.DictReader(file)] == pytest.approx(
            [0.249, 0.149, 0.084], abs=2e-3
        )


def test_tables_tell_slopes() -> None:
    found = meanfield.circle_phases(120, (2.0, 5.0), step=0.2)
    table = meanfield._phases_table(found)
    assert len(table.rows) == 2
    assert "theory 1.5" in table.note
    errors = meanfield.scaling_errors(400, (20.0, 40.0))
    assert errors[1] < errors[0]
    assert meanfield._scaling((20.0, 40.0), errors).note.startswith("Slope -0.")


def test_the_table_of_the_phase_diagram_tells_where_distances_rise_with_beta() -> None:
    colder, warmer = (meanfield.circle_phases(120, (beta,), time=3.0, step=0.2)[0] for beta in (5.0, 2.0))
    assert [row[4] for row in meanfield._diagram_table([warmer, colder]).rows] == [None, 0.0]
    assert meanfield._diagram_table([colder, warmer]).rows[1][4] > 0.05
    least = meanfield._least([warmer, colder], (100, 200), [[0.5, 0.4], [0.45, 0.3]])
    assert [row[-1] for row in least.rows] == pytest.approx([0.05, 0.1])


def test_a_law_that_is_held_until_the_end_has_no_escape() -> None:
    found = meanfield.circle_phases(120, (20.0,), time=14.0, step=0.2)[0]
    assert found.escape_time is not None
    assert meanfield._without_held(found) is found
    cut = found.times <= found.escape_time - 1.0
    held = replace(found, times=found.times[cut], distances=found.distances[cut])
    assert meanfield._without_held(held).escape_time is None
