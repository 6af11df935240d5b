"""The report on all papers: parts are resumed, published stands beside measured, a quick run judges no training."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import hardmax as hm
from hardmax.cli.app import app
from hardmax.errors import MissingExtraError
from hardmax.figures import figure_bytes, new_figure
from hardmax.reproduce import all_papers, recorded, reproduce_all
from hardmax.reproduce.all_papers import Options, Part
from hardmax.reproduce.claims import (
    AGREES,
    DIFFERS,
    NOT_JUDGED,
    SHOWN,
    Claim,
    clustering_claims,
    forecasting_claims,
    interpolation_claims,
    meanfield_claims,
    sentiment_claims,
)
from hardmax.reproduce.report import Report, Table


class _Small:
    """Parts that count how often they run; the second can be told to die or to miss a package."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.fails: Exception | None = None

    def part(self, name: str) -> Part:
        def run(folder: Path, options: Options) -> Report:
            self.ran.append(name)
            if name == "second" and self.fails is not None:
                raise self.fails
            table = Table(f"Table of {name}", ("n", "value"), [(1, 2.5)])
            (folder / "numbers.json").write_text(table.to_json(), encoding="utf-8")
            figure = new_figure(2.0, 1.0)
            figure.add_subplot().plot([0, 1])
            report = Report(name)
            report.section("Figures").picture(figure_bytes(figure), "A line.").table(table)
            report.section("Reproduce this page").code("left out")
            return report

        def claims(tables: object, options: Options) -> list[Claim]:
            assert tables == {"numbers": [{"n": 1, "value": 2.5}]}
            return [Claim("Table 1", "value", "2.5", "2.5", NOT_JUDGED if options.quick else AGREES, "too short")]

        return Part(name, f"The {name} part", "clustering", "7", run, claims)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> _Small:
    parts = _Small()
    monkeypatch.setattr(all_papers, "PARTS", tuple(parts.part(name) for name in ("first", "second", "third")))
    return parts


def test_a_killed_report_is_resumed_after_its_last_finished_part(small: _Small, tmp_path: Path) -> None:
    small.fails = KeyboardInterrupt()  # type: ignore[assignment]
    with pytest.raises(KeyboardInterrupt):
        reproduce_all(tmp_path, quick=True)
    assert "The first part" in (tmp_path / "index.html").read_text(encoding="utf-8")
    small.fails = None
    reproduce_all(tmp_path, quick=True)
    assert small.ran == ["first", "second", "second", "third"]
    reproduce_all(tmp_path, quick=True)
    assert len(small.ran) == 4
    reproduce_all(tmp_path)  # other settings
    assert small.ran[4:] == ["first", "second", "third"]


def test_half_a_record_is_run_again(small: _Small, tmp_path: Path) -> None:
    reproduce_all(tmp_path)
    (tmp_path / "second" / "finished.json").write_text('{"key": ', encoding="utf-8")
    reproduce_all(tmp_path)
    assert small.ran == ["first", "second", "third", "second"]


def test_published_stands_beside_measured_with_seed_and_command(small: _Small, tmp_path: Path) -> None:
    reproduce_all(tmp_path, quick=True)
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert page.count("<code>hardmax reproduce first --quick</code>") == 3  # figure, table, and the part itself
    assert page.count("Seed: 7.") == 6
    assert "data:image" not in page
    assert 'src="first/page-01.png"' in page
    assert (tmp_path / "first" / "page-01.png").read_bytes().startswith(b"\x89PNG")
    assert "Reproduce this page" not in page
    assert "not judged: too short" in page
    stored = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert [part["claims"][0]["verdict"] for part in stored["parts"]] == [NOT_JUDGED] * 3
    assert stored["parts"][1]["tables"]["numbers"]["rows"] == [{"n": 1, "value": 2.5}]
    assert stored["quick"] is True


def test_a_part_without_its_package_is_named_and_tried_again(small: _Small, tmp_path: Path) -> None:
    small.fails = MissingExtraError("dysts", "rivals", "the study")
    reproduce_all(tmp_path)
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert "Not run: " in page
    assert "the study needs the package dysts" in page
    small.fails = None
    reproduce_all(tmp_path)
    assert small.ran == ["first", "second", "third", "second"]
    assert "Not run: " not in (tmp_path / "index.html").read_text(encoding="utf-8")


def test_the_command_runs_chosen_parts(small: _Small, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["reproduce", "all", "--out", str(tmp_path), "--only", "third, first"])
    assert done.exit_code == 0, done.output
    assert small.ran == ["first", "third"]
    assert "report.json" in done.output
    with pytest.raises(hm.InputError, match="only must name parts of the report, got 'fourth'"):
        reproduce_all(tmp_path, only=["fourth"])


def test_claims_of_clustering() -> None:
    rows = [
        {"statement": "Fact 1", "systems": 30, "violations": 0},
        {"statement": "Fact 2", "systems": 30, "violations": 2},
    ]
    found = clustering_claims({"facts": rows}, quick=True)
    assert [one.verdict for one in found] == [SHOWN, SHOWN, AGREES, DIFFERS]


def test_claims_on_sentiment_are_judged_on_the_same_reviews_only() -> None:
    row = {"model": "published", "d": 4, "published": 0.823, "best test accuracy": 0.807}
    short = {key: value for key, value in row.items() if key != "published"}
    assert sentiment_claims({"accuracy": [row]}, quick=False, same_reviews=True)[0].verdict == AGREES
    assert sentiment_claims({"accuracy": [row]}, quick=False, same_reviews=False)[0].verdict == NOT_JUDGED
    assert sentiment_claims({"accuracy": [short]}, quick=True, same_reviews=True)[0].verdict == NOT_JUDGED
    worse = [row | {"best test accuracy": 0.8}, {"model": "default", "d": 4}]
    (only,) = sentiment_claims({"accuracy": worse}, quick=False, same_reviews=True)
    assert only.verdict == DIFFERS


def test_claims_of_interpolation() -> None:
    found = ["proved by computation, 9 networks", "0.20 to 0.90", "epoch 16,900", "0.056", "yes", "0.57", "0.94"]
    rows = [{"claim": "c", "published": "p", "found": one} for one in found]
    verdicts = [one.verdict for one in interpolation_claims({"claims": rows}, quick=False)]
    assert verdicts == [AGREES] * 5 + [DIFFERS, AGREES]
    for row in rows[2:]:
        row["found"] = "not evaluated in a quick run"
    verdicts = [one.verdict for one in interpolation_claims({"claims": rows}, quick=True)]
    assert verdicts == [AGREES, AGREES] + [NOT_JUDGED] * 5


def test_claims_of_the_mean_field() -> None:
    phases = [{"beta": beta, "closest at t": t, "escape at t": 1.6 * t} for beta, t in ((2.71828, 1.0), (7.38906, 2.0))]
    scaling = [{"beta": 10.0, "rms error": 0.1}, {"beta": 100.0, "rms error": 0.05}]
    least = [{"beta": 100.0, "least W2 of the density": 0.1}, {"beta": 400.0, "least W2 of the density": 0.05}]
    rise = "largest rise of W2 above the beta before"
    diagram = [{"least W2": 0.2, rise: None}, {"least W2": 0.1, rise: 0.0}]
    tables = {"phases": phases, "scaling-in-beta": scaling, "least-distance": least, "phase-diagram": diagram}
    closest, escape, nearest, falling, power = meanfield_claims(tables, quick=False)
    assert (nearest.measured, nearest.verdict) == ("-0.500", AGREES)
    assert (falling.measured, falling.verdict) == ("0", AGREES)
    for worse in ({"least W2": 0.1, rise: 0.01}, {"least W2": 0.3, rise: 0.0}):
        tables["phase-diagram"] = [diagram[0], worse]
        assert meanfield_claims(tables, quick=False)[3].verdict == DIFFERS
    assert (closest.measured, closest.verdict) == ("1.000", AGREES)
    assert (escape.measured, escape.verdict) == ("1.600", AGREES)
    assert (power.measured, power.verdict) == ("-0.301", DIFFERS)
    assert {one.verdict for one in meanfield_claims(tables, quick=True)} == {NOT_JUDGED}


def test_claims_of_forecasting() -> None:
    from hardmax.reproduce.forecasting import PARTS
    from hardmax.reproduce.forecasting_comparison import DMD, PAPER

    rows = [
        {"case": part.title, "model": model, "NRMSE": error}
        for part in PARTS
        for model, error in ((DMD, 0.2), (PAPER, 0.3))
    ]
    verdicts = [one.verdict for one in forecasting_claims({"cases": rows}, quick=False)]
    assert verdicts == [AGREES, DIFFERS, DIFFERS, DIFFERS]  # as good in the first case, better in the others
    assert {one.verdict for one in forecasting_claims({"cases": rows}, quick=True)} == {NOT_JUDGED}


def test_every_part_has_a_command_of_its_own() -> None:
    runner = CliRunner()
    for part in all_papers.PARTS:
        assert runner.invoke(app, ["reproduce", part.name, "--help"]).exit_code == 0, part.name
    assert all_papers.PARTS[1].command(Options(True, "imdb.csv", "cuda")) == (
        "hardmax reproduce sentiment --quick --data imdb.csv --device cuda"
    )
    assert all_papers.PARTS[4].command(Options(seconds=20.0)) == "hardmax reproduce forecasting --seconds 20"
    assert all_papers.PARTS[0].command(Options(seconds=20.0)) == "hardmax reproduce clustering"


@pytest.mark.slow
def test_a_real_part(tmp_path: Path) -> None:
    reproduce_all(tmp_path, quick=True, only=["clustering"])
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert "Figure 2: leaders, followers and the polytope" in page
    stored = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    claims = stored["parts"][0]["claims"]
    assert {claim["verdict"] for claim in claims} == {SHOWN, AGREES}


def test_a_quick_run_shows_the_recorded_full_run(
    small: _Small, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reproduce_all(tmp_path / "full", only=["first"])
    stored = tmp_path / "recorded.json"
    assert recorded.record_report(tmp_path / "full", stored) == ["first"]
    assert recorded.measured_in_full("first", {"where": "Table 1", "statement": "value"}, stored) == "2.5 (agrees)"
    assert recorded.measured_in_full("first", {"where": "Table 2", "statement": "value"}, stored) == "–"
    monkeypatch.setattr(recorded.recorded_runs, "__defaults__", (stored,))
    monkeypatch.setattr(recorded.measured_in_full, "__defaults__", (stored,))
    reproduce_all(tmp_path / "quick", quick=True)
    page = (tmp_path / "quick" / "index.html").read_text(encoding="utf-8")
    assert page.count("recorded full run") == 1  # the other parts have none
    assert page.count("2.5 (agrees)") == 1
    assert "Recorded: hardmax reproduce first, " in page
    with pytest.raises(hm.InputError, match="report must be a full run"):
        recorded.record_report(tmp_path / "quick", stored)


def test_every_paper_has_a_recorded_full_run() -> None:
    runs = recorded.recorded_runs()
    # The study states nothing of a paper; its rows are in benchmarks/forecasting_study.
    assert set(runs) == {part.name for part in all_papers.PARTS} - {"forecasting-study"}
    for name, run in runs.items():
        assert "--quick" not in run["command"], name
        assert run["claims"], name
        assert {claim["verdict"] for claim in run["claims"]} <= {AGREES, DIFFERS, SHOWN}, name
