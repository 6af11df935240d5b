"""Stored output of the benchmarks: read back, whole, and shown on the page."""

from __future__ import annotations

import argparse
import datetime
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from benchmarks import _command, _records
from benchmarks._table import Check, Report


def test_records_have_command_date_and_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(_records, "RESULTS", tmp_path / "results")
    report = Report("Title", ["case", "seconds"], [["a", 0.5]], ["note"], [Check("speed", 3.0, 2.0)])
    asked = argparse.Namespace(names=["one"], quick=True, record=True, json=tmp_path / "all.json")
    _command.tell([("one", report)], asked, "python -m benchmarks.gpu")
    assert "PASS    speed: 3 x (target >= 2 x)" in capsys.readouterr().out
    stored = json.loads((tmp_path / "results" / "gpu-one.json").read_text(encoding="utf-8"))
    assert stored["command"] == "python -m benchmarks.gpu one --quick"
    assert stored["results"][0]["rows"] == [["a", 0.5]]
    assert "core" in stored["machine"]
    assert stored["date"] == datetime.date.today().isoformat()
    assert json.loads((tmp_path / "all.json").read_text(encoding="utf-8"))["results"] == stored["results"]


def test_printed_reports_are_read_back() -> None:
    checks = [Check("speed", 31.0, 30.0, unit="times"), Check("wrong", 12.0, 0.0, at_least=False, unit="")]
    first = Report("First", ["case", "a longer column"], [["x", 1.5], ["with words in it", None]], ["a note"], checks)
    second = Report("Second", ["case", "ms"], [["y", 1234.0]])
    found = _records.read_printed(f"$ python -m benchmarks both\n\n{first}\n\n{second}\n")
    assert [one.title for one in found] == ["First", "Second"]
    assert found[0].columns == first.columns
    assert found[0].rows == [["x", "1.5"], ["with words in it", "-"]]
    assert found[0].notes == ["a note"]
    assert [(one.what, one.value, one.target, one.unit, one.passed) for one in found[0].checks] == [
        ("speed", 31.0, 30.0, "times", True),
        ("wrong", 12.0, 0.0, "", False),
    ]
    assert found[1].rows == [["y", "1,234"]]


@pytest.mark.parametrize("path", sorted(_records.RESULTS.glob("*.json")), ids=lambda path: path.stem)
def test_stored_records_are_whole_and_shown(path: Path) -> None:
    record = json.loads(path.read_text(encoding="utf-8"))
    datetime.date.fromisoformat(record["date"])
    assert "python -m benchmarks" in record["command"]
    assert record["machine"]
    for result in record["results"]:
        assert all(len(row) == len(result["columns"]) for row in result["rows"])
        for check in result["checks"]:
            reached = check["value"] >= check["target"] if check["at_least"] else check["value"] <= check["target"]
            assert check["passed"] == reached
    page = (Path(__file__).parents[1] / "docs" / "benchmarks.rst").read_text(encoding="utf-8")
    assert f".. benchmark:: {path.stem}\n" in page


def test_the_page_shows_what_is_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from docutils.core import publish_string
    from docutils.parsers.rst import directives

    sys.path.insert(0, str(Path(__file__).parents[1] / "docs" / "_extensions"))
    import benchmark_records

    sys.path.pop(0)
    checks = [Check("speed", 3.0, 2.0), Check("memory", 3000.0, 2.0, at_least=False, unit="MB")]
    report = Report("Title", ["case", "seconds", "other"], [["a", 0.012345, 1], ["b", None, 2]], ["a note"], checks)
    stored = _records.record("python -m benchmarks one", [{"name": "one", **report.as_data()}], machine="a machine")
    (tmp_path / "one.json").write_text(json.dumps(stored), encoding="utf-8")
    monkeypatch.setattr(benchmark_records, "RESULTS", tmp_path)

    class Alone(benchmark_records.Benchmark):
        env = SimpleNamespace(note_dependency=lambda path: None)

    directives.register_directive("benchmark", Alone)
    page = publish_string(".. benchmark:: one\n   :columns: case; seconds", writer="pseudoxml").decode()
    for words in ("$ python -m benchmarks one", "a machine", "0.0123", "–", "a note", "3,000 MB", "≤ 2 MB", "missed"):
        assert words in page, words
    assert page.count("reached") == 1
    assert "other" not in page
