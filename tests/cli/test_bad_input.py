"""Bad input on the command line: status 2, one line that names the argument, the value and the remedy, no file left."""

import os
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from hardmax.cli.app import app


@pytest.fixture(autouse=True)
def _some_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("good.csv").write_text("1,2\n3,4\n-1,0\n")
    Path("nan.csv").write_text("x,y\n1,2\nnan,4\n")
    Path("inf.csv").write_text("1,2\n3,-inf\n")
    Path("empty.csv").write_text("")
    Path("header.csv").write_text("x,y\n")
    Path("ragged.csv").write_text("1,2\n3\n4,5\n")
    Path("half.csv").write_text("1,2\n3,4\n5,")
    Path("words.csv").write_text("1,2\n3,four\n")
    Path("wide.csv").write_text("1,2,3\n4,5,6\n")
    Path("negative.csv").write_text("1\n-1\n1\n")
    Path("indefinite.csv").write_text("1,0\n0,-1\n")
    Path("skew.csv").write_text("1,1\n-1,1\n")
    Path("range.csv").write_text("1e300,0\n0,1e-300\n")
    np.save("flat.npy", np.ones(3))
    np.save("none.npy", np.ones((0, 2)))
    np.save("deep.npy", np.ones((2, 2, 2)))
    np.save("short.npy", np.random.default_rng(0).normal(size=(3, 100)))
    Path("cut.npy").write_bytes(Path("short.npy").read_bytes()[:-9])
    Path("cut.parquet").write_bytes(b"PAR1 and then nothing")
    Path("folder").mkdir()
    Path("full.zarr").mkdir()
    Path("full.zarr/thesis.tex").write_text("years of work")


_CASES = {
    "tokens that are NaN": (["nan.csv"], r"nan.csv: line 3, column 1 is nan", "remove or impute"),
    "tokens that are infinite": (["inf.csv"], "inf.csv: line 2, column 2 is -inf", "remove or impute"),
    "tokens of one axis": (["flat.npy"], "flat.npy: the array has shape (3,)", "save one row per token"),
    "tokens of three axes": (["deep.npy"], "deep.npy: the array has shape (2, 2, 2)", "save one row per token"),
    "transposed tokens": (["short.npy"], "tokens look transposed", "pass tokens transposed"),
    "no tokens": (["none.npy"], "none.npy: is empty, shape (0, 2)", "save at least one row"),
    "an empty file": (["empty.csv"], "empty.csv: is empty", "save one line of numbers per token"),
    "a header alone": (["header.csv"], "header.csv: line 1 is a header and no numbers follow", "save one line"),
    "a ragged file": (["ragged.csv"], "ragged.csv: line 2 has 1 cell where line 1 has 2", "save one line"),
    "a half-written file": (["half.csv"], "half.csv: line 3, column 2 is empty", "may be half-written"),
    "words for numbers": (["words.csv"], "words.csv: line 2, column 2 is 'four'", "save one line"),
    "a cut NPY file": (["cut.npy"], "cut.npy: the array is damaged, half-written", "save it again"),
    "a cut Parquet file": (["cut.parquet"], "cut.parquet: is no whole Parquet file", "write it again"),
    "no such file": (["lost.csv"], "lost.csv: there is no such file", "check the name"),
    "a folder for a file": (["folder"], "folder: tables of the kind (no suffix) cannot be read", "use .csv"),
    "sizes too far apart": (["range.csv"], "tokens must not range over", "set the negligible coordinates to zero"),
    "alpha zero": (["--alpha", "0"], "--alpha must be positive, got 0", "--alpha 0.5"),
    "alpha negative": (["--alpha", "-1/2"], "--alpha must be positive, got -1/2", "--alpha 1/2"),
    "alpha NaN": (["--alpha", "nan"], "--alpha must be a number or a fraction, got 'nan'", "--alpha 0.5"),
    "alpha in words": (["--alpha", "half"], "--alpha must be a number or a fraction, got 'half'", "--alpha 1/2"),
    "alpha over nothing": (["--alpha", "1/0"], "--alpha must be a number or a fraction, got '1/0'", "--alpha 1/2"),
    "A not square": (["--matrix", "wide.csv"], "wide.csv: the table has shape (2, 3), not square", "d rows of d"),
    "A not finite": (["--matrix", "nan.csv"], "nan.csv: line 3, column 1 is nan", "remove or impute"),
    "A of another size": (
        ["--dim", "3", "--matrix", "skew.csv"],
        "--matrix must be 3 x 3 to match the tokens",
        "transpose",
    ),
    "A that is nothing": (["--matrix", "lost"], "lost: is neither a file nor the name of a matrix", "random-spd"),
    "A indefinite for the theorem": (
        ["--theorem", "--matrix", "indefinite.csv"],
        "--matrix must be positive definite, got Theorem 1.1 does not apply",
        "add c * identity",
    ),
    "A not symmetric for the theorem": (
        ["--theorem", "--matrix", "skew.csv"],
        "--matrix must be symmetric",
        "use (A + A transposed) / 2",
    ),
    "weights of another size": (
        ["good.csv", "--weights", "good.csv"],
        "good.csv: the table has shape (3, 2), not one column",
        "save one weight per line",
    ),
    "weights for others": (["--weights", "negative.csv"], "--weights must have shape (200,)", "one weight per token"),
    "weights negative": (
        ["good.csv", "--weights", "negative.csv"],
        "--weights must be positive, got -1.0",
        "leave out",
    ),
    "an unknown law": (["--random", "cauchy"], "--random is not a known law, got 'cauchy'", "choose among gaussian"),
    "a circle in space": (
        ["--random", "circle", "--dim", "3"],
        "--dim must be 2 for the circle, got 3",
        "pass --dim 2",
    ),
    "no tokens drawn": (["--n", "0"], "--n must be at least 1, got 0", "pass for example"),
    "a file and a law": (["good.csv", "--random", "ball"], "--random does not go with a file", "give one of the two"),
    "a file and a number": (["good.csv", "--n", "7"], "--n does not go with a file", "give one of the two"),
    "depth and limit": (["--depth", "3", "--limit"], "--depth does not go with --limit", "give one of the two"),
    "softmax and limit": (["--softmax", "1", "--limit"], "--softmax does not go with --limit", "give one"),
    "softmax negative": (
        ["--softmax", "-1"],
        "--softmax must be finite and not negative, got -1.0",
        "use no --softmax",
    ),
    "softmax in words": (["--softmax", "hot"], "--softmax must be a number, got 'hot'", "--softmax 4"),
    "depth in words": (["--depth", "many"], "--depth must be a whole number, got 'many'", "--depth 20"),
    "half a token": (["--n", "0.5"], "--n must be a whole number, got '0.5'", "--n 200"),
    "depth negative": (["--depth", "-1"], "--depth must be at least 0, got -1", "--depth 20"),
    "keep in words": (["--depth", "3", "--keep", "some"], "--keep is not understood, got 'some'", "every:10"),
    "keep every none": (["--depth", "3", "--keep", "every:0"], "--keep must name a step", "every:10"),
    "keep beyond the depth": (
        ["--depth", "3", "--keep", "0,9"],
        "--keep must list layers from 0 to depth = 3",
        "raise",
    ),
    "keep of a limit": (["--keep", "all"], "--keep does not go with infinite depth", "add --depth K"),
    "no time": (["--seconds", "0"], "--seconds must be positive and finite, got 0", "--seconds above 0"),
    "too many for exact": (["--n", "5000", "--exact"], "5000", "leave out --exact"),
    "a figure of no kind": (["--figure", "f.xyz"], "f.xyz: --figure cannot write .xyz", "use .png"),
    "a film of no kind": (["--animate", "f.png"], "f.png: --animate cannot write .png", "use .gif"),
    "a file of no kind": (["--save", "f.pkl"], "f.pkl: --save cannot write .pkl", "use .zarr"),
    "a figure nowhere": (["--figure", "lost/f.png"], "lost/f.png: the folder", "create it: mkdir -p"),
    "a film nowhere": (["--animate", "lost/f.gif"], "lost/f.gif: the folder", "create it: mkdir -p"),
    "a save nowhere": (["--save", "good.csv/f.zarr"], "good.csv/f.zarr: the folder", "create it: mkdir -p"),
    "a save over a folder": (["--save", "full.zarr"], "full.zarr: is a folder and would be lost", "remove it first"),
}


@pytest.mark.parametrize("case", _CASES)
def test_bad_input_is_named_and_leaves_nothing(case: str) -> None:
    arguments, problem, remedy = _CASES[case]
    before = sorted(os.listdir())
    outputs = [] if any(option in arguments for option in ("--figure", "--animate", "--save")) else ["--save", "o.csv"]
    result = CliRunner().invoke(app, ["simulate", *arguments, *outputs], catch_exceptions=False)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    assert problem in result.stderr
    assert remedy in result.stderr
    assert sorted(os.listdir()) == before
    assert Path("full.zarr/thesis.tex").exists()


def test_a_failing_figure_leaves_the_old_file(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("f.png").write_bytes(b"old")

    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("hardmax.figures.save.figure_bytes", fail)
    result = CliRunner().invoke(app, ["simulate", "--figure", "f.png"])
    assert result.exit_code == 2
    assert "f.png" in result.stderr
    assert "No space left on device" in result.stderr
    assert Path("f.png").read_bytes() == b"old"
    assert not [name for name in os.listdir() if name.startswith(".")]


def test_a_page_of_no_kind_and_nowhere() -> None:
    for name, problem in (("page.txt", "is no name for a page: end it in .html"), ("good.csv/p.html", "good.csv")):
        result = CliRunner().invoke(app, ["demo", "--output", name])
        assert result.exit_code == 2
        assert problem in result.stderr
