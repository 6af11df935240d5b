"""The work of ``hardmax sentiment``: train, evaluate and use a classifier of texts."""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
import typer
from matplotlib.figure import Figure

from ..datasets.corpora import movie_reviews, train_and_test, with_sentences
from ..datasets.documents import Documents, read_documents
from ..distributed import Processes, processes
from ..errors import InputError
from ..files import require_writable, write_text
from ..tables.files import decoded
from ..text.classifier import LeaderClassifier
from ..text.evaluation import quality
from ..text.explaining.corpus_statistics import survey
from ..text.pretrained import named, shipped_model
from ..text.training.cross_fitting import BaselineWarning
from ..text.words.documents import NoKnownWordWarning
from .standard_input import MARK, NAME, read_all

# Bounds the time of the command on large files.
_MOST_DOCUMENTS_SURVEYED = 5000
_REMEDY = "pipe text in UTF-8, or name its encoding with --encoding"
# Longer texts are no paths on any system.
_LONGEST_PATH = 250
_SHORT_TEXT = 60
"""Words of a long sentence: film reviews are nearly all longer, single sentences never."""


def _load(model: Path | None) -> LeaderClassifier:
    return shipped_model() if model is None else LeaderClassifier.load(model)


def _evaluated(
    file: Path | None, *, text: str | None, encoding: str | None, label: str | None = None, labelled: bool = True
) -> Documents:
    """The documents of a file; without one, those of the embedded corpus that the shipped model has not seen."""
    if file is None:
        return train_and_test(movie_reviews())[1]
    return read_documents(file, text=text, label=label, labelled=labelled, encoding=encoding)


def train_model(
    file: Path | None,
    output: Path,
    *,
    text: str | None,
    label: str | None,
    encoding: str | None,
    test_share: float,
    sentences: float,
    settings: dict[str, Any],
    keep_test_rows_out: bool = False,
) -> None:
    """Train a model, evaluate it on test rows, train it again on all rows and save it."""
    require_writable(output)
    if not 0 <= test_share < 1:
        raise InputError("--test-share", repr(test_share), "must be at least 0 and below 1", "pass --test-share 0.2")
    if not 0 <= sentences < np.inf:
        raise InputError("--sentences", repr(sentences), "must be 0 or a positive number", "pass --sentences 2")
    documents = movie_reviews() if file is None else read_documents(file, text=text, label=label, encoding=encoding)
    training, test = train_and_test(documents, test_share)
    with processes() as ranks:
        model = _trained(training, sentences, settings, ranks, tell=ranks.first)
        if ranks.first:
            _tell_accuracy(model, test)
        if test.texts and not keep_test_rows_out:
            # The accuracy is that of a model that has not seen the test rows; the saved model learns from them too.
            if ranks.first:
                typer.echo("Training again on all rows, with the same settings, for the saved model.")
            model = _trained(documents, sentences, _beside(settings), ranks, tell=False)
    if ranks.first:
        model.save(output)
        typer.echo(f"The model is in {output}.")


def _beside(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings with another checkpoint, since the given one belongs to the first training."""
    if settings.get("checkpoint") is None:
        return settings
    path = Path(settings["checkpoint"])
    return {**settings, "checkpoint": path.with_name(f"{path.stem}-all{path.suffix}")}


def _trained(
    documents: Documents, sentences: float, settings: dict[str, Any], ranks: Processes, *, tell: bool
) -> LeaderClassifier:
    """Model of the documents and, with a weight, of their sentences; ``tell`` prints a summary."""
    weights = None
    if sentences > 0:
        documents, weights = with_sentences(documents, sentences)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", BaselineWarning)
        model = LeaderClassifier(**settings, processes=ranks).fit(documents.texts, documents.labels, weights)
    if tell:
        typer.echo(
            f"Trained on {len(documents.texts):,} documents ({documents.source}): {len(model.words()):,} words, "
            f"{_training_summary(model)}."
        )
        for warning in caught:
            typer.secho(f"note: {warning.message}", err=True)
    return model


def _training_summary(model: LeaderClassifier) -> str:
    """Epochs, loss and accuracy of the training, or that the folds have chosen none."""
    if not model.history_:
        return "initial positions from a linear classifier, which no epoch improved in folds of the rows"
    last = model.history_[-1]
    return f"{model.n_iter_} epochs, loss {last['loss']:.3f} and accuracy {last['accuracy']:.3f} in training"


def _tell_accuracy(model: LeaderClassifier, test: Documents) -> None:
    """Print the quality of the model on the test rows whose labels it knows."""
    if test.labels is not None and test.texts:
        known = np.isin(test.labels, model.classes_)
        if not known.all():
            names = ", ".join(map(repr, np.unique(test.labels[~known]).tolist()[:5]))
            typer.echo(
                f"{(~known).sum():,} test rows have labels that the training rows lack ({names}); they are left out."
            )
        test = Documents([test.texts[k] for k in np.flatnonzero(known)], test.labels[known], test.source)
    if test.texts:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NoKnownWordWarning)
            typer.echo(f"On {test.source}: {quality(model, test.texts, test.labels)}.")


def evaluate_model(
    file: Path | None, model: Path | None, *, text: str | None, label: str | None, encoding: str | None, as_json: bool
) -> None:
    """Print the figures of a model on documents with labels."""
    documents = _evaluated(file, text=text, label=label, encoding=encoding)
    labels = named(documents.labels) if model is None else documents.labels
    fitted = _load(model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoKnownWordWarning)
        found = quality(fitted, documents.texts, labels)
        parts = {
            name: quality(fitted, [documents.texts[k] for k in rows], np.asarray(labels)[rows])
            for name, rows in _by_length(documents.texts).items()
        }
    if as_json:
        typer.echo(json.dumps({**found.data(), "parts": {name: part.data() for name, part in parts.items()}}))
        return
    typer.echo(f"{documents.source}: {found}")
    for name, part in parts.items():
        typer.echo(f"{name}: {part}")


def _by_length(texts: list[str]) -> dict[str, np.ndarray]:
    """Places of the short and of the long texts, in words; none where all are of one kind."""
    short = np.array([len(text.split()) <= _SHORT_TEXT for text in texts])
    if short.all() or not short.any():
        return {}
    return {
        f"of at most {_SHORT_TEXT} words": np.flatnonzero(short),
        f"of more than {_SHORT_TEXT} words": np.flatnonzero(~short),
    }


def classify(
    texts: list[str],
    file: Path | None,
    output: Path | None,
    model: Path | None,
    *,
    text: str | None,
    encoding: str | None,
    as_json: bool,
) -> None:
    """Print or write the class of each text."""
    if output is not None:
        require_writable(output)
    if MARK in texts:
        lines = [line for line in decoded(read_all(), NAME, encoding, _REMEDY).splitlines() if line.strip()]
        texts = [entry for given in texts for entry in (lines if given == MARK else [given])]
    named = [
        entry for entry in texts if len(entry) < _LONGEST_PATH and len(entry.split()) == 1 and Path(entry).exists()
    ]
    names = [""] * len(texts)
    if file is not None:
        documents = read_documents(file, text=text, labelled=False, encoding=encoding)
        texts, names = [*texts, *documents.texts], [*names, *(documents.files or [""] * len(documents.texts))]
    if not texts:
        raise InputError(
            "texts", "none", "must be given", "pass texts in quotes, --file documents.csv, or - for a pipe"
        )
    from_folder = any(names)
    fitted = _load(model)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", NoKnownWordWarning)
        chances = fitted.predict_proba(texts)
    best = chances.argmax(axis=1)
    if output is not None:
        table = pd.DataFrame({"text": texts, "class": fitted.classes_[best], "probability": chances.max(axis=1)})
        if from_folder:
            table.insert(0, "file", names)
        write_text(output, table.to_csv(index=False))
        typer.echo(f"{len(texts):,} answers are in {output}.")
    elif as_json:
        answers = [
            {
                **({"file": name} if from_folder else {}),
                "text": entry,
                "class": fitted.classes_[k].item(),
                "probability": float(chance),
            }
            for name, entry, k, chance in zip(names, texts, best, chances.max(axis=1), strict=True)
        ]
        typer.echo(json.dumps(answers, ensure_ascii=False))
    else:
        for name, entry, k, chance in zip(names, texts, best, chances.max(axis=1), strict=True):
            shown = f"{name}\t" if from_folder else ""
            typer.echo(f"{fitted.classes_[k]}\t{chance:.3f}\t{shown}{' '.join(entry.split())[:100]}")
    for warning in caught:
        typer.secho(f"note: {warning.message}", err=True)
    for entry in named:
        typer.secho(f"note: {entry} was read as a text; its contents are read with --file {entry}", err=True)


def explain_text(text: str, model: Path | None, *, html: Path | None, figure: Path | None, as_json: bool) -> None:
    """Explain one text."""
    if html is not None:
        require_writable(html)
    _require_figure(figure)
    explanation = _load(model).explain(sys.stdin.read() if text == "-" else text)
    typer.echo(json.dumps(explanation.data(), ensure_ascii=False) if as_json else str(explanation))
    if html is not None:
        page = '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>Explanation</title></head><body>'
        write_text(html, f"{page}\n{explanation.to_html()}\n</body></html>\n")
    if figure is not None:
        from ..figures.save import save_figure

        save_figure(explanation.draw().get_figure(root=True), figure)


def list_words(
    file: Path | None,
    model: Path | None,
    *,
    text: str | None,
    encoding: str | None,
    top: int,
    figure: Path | None,
    as_json: bool,
) -> None:
    """Leaders and weights over many documents."""
    _require_figure(figure)
    documents = _evaluated(file, text=text, labelled=False, encoding=encoding)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoKnownWordWarning)
        seen = survey(_load(model), documents.texts[:_MOST_DOCUMENTS_SURVEYED])
    outputs = range(len(seen.bias))
    if as_json:
        typer.echo(
            json.dumps(
                {
                    "leaders": seen.most_frequent_leaders(top),
                    "influential": [seen.most_influential(top, k) for k in outputs],
                    "statistics": seen.statistics(),
                },
                ensure_ascii=False,
            )
        )
    else:
        _print_words(seen, top)
    if figure is not None:
        from ..figures.save import save_figure
        from ..figures.text import draw_word_map

        save_figure(cast(Figure, draw_word_map(seen).get_figure(root=True)), figure)


def _require_figure(path: Path | None) -> None:
    """Refuse at once what no figure can be written to."""
    if path is not None:
        from ..figures.save import FORMATS, require_suffix

        require_suffix(path, FORMATS)
        require_writable(path)


def _print_words(seen: Any, top: int) -> None:
    for row in seen.statistics():
        typer.echo(
            f"{row['class']}: {row['documents']:,} documents, {row['mean']:.2f} ± {row['deviation']:.2f} leaders each "
            f"({row['least']} to {row['most']}), {row['from layer 0']:.0%} of them from layer 0 on"
        )
    typer.echo("\nMost frequent leaders: " + ", ".join(f"{w} ({n})" for w, n in seen.most_frequent_leaders(top)))
    names = [seen.classes[1]] if len(seen.bias) == 1 else seen.classes
    for k, name in enumerate(names):
        listed = ", ".join(f"{w} ({c:+.1f})" for w, c in seen.most_influential(top, k))
        typer.echo(f"\nLargest contributions to {name}: {listed}")
