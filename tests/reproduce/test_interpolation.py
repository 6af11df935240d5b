"""The page of the interpolation paper, made from small networks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure
from PIL import Image

from hardmax.figures import save_figure
from hardmax.figures.interpolation import animate_network
from hardmax.reproduce import interpolation
from hardmax.reproduce.report import Report

SMALL = {"_QUICK_SIZES": (3, 5), "_QUICK_TARGETS": (1, 2), "_QUICK_EPOCHS": (5, 5), "_WIDE": 4}


def _save_one_pdf(drawn: Figure, path: Path, **options: Any) -> Path:
    """One figure as it is asked for; the others as small PNG, and no PDF: every PDF embeds fonts, which takes long."""
    if path.stem == "block-counts":
        return save_figure(drawn, path, **options)
    if path.suffix == ".pdf":
        path.write_bytes(b"%PDF")
        return path
    return save_figure(drawn, path, dpi=40)


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Report]]:
    """The folder and the page of a quick run."""
    folder = tmp_path_factory.mktemp("interpolation") / "out"
    with pytest.MonkeyPatch.context() as patch:
        for name, value in SMALL.items():
            patch.setattr(interpolation, name, value)
        patch.setattr(interpolation, "save_figure", _save_one_pdf)
        patch.setattr(interpolation, "animate_network", partial(animate_network, fps=2))
        yield folder, interpolation.reproduce_interpolation(folder, quick=True, progress=False)


def test_everything_is_written_and_proved(quick: tuple[Path, Report]) -> None:
    folder, report = quick
    names = {p.name for p in folder.iterdir()}
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
    rows = json.loads((folder / "networks.json").read_text())
    assert "false" not in json.dumps(rows).lower()


def test_a_quick_run_evaluates_no_training(quick: tuple[Path, Report]) -> None:
    folder, report = quick
    page = report.to_html()
    claims = json.loads((folder / "claims.json").read_text())["rows"]
    found = [list(row.values())[2] if isinstance(row, dict) else row[2] for row in claims]
    assert found[2:] == ["not evaluated in a quick run"] * 5
    assert "exponent" in page
    assert "0.00" not in (folder / "claims.md").read_text()
    training = (folder / "training.md").read_text()
    assert training.count("not evaluated in a quick run") == 3 * 4
    assert "not passed" not in page
    assert page.count("run without --quick for the claims about it") >= 3


def _write_pixel(_drawn: object, path: Path, **_options: object) -> Path:
    """One pixel in place of a figure or an animation: a quick run has drawn and written all of them."""
    if path.suffix != ".pdf":
        Image.new("RGB", (1, 1)).save(path)
    return path


def test_a_full_run_evaluates_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = {"_SIZES": (3, 5), "_TARGETS": (1, 2), "_EPOCHS": (30, 30), "_WIDE": 4}
    for name, value in {**small, "save_figure": _write_pixel, "animate_network": _write_pixel}.items():
        monkeypatch.setattr(interpolation, name, value)
    page = interpolation.reproduce_interpolation(tmp_path / "out", progress=False).to_html()
    assert "not evaluated" not in page
    claims = (tmp_path / "out" / "claims.csv").read_text()
    assert "not in 30 epochs" in claims
    assert "quick" not in claims
