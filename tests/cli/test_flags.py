"""Errors on the command line name flags; no argument is spelt as Python does."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from hardmax.cli.app import app
from hardmax.cli.flags import in_flags
from hardmax.errors import FileError, InputError, MissingExtraError

_PYTHON = re.compile(r"\b\w+=|\w\(|numpy\.|\bNone\b|\bTrue\b|HardmaxLayer|ToDisk|Every\b|\b(?!near_)[a-z]+_[a-z_]+\b")


@pytest.fixture(autouse=True)
def _some_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("good.csv").write_text("1,2\n3,4\n-1,0\n")
    Path("again.csv").write_text("1,2\n1,2\n-1,0\n")
    Path("zero.csv").write_text("0,0\n1,2\n-1,0\n")
    Path("indefinite.csv").write_text("1,0\n0,-1\n")
    Path("skew.csv").write_text("1,1\n-1,1\n")
    Path("negative.csv").write_text("1\n-1\n1\n")
    moments = np.arange(60)
    rows = [f"{k},{np.sin(k / 3):.5f}" for k in moments]
    Path("series.csv").write_text("\n".join(["t,a", *rows]))
    Path("gappy.csv").write_text("\n".join(["t,a", *rows[:7], "7,", *rows[8:]]))
    Path("uneven.csv").write_text("\n".join(["t,a", *(f"{k + 0.3 * (k % 2)},{np.sin(k / 3):.5f}" for k in moments)]))
    Path("texts.csv").write_text(
        "text,label\n" + "\n".join(f"{'good' if k % 2 else 'bad'} film,{k % 2}" for k in range(20))
    )
    Path("pairs.json").write_text(json.dumps({"inputs": [[[0, 0]], [[1, 0]]], "outputs": [[[1.0, 0]], [[0, 1.0]]]}))
    np.save("short.npy", np.random.default_rng(0).normal(size=(3, 100)))


_CASES = {
    "simulate --alpha 0": "--alpha must be positive, got 0: pass for example --alpha 0.5 or --alpha 1/2",
    "simulate --alpha=-1/2": "--alpha must be positive, got -1/2",
    "simulate --random circle --dim 3": "--dim must be 2 for the circle, got 3: pass --dim 2, or --random sphere",
    "simulate --matrix paper --dim 3": "--dim must be 2 for the paper's matrix, got 3: pass --dim 2, or --matrix",
    "simulate --matrix rotation --dim 3": "pass an even --dim, or --matrix random",
    "simulate --matrix skew.csv --dim 3": "--matrix must be 3 x 3",
    "simulate --theorem --matrix indefinite.csv": "add c * identity with c above",
    "simulate --theorem --matrix skew.csv": "use (A + A transposed) / 2, or leave out --theorem",
    "simulate again.csv --theorem": "or leave out --theorem",
    "simulate zero.csv --theorem": "or leave out --theorem",
    "simulate short.npy": "pass tokens transposed, or --matrix identity if 3 tokens of 100 coordinates are meant",
    "simulate --n 0": "--n must be at least 1, got 0: pass for example --n 200",
    "simulate --dim 0": "--dim must be at least 1, got 0",
    "simulate --seed=-1": "--seed must be at least 0, got -1",
    "simulate --random cauchy": "--random is not a known law",
    "simulate good.csv --weights negative.csv": "--weights must be positive",
    "simulate --softmax=-1": "--softmax must be finite and not negative, got -1.0: use no --softmax for the limit",
    "simulate --softmax 1 --limit": "--softmax does not go with --limit",
    "simulate --depth=-1": "--depth must be at least 0, got -1: pass for example --depth 20",
    "simulate --depth 3 --keep 0,9": "--keep must list layers",
    "simulate --depth 3 --keep some": "--keep is not understood",
    "simulate --seconds 0": "--seconds must be positive and finite, got 0.0: pass --seconds above 0",
    "simulate --n 5000 --exact": "with --exact, got 5000 distinct tokens: leave out --exact",
    "simulate --n 5 --depth 3 --keep last --animate a.gif": "use --keep all",
    "simulate --n 100000 --depth 100000 --keep all": "pass --keep last, --keep 0,1,5, --keep every:10, or --save",
    "simulate --n 1000000 --depth 100000 --keep all": "got 100001 states of 15.3 MB, 1490 GB: pass --keep last",
    "meanfield --n 0": "--n must be at least 1",
    "meanfield --step 0": "--step must be positive and finite, got 0.0: pass --step above 0",
    "meanfield --step 100 --n 10 --beta 1000": "or --integrator adaptive",
    "meanfield --time=-1": "pass --time above 0",
    "meanfield --integrator leap": "--integrator is not known",
    "meanfield --precision float16": "--precision is not known",
    "meanfield --tokens good.csv": "divide each by its length, or pass --normalise",
    "meanfield --tokens zero.csv --normalise": "--tokens must not be zero",
    "forecast gappy.csv --steps 5": "pass --gaps interpolate",
    "forecast uneven.csv --steps 5": "pass --resample",
    "forecast series.csv --steps 5 --window 500": "or lower --window",
    "forecast series.csv --steps 5 --seconds -1": "--seconds must be a positive number, or 0 for no limit, got -1",
    "forecast series.csv --steps 5 --seed=-1": "--seed must be at least 0",
    "forecast series.csv --steps 5 --dt 0": "--dt must be a positive number",
    "interpolate pairs.json -o net --construction none": "--construction",
    "interpolate pairs.json -o net --width 0": "--width",
    "interpolate pairs.json -o net --softmax 0": "--softmax",
    "interpolate pairs.json -o net --softmax 1/10 --construction paper": "--softmax",
    "sentiment train texts.csv -o m.safetensors --dim 0": "--dim must be at least 1, got 0: pass for example --dim 2",
    "sentiment train texts.csv -o m.safetensors --epochs 0": "--epochs must be at least 1, got 0",
    "sentiment train texts.csv -o m.safetensors --ngrams 0": "--ngrams must be",
    "sentiment train texts.csv -o m.safetensors --seed=-1": "--seed must be at least 0, got -1",
    "sentiment train texts.csv -o m.safetensors --max-words 0": "--max-words must be at least 1, got 0",
    "sentiment train texts.csv -o m.safetensors --test-share 2": "--test-share must be",
    "sentiment words texts.csv --top 0": "--top must be at least 1, got 0: pass for example --top 20",
    "sweep --jobs 0 lost.toml": "lost.toml",
}


@pytest.mark.parametrize("line", _CASES)
def test_errors_name_flags(line: str) -> None:
    result = CliRunner().invoke(app, line.split(), catch_exceptions=False)
    assert result.exit_code == 2, result.output
    assert _CASES[line] in result.stderr
    assert not _PYTHON.search(result.stderr), result.stderr


def test_flags_stand_for_names_values_and_bounds() -> None:
    flags = {"n": "--n", "d": "--dim", "keep": "--keep", "random_state": "--seed", "normalise": "--normalise"}

    def said(remedy: str, argument: str = "tokens") -> str:
        error = in_flags(InputError(argument, 1, "is wrong", remedy), flags)
        assert isinstance(error, InputError)
        return error.remedy

    assert said("pass n=50") == "pass --n 50"
    assert said('use keep="last", or keep=[0, 1, 5]') == "use --keep last, or --keep 0,1,5"
    assert said("pass normalise=True; not normalise=False") == "pass --normalise; not no --normalise"
    assert said("pass n > 0 and d <= 3") == "pass --n above 0 and --dim at most 3"
    assert said("leave out random_state") == "leave out --seed"
    assert said("pass an even d", "d") == "pass an even --dim"
    assert said("save d rows of d numbers") == "save d rows of d numbers"  # a letter of a sentence, not an argument
    assert said("keep one of them") == "keep one of them"
    assert said("pass --n=50 and min_n=3") == "pass --n=50 and min_n=3"  # flags and other names stay


def test_files_keep_their_name_and_other_errors_their_words() -> None:
    error = in_flags(FileError("n.csv", "is empty", "pass n=50"), {"n": "--n"})
    assert str(error) == "n.csv: is empty: pass --n 50"
    missing = MissingExtraError("onnx", "onnx", "writing")
    assert in_flags(missing, {"n": "--n"}) is missing
