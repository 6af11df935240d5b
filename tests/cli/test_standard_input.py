"""Tables from the standard input, named by ``-`` or without an argument."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from hardmax.cli import standard_input
from hardmax.cli.app import app

_POINTS = "1,1\n1,-1\n0.5,0\n-1,0\n"
_RANDOM = "200 in 2 dimensions (gaussian, seed 0)"


def _hardmax(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "hardmax", *arguments], capture_output=True, text=True, **options)


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_in_a_process_of_its_own_a_file_on_the_standard_input_is_read_and_a_figure_written() -> None:
    Path("points.csv").write_text(_POINTS)
    with open("points.csv") as file:
        result = _hardmax("simulate", "--figure", "f.png", "--json", stdin=file)
    assert (result.returncode, result.stderr) == (0, "")
    told = json.loads(result.stdout)
    assert told["files"] == ["f.png"]
    assert [leader["position"] for leader in told["leaders"]] == [[1, 1], [1, -1], [-1, 0]]
    assert Path("f.png").read_bytes().startswith(b"\x89PNG")
    assert _invoke("simulate", "-").stdout.startswith("tokens    4 in 2 dimensions (standard input)")


@pytest.mark.parametrize(("written", "waits"), [(_POINTS, True), ("", False)])
def test_a_pipe_is_read_where_something_comes(written: str, waits: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    os.write(writing, written.encode())
    os.close(writing)
    with os.fdopen(reading) as pipe:
        monkeypatch.setattr(sys, "stdin", pipe)
        assert standard_input.offered() == (waits, "")
        if waits:
            assert standard_input.read_all() == written.encode()


def test_the_null_device_holds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with open(os.devnull) as nothing:
        monkeypatch.setattr(sys, "stdin", nothing)
        assert standard_input.offered() == (False, "")
    assert standard_input.offered() == (False, "")  # closed
    monkeypatch.setattr(sys, "stdin", None)
    assert standard_input.offered() == (False, "")


def test_a_silent_pipe_is_not_waited_for_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading) as pipe, os.fdopen(writing, "w"):
        monkeypatch.setattr(sys, "stdin", pipe)
        waits, remark = standard_input.offered()
    assert not waits
    assert remark.startswith("nothing arrived on the standard input within 0.5 s, so it is not read; give - to wait")


def test_without_a_table_tokens_are_drawn_and_a_remark_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    told = _invoke("simulate", given="")
    assert (_RANDOM in told.stdout, told.stderr) == (True, "")
    monkeypatch.setattr(standard_input, "offered", lambda: (False, "it is silent"))
    told = _invoke("simulate", given="")
    assert (_RANDOM in told.stdout, told.stderr) == (True, "note: it is silent\n")


def _invoke(*arguments: str, given: str | bytes = _POINTS):
    return CliRunner().invoke(app, list(arguments), input=given, catch_exceptions=False)


def test_tokens_that_are_described_leave_the_standard_input_alone() -> None:
    for option in (("--n", "9"), ("--random", "ball"), ("--dim", "3"), ("--seed", "1")):
        assert "(standard input)" not in _invoke("simulate", *option).stdout


def test_arrays_and_parquet_are_told_by_their_first_bytes() -> None:
    import pandas

    points = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 0.25]])
    array, parquet = io.BytesIO(), io.BytesIO()
    np.save(array, points)
    pandas.DataFrame(points, columns=["x", "y"]).to_parquet(parquet)
    for data in (array.getvalue(), parquet.getvalue()):
        assert "3 in 2 dimensions (standard input)" in _invoke("simulate", "-", given=data).stdout


@pytest.mark.parametrize(
    ("arguments", "given", "said"),
    [
        (("simulate", "-"), "", "error: standard input: is empty: pipe a table into the command"),
        (("simulate", "-"), "1,2\n3,x\n", "error: standard input: line 2, column 2 is 'x', not a number"),
        (("simulate", "-", "--weights", "-"), _POINTS, "error: - can stand for one table only, got"),
        (("simulate", "-", "--n", "3"), _POINTS, "error: --n does not go with a file of tokens"),
        (("simulate", "-", "--save", "-"), _POINTS, "error: -: --save cannot write a file without suffix"),
        (("meanfield", "--tokens", "-"), _POINTS, "error: --tokens must lie on the unit sphere"),
        (
            ("forecast", "-", "--steps", "3"),
            "a\n1\nx\n",
            "error: standard input: line 3, column 'a' is 'x', not a number",
        ),
        (("interpolate", "-", "-o", "net"), '{"inputs": []', "error: standard input: is not JSON"),
        (("sentiment", "evaluate", "-"), "words,label\na,1\n", "error: standard input: has no column of a usual name"),
    ],
)
def test_every_command_that_takes_a_table_reads_it(arguments: tuple[str, ...], given: str, said: str) -> None:
    result = _invoke(*arguments, given=given)
    assert result.exit_code == 2
    *before, error = result.stderr.splitlines()
    assert said in error
    assert before in ([], ["forecast: reading; 0.0 s so far, at most about 60 s left"])  # a forecast tells its stages
    assert os.listdir() == []


def test_weights_and_matrices_too() -> None:
    Path("points.csv").write_text(_POINTS)
    assert _invoke("simulate", "points.csv", "--weights", "-", given="1\n1\n2\n3\n").exit_code == 0
    assert "A = 2 x 2" in _invoke("simulate", "points.csv", "--matrix", "-", given="2,1\n1,1\n").stdout


def test_several_processes_cannot_share_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    result = _invoke("simulate", "-")
    assert result.exit_code == 2
    assert "- cannot be shared by several processes" in result.stderr
