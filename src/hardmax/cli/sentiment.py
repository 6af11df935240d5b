"""``hardmax sentiment``: the options; the work is done in :mod:`hardmax.cli.sentiment_run`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .options import read_number, read_whole

_File = Annotated[
    Path | None,
    typer.Argument(
        help="CSV, TSV, JSON lines, Parquet, a spreadsheet, plain text (one document per line) or a folder. "
        "Without it: the embedded corpus of film reviews (extra 'data').",
        show_default=False,
    ),
]
_Text = Annotated[str | None, typer.Option("--text", metavar="COLUMN", help="The column of the texts.")]
_Label = Annotated[str | None, typer.Option("--label", metavar="COLUMN", help="The column of the labels.")]
_Encoding = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Encoding of the file, where it is neither UTF-8, UTF-16 nor Windows-1252."),
]
_Model = Annotated[
    Path | None, typer.Option("--model", "-m", metavar="FILE", help="A trained model; the shipped one when left out.")
]
_Json = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(no_args_is_help=True, rich_markup_mode="rich")
    for command in (train, evaluate, predict, explain, words):
        group.command()(command)
    app.add_typer(group, name="sentiment", help="Classify texts by their leader words, with explanations.")


def train(
    file: _File = None,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="File of the model.")] = Path(
        "model.safetensors"
    ),
    text: _Text = None,
    label: _Label = None,
    encoding: _Encoding = None,
    recipe: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="default, accurate (three longer trainings on triples of words), short (for sentences), or paper.",
        ),
    ] = "default",
    dim: Annotated[str | None, typer.Option(metavar="D", help="Coordinates of a word.")] = None,
    ngrams: Annotated[str | None, typer.Option(metavar="N", help="Words in the longest n-gram.")] = None,
    max_words: Annotated[
        str | None, typer.Option(metavar="N", help="Use only the words that separate the classes best.")
    ] = None,
    min_df: Annotated[
        str | None, typer.Option(metavar="N", help="Use only words that occur in at least this many documents.")
    ] = None,
    sentences: Annotated[
        str,
        typer.Option(
            metavar="WEIGHT",
            help="Learn from single sentences of the documents too, those of a document together with this weight.",
        ),
    ] = "0",
    lemmas: Annotated[str | None, typer.Option(metavar="LANGUAGE", help="Dictionary forms, for example en.")] = None,
    epochs: Annotated[str | None, typer.Option(metavar="N", help="Passes through the data.")] = None,
    seed: Annotated[str, typer.Option(metavar="S", help="Seed of the random generator.")] = "0",
    test_share: Annotated[
        str,
        typer.Option(metavar="SHARE", help="Share of the file, from its end, that is used for testing; 0 for none."),
    ] = "0.2",
    keep_test_rows_out: Annotated[
        bool,
        typer.Option("--keep-test-rows-out", help="Save the model that was trained without the test rows."),
    ] = False,
    checkpoint: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File from which training resumes after an interruption.")
    ] = None,
    device: Annotated[
        str | None, typer.Option(metavar="NAME", help="Where to train, for example cuda; the CPU without it.")
    ] = None,
) -> None:
    """Train a model, evaluate it on test rows, and save a model of all rows.

    [bold]Examples[/bold]

    [dim]# on the embedded corpus[/dim]
    [cyan]hardmax sentiment train --output reviews.safetensors[/cyan]
    [dim]# on your own file[/dim]
    [cyan]hardmax sentiment train letters.csv --text body --label department[/cyan]
    [dim]# from long documents, for short texts[/dim]
    [cyan]hardmax sentiment train letters.csv --recipe short --sentences 2[/cyan]
    """
    from .sentiment_run import train_model

    train_model(
        file,
        output,
        text=text,
        label=label,
        encoding=encoding,
        test_share=read_number("--test-share", test_share, 0.2) or 0.0,
        sentences=read_number("--sentences", sentences, 2) or 0.0,
        keep_test_rows_out=keep_test_rows_out,
        settings={
            "recipe": recipe,
            "dim": read_whole("--dim", dim, 2, least=1),
            "ngrams": read_whole("--ngrams", ngrams, 2),
            "max_words": read_whole("--max-words", max_words, 12000, least=1),
            "min_df": read_whole("--min-df", min_df, 3, least=1),
            "lemmas": lemmas,
            "epochs": read_whole("--epochs", epochs, 3, least=1),
            "random_state": read_whole("--seed", seed, 0, least=0),
            "checkpoint": checkpoint,
            "device": device,
        },
    )


def evaluate(
    file: _File = None,
    model: _Model = None,
    text: _Text = None,
    label: _Label = None,
    encoding: _Encoding = None,
    as_json: _Json = False,
) -> None:
    """Evaluate a model on documents with known labels: accuracy, log loss, calibration, leaders, collapse.

    Where there are both, documents of at most 60 words and longer ones are evaluated separately too.
    Without a file: the fifth of the embedded corpus that the shipped model has not seen.
    """
    from .sentiment_run import evaluate_model

    evaluate_model(file, model, text=text, label=label, encoding=encoding, as_json=as_json)


def predict(
    texts: Annotated[
        list[str] | None,
        typer.Argument(help="Texts to classify; - reads one per line from the standard input.", show_default=False),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option("--file", "-f", metavar="FILE", help="Documents to classify: a file, a spreadsheet or a folder."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write a CSV file instead of printing.")
    ] = None,
    model: _Model = None,
    text: _Text = None,
    encoding: _Encoding = None,
    as_json: _Json = False,
) -> None:
    """Predict the class of each text, with its probability.

    [bold]Examples[/bold]

    [cyan]hardmax sentiment predict "a wonderful film" "two dull hours"[/cyan]
    [dim]# a column of a spreadsheet, a folder of text files, a pipe[/dim]
    [cyan]hardmax sentiment predict --file letters.xlsx --text body[/cyan]
    [cyan]hardmax sentiment predict --file letters/ --json[/cyan]
    [cyan]cat lines.txt | hardmax sentiment predict -[/cyan]
    """
    from .sentiment_run import classify

    classify(texts or [], file, output, model, text=text, encoding=encoding, as_json=as_json)


def explain(
    text: Annotated[str, typer.Argument(help="The text; - reads it from the standard input.", show_default=False)],
    model: _Model = None,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a page with the words marked.")] = None,
    figure: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw the words moving to their leaders.")] = None,
    as_json: _Json = False,
) -> None:
    """Explain the class of a text: its leaders, their followers, and the contribution of each.

    [cyan]hardmax sentiment explain "A dull plot, saved by a wonderful cast."[/cyan]
    """
    from .sentiment_run import explain_text

    explain_text(text, model, html=html, figure=figure, as_json=as_json)


def words(
    file: _File = None,
    model: _Model = None,
    text: _Text = None,
    encoding: _Encoding = None,
    top: Annotated[str, typer.Option(metavar="N", help="How many words to list.")] = "20",
    figure: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw the map of words.")] = None,
    as_json: _Json = False,
) -> None:
    """List the words that lead, and those with the largest contributions, over many documents.

    [bold]Examples[/bold]

    [dim]# the shipped model on reviews it has not seen[/dim]
    [cyan]hardmax sentiment words --top 40[/cyan]
    [dim]# a map of the words[/dim]
    [cyan]hardmax sentiment words letters.csv --model model.safetensors --figure map.png[/cyan]
    """
    from .sentiment_run import list_words

    list_words(
        file,
        model,
        text=text,
        encoding=encoding,
        top=read_whole("--top", top, 20, least=1) or 20,
        figure=figure,
        as_json=as_json,
    )
