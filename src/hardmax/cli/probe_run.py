"""The work of ``hardmax probe``: a model, its texts, the measurements, and a page that shows them."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import typer

from ..datasets.documents import read_documents
from ..errors import InputError
from ..figures.save import figure_bytes
from ..figures.transformers import draw_heads, draw_who_attends
from ..files import write_text
from ..models.attention_targets import attention_targets
from ..models.loading import HOW_TO_INSTALL, examples_for, installed_models, load_transformer
from ..models.probe import ProbeReport, probe
from ..models.transformer import Transformer
from ..reproduce.report import Report, Section, Table

PAGE = "report.html"
# Rows of a table on the page; the files beside it have all of them.
_ROWS = 12
# A picture of one head has room for so many words.
_WORDS = 40
# Texts longer than this are cut in the title of a picture.
_TITLE = 90


def run(
    model: str | None,
    file: Path | None,
    *,
    column: str | None,
    most: int | None,
    rules: Sequence[str],
    every_head: bool,
    dtype: str,
    device: str,
    seed: int,
    folder: Path,
    resume: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Probe a model and write the report."""
    loaded = load_transformer(_model_path(model), dtype=dtype, device=device)
    if not (quiet or as_json):
        typer.echo(f"model     {loaded!r}")
    texts = examples_for(loaded) if file is None else read_documents(file, text=column, labelled=False).texts
    texts = [*texts][:most]
    found = probe(
        loaded,
        texts,
        interventions=[*rules, *(["every head"] if every_head else [])],
        random_state=seed,
        checkpoint=folder / "parts" if resume else None,
        progress=False if quiet else None,
    )
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found.save(folder)
    if told and not quiet:
        typer.echo(f"note: {told[0].message}", err=True)
    path = write_text(folder / PAGE, page(found, loaded, texts).to_html())
    if as_json:
        typer.echo(json.dumps(json.loads((folder / "report.json").read_text(encoding="utf-8"))))
    elif not quiet:
        typer.echo(found.summary())
        typer.echo(f"wrote     {path}")


def _model_path(model: str | None) -> Path:
    """Path of the model; without one, the smallest model in an installed package."""
    if model is not None:
        return Path(model)
    found = installed_models()
    if not found:
        problem = "must be given: no installed package brings a model"
        raise InputError("MODEL", None, problem, f"pass a folder or a .gguf file, or install one: {HOW_TO_INSTALL}")
    return found[0].path


def page(report: ProbeReport, model: Transformer, texts: Sequence[str]) -> Report:
    """The report as one page: sentences, pictures, tables."""
    made = Report(
        f"What {report.model} attends to",
        lead=f"{report.description}. Measured on {report.texts:,} texts with {report.tokens:,} tokens; every figure "
        "beside its chance level or control.",
    )
    _in_short(made.section("In short"), report)
    _leaders(made.section("Leaders"), report, model, texts)
    _heads(made.section("Heads"), report)
    _depth(made.section("Through the layers"), report)
    if not report.interventions.empty:
        _interventions(made.section("Other attention rules"), report)
    _hypotheses(made.section("What the theorems assume"), report)
    made.section("How to read this").text(_HOW_TO_READ)
    return made


def _in_short(section: Section, report: ProbeReport) -> None:
    rows = report.heads["rows"]
    section.numbers(
        {
            "texts": report.texts,
            "tokens": report.tokens,
            "heads": len(report.heads),
            "mean tau": _mean(report.heads["tau"], rows),
            "mean largest weight": _mean(report.heads["largest_weight"], rows),
            "rows that break the proved bound": int(report.heads["bound_violations"].sum()),
        }
    )
    section.text("\n\n".join(report.summary().splitlines()[2:]))


def _mean(column: pd.Series, rows: pd.Series) -> float:
    return float(np.average(column, weights=rows))


def _leaders(section: Section, report: ProbeReport, model: Transformer, texts: Sequence[str]) -> None:
    section.text(
        "A leader is a token that other tokens attend to most. Sinks, the first token and the special ones, take "
        "attention whatever they say; they are counted apart."
    )
    shown = min(range(len(texts)), key=lambda k: abs(len(model.tokenise(texts[k])) - _WORDS // 2))
    who = attention_targets(model, texts[shown])
    if len(who.words) <= _WORDS:
        layer, head = who.leading_head()
        axes = draw_who_attends(who.words, who.targets[layer, head], who.weights[layer, head], sinks=who.sinks)
        cut = texts[shown] if len(texts[shown]) <= _TITLE else texts[shown][:_TITLE] + " …"
        caption = f"Head {layer}.{head} on “{cut}”: each token and the token that it attends to most."
        section.picture(figure_bytes(axes.figure, "svg"), caption, narrow=True)  # type: ignore[arg-type]
    real = report.leaders[~report.leaders["is_sink"]].sort_values("followers", ascending=False)
    section.table(_table("Leaders apart from sinks", real, ("text", "place", "word", "followers", "followers_chance",
                         "leads", "leads_of", "attention_received")))  # fmt: skip


def _heads(section: Section, report: ProbeReport) -> None:
    section.text(
        "Tau is the spread of a row's scores over the root of twice the logarithm of their number: 1 is where random "
        "scores freeze on their largest, smaller is warmer. The other map shows the mean of the largest weight."
    )
    for column, name in (("tau", "tau of every head"), ("largest_weight", "mean largest weight of every head")):
        figure = draw_heads(report.heads, column).figure
        section.picture(figure_bytes(figure, "svg"), f"The {name}, layers downwards.", narrow=True)  # type: ignore[arg-type]
    coldest = report.heads.sort_values("largest_weight", ascending=False)
    section.table(
        _table(
            "The most concentrated heads",
            coldest,
            (
                "layer",
                "head",
                "rows",
                "tau",
                "largest_weight",
                "largest_weight_chance",
                "attended",
                "sink_share",
                "hardmax_error",
                "hardmax_bound",
                "hardmax_effect",
                "zero_effect",
                "verdict",
            ),
        )
    )


def _depth(section: Section, report: ProbeReport) -> None:
    section.text(
        "Tokens before each layer, and after the last one: how alike they are, how many clusters they form (cosine "
        "above 0.9), and whether a token moves towards the token that it attends to, beside random tokens."
    )
    section.table(_table("Layers", report.layers, ("layer", "mean_cosine", "mean_cosine_rest", "effective_rank",
                         "clusters", "norm_ratio", "sink_share", "distinct_targets", "loyalty", "loyalty_chance",
                         "pull", "pull_chance", "same_cluster", "same_cluster_chance"), rows=100))  # fmt: skip


def _interventions(section: Section, report: ProbeReport) -> None:
    what = "perplexity of the texts" if report.causal else "cosine between the embeddings before and after"
    section.text(
        f"Softmax is replaced by another rule and the effect on the {what} is measured. The control sets the same "
        "attention to zero: a head that changes nothing when it is zero proves nothing about hardmax."
    )
    worst = report.interventions.sort_values(["heads", "effect"], ascending=[False, False])
    section.table(
        _table(
            "Interventions", worst, ("rule", "where", "measure", "value", "baseline", "zero", "effect", "zero_effect")
        )
    )


def _hypotheses(section: Section, report: ProbeReport) -> None:
    section.text(
        "The theorems on clusters assume symmetric scores (antisymmetry 0) and values that point towards the token "
        "that is attended to (positivity above 0). Random weights give the levels beside."
    )
    section.table(_table("Weights", report.weights, ("layer", "head", "antisymmetry", "antisymmetry_random",
                         "ov_positivity", "ov_positivity_random", "qk_seen", "ov_seen")))  # fmt: skip


def _table(title: str, frame: pd.DataFrame, columns: Sequence[str], rows: int = _ROWS) -> Table:
    part = frame[[*columns]].head(rows)
    cells = [[_cell(value) for value in row] for row in part.itertuples(index=False)]
    note = f"The first {rows} of {len(frame):,} rows; the files beside this page have all." if len(frame) > rows else ""
    return Table(title, [name.replace("_", " ") for name in columns], cells, note)


def _cell(value: object) -> object:
    missing = value is pd.NA or (isinstance(value, float) and np.isnan(value))
    return None if missing else value


_HOW_TO_READ = """
A trained transformer is no hardmax system. The report is an instrument that can say no: where heads are warm, where
tokens do not gather around the tokens that they attend to, where scores are far from symmetric, the theorems do not
apply, and the tables say by how much.

Columns that end in chance or random are the level for random choices or random weights. Layers and heads are counted
from 0; head 1.8 is head 8 of layer 1. A verdict needs `--every-head`: hard means that hardmax in this head alone
changes little while zero changes at least three times as much; idle that zero changes little, too;
sink that most rows rest on the first or a special token; soft all others.

The tables are in `report.json` and, one file each, as Parquet; `hardmax.models.load_report(folder)` reads them.
"""
