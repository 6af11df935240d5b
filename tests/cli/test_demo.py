"""``hardmax demo`` and ``hardmax reproduce``: pages are written, and the output names them."""

import os
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from hardmax.cli.app import app
from hardmax.reproduce import tour
from hardmax.reproduce.report import Section


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def _short_tour(monkeypatch: pytest.MonkeyPatch) -> None:
    def show(section: Section) -> None:
        section.text("One stop.")

    stops = (tour.Stop("A stop", show),)
    monkeypatch.setattr(tour.take_tour, "__kwdefaults__", {"stops": stops, "arrive": None})


def test_demo_writes_the_page_and_says_where(monkeypatch: pytest.MonkeyPatch) -> None:
    _short_tour(monkeypatch)
    result = CliRunner().invoke(app, ["demo"], catch_exceptions=False)
    assert result.exit_code == 0
    assert "out/demo.html" in result.stdout
    assert "hardmax simulate" in result.stdout
    assert "[1/1] A stop" in result.stderr
    assert "One stop." in Path("out/demo.html").read_text()


def test_demo_opens_the_page_only_when_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    _short_tour(monkeypatch)
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    CliRunner().invoke(app, ["demo", "--output", "a.html"], catch_exceptions=False)
    assert opened == []
    CliRunner().invoke(app, ["demo", "--output", "a.html", "--open"], catch_exceptions=False)
    assert opened == [Path("a.html").resolve().as_uri()]


def test_demo_says_how_to_call_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    _short_tour(monkeypatch)
    here = Path(sys.executable).parent
    monkeypatch.setenv("PATH", str(here))
    on_path = CliRunner().invoke(app, ["demo", "--output", "a.html"], catch_exceptions=False)
    monkeypatch.setenv("PATH", "/nowhere")
    elsewhere = CliRunner().invoke(app, ["demo", "--output", "a.html"], catch_exceptions=False)
    assert "To try next:" in on_path.stdout
    assert "To try next (" in elsewhere.stdout


def test_a_stop_that_fails_leaves_no_page(monkeypatch: pytest.MonkeyPatch) -> None:
    def show(section: Section) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(tour.take_tour, "__kwdefaults__", {"stops": (tour.Stop("A stop", show),), "arrive": None})
    result = CliRunner().invoke(app, ["demo", "--output", "a.html"])
    assert result.exit_code == 130
    assert os.listdir() == []


def test_reproduce_passes_its_options_on(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[Path, bool]] = []

    def reproduce(output: Path, *, quick: bool = False) -> None:
        asked.append((output, quick))

    monkeypatch.setattr("hardmax.reproduce.reproduce_clustering", reproduce)
    result = CliRunner().invoke(app, ["reproduce", "clustering", "--quick", "--output", "figures"])
    assert result.exit_code == 0
    assert asked == [(Path("figures"), True)]
    assert "figures/clustering.html" in result.stdout
