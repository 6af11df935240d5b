"""The page of the interpolation paper, made quickly."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hardmax.reproduce import interpolation


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interpolation, "_QUICK_SIZES", (3, 5))
    monkeypatch.setattr(interpolation, "_QUICK_TARGETS", (1, 2))
    monkeypatch.setattr(interpolation, "_QUICK_EPOCHS", (5, 5))
    monkeypatch.setattr(interpolation, "_WIDE", 4)


def test_everything_is_written_and_proved(tmp_path: Path, small: None) -> None:
    report = interpolation.reproduce_interpolation(tmp_path / "out", quick=True, progress=False)
    names = {p.name for p in (tmp_path / "out").iterdir()}
    for figure in (
        "stages-paper",
        "stages-leaders",
        "block-counts",
        "float-errors",
        "training-loss",
        "loss-against-decay",
    ):
        assert {f"{figure}.png", f"{figure}.pdf"} <= names
    assert {"tokens.gif", "claims.csv", "networks.json", "softmax.md", interpolation.PAGE} <= names
    assert "NOT PROVED" not in report.to_html()
    rows = json.loads((tmp_path / "out" / "networks.json").read_text())
    assert "false" not in json.dumps(rows).lower()


def test_a_quick_run_judges_no_training(tmp_path: Path, small: None) -> None:
    report = interpolation.reproduce_interpolation(tmp_path / "out", quick=True, progress=False)
    page = report.to_html()
    claims = json.loads((tmp_path / "out" / "claims.json").read_text())["rows"]
    found = [list(row.values())[2] if isinstance(row, dict) else row[2] for row in claims]
    assert found[2:] == ["not judged in a quick run"] * 5
    assert "exponent" in page
    assert "0.00" not in (tmp_path / "out" / "claims.md").read_text()
    training = (tmp_path / "out" / "training.md").read_text()
    assert training.count("not judged in a quick run") == 3 * 4
    assert "not passed" not in page
    assert page.count("run without --quick for the claims about it") >= 3


def test_a_full_run_judges(tmp_path: Path, small: None, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("_SIZES", (3, 5)), ("_TARGETS", (1, 2)), ("_EPOCHS", (30, 30))):
        monkeypatch.setattr(interpolation, name, value)
    page = interpolation.reproduce_interpolation(tmp_path / "out", progress=False).to_html()
    assert "not judged" not in page
    claims = (tmp_path / "out" / "claims.csv").read_text()
    assert "not in 30 epochs" in claims
    assert "quick" not in claims
