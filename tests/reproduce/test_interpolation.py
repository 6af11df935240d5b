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
    report = interpolation.reproduce(tmp_path / "out", quick=True, progress=False)
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
