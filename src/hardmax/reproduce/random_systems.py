"""Random systems on which the theorem is checked, and tables of the results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from ..attention.layer import HardmaxLayer
from ..datasets import make_matrix, make_tokens
from ..dynamics.equilibrium import equilibrium
from ..geometry.findings import Finding
from ..geometry.theorem import check_theorem
from ..progress import Ticker
from ..threads import one_thread
from .tables import Table

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
