"""What the parts of the attention features are worth: the same base and budget, one part changed at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from .attention import Kind
from .clock import Clock
from .family import Settings, exact_stage, plan_for
from .features import FeatureMap
from .held_out import Fold, make_folds, middle_of
from .networks import train_networks
from .protocol import FloatArray
from .rolling import roll
from .search import Candidate, Search


@dataclass(frozen=True)
class AblationRow:
    """One variant: its typical held-out rollout error (standard deviations) and its number of parameters."""

    variant: str
    error: float
    score: float
    parameters: int


@dataclass(frozen=True)
class Ablation:
    """The variants, the full one first; ``base`` says what the features stand beside."""

    rows: tuple[AblationRow, ...]
    base: str
    horizon: int

    def text(self) -> str:
        """The table, in plain characters."""
        about = f"Held-out rollouts over {self.horizon} steps, beside {self.base}."
        head = f"{'variant':<28}{'error':>12}{'parameters':>12}"
        return "\n".join([about, head, *(f"{r.variant:<28}{r.error:>12.3g}{r.parameters:>12d}" for r in self.rows)])

    def data(self) -> dict[str, Any]:
        """Everything as plain values."""
        return {"rows": [vars(row) for row in self.rows], "base": self.base, "horizon": self.horizon}


def ablate(trajectories: Sequence[FloatArray], outputs: int, settings: Settings) -> Ablation:
    """Train each variant on the same windows with the same restarts, and compare held-out rollouts."""
    plan = plan_for(trajectories, settings)
    fold = make_folds(trajectories, outputs, plan.longest, plan.horizon)[0]
    search = Search(fold, outputs, settings.seed, Clock())
    exact_stage(search, plan)
    base = search.best("polynomial") or search.candidates[0]
    bare = replace(base, features=FeatureMap(base.features.channels), label="nothing")
    variants: list[tuple[str, Candidate, Kind, bool]] = [
        ("attention", base, "attention", True),
        ("uniform attention", base, "uniform", True),
        ("an MLP in its place", base, "mlp", True),
        ("no feed-forward", base, "attention", False),
        ("no linear path", bare, "attention", True),
    ]
    rows = []
    for name, beside, kind, feed_forward in variants:
        found = train_networks(
            beside,
            middle_of(trajectories),
            outputs,
            kind=kind,
            restarts=settings.restarts,
            spacing=plan.spacing,
            longest=plan.longest,
            seed=settings.seed,
            go_on=lambda: True,
            feed_forward=feed_forward,
        )
        trial = Search(fold, outputs, settings.seed, Clock())
        trial.screen(found.groups, (base.noise,))
        trial.settle(20)
        if trial.candidates:
            rows.append(_row(name, trial.candidates[0], fold))
    rows.append(_row("no network", base, fold))
    return Ablation(tuple(rows), base.label, fold.horizon)


def _row(name: str, candidate: Candidate, fold: Fold) -> AblationRow:
    parameters = candidate.readout.size + candidate.features.inner_parameters
    paths = roll([candidate.member], fold.windows, fold.horizon, future=fold.future)[0]
    return AblationRow(name, fold.typical_error(paths), candidate.score, parameters)
