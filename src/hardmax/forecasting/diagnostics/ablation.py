"""Ablation of the attention features: the same base and settings, one part changed at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..features.feature_map import FeatureMap
from ..features.lag_network import Kind
from ..models.td_dmd import least_squares_with_inputs
from ..protocol import FloatArray
from ..rollout import Member, roll
from ..search.attention_training import train_networks
from ..search.model_search import exact_stage, plan_for
from ..search.readout_search import Candidate, Search
from ..search.time_budget import TimeBudget
from ..search.validation import Fold, make_folds, outside_validation
from ..settings import Settings


@dataclass(frozen=True)
class AblationRow:
    """One variant of the model.

    Attributes
    ----------
    variant
        What was changed.
    error
        Geometric mean of its validation rollout errors, in standard deviations.
    score
        Validation score by which models are selected; lower is better.
    parameters
        Number of trained weights.
    """

    variant: str
    error: float
    score: float
    parameters: int


@dataclass(frozen=True)
class Ablation:
    """Validation errors of the variants of a model.

    Attributes
    ----------
    rows
        One row per variant, the full model first.
    base
        Name of the features to which the networks are added.
    horizon
        Number of steps of the validation rollouts.
    """

    rows: tuple[AblationRow, ...]
    base: str
    horizon: int

    def text(self) -> str:
        """Table in plain characters.

        Returns
        -------
        str
            One line per variant, below two lines of heading.
        """
        about = f"Validation rollouts over {self.horizon} steps, beside {self.base}."
        head = f"{'variant':<28}{'error':>12}{'parameters':>12}"
        return "\n".join([about, head, *(f"{r.variant:<28}{r.error:>12.3g}{r.parameters:>12d}" for r in self.rows)])

    def data(self) -> dict[str, Any]:
        """Everything as plain values for JSON.

        Returns
        -------
        dict
            ``"rows"``, ``"base"`` and ``"horizon"``.
        """
        return {"rows": [vars(row) for row in self.rows], "base": self.base, "horizon": self.horizon}


def ablate(trajectories: Sequence[FloatArray], outputs: int, settings: Settings) -> Ablation:
    """Ablation of the default recipe: each variant is trained on the same windows with the same restarts."""
    plan = plan_for(trajectories, settings)
    fold = make_folds(trajectories, outputs, plan.longest, plan.horizon)[0]
    search = Search(fold, outputs, settings.seed, TimeBudget())
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
            outside_validation(trajectories),
            outputs,
            kind=kind,
            restarts=settings.restarts,
            spacing=plan.spacing,
            longest=plan.longest,
            seed=settings.seed,
            may_continue=lambda: True,
            feed_forward=feed_forward,
        )
        trial = Search(fold, outputs, settings.seed, TimeBudget())
        trial.screen(found.groups, (base.noise,))
        trial.evaluate_best(20)
        if trial.candidates:
            rows.append(_row(name, trial.candidates[0], fold))
    rows.append(_row("no network", base, fold))
    return Ablation(tuple(rows), base.label, fold.horizon)


def ablate_published(trajectories: Sequence[FloatArray], outputs: int, settings: Settings) -> Ablation:
    """Ablation of the published recipe: each variant is trained by AdamW on the same data.

    The layer has no linear path to remove, so the row without a network is TD-DMD on the same window.
    """
    from ..models.published import published_window, train_published  # imports torch, which takes seconds

    plan = plan_for(trajectories, settings)
    context = max(plan.longest, published_window(trajectories, settings))
    fold = make_folds(trajectories, outputs, context, plan.horizon)[0]
    training = fold.training
    plain = train_published(training, outputs, settings, attentive=False)
    variants = {
        "attention": train_published(training, outputs, settings),
        "uniform attention": plain,
        "an MLP in its place": train_published(training, outputs, settings, kind="mlp"),
        "no feed-forward": train_published(training, outputs, settings, feed_forward=False),
        "no network": least_squares_with_inputs(training, plain.features.window, outputs),
    }
    frozen = sum(plain.features.networks[0].weights[name].size for name in ("queries", "keys"))
    rows = [_member_row(name, member, fold, frozen if member is plain else 0) for name, member in variants.items()]
    return Ablation(tuple(rows), f"the latest of {plain.features.window} samples", fold.horizon)


def _row(name: str, candidate: Candidate, fold: Fold) -> AblationRow:
    return _member_row(name, candidate.member, fold)


def _member_row(name: str, member: Member, fold: Fold, frozen: int = 0) -> AblationRow:
    """Error and score of a variant on the fold; ``frozen`` weights are not counted as parameters."""
    parameters = member.readouts.size + member.features.inner_parameters - frozen
    paths = roll([member], fold.windows, fold.horizon, future=fold.future)
    return AblationRow(name, fold.typical_error(paths[0]), float(fold.score(paths)[0]), parameters)
