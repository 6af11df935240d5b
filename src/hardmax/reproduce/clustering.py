"""Figures 1 and 2 of "Clustering in pure-attention hardmax transformers", and its theorem checked on random systems.

Alcalde, Fantuzzi, Zuazua, arXiv 2407.01602.
"""

from __future__ import annotations

import os
from typing import Any

from matplotlib.figure import Figure

from ..attention.layer import HardmaxLayer
from ..datasets import half_space_example, make_matrix, paper_configurations
from ..dynamics.simulate import simulate
from ..figures import draw_attention_geometry, draw_layers_until_decided, draw_panels, figure_bytes, new_figure
from ..figures.tokens import CONVENTIONS
from ..files import make_folder
from .random_systems import (
    DIMENSIONS,
    SEED,
    TOKENS,
    Trial,
    facts_table,
    layers_by_size,
    layers_table,
    run_systems,
    violations_table,
)
from .report import Report, write_results
from .tables import Table

_FULL = (60, 15)
_QUICK = (10, 2)
"""Systems per n and d, and the number of them on which the theorem is checked."""

PAGE = "clustering.html"

_SIDE = 1.2
"""Half the side of a panel of Figure 2: all its tokens lie in [-1, 1] x [-1, 1], and markers need some room."""


def figure_one() -> Figure:
    """Figure 1: the half-plane that can attract the first token, for A = I and A = ((2, 1), (1, 1))."""
    figure = new_figure(9.6, 4.9)
    tokens = half_space_example()
    cases = ((None, "A = I"), (make_matrix("paper", 2, None), "A = ((2, 1), (1, 1))"))
    for ax, (A, name) in zip(figure.subplots(1, 2), cases, strict=True):
        draw_attention_geometry(tokens, HardmaxLayer(0.5, A), ax=ax)
        ax.set_title(name, loc="left")
    return figure


def figure_two() -> Figure:
    """Figure 2: the four initial configurations of the paper, one per row, at its layers."""
    configurations = paper_configurations()
    figure = new_figure(12.6, 2.75 * len(configurations) + 0.5)
    rows: Any = figure.subfigures(len(configurations), 1)
    for row, configuration in zip(rows, configurations, strict=True):
        layers = configuration.layers
        run = simulate(configuration.tokens, HardmaxLayer(configuration.alpha), depth=layers[-1])
        axes = list(row.subplots(1, len(layers)))
        draw_panels(run, layers, axes=axes)
        for ax in axes:
            ax.set(xlim=(-_SIDE, _SIDE), ylim=(-_SIDE, _SIDE), xticks=(-1, 0, 1), yticks=(-1, 0, 1))
        row.suptitle(configuration.title, x=0.012, ha="left", fontsize=12, fontweight="bold")
    figure.supxlabel(CONVENTIONS, fontsize=9, color="#5b6873")
    return figure


def reproduce_clustering(
    output: str | os.PathLike[str], *, quick: bool = False, progress: bool | None = None
) -> Report:
    """The figures and tables of the clustering paper (arXiv 2407.01602), as a page.

    Figures are written as PNG and PDF, tables as CSV, JSON and Markdown, the page as ``clustering.html``.

    Parameters
    ----------
    output
        Folder for the figures, the tables and the page; it is made if it does not exist.
    quick
        Check the theorem on fewer random systems.
    progress
        Show a progress bar: True, False, or None for only when it takes long and there is a terminal.

    Returns
    -------
    Report
        The page.
    """
    folder = make_folder(output)
    trials = run_systems(*(_QUICK if quick else _FULL), progress=progress)
    figures = {
        "figure-1": figure_one(),
        "figure-2": figure_two(),
        "layers-until-decided": draw_layers_until_decided(layers_by_size(trials)),
    }
    tables = {"facts": facts_table(trials), "layers-until-decided": layers_table(trials)}
    report = _page(figures, tables, trials)
    write_results(folder, figures, tables)
    report.write(folder / PAGE)
    return report


def _page(figures: dict[str, Figure], tables: dict[str, Table], trials: list[Trial]) -> Report:
    pictures = {name: figure_bytes(figure, dpi=150) for name, figure in figures.items()}
    report = Report(
        "Clustering in pure-attention hardmax transformers",
        lead="Tokens are points, layers are time. In every layer a token moves towards the tokens of the largest "
        "score, to which it listens. Tokens that listen to themselves alone are leaders; every other token ends at a "
        "leader or on a face between some. Figures of Alcalde, Fantuzzi and Zuazua (arXiv 2407.01602), and their "
        "theorem checked on random systems.",
    )
    rows = paper_configurations()
    report.section("Figure 1: the half-plane that can attract a token").text(
        "The first token can be attracted only by points whose score is at least its own: a half-plane whose boundary "
        "goes through the token and is normal to A times the token. It listens to the token farthest in that direction."
    ).picture(
        pictures["figure-1"],
        "With A = I the half-plane faces away from the origin, and two tokens tie: the first token listens to both. "
        "With A = ((2, 1), (1, 1)) the half-plane is turned, and the tie is broken.",
    )
    report.section("Figure 2: leaders, followers and the polytope").text(
        "Four starting configurations with alpha = 0.5 and A = I, at layers 0, 1, 2, 5 and 30. The tokens are those of "
        "the authors' notebook; where it draws tokens at random, they were read from the published figure."
    ).picture(
        pictures["figure-2"],
        f"Rows from top to bottom. {' '.join(c.says for c in rows)}",
        alt=f"Four rows of five panels. {' '.join(f'{c.title}.' for c in rows)}",
    )
    checked = [trial for trial in trials if trial.findings]
    violations = violations_table(trials)
    theorem = report.section("The theorem checked on random systems")
    theorem.text(
        f"Systems of {TOKENS[0]} to {TOKENS[-1]} tokens in {DIMENSIONS[0]} to {DIMENSIONS[-1]} dimensions, in general "
        "position or with many exact ties, were run until every token was decided and a few layers more. On each, the "
        "conclusions of Theorem 1.1 and six facts of its proof were checked numerically."
    ).numbers(
        {
            "systems checked": len(checked),
            "statements measured": sum(f.holds is not None for trial in checked for f in trial.findings),
            "violations": len(violations.rows),
        }
    ).table(tables["facts"])
    if violations.rows:
        theorem.table(violations)
    report.section("Layers until everything is decided").text(
        "Once a token listens to one leader alone it does so for ever, so its future is known in closed form. The cost "
        "of the limit of infinite depth is the number of layers until that holds for every token."
    ).numbers(
        {
            "systems run": len(trials),
            "mean layer at which a token is decided": _mean_decided(trials),
            "most layers any system took": max(trial.layers for trial in trials),
            "systems left undecided": sum(trial.layers < 0 for trial in trials),
        }
    ).picture(
        pictures["layers-until-decided"],
        "Share of systems by the number of layers until all tokens were decided. It grows with the number of tokens, "
        "not with the dimension.",
    ).table(tables["layers-until-decided"])
    report.section("Reproduce this page").text(
        f"All random numbers come from the seed {SEED}, so this command gives the same numbers."
    ).code("hardmax reproduce clustering")
    return report


def _mean_decided(trials: list[Trial]) -> float:
    known = [trial.decided_at[trial.decided_at >= 0] for trial in trials]
    total = sum(len(layers) for layers in known)
    return round(sum(float(layers.sum()) for layers in known) / max(total, 1), 2)
