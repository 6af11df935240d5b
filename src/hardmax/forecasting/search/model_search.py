"""The default recipe: a search over TD-DMD, NG-RC, echo state and attention features."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from ...progress import in_stages
from ..data.delay_windows import lag_spacing, lags
from ..features.candidates import (
    LEAKS,
    NOISES,
    RADII,
    STRENGTHS,
    Embeddings,
    Group,
    lag_polynomial_groups,
    linear_groups,
    principal_polynomial_groups,
    reservoir_groups,
    truncated_groups,
)
from ..features.feature_map import FeatureMap
from ..features.lag_network import Kind
from ..features.reservoir import draw_reservoir
from ..protocol import FloatArray
from ..rollout import Member, Predictor, roll
from ..settings import Settings
from .attention_training import train_networks
from .readout_search import BY_MODES, RIDGES, Candidate, Learner, Search
from .refit import Refit
from .selection import Selection, rank, select
from .time_budget import TimeBudget
from .validation import Fold, make_folds, outside_validation

_LONGEST_WINDOW = 300
_SMALL, _LARGE = 150, 300
_SHORTEST_WARM_UP = 30
_ONE_STEP_ROWS = 32
_ERROR_STARTS = 64
"""Starts in each fold from which the growth of errors is measured; models are compared from fewer."""
_FEWEST_FOR_RESERVOIR = 600
TRUNCATED_RIDGES: FloatArray = np.append(RIDGES[::3], BY_MODES)
STAGES = {
    "delay windows": 1.0,
    "linear models": 5.0,
    "polynomials": 10.0,
    "reservoirs": 30.0,
    "attention": 14.0,
    "selection": 17.0,
    "bounded rollouts and refit": 20.0,
    "held-out errors": 3.0,
}
"""The stages of a fit, with the percentage of its time that each took on 2,000 samples of Lorenz '63."""
FAMILIES = ("linear", "polynomial", "reservoir", "attention", "uniform", "mlp")


@dataclass(frozen=True)
class Plan:
    """Sizes that follow from the data: the spacing of lags, the longest window, the horizon of comparison."""

    spacing: int
    longest: int
    horizon: int


@dataclass(frozen=True)
class SearchResult:
    """The model and how it was found."""

    predictor: Predictor
    selection: Selection
    plan: Plan
    folds: list[Fold]
    tried: int
    seconds: float
    """Processor seconds."""
    budget_ended: bool
    """Whether the search ended because its time was over."""
    best_by_family: dict[str, Candidate]
    explained: list[float]
    beyond_linear: float
    typical_error: float
    """The geometric mean of held-out errors of the choice, in standard deviations."""
    linear_error: float


def plan_for(trajectories: Sequence[FloatArray], settings: Settings) -> Plan:
    """The sizes for these data; lengths are counted in samples."""
    spacing = lag_spacing(trajectories)
    typical = int(np.median([len(z) for z in trajectories]))
    longest = settings.delays + 1 if settings.delays is not None else min(_LONGEST_WINDOW, typical // 8)
    shortest = min(len(z) for z in trajectories)
    longest = int(np.clip(longest, 1, max(1, shortest // 3 if settings.delays is None else shortest - 6)))
    horizon = settings.horizon if settings.horizon is not None else int(np.clip(20 * spacing, 100, 400))
    return Plan(spacing, longest, horizon)


def fit_family(trajectories: Sequence[FloatArray], outputs: int, settings: Settings) -> SearchResult:
    """Search, select, refit: trajectories are normalised, inputs behind the outputs."""
    time_budget = TimeBudget(settings.seconds, settings.budget)
    with in_stages("fit", STAGES, progress=settings.progress, most=settings.budget) as stages:
        stages.begin("delay windows")
        time_budget.on_check = stages.beat
        plan = plan_for(trajectories, settings)
        folds = make_folds(trajectories, outputs, plan.longest, plan.horizon)
        search = Search(folds[0], outputs, settings.seed, time_budget)
        embeddings = Embeddings(folds[0].training)
        stages.begin("linear models")
        _linear_stage(search, plan, embeddings)
        stages.begin("polynomials")
        _polynomial_stage(search, plan, embeddings)
        stages.begin("reservoirs")
        _reservoir_stage(search, plan, settings)
        stages.begin("attention")
        explained = _network_stage(search, plan, settings, outside_validation(trajectories))
        stages.begin("selection")
        ranking = rank(search.candidates, folds, outputs, settings.seed, time_budget.affordable(40, 8))
        stages.begin("bounded rollouts and refit")
        refit = Refit(trajectories, outputs, settings.seed, folds[0])
        selection = select(ranking, refit.is_bounded, time_budget.time_for_selection)
        stages.begin("held-out errors")
        errors = refit.validation_errors(selection.chosen, folds_for_errors(trajectories, outputs, plan))
        predictor = refit.predictor(selection, errors, search.best(network_kind(settings.ablation)))
    best = {family: found for family in FAMILIES if (found := search.best(family)) is not None}
    beyond = explained_beyond_linear(selection, folds[0])
    typical = [
        folds[0].typical_error(roll(f.members, folds[0].windows, folds[0].horizon, future=folds[0].future)[0])
        for f in (selection.chosen, selection.linear)
    ]
    return SearchResult(
        predictor,
        selection,
        plan,
        folds,
        search.tried,
        time_budget.spent(),
        time_budget.ended,
        best,
        explained,
        beyond,
        *typical,
    )


def folds_for_errors(trajectories: Sequence[FloatArray], outputs: int, plan: Plan) -> list[Fold]:
    """Folds with many starts, to measure on how errors grow with the steps ahead.

    Of one or two records the end only: there a forecast goes on, and the beginning may be a transient.
    """
    folds = make_folds(trajectories, outputs, plan.longest, plan.horizon, _ERROR_STARTS)
    return folds if len(trajectories) >= 3 else folds[:1]


def exact_stage(search: Search, plan: Plan) -> None:
    """TD-DMD and polynomials: nothing inside is trained or drawn."""
    embeddings = Embeddings(search.fold.training)
    _linear_stage(search, plan, embeddings)
    _polynomial_stage(search, plan, embeddings)


def _linear_stage(search: Search, plan: Plan, embeddings: Embeddings) -> None:
    channels = search.fold.windows.shape[2]
    search.screen(linear_groups(channels, plan.longest), NOISES, share=0.1)
    search.screen(truncated_groups(channels, plan.longest, embeddings), (0.0,), share=0.15, ridges=TRUNCATED_RIDGES)
    search.evaluate_best(40)


def _polynomial_stage(search: Search, plan: Plan, embeddings: Embeddings) -> None:
    channels = search.fold.windows.shape[2]
    groups = lag_polynomial_groups(channels, plan.spacing, plan.longest)
    # NG-RC stands beside the model in every backtest, however little time there is.
    search.screen(groups, NOISES, share=0.28, at_least_one=True)
    search.screen(principal_polynomial_groups(channels, plan.spacing, plan.longest, embeddings), NOISES, share=0.4)
    search.evaluate_best(80)


def _reservoir_stage(search: Search, plan: Plan, settings: Settings) -> None:
    """Small reservoirs of many kinds, then larger ones of the best kinds, alone and beside the best polynomials."""
    channels = search.fold.windows.shape[2]
    base = search.best("polynomial") or search.best("linear")
    rows = sum(len(z) for z in search.fold.training)
    if (
        base is None
        or plan.longest < _SHORTEST_WARM_UP
        or rows < _FEWEST_FOR_RESERVOIR
        or not search.time_budget.within(0.4)
    ):
        return
    generator = np.random.default_rng([settings.seed, 5])
    alone = FeatureMap(channels, lags(channels, 1))
    noise = max(base.noise, 1e-3)
    kinds: list[tuple[float, tuple[float, float, float]]] = []
    small = draw_reservoir(channels, _SMALL, generator)
    for kind in product(RADII, STRENGTHS, LEAKS):
        before = len(search.screened)
        search.screen(reservoir_groups(plan.longest, small, alone, [kind]), (noise,), share=0.5, ridges=RIDGES[5:])
        added = search.screened[before:]
        if added:
            kinds.append((min(c.score for c in added), kind))
    search.evaluate_best(20)
    chosen = [kind for _, kind in sorted(kinds)[:2]]
    large = draw_reservoir(channels, _LARGE, generator)
    for features in (alone, base.features):
        search.screen(
            reservoir_groups(plan.longest, large, features, chosen),
            tuple(sorted({base.noise, noise})),
            share=0.6,
            ridges=RIDGES[5:],
        )
    search.evaluate_best(40)


def _network_stage(search: Search, plan: Plan, settings: Settings, pieces: Sequence[FloatArray]) -> list[float]:
    base = search.best("polynomial")
    if base is None or not search.time_budget.within(0.65):
        return []
    found = train_networks(
        base,
        pieces,
        search.outputs,
        kind=network_kind(settings.ablation),
        restarts=settings.restarts,
        spacing=plan.spacing,
        longest=plan.longest,
        seed=settings.seed,
        may_continue=lambda: search.time_budget.within(0.72),
    )
    search.screen(found.groups, (base.noise,), share=0.8)
    search.evaluate_best(40)
    return found.explained


def network_kind(ablation: str | None) -> Kind:
    """What stands in the place of attention."""
    return "uniform" if ablation == "uniform" else "mlp" if ablation == "mlp" else "attention"


def explained_beyond_linear(selection: Selection, fold: Fold) -> float:
    """The share of TD-DMD's one-step error variance, held out, that the chosen model explains."""
    if selection.chosen.is_linear:
        return 0.0
    known = fold.truth if fold.future is None else np.concatenate([fold.truth, fold.future], axis=2)
    paths = np.concatenate([fold.windows, known], axis=1)
    length = fold.windows.shape[1]
    steps = np.unique(np.linspace(0, fold.horizon - 1, _ONE_STEP_ROWS).astype(int))
    windows = np.concatenate([paths[:, step : step + length] for step in steps])
    truth = np.concatenate([fold.truth[:, step] for step in steps])
    errors = [
        float(((roll(members, windows, 1)[0][:, 0] - truth) ** 2).mean())
        for members in (selection.chosen.members, selection.linear.members)
    ]
    return float(np.clip(1.0 - errors[0] / max(errors[1], 1e-300), -1.0, 1.0))


def tuned_member(
    trajectories: Sequence[FloatArray],
    settings: Settings,
    groups: Callable[[Plan, Sequence[FloatArray]], Iterable[tuple[Iterable[Group], Sequence[float], FloatArray]]],
) -> Member:
    """One kind of model, tuned as its rivals are: best held-out rollout, refitted on all data, no guard."""
    outputs = trajectories[0].shape[1]
    plan = plan_for(trajectories, settings)
    fold = make_folds(trajectories, outputs, plan.longest, plan.horizon)[0]
    search = Search(fold, outputs, settings.seed, TimeBudget(settings.seconds))
    for some, noises, ridges in groups(plan, fold.training):
        search.screen(some, noises, ridges=ridges)
    search.evaluate_best(60)
    best = search.candidates[0]
    solved = Learner(trajectories, outputs, settings.seed).readouts([best.features], best.noise, np.array([best.ridge]))
    return Member(best.features, solved[0])
