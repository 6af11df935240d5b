"""The commands ``interpolate`` and ``verify``, on good files, bad files and touched files."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, get_args

import pandas as pd
import pytest
import typer
from typer.testing import CliRunner

from hardmax.cli import interpolate as command
from hardmax.cli.app import speak_of_flags
from hardmax.errors import FileError, HardmaxError, InputError, MissingExtraError
from hardmax.interpolation import ExactTransformer
from hardmax.interpolation.constructions.interpolate import Construction

GOOD = {"inputs": [[[0, 0], [1, "3/8"]], [[0, 0], [0.1, 1]]], "outputs": [[[1, 2]], [[0.5, 2], [3, 3]]]}


def run(*arguments: object) -> Any:
    app = typer.Typer()
    command.register(app)
    speak_of_flags(app)
    return CliRunner().invoke(app, [str(a) for a in arguments])


def write(path: Path, record: object) -> Path:
    path.write_text(json.dumps(record))
    return path


def test_names_match_the_library() -> None:
    assert get_args(Construction) == command.CONSTRUCTIONS


def test_json_to_network_and_back(tmp_path: Path) -> None:
    result = run(
        "interpolate", write(tmp_path / "data.json", GOOD), "-o", tmp_path / "net", "--onnx", tmp_path / "n.onnx"
    )
    assert result.exit_code == 0, result.output
    assert "PROVED" in result.output
    assert (tmp_path / "n.onnx").stat().st_size > 0
    net = ExactTransformer.load(tmp_path / "net")
    assert str(net.data.inputs[1][1][0]) == "1/10"
    assert run("verify", tmp_path / "net").exit_code == 0


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_long_form_with_outputs(tmp_path: Path, suffix: str) -> None:
    tokens = pd.DataFrame({"sequence": ["a", "a", "b"], "token": [1, 0, 0], "x": [0.5, 1.0, 2.0], "y": [0.0, 3.0, 1.0]})
    targets = pd.DataFrame({"sequence": ["b", "a"], "token": [0, 0], "x": [7.0, 8.0], "y": [9.0, 1.0]})
    paths = [tmp_path / f"{name}.{suffix}" for name in ("tokens", "targets")]
    for table, path in zip((tokens, targets), paths, strict=True):
        table.to_csv(path, index=False) if suffix == "csv" else table.to_parquet(path)
    result = run("interpolate", paths[0], "--outputs", paths[1], "-o", tmp_path / "net", "--softmax", "1/2")
    assert result.exit_code == 0, result.output
    net = ExactTransformer.load(tmp_path / "net")
    assert [[str(c) for c in x] for x in net.data.inputs[0]] == [["1", "3"], ["1/2", "0"]]
    assert str(net.data.outputs[0][0][0]) == "8"
    assert str(net.temperature) == "1/2"


def test_labels(tmp_path: Path) -> None:
    csv = tmp_path / "data.csv"
    csv.write_text("sequence,token,x,y,label\n1,0,0,0,cat\n1,1,1,0,cat\n2,0,0,0,dog\n")
    assert run("interpolate", csv, "-o", tmp_path / "net").exit_code == 0
    assert ExactTransformer.load(tmp_path / "net").predict([[[0, 0]]]) == ["dog"]
    record = {"inputs": GOOD["inputs"], "labels": [1, 2]}
    assert run("interpolate", write(tmp_path / "l.json", record), "-o", tmp_path / "n2").exit_code == 0


@pytest.mark.parametrize(
    "data",
    [
        "sequence;token;größe;y;label\n1;0;0,1;0;cat\n2;0;1e0;0;dog\n".encode("cp1252"),
        "# a remark\nsequence\ttoken\tx\ty\tlabel\n1\t0\t0,1\t0\tcat\n2\t0\t1\t0\tdog\n".encode("utf-16"),
        b"\xef\xbb\xbfsequence, token, x,y,label\r\n1,0,0.1,0,cat\r\n2,0,1,0,dog\r\n",
    ],
)
def test_tables_as_spreadsheets_write_them(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "data.csv").write_bytes(data)
    assert run("interpolate", tmp_path / "data.csv", "-o", tmp_path / "net").exit_code == 0
    net = ExactTransformer.load(tmp_path / "net")
    assert net.predict([[["1/10", 0]], [[1, 0]]]) == ["cat", "dog"]
    assert str(net.data.inputs[0][0][0]) == "1/10"


def test_json_in_utf_16_and_with_a_mark(tmp_path: Path) -> None:
    text = '{"inputs": [[[0, 0]], [[1, 0]]], "labels": ["größer", "kleiner"]}'
    for encoding in ("utf-16", "utf-8-sig"):
        (tmp_path / "data.json").write_bytes(text.encode(encoding))
        assert run("interpolate", tmp_path / "data.json", "-o", tmp_path / "net").exit_code == 0
        assert ExactTransformer.load(tmp_path / "net").predict([[[0, 0]]]) == ["größer"]


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("{", FileError, "is not JSON"),
        ("[]", FileError, 'must be an object with "inputs"'),
        ('{"inputs": []}', FileError, 'either "outputs" or "labels"'),
        ('{"inputs": 3, "outputs": []}', FileError, "field inputs must be a list"),
        ('{"inputs": [[[0, 1]]], "outputs": [[[NaN, 1]]]}', InputError, "must be a finite number"),
        ('{"inputs": [[[0, 1]], [[0, 1]]], "outputs": [[[1, 1]], [[2, 2]]]}', InputError, "inputs.0. and inputs.1."),
        ('{"inputs": [[[0, 1e999999]]], "outputs": [[[1, 1]]]}', InputError, "must be a finite number"),
    ],
)
def test_bad_json_leaves_nothing_behind(tmp_path: Path, text: str, error: type[HardmaxError], message: str) -> None:
    path = tmp_path / "data.json"
    path.write_text(text)
    result = run("interpolate", path, "-o", tmp_path / "net")
    assert isinstance(result.exception, error)
    with pytest.raises(error, match=message):
        raise result.exception
    assert [p.name for p in tmp_path.iterdir()] == ["data.json"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sequence,x\n1,0\n", "no column token"),
        ("sequence,token\n1,0\n", "holds no coordinates"),
        ("sequence,token,x,y\n1,0,1,1\n", "no column label"),
        ("sequence,token,x,y,label\n1,0,1,1,a\n1,1,2,2,b\n", "has two labels"),
    ],
)
def test_bad_tables(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "data.csv"
    path.write_text(text)
    with pytest.raises(FileError, match=message):
        raise run("interpolate", path, "-o", tmp_path / "net").exception  # type: ignore[misc]


def test_other_bad_files(tmp_path: Path) -> None:
    good = write(tmp_path / "data.json", GOOD)
    for arguments, message in (
        ((tmp_path / "no.json",), "there is no such file"),
        ((tmp_path / "no.csv",), "there is no such file"),
        ((tmp_path / "data.xls",), "data sets of the kind .xls cannot be read: use .json"),
        ((good, "--outputs", good), "holds inputs and outputs together"),
    ):
        with pytest.raises(FileError, match=message):
            raise run("interpolate", *arguments, "-o", tmp_path / "net").exception  # type: ignore[misc]
    assert not (tmp_path / "net").exists()
    good_file = tmp_path / "taken"
    good_file.write_text("")
    assert isinstance(run("interpolate", good, "-o", good_file).exception, FileError)


def test_sequences_of_the_two_files_must_match(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("sequence,token,x,y\n1,0,1,1\n2,0,2,2\n")
    (tmp_path / "b.csv").write_text("sequence,token,x,y\n1,0,1,1\n3,0,2,2\n")
    with pytest.raises(FileError, match="sequence 3 is in one of the two files only"):
        raise run("interpolate", tmp_path / "a.csv", "--outputs", tmp_path / "b.csv", "-o", tmp_path / "n").exception  # type: ignore[misc]


def test_verify_says_no_and_which_sequence(tmp_path: Path) -> None:
    record = {"inputs": [[[k, 0], [k, 1]] for k in range(4)], "outputs": [[[k, k]] for k in range(4)]}
    run("interpolate", write(tmp_path / "data.json", record), "-o", tmp_path / "net")
    path = tmp_path / "net" / "network.json"
    saved = json.loads(path.read_text())
    saved["data"]["outputs"][2] = [["5", "5"]]
    path.write_text(json.dumps(saved))
    result = run("verify", tmp_path / "net")
    assert result.exit_code == 1
    assert "sequence 2: " in result.output
    assert run("verify", tmp_path / "net", "--quiet").output == ""


def hide(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Make an installed package look as if it was not."""
    for module in [m for m in sys.modules if m == name or m.startswith(f"{name}.")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, name, None)


def test_without_onnx_nothing_is_computed_or_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good = write(tmp_path / "data.json", GOOD)
    hide(monkeypatch, "onnx")
    monkeypatch.setattr("hardmax.interpolation.data.read_problem", None)  # nothing is even read
    result = run("interpolate", good, "-o", tmp_path / "net", "--onnx", tmp_path / "n.onnx")
    with pytest.raises(MissingExtraError, match="writing ONNX files needs the package onnx"):
        raise result.exception  # type: ignore[misc]
    assert result.output == ""
    assert [p.name for p in tmp_path.iterdir()] == ["data.json"]


def test_without_onnx_the_rest_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hide(monkeypatch, "onnx")
    assert run("interpolate", write(tmp_path / "data.json", GOOD), "-o", tmp_path / "net").exit_code == 0


def test_places_that_cannot_be_written_are_refused_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good = write(tmp_path / "data.json", GOOD)
    (tmp_path / "folder").mkdir()
    monkeypatch.setattr("hardmax.interpolation.data.read_problem", None)
    for arguments, message in (
        (("-o", tmp_path / "net", "--onnx", tmp_path / "folder"), "is a folder and would be lost"),
        (("-o", tmp_path / "net", "--onnx", tmp_path / "no" / "n.onnx"), "does not exist"),
        (("-o", good), "cannot be made a folder"),
        (("-o", good / "inside" / "net"), "cannot be made a folder"),
    ):
        with pytest.raises(FileError, match=message):
            raise run("interpolate", good, *arguments).exception  # type: ignore[misc]
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["data.json", "folder"]


@pytest.mark.parametrize("temperature", ["1e-50", "1e27", "1e-300", "1e300", "1/3", "5e-324"])
def test_every_temperature(tmp_path: Path, temperature: str) -> None:
    good = write(tmp_path / "data.json", GOOD)
    result = run("interpolate", good, "-o", tmp_path / "net", "--softmax", temperature)
    assert result.exit_code == 0, result.output
    assert f"softmax at temperature {temperature}" in result.output
    assert run("verify", tmp_path / "net").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("--softmax", "0"),
            "--softmax must be positive, got 0: pass --softmax above 0, or no --softmax for its limit at zero",
        ),
        (("--softmax", "-1e-50"), "--softmax must be positive, got -1e-50: pass --softmax"),
        (("--softmax", "inf"), "--softmax must be a finite number, got 'inf'"),
        (("--softmax", "hot"), "--softmax must be a finite number, got 'hot'"),
        (
            ("--softmax", "1", "--no-flat"),
            "--flat/--no-flat must be true for leaders under softmax, got False: leave out --flat/--no-flat,",
        ),
        (("--softmax", "1", "--construction", "paper"), "--construction must not need .* or no --softmax"),
        (("--construction", "magic"), "--construction is not known, got 'magic'"),
        (("--width", "0"), "--width must be a whole number"),
        (("--workers", "0"), "--workers must be a whole number"),
    ],
)
def test_complaints_speak_of_flags(tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    result = run("interpolate", write(tmp_path / "data.json", GOOD), "-o", tmp_path / "net", *arguments)
    with pytest.raises(InputError, match=message):
        raise result.exception  # type: ignore[misc]
    assert not (tmp_path / "net").exists()


def test_labels_have_no_token_level(tmp_path: Path) -> None:
    record = write(tmp_path / "l.json", {"inputs": GOOD["inputs"], "labels": [1, 2]})
    result = run("interpolate", record, "-o", tmp_path / "net", "--token-level")
    with pytest.raises(InputError, match="--token-level has no meaning for labels, got True: leave out --token-level"):
        raise result.exception  # type: ignore[misc]


def test_help_teaches() -> None:
    text = run("interpolate", "--help").output
    assert "sequence" in text
    assert "labels" in text
    assert "verify" in text
