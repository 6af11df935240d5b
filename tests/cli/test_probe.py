"""``hardmax probe``: a folder and a file of texts become a page, a JSON file and tables."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import hardmax as hm
import model_files
from hardmax.cli import probe_run
from hardmax.cli.app import app

TEXTS = ["a b c a d b", "d c b a", "b a d e c a b"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A tiny BERT with a vocabulary of letters."""
    found = tmp_path / "model"
    model_files.write_folder(found, model_files.CONFIGS["bert"], model_files.random_tensors("bert"))
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghijklmnopqrstuvwxy"]
    (found / "vocab.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
    return found


def _run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["probe", *map(str, arguments)], catch_exceptions=False)


def test_a_model_and_texts_become_a_page(folder: Path, tmp_path: Path) -> None:
    texts, report = tmp_path / "texts.txt", tmp_path / "out"
    texts.write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
    flags = ("--rule", "hardmax", "--every-head", "--report", report, "--seed", "3")
    result = _run(folder, texts, *flags)
    assert result.exit_code == 0, result.output
    found = hm.models.load_report(report)
    expected = hm.probe(hm.load_transformer(folder), TEXTS, interventions=["hardmax", "every head"], random_state=3)
    for name, table in expected.tables().items():
        assert getattr(found, name).equals(table), name
    assert set(found.heads["verdict"]) <= {"hard", "idle", "sink", "soft"}
    for line in expected.summary().splitlines():
        assert line in result.stdout
    page = (report / "report.html").read_text(encoding="utf-8")
    for title in ("In short", "Leaders", "Heads", "Through the layers", "Other attention rules", "assume"):
        assert title in page
    assert page.count("<svg") + page.count("image/svg+xml") >= 3
    assert sorted(one.suffix for one in report.iterdir()).count(".parquet") == len(expected.tables())


def test_json_resuming_and_fewer_texts(folder: Path, tmp_path: Path) -> None:
    texts, report = tmp_path / "texts.csv", tmp_path / "out"
    texts.write_text("id,words\n" + "".join(f"{k},{text}\n" for k, text in enumerate(TEXTS)), encoding="utf-8")
    for _ in range(2):
        result = _run(folder, texts, "--text", "words", "--most", 2, "--report", report, "--resume", "--json", "-q")
        assert result.exit_code == 0, result.output
        told = json.loads(result.stdout)
        assert (told["texts"], told["kind"]) == (2, "hardmax probe report")
    assert len([*(report / "parts").iterdir()]) == 2
    assert "Other attention rules" not in (report / "report.html").read_text(encoding="utf-8")


def test_examples_go_through_an_installed_model(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = [hm.models.InstalledModel("tiny", folder, "bert", 1)]
    monkeypatch.setattr(probe_run, "installed_models", lambda: installed)
    monkeypatch.setattr(probe_run, "examples_for", lambda model: TEXTS)
    result = _run("--example", "--report", tmp_path / "out")
    assert result.exit_code == 0, result.output
    assert "bert" in result.stdout
    monkeypatch.setattr(probe_run, "installed_models", list)
    result = _run("--example", "--report", tmp_path / "out")
    assert result.exit_code == 2
    assert "no installed package brings a model" in result.stderr
    assert "rxnmapper" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "MODEL must be given"),
        (["nowhere"], "TEXTS must be given"),
        (["--example", "--most", "0"], "--most must be at least 1"),
        (["nowhere", "texts.txt", "--example"], "cannot be given with --example"),
        (["nowhere", "texts.txt"], "nowhere"),
        (["MODEL", "TEXTS", "--rule", "loud"], "is no attention rule"),
        (["MODEL", "TEXTS", "--dtype", "int8"], "must be float32 or float64"),
        (["MODEL", "missing.txt"], "missing.txt"),
    ],
)
def test_bad_input(arguments: list[str], message: str, folder: Path, tmp_path: Path) -> None:
    texts = tmp_path / "texts.txt"
    texts.write_text("a b c\n", encoding="utf-8")
    known = {"MODEL": str(folder), "TEXTS": str(texts)}
    result = _run(*(known.get(one, one) for one in arguments), "--report", tmp_path / "out")
    assert result.exit_code == 2, result.output
    assert message in " ".join(result.stderr.split())
    assert "Traceback" not in result.stderr
