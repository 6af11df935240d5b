"""Figures and tables of "Exact Sequence Interpolation with Transformers", from networks that are proved.

Alcalde, Fantuzzi, Zuazua, arXiv 2502.02270. The construction outlined in the paper is compared with four others.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from ..drawing.style import new_figure, styled
from ..figures import save_figure
from ..figures.interpolation import animate_network, draw_construction
from ..figures.interpolation_results import (
    draw_block_counts,
    draw_float_errors,
    draw_loss_against_decay,
    draw_training_loss,
)
from ..files import make_folder, write_text
from ..interpolation import ExactTransformer, interpolate
from ..interpolation.evaluation.certificate import Certificate
from ..interpolation.regularised import RegularisedRun, decay_exponents, paper_data, train
from .report import Report, Table

PAGE = "interpolation.html"
CONSTRUCTIONS = ("paper", "witness", "conditioned", "leaders", "fewest")
# Doubling sizes show the growth; the quick ones take seconds.
_SIZES, _QUICK_SIZES = (5, 10, 20, 40, 80, 160), (5, 10, 20)
_TARGETS, _QUICK_TARGETS = (1, 2, 4, 8), (1, 3)
_EPOCHS, _QUICK_EPOCHS = (50_000, 50_000), (400, 400)
"""Epochs of the long run and of each run of the comparison."""
_WIDE = 20
"""Number of sequences in the comparison over the number of targets."""
_PAPER_LIMIT = 80
"""Largest N for the construction of the paper, whose float error is too large to be drawn beyond it."""
_NOT_EVALUATED = "not evaluated in a quick run"
_SHORT_TRAINING = "Training was cut short in this quick run: run without --quick for the claims about it."
_TEMPERATURES = ("1e-50", "0.01", "1", "100", "1e50")


@dataclass(frozen=True)
class Trial:
    """One network compiled and proved."""

    construction: str
    sequences: int
    targets: int
    network: ExactTransformer
    certificate: Certificate


def example() -> tuple[list[list[list[int]]], list[list[list[int]]]]:
    """Three overlapping sequences in the plane, with one, two and three targets."""
    inputs = [
        [[-2, 0], [-1, 2], [1, 1]],
        [[-1, 2], [1, 1], [2, -1]],
        [[0, -2], [1, 1], [-2, 0], [2, 2]],
    ]
    return inputs, [[[-1, -1], [0, 2]], [[2, 2]], [[1, -2], [-2, 1], [2, 0]]]


def gaussian_data(
    sequences: int, targets: int, generator: np.random.Generator | None = None, *, d: int = 3, n: int = 10
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Gaussian tokens on a grid of step 2^-12, half of them from a shared pool; Gaussian targets.

    Without a generator every size has its own seed.
    """
    generator = np.random.default_rng([0, sequences, targets]) if generator is None else generator

    def grid(*size: int) -> np.ndarray:
        return np.round(generator.normal(size=size) * 4096) / 4096

    pool = grid(sequences * n // 4 + n, d)
    inputs = [
        np.concatenate([pool[generator.choice(len(pool), n // 2, replace=False)], grid(n - n // 2, d)])
        for _ in range(sequences)
    ]
    return inputs, [grid(targets, d) for _ in range(sequences)]


def reproduce_interpolation(
    output: str | os.PathLike[str], *, quick: bool = False, progress: bool | None = None
) -> Report:
    """The figures and tables of the interpolation paper (arXiv 2502.02270), as a page.

    Figures are written as PNG and PDF, tables as CSV, JSON and Markdown, the page as ``interpolation.html``.

    Parameters
    ----------
    output
        Folder for the figures, the tables and the page; it is made if it does not exist.
    quick
        Smaller networks and shorter training; the claims about training are then not evaluated.
    progress
        Show a progress bar: True, False, or None for only when it takes long and there is a terminal.

    Returns
    -------
    Report
        The page.
    """
    folder = make_folder(output)
    sizes = [_trial(c, n, 3) for n in (_QUICK_SIZES if quick else _SIZES) for c in _allowed(n)]
    widths = [_trial(c, _WIDE, m) for m in (_QUICK_TARGETS if quick else _TARGETS) for c in _allowed(_WIDE)]
    long_epochs, epochs = _QUICK_EPOCHS if quick else _EPOCHS
    data = paper_data(0)
    long_run = train(data, 1e-4, long_epochs, progress=progress)
    runs = [train(data, eps, epochs, seed=1, progress=progress) for eps in (1e-1, 1e-2, 1e-3)]
    figures = {
        "stages-paper": _stages("paper"),
        "stages-leaders": _stages("leaders"),
        "stages-fewest": _stages("fewest"),
        "block-counts": _counts_figure(sizes, widths),
        "float-errors": _errors_figure(sizes),
        "training-loss": _training_figure(draw_training_loss, long_run, quick=quick),
        "loss-against-decay": _training_figure(draw_loss_against_decay, runs, quick=quick),
    }
    tables = {
        "networks": _network_table(sizes),
        "softmax": _softmax_table(),
        "training": _training_table([*runs, long_run], quick=quick),
        "claims": _claims_table(sizes + widths, long_run, runs, quick=quick),
    }
    film = animate_network(interpolate(*example()), folder / "tokens.gif", progress=progress)
    _write(folder, figures, tables)
    report = _page(folder, tables, film, quick=quick)
    write_text(folder / PAGE, report.to_html())
    return report


def _allowed(sequences: int) -> tuple[str, ...]:
    return CONSTRUCTIONS if sequences <= _PAPER_LIMIT else CONSTRUCTIONS[1:]


def _trial(construction: str, sequences: int, targets: int) -> Trial:
    network = interpolate(*gaussian_data(sequences, targets), construction=construction, progress=False)  # type: ignore[arg-type]
    return Trial(construction, sequences, targets, network, network.certify(progress=False))


def _stages(construction: str) -> Figure:
    figure = new_figure(13.0, 3.0)
    draw_construction(interpolate(*example(), construction=construction), figure)  # type: ignore[arg-type]
    return figure


def _training_figure(draw: object, value: object, *, quick: bool) -> Figure:
    figure = new_figure(5.6, 3.8)
    with styled():
        ax = figure.add_subplot()
    draw(value, ax=ax, judged=not quick)  # type: ignore[operator]
    return figure


def _counts_figure(sizes: list[Trial], widths: list[Trial]) -> Figure:
    figure = new_figure(11.2, 4.2)
    with styled():
        left, right = figure.subplots(1, 2)
    draw_block_counts(_counts(sizes, lambda t: t.sequences), ax=left)
    left.set_title("10 tokens, 3 targets each", loc="left")
    draw_block_counts(_counts(widths, lambda t: t.network.data.targets), along=r"targets $\sum m$", ax=right)
    right.set_title(f"{_WIDE} sequences of 10 tokens", loc="left")
    return figure


def _counts(trials: list[Trial], size: object) -> dict[str, dict[int, int]]:
    counts: dict[str, dict[int, int]] = {"published bound": {}}
    for trial in trials:
        key = size(trial)  # type: ignore[operator]
        counts["published bound"][key] = trial.network.counts.published
        counts.setdefault(trial.construction, {})[key] = trial.network.counts.blocks
        counts.setdefault("necessary", {})[key] = trial.network.counts.necessary_blocks
    return counts


def _errors_figure(sizes: list[Trial]) -> Figure:
    errors: dict[str, dict[int, float]] = {}
    for trial in sizes:
        errors.setdefault(trial.construction, {})[trial.sequences] = trial.certificate.float64_error
    figure = new_figure(5.8, 4.2)
    with styled():
        ax = figure.add_subplot()
    draw_float_errors(errors, ax=ax)
    return figure


def _network_table(sizes: list[Trial]) -> Table:
    rows = [
        (
            t.sequences,
            t.construction,
            t.network.counts.blocks,
            t.network.counts.published,
            t.network.counts.ratio,
            t.network.counts.parameters,
            t.network.longest_weight,
            t.network.report.conditioning,
            t.certificate.float64_error,
            t.certificate.proved,
        )
        for t in sizes
    ]
    columns = ("N", "construction", "blocks", "published bound", "ratio", "parameters", "bits of the longest weight",
               "range/gap", "float64 error", "proved")  # fmt: skip
    return Table("Networks for Gaussian data, d = 3, n = 10, m = 3", columns, rows)


def _softmax_table() -> Table:
    data = gaussian_data(8, 3)
    rows = []
    for heat in _TEMPERATURES:
        for construction in ("leaders", "fewest"):
            net = interpolate(*data, construction=construction, attention="softmax", temperature=heat, progress=False)
            proof = net.certify(progress=False)
            rows.append(
                (
                    heat,
                    construction,
                    len(net.blocks),
                    net.counts.published,
                    proof.arithmetic,
                    proof.float64_error,
                    proof.proved,
                )
            )
    columns = ("temperature", "construction", "blocks", "published bound", "arithmetic", "float64 error", "proved")
    return Table("Softmax attention, N = 8", columns, rows)


def _training_table(runs: list[RegularisedRun], *, quick: bool) -> Table:
    rows = [
        (
            f"{run.eps:.0e}",
            run.epochs[-1],
            run.threshold,
            *(
                (_NOT_EVALUATED,) * 3
                if quick
                else (run.reached_at or "not passed", run.final_loss, run.final_objective)
            ),
        )
        for run in runs
    ]
    columns = ("eps", "epochs", "threshold", "passed at epoch", "final loss", "final loss + penalty")
    return Table("Regularised training, each eps from a fresh start", columns, rows, _SHORT_TRAINING if quick else "")


def _claims_table(trials: list[Trial], long_run: RegularisedRun, runs: list[RegularisedRun], *, quick: bool) -> Table:
    ours = [t for t in trials if t.construction != "paper"]
    training = (_NOT_EVALUATED,) * 5 if quick else _training_findings(long_run, runs)
    rows = [
        ("T(X) = Y on every sequence", "proved on paper", f"proved by computation, {len(trials)} networks"
         if all(t.certificate.proved for t in trials) else "NOT PROVED"),
        ("blocks over the bound 2M + 2N + 1", "1", f"{min(t.network.counts.ratio for t in ours):.2f} to "
         f"{max(t.network.counts.ratio for t in ours):.2f}"),
        ("loss below eps |theta*|^2, eps = 1e-4", "within 50,000 epochs",
         training[0]),
        ("least loss over eps |theta*|^2, eps = 1e-4", "below 1", training[1]),
        ("loss below the threshold for eps = 1e-1, 1e-2, 1e-3", "yes", training[2]),
        ("exponent of the loss in eps, over 1e-1, 1e-2, 1e-3", "1 (linear)", training[3]),
        ("exponent of the loss with its penalty", "at most linear", training[4]),
    ]  # fmt: skip
    columns = ("claim", "published", "found")
    return Table("Claims of the paper, and what was found", columns, rows, _SHORT_TRAINING if quick else "")


def _training_findings(long_run: RegularisedRun, runs: list[RegularisedRun]) -> tuple[str, ...]:
    exponents = decay_exponents(runs)
    return (
        f"epoch {long_run.reached_at:,}" if long_run.reached_at else f"not in {int(long_run.epochs[-1]):,} epochs",
        f"{long_run.least_loss / long_run.threshold:.3g}",
        "yes" if all(run.final_loss <= run.threshold for run in runs) else "no",
        f"{exponents[0]:.2f}",
        f"{exponents[1]:.2f}",
    )


def _write(folder: Path, figures: dict[str, Figure], tables: dict[str, Table]) -> None:
    for name, figure in figures.items():
        save_figure(figure, folder / f"{name}.png", dpi=130)
        save_figure(figure, folder / f"{name}.pdf")
    for name, table in tables.items():
        write_text(folder / f"{name}.csv", table.to_csv())
        write_text(folder / f"{name}.json", table.to_json())
        write_text(folder / f"{name}.md", table.to_markdown())


def _page(folder: Path, tables: dict[str, Table], film: Path, *, quick: bool) -> Report:
    report = Report(
        "Exact sequence interpolation",
        lead="Data sets compiled into transformers with rational weights; every network on this page was proved right "
        "in exact arithmetic.",
    )

    def picture(name: str) -> bytes:
        return (folder / f"{name}.png").read_bytes()

    section = report.section("The construction in the plane")
    section.text(
        "Three overlapping sequences (colours and shapes) are mapped to one, two and three targets (rings). First the "
        "construction outlined in the paper: witnesses separate the sequences, leaders and a circle select, one "
        "attention layer collapses, hat functions map to the targets. Then `leaders`, by argmax attention, and "
        "`fewest`, by one mean."
    )
    section.picture(picture("stages-paper"), "The construction of the paper, with parameters chosen here.")
    section.picture(picture("stages-leaders"), "Construction leaders.")
    section.picture(picture("stages-fewest"), "Construction fewest.")
    section.picture(film.read_bytes(), "Tokens on their way through the blocks of construction leaders.", narrow=True)
    section = report.section("How many blocks")
    section.picture(picture("block-counts"), "Blocks over the number of sequences and over the number of targets.")
    section.table(tables["claims"])
    section = report.section("In floating point")
    section.picture(picture("float-errors"), "The largest error of the rounded networks in float64.", narrow=True)
    section.table(tables["networks"])
    section = report.section("Softmax")
    section.text("The same statement for genuine softmax attention, proved with balls that contain the exact numbers.")
    section.table(tables["softmax"])
    section = report.section("Regularised training")
    section.text(
        "If some parameters fit the data exactly, the loss of any minimiser with weight decay is at most the penalty "
        "of those parameters. Ten sequences of a hundred tokens, targets from one hidden block, each run from a fresh "
        "start." + (f" {_SHORT_TRAINING}" if quick else "")
    )
    section.picture(
        picture("training-loss"),
        "The first epochs of the long run, too few to be compared with the threshold."
        if quick
        else "Loss of the long run, and the threshold.",
        narrow=True,
    )
    section.picture(
        picture("loss-against-decay"),
        "The thresholds; what training leaves is not evaluated in a quick run."
        if quick
        else "Loss after training against the weight decay.",
        narrow=True,
    )
    section.table(tables["training"])
    return report
