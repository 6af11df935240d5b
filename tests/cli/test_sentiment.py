"""The commands ``hardmax sentiment`` and ``hardmax data``."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner, Result

from hardmax.cli.app import app
from hardmax.datasets.documents import read_documents
from hardmax.text import LeaderClassifier
from hardmax.text.pretrained import FILE, shipped_model
from made_up_texts import opinions


def _run(*arguments: object, **options: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], **options)


@pytest.fixture(scope="module")
def letters(tmp_path_factory: pytest.TempPathFactory) -> Path:
    texts, labels = opinions(300)
    path = tmp_path_factory.mktemp("letters") / "letters.csv"
    pd.DataFrame({"body": texts, "mood": ["good" if label else "bad" for label in labels]}).to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def model(letters: Path) -> Path:
    path = letters.with_name("model.safetensors")
    done = _run("sentiment", "train", letters, "--text", "body", "--label", "mood", "-o", path, "--epochs", "20")
    assert done.exit_code == 0, done.output
    assert "60 of the last rows" in done.output
    assert "accuracy" in done.output
    return path


def test_the_saved_model_learns_from_all_rows(tmp_path: Path) -> None:
    texts, labels = opinions(120)
    late = [
        "xylophone " + text if place >= 100 and label else text
        for place, (text, label) in enumerate(zip(texts, labels, strict=True))
    ]
    path, output = tmp_path / "letters.csv", tmp_path / "model.safetensors"
    pd.DataFrame({"text": late, "label": labels}).to_csv(path, index=False)
    said = _run("sentiment", "train", path, "-o", output, "--epochs", "1")
    assert "Training again on all rows" in said.output
    assert "xylophone" in LeaderClassifier.load(output).words()
    said = _run("sentiment", "train", path, "-o", output, "--epochs", "1", "--keep-test-rows-out")
    assert "again" not in said.output
    assert "xylophone" not in LeaderClassifier.load(output).words()


def test_a_pipe_a_folder_and_a_spreadsheet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    piped = _run("sentiment", "predict", "-", "--json", input="A wonderful film.\n\nTwo dull hours.\n")
    assert [answer["class"] for answer in json.loads(piped.stdout)] == ["positive", "negative"]
    for label, text in (("good", "A wonderful film."), ("bad", "Two dull hours.")):
        (tmp_path / label).mkdir()
        (tmp_path / label / "first.txt").write_text(text)
    told = json.loads(_run("sentiment", "predict", "-f", tmp_path, "--json").stdout)
    assert [(answer["text"], answer["class"]) for answer in told] == [
        ("Two dull hours.", "negative"),
        ("A wonderful film.", "positive"),
    ]
    assert 0.5 < told[0]["probability"] <= 1
    # Each answer names its file, so that it can be found again; without a folder there is none.
    assert [answer["file"] for answer in told] == ["bad/first.txt", "good/first.txt"]
    assert "file" not in json.loads(piped.stdout)[0]
    lines = _run("sentiment", "predict", "-f", tmp_path).stdout.splitlines()
    assert [line.split("\t")[2] for line in lines] == ["bad/first.txt", "good/first.txt"]
    _run("sentiment", "predict", "-f", tmp_path, "-o", tmp_path / "answers.csv")
    assert pd.read_csv(tmp_path / "answers.csv")["file"].tolist() == ["bad/first.txt", "good/first.txt"]
    labelled = read_documents(tmp_path)
    assert labelled.labels is not None
    assert labelled.labels.tolist() == ["bad", "good"]
    (tmp_path / "empty").mkdir()
    refused = _run("sentiment", "predict", "-f", tmp_path / "empty")
    assert refused.exit_code != 0
    assert "holds no text files" in refused.output
    sheet = tmp_path / "letters.xlsx"
    sheet.write_bytes(b"nothing of the kind")
    assert _run("sentiment", "predict", "-f", sheet).exit_code != 0
    frame = pd.DataFrame({"body": ["A wonderful film.", "Two dull hours."]})
    monkeypatch.setattr(pd, "read_excel", lambda *_, **__: frame)
    said = json.loads(_run("sentiment", "predict", "-f", sheet, "--text", "body", "--json").stdout)
    assert [answer["class"] for answer in said] == ["positive", "negative"]


def test_few_documents_that_no_epoch_improves(tmp_path: Path) -> None:
    from made_up_texts import opinions

    texts, labels = opinions(200)
    labels = np.random.default_rng(0).permutation(labels)  # nothing can be learned
    pd.DataFrame({"text": texts, "label": labels}).to_csv(tmp_path / "opinions.csv", index=False)
    told = _run("sentiment", "train", tmp_path / "opinions.csv", "-o", tmp_path / "model.safetensors")
    assert told.exit_code == 0, told.output
    found = LeaderClassifier.load(tmp_path / "model.safetensors")
    assert found.n_iter_ == 0  # else the data are no example of it
    assert "which no epoch improved in folds of the rows" in told.output


def test_a_real_spreadsheet(tmp_path: Path) -> None:
    pytest.importorskip("openpyxl")
    sheet = tmp_path / "letters.xlsx"
    pd.DataFrame({"body": ["A wonderful film."]}).to_excel(sheet, index=False)
    said = json.loads(_run("sentiment", "predict", "-f", sheet, "--text", "body", "--json").stdout)
    assert said[0]["class"] == "positive"


def test_train_evaluate_predict_explain(letters: Path, model: Path, tmp_path: Path) -> None:
    judged = _run("sentiment", "evaluate", letters, "-m", model, "--text", "body", "--label", "mood", "--json")
    figures = json.loads(judged.stdout)
    assert figures["accuracy"] > 0.9
    assert figures["collapse"] >= 0.99
    said = _run("sentiment", "predict", "a superb charming film", "-m", model)
    assert said.stdout.split("\t")[0] == "good"
    answers = tmp_path / "answers.csv"
    assert _run("sentiment", "predict", "-f", letters, "--text", "body", "-m", model, "-o", answers).exit_code == 0
    assert list(pd.read_csv(answers).columns) == ["text", "class", "probability"]
    told = json.loads(_run("sentiment", "explain", "a superb film", "-m", model, "--json").stdout)
    assert told["prediction"] == "good"
    listed = json.loads(_run("sentiment", "words", letters, "--text", "body", "-m", model, "--json").stdout)
    assert {"leaders", "influential", "statistics"} == set(listed)


def test_short_texts_are_learned_from_sentences_and_judged_apart(letters: Path, tmp_path: Path) -> None:
    texts = pd.read_csv(letters)
    texts["body"] = [
        f"{text}. " + ("We met on a day in May. " * 12 if k % 2 else "") for k, text in enumerate(texts["body"])
    ]
    long, path = tmp_path / "long.csv", tmp_path / "short.safetensors"
    texts.to_csv(long, index=False)
    columns = ("--text", "body", "--label", "mood")
    settings = ("--recipe", "short", "--sentences", "2", "--min-df", "2", "--epochs", "8")
    done = _run("sentiment", "train", long, *columns, "-o", path, *settings)
    assert done.exit_code == 0, done.output
    assert "sentences of them" in done.output
    figures = json.loads(_run("sentiment", "evaluate", long, *columns, "-m", path, "--json").stdout)
    assert list(figures["parts"]) == ["of at most 60 words", "of more than 60 words"]
    assert sum(part["documents"] for part in figures["parts"].values()) == figures["documents"] == 300
    told = _run("sentiment", "evaluate", long, *columns, "-m", path).stdout.splitlines()
    assert [line.split(":")[0] for line in told[1:]] == list(figures["parts"])


def test_labels_that_only_test_rows_have_are_reported(tmp_path: Path) -> None:
    texts, labels = opinions(100)
    path, rows = tmp_path / "letters.csv", ["good" if label else "bad" for label in labels]
    rows[-1] = "strange"
    pd.DataFrame({"text": texts, "label": rows}).to_csv(path, index=False)
    done = _run("sentiment", "train", path, "-o", tmp_path / "model.safetensors", "--epochs", "20")
    assert done.exit_code == 0, done.output
    assert "1 test rows have labels that the training rows lack ('strange')" in done.output
    assert "19 documents: accuracy" in done.output


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--encoding", "klingon"), "unknown encoding: klingon"),
        (("--label", "stars"), "must be classes, not continuous values"),
    ],
)
def test_what_cannot_be_learned_from_is_refused_in_a_line(
    tmp_path: Path, options: tuple[str, str], message: str
) -> None:
    texts, labels = opinions(40)
    path = tmp_path / "letters.csv"
    pd.DataFrame({"text": texts, "label": labels, "stars": [k / 7 for k in range(40)]}).to_csv(path, index=False)
    done = _run("sentiment", "train", path, "-o", tmp_path / "model.safetensors", *options)
    assert done.exit_code == 2
    assert message in done.output


def test_a_figure_of_no_known_kind_is_refused_before_the_work(model: Path, letters: Path) -> None:
    for words in (("explain", "a superb film"), ("words", letters, "--text", "body")):
        done = _run("sentiment", *words, "-m", model, "--figure", "picture.xyz")
        assert done.exit_code == 2
        assert "names no format" in done.output
        assert "superb" not in done.output


def test_the_accurate_recipe(letters: Path, tmp_path: Path) -> None:
    path, columns = tmp_path / "accurate.safetensors", ("--text", "body", "--label", "mood")
    done = _run("sentiment", "train", letters, *columns, "-o", path, "--recipe", "accurate", "--epochs", "20")
    assert done.exit_code == 0, done.output
    told = json.loads(_run("sentiment", "explain", "a superb film, charming!", "-m", path, "--json").stdout)
    assert told["prediction"] == "good"
    assert {leader["word"].count(" ") for leader in told["leaders"]} >= {0, 1}
    assert len(told["leaders"]) <= 6


def test_the_shipped_model_is_judged_on_labels_of_the_corpus(tmp_path: Path) -> None:
    path = tmp_path / "reviews.csv"
    pd.DataFrame({"text": ["an awful, boring film", "a wonderful film"], "label": [0, 1]}).to_csv(path, index=False)
    assert json.loads(_run("sentiment", "evaluate", path, "--json").stdout)["accuracy"] == 1.0


def test_the_shipped_model_answers_at_once(tmp_path: Path) -> None:
    page, picture = tmp_path / "why.html", tmp_path / "why.png"
    done = _run("sentiment", "explain", "A <b>dull</b> and boring plot.", "--html", page, "--figure", picture, "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["prediction"] == "negative"
    assert "&lt;b&gt;" in page.read_text(encoding="utf-8")
    assert picture.read_bytes().startswith(b"\x89PNG")
    from_input = _run("sentiment", "explain", "-", input="A wonderful film, superb in every way.")
    assert from_input.stdout.startswith("positive (")


def test_the_shipped_model_is_small_and_explained() -> None:
    from hardmax.text import pretrained

    folder = Path(pretrained.__file__).parent / "models"
    assert (folder / FILE).stat().st_size < 2_000_000
    assert "hardmax sentiment train" in (folder / "movie_reviews.md").read_text(encoding="utf-8")
    model = shipped_model()
    assert model.network_.embedding.shape[1] == 2
    assert model.collapse_ >= 0.99


def test_unknown_words_are_noted() -> None:
    done = _run("sentiment", "predict", "дом")
    assert done.exit_code == 0
    assert "no known word" in done.stderr


def test_the_name_of_a_folder_is_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "letters").mkdir()
    done = _run("sentiment", "predict", "letters", "a wonderful film", "x" * 5000)
    assert done.exit_code == 0
    assert "note: letters was read as a text; its contents are read with --file letters" in done.stderr
    assert done.stderr.count("was read as a text") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["predict"], "texts must be given"),
        (["train", "missing.csv"], "no such file"),
        (["train", "--dim", "two"], "--dim must be a whole number"),
        (["train", "--test-share", "1.5"], "--test-share"),
        (["train", "--sentences", "-1"], "--sentences must be 0 or a positive number"),
        (["train", "--min-df", "few"], "--min-df must be a whole number"),
        (["explain", "x", "--model", "missing.safetensors"], "no such file"),
        (["explain", "x", "--html", "no/such/folder/page.html"], "folder"),
    ],
)
def test_mistakes_are_one_line(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = _run("sentiment", *arguments)
    assert done.exit_code == 2
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_data_from_a_local_archive(tmp_path: Path) -> None:
    (tmp_path / "bad.tar.gz").write_bytes(b"x")
    done = _run("data", "imdb", "--archive", tmp_path / "bad.tar.gz", "-o", tmp_path / "imdb.csv")
    assert done.exit_code == 2
    assert "cannot be read as the IMDb archive" in done.stderr
    assert not (tmp_path / "imdb.csv").exists()


def test_training_on_a_device(letters: Path, tmp_path: Path) -> None:
    own = ("sentiment", "train", letters, "--text", "body", "--label", "mood", "--epochs", "1")
    assert _run(*own, "--device", "cpu", "-o", tmp_path / "model.safetensors").exit_code == 0
    refused = _run(*own, "--device", "abacus", "-o", tmp_path / "other.safetensors")
    assert refused.exit_code != 0
    assert "abacus" in refused.stderr
    assert not (tmp_path / "other.safetensors").exists()
