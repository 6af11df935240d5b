"""Figures 1 and 2 of "Clustering in pure-attention hardmax transformers", and its theorem checked on random systems.

Alcalde, Fantuzzi, Zuazua, arXiv 2407.01602.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from ..attention.layer import HardmaxLayer
from ..datasets import half_space_example, make_matrix, make_tokens, paper_configurations
from ..dynamics.equilibrium import equilibrium
from ..dynamics.simulate import simulate
from ..figures import draw_attention_geometry, draw_layers_until_decided, draw_panels, figure_bytes, new_figure
from ..figures.tokens import CONVENTIONS
from ..files import make_folder
from ..geometry.findings import Finding
from ..geometry.theorem import check_theorem
from ..progress import Ticker
from ..threads import one_thread
from .report import Report, Table, write_results

TOKENS = (5, 20, 60, 200)
DIMENSIONS = (2, 3, 5, 8)
# Any fixed seed; this one is the month of the paper.
SEED = 2407


@dataclass(frozen=True, eq=False)
class Trial:
    """The results of one random system."""

    n: int
    d: int
    number: int
    """Number of the system among those of its size, as in ``draw_system(n, d, number)``."""
    layers: int
    """Layers until every token was decided; -1 if some were not."""
    decided_at: np.ndarray
    leaders: int
    late_leaders: int
    """Leaders that emerged after layer 0."""
    on_faces: int
    """Number of limit points on faces."""
    findings: tuple[Finding, ...]
    """Findings of the check of the theorem; empty where it was not checked."""


@dataclass(frozen=True, eq=False)
class System:
    """Tokens and a layer, drawn at random."""

    tokens: np.ndarray
    layer: HardmaxLayer


def draw_system(n: int, d: int, number: int) -> System:
    """The ``number``-th system of this size: even ones in general position, odd ones with many exact ties.

    General: normal tokens, a random symmetric positive definite A. Tied: integer points, A = I. In both alpha is
    log-uniform in [0.05, 3].
    """
    rng = np.random.default_rng([SEED, n, d, number])
    alpha = float(np.exp(rng.uniform(np.log(0.05), np.log(3.0))))
    if number % 2 == 0:
        return System(make_tokens("gaussian", n, d, rng), HardmaxLayer(alpha, make_matrix("random-spd", d, rng)))
    return System(make_tokens("grid", n, d, rng), HardmaxLayer(alpha))


def run_systems(each: int, checked: int, progress: bool | None = None) -> list[Trial]:
    """Results of ``each`` systems per n and d; the theorem is checked on the first ``checked`` of them."""
    trials = []
    cells = [(n, d) for n in TOKENS for d in DIMENSIONS]
    with one_thread(), Ticker("random systems", each * len(cells), progress=progress) as ticker:
        for n, d in cells:
            for number in range(each):
                trials.append(_run(n, d, number, check=number < checked))
                ticker.advance(note=f"n = {n}, d = {d}")
    return trials


def _run(n: int, d: int, number: int, check: bool) -> Trial:
    system = draw_system(n, d, number)
    limit = equilibrium(system.tokens, system.layer, progress=False)
    decided_at = np.asarray(limit.decided_at)
    return Trial(
        n=n,
        d=d,
        number=number,
        layers=limit.layers if limit.outcome.ok and (decided_at >= 0).all() else -1,
        decided_at=decided_at,
        leaders=len(limit.leaders),
        late_leaders=int((np.asarray(limit.emerged_at) > 0).sum()),
        on_faces=int(limit.on_faces.sum()),
        findings=check_theorem(system.tokens, system.layer).findings if check else (),
    )


def layers_by_size(trials: list[Trial]) -> Mapping[tuple[int, int], np.ndarray]:
    """Layers until decided by n and d, each of shape (systems,); undecided systems are left out."""
    sizes = sorted({(trial.n, trial.d) for trial in trials})
    return {size: np.array([t.layers for t in trials if (t.n, t.d) == size and t.layers >= 0]) for size in sizes}


def facts_table(trials: list[Trial]) -> Table:
    """Table of the statements, with the number of systems on which each was checked and violated."""
    rows = []
    for name, statement in _statements(trials):
        found = [f for t in trials for f in t.findings if f.name == name and f.holds is not None]
        rows.append(
            (
                statement,
                len(found),
                sum(f.holds is False for f in found),
                max((f.worst for f in found), default=None),
                max((f.tolerance for f in found), default=None),
            )
        )
    return Table(
        "Facts 1 to 6 and the conclusions of Theorem 1.1 on random systems",
        ("statement", "systems", "violations", "worst excess", "counts as rounding"),
        rows,
        note="Excess is relative to the size of the tokens. A statement is not checked where its assumptions fail, "
        "such as fact 3 when two tokens are longest.",
    )


def _statements(trials: list[Trial]) -> Iterator[tuple[str, str]]:
    """Name and wording of each statement, facts first."""
    seen = {finding.name: finding.statement for trial in trials for finding in trial.findings}
    yield from sorted(seen.items(), key=lambda item: (not item[1].startswith("Fact"), item[1]))


def violations_table(trials: list[Trial]) -> Table:
    """Table of the violations, each with its system."""
    rows = [
        (trial.n, trial.d, trial.number, finding.statement, finding.sentence)
        for trial in trials
        for finding in trial.findings
        if finding.holds is False
    ]
    return Table("Violations, and where they were found", ("n", "d", "system", "statement", "measured"), rows)


def layers_table(trials: list[Trial]) -> Table:
    """Table of the layers until decided by n and d, with leaders, late leaders and points on faces."""
    rows = []
    for n, d in sorted({(trial.n, trial.d) for trial in trials}):
        same = [trial for trial in trials if (trial.n, trial.d) == (n, d)]
        layers = np.array([trial.layers for trial in same if trial.layers >= 0])
        per_token = np.concatenate([trial.decided_at[trial.decided_at >= 0] for trial in same])
        rows.append(
            (
                n,
                d,
                len(same),
                sum(trial.layers < 0 for trial in same),
                round(float(layers.mean()), 2) if len(layers) else None,
                int(layers.max()) if len(layers) else None,
                round(float(per_token.mean()), 2) if len(per_token) else None,
                round(float(np.mean([trial.leaders for trial in same])), 1),
                sum(trial.late_leaders for trial in same),
                sum(trial.on_faces for trial in same),
            )
        )
    return Table(
        "Layers until every token is decided",
        (
            "n",
            "d",
            "systems",
            "undecided",
            "mean layers",
            "most layers",
            "mean per token",
            "mean leaders",
            "late leaders",
            "on faces",
        ),
        rows,
        note="Half of the systems are normal tokens with a random positive definite A, half are integer points with "
        "A = I and many exact ties; alpha is log-uniform in [0.05, 3]. Late leaders emerged after layer 0; points on "
        "faces are limits that are no vertices; both are summed over the systems.",
    )


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
