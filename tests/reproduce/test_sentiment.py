"""The page on sentiment: its files, its numbers, and that it goes on where it was."""

import csv
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from hardmax.errors import InputError
from hardmax.reproduce import sentiment
from hardmax.reproduce.report import Section
from hardmax.reproduce.sentiment_models import Reviews, default_model, published_model
from hardmax.reproduce.tour import show_reasons
from hardmax.text.explaining.corpus_statistics import survey
from made_up_texts import opinions


@pytest.fixture
def reviews(tmp_path: Path) -> Path:
    texts, labels = opinions(200, seed=1)
    file = tmp_path / "reviews.csv"
    with file.open("w", newline="", encoding="utf-8") as opened:
        writer = csv.writer(opened)
        writer.writerow(("text", "label"))
        writer.writerows((" ".join([text] * 4), label) for text, label in zip(texts, labels, strict=True))
    return file


@pytest.mark.slow
def test_everything_is_written(reviews: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sentiment, "_QUICK_EPOCHS", 2)
    folder = tmp_path / "page"
    report = sentiment.reproduce_sentiment(folder, data=reviews, quick=True, progress=False)
    assert len(report.sections) == 8
    pictures = {path.stem for path in folder.glob("*.png")}
    assert {"accuracy-by-dimension", "accuracy-by-epoch", "softmax-and-hardmax", "leaders-paper-d2"} <= pictures
    films = {path.stem for path in folder.glob("*.gif")}
    assert films == {f"{model}-d2-{kind}" for model in ("paper", "default") for kind in ("negative", "positive")}
    assert films < pictures
    page = (folder / sentiment.PAGE).read_text(encoding="utf-8")
    assert page.count("data:image/gif") == 4
    assert page.count("data:image/png") == len(pictures)
    rows = json.loads((folder / "accuracy.json").read_text())["rows"]
    assert [(row["model"], row["d"]) for row in rows] == [
        ("published", 2),
        ("published", 16),
        ("published, trained as hardmax", 2),
        ("default", 2),
        ("default", 16),
    ]
    # Two epochs cannot be compared with the published hundred, neither in the table nor on the page.
    assert all("published" not in row for row in rows)
    assert "0.791" not in page
    assert "too little training to be compared" in page
    assert "too little training to be compared" in json.loads((folder / "accuracy.json").read_text())["note"]
    assert "at least 0.95" not in page
    assert "at any probability" in page
    assert "hardmax reproduce sentiment --data reviews.csv --quick" in page
    assert rows[3]["as hardmax"] > 0.8  # what these made-up opinions are about, the default learns at once
    assert all(0.5 <= row["collapse"] <= 1 for row in rows)
    leaders = json.loads((folder / "leaders.json").read_text())["rows"]
    assert [row["model"] for row in leaders] == ["paper-d2", "paper-d16", "default-d2"]
    assert all(row["least"] <= row["mean"] <= row["most"] for row in leaders)


def test_only_a_whole_training_is_compared_with_the_published_one(
    reviews: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = Reviews.of(reviews)
    theirs, ours = (
        published_model(found, 2, tmp_path, epochs=1, progress=False),
        default_model(found, 2, progress=False),
    )
    whole = sentiment._accuracy_table([theirs], [ours], theirs, found, 100, None)
    assert "published" in whole.columns
    assert "left out" not in whole.note
    trial = sentiment._accuracy_table([theirs], [ours], theirs, found, 1, sentiment._trial(found, 1))
    assert "published" not in trial.columns
    assert all(len(row) == len(trial.columns) for row in trial.rows)
    assert "A trial of 1 epochs on 140 reviews" in trial.note


def test_the_histogram_says_which_reviews_it_counts(reviews: Path, tmp_path: Path) -> None:
    found = Reviews.of(reviews)
    model = default_model(found, 2, progress=False).model
    seen = survey(model, found.test[0])
    right = int((seen.classes[seen.predicted] == found.test[1]).sum())
    for least, expected, words in (
        (0.0, right, "at any probability"),
        (0.51, None, "at least 0.51"),
        (1.1, right, "never reaches the probability 1.1"),
    ):
        chosen, said = sentiment._correct_reviews(model, found, seen, least)
        assert words in said
        assert expected is None or len(chosen.predicted) == expected


def test_training_is_taken_up_again(reviews: Path, tmp_path: Path) -> None:
    found = Reviews.of(reviews)
    assert found.split == 140
    assert set(found.labels) == {"negative", "positive"}
    first = published_model(found, 2, tmp_path, epochs=2, progress=False)
    file = tmp_path / "paper-d2.safetensors"
    before = file.stat().st_mtime_ns
    again = published_model(found, 2, tmp_path, epochs=2, progress=False)
    assert file.stat().st_mtime_ns == before
    assert again.quality == first.quality
    assert first.best_test_accuracy == max(record["held_out_accuracy"] for record in first.history)


def test_reviews_must_be_of_two_kinds(tmp_path: Path) -> None:
    file = tmp_path / "three.csv"
    file.write_text("text,label\na,1\nb,2\nc,3\n")
    with pytest.raises(InputError, match="two kinds"):
        Reviews.of(file)


def test_the_stop_of_the_tour_adds_up() -> None:
    section = Section("A stop")
    show_reasons(section)
    page = section.to_html()
    assert "data:image/png;base64," in page
    assert "add up to the logit" in page


def test_the_command_names_a_bad_file() -> None:
    from hardmax.cli.app import app

    answer = CliRunner().invoke(app, ["reproduce", "sentiment", "--data", "nowhere.csv"])
    assert answer.exit_code == 2
    assert "nowhere.csv" in answer.output
