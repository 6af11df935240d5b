"""The default recipe: a search over TD-DMD, NG-RC, echo state and attention features."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from ...errors import InputError
from ...progress import in_stages
from ..classical.seasons import check_record, find_seasons
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
from .held_out import folds_of
from .readout_search import BY_MODES, RIDGES, Candidate, Learner, Search
from .refit import Refit
from .selection import Finalist, Ranking, Selection, rank, select, select_family
from .simple_candidates import Recipe, longest_window, recipes_for
from .simple_comparison import Comparison, compare, in_whole_counts, make_origins
from .time_budget import TimeBudget
from .validation import Fold, make_folds, outside_validation

_LONGEST_WINDOW = 300
"""Samples in the longest window that is chosen from the data: a limit on the cost of a fit."""
_SMALL, _LARGE = 150, 300
"""Units of the reservoirs: small ones to compare settings, large ones of the best settings."""
_SHORTEST_WARM_UP = 30
"""Samples without which the state of a reservoir still depends on its start."""
_ONE_STEP_ROWS = 8
"""Steps of each rollout at which one-step errors are measured."""
_ERROR_STARTS = 64
"""Starts per fold from which the errors of the published model are measured; models are compared from fewer."""
_ATTENTION = (0.65, 0.72, 0.8)
"""Shares of the search until which the training of attention begins, restarts, and its networks are scored."""
_RESERVOIRS = (0.8, 0.86, 0.95)
"""Shares of the search until which reservoirs are begun, small ones are tried, and large ones."""
_FEWEST_FOR_RESERVOIR = 600
"""Training samples below which no reservoir is tried: its readout has hundreds of weights."""
TRUNCATED_RIDGES: FloatArray = np.append(RIDGES[::3], BY_MODES)
STAGES = {
    "delay windows": 1.0,
    "linear models": 5.0,
    "polynomials": 10.0,
    "attention": 14.0,
    "reservoirs": 30.0,
    "selection": 17.0,
    "bounded rollouts and refit": 20.0,
    "simple models": 10.0,
    "validation errors": 3.0,
}
"""Stages of a fit, with the percentage of its time that each took on 2,000 samples of Lorenz '63."""
FAMILIES = ("linear", "polynomial", "reservoir", "attention", "uniform", "mlp")
"""Families of candidates, as in their ``family``."""


@dataclass(frozen=True)
class Plan:
    """Sizes that follow from the data, in samples: spacing of lags, longest window, horizon of comparison."""

    spacing: int
    longest: int
    horizon: int


@dataclass(frozen=True)
class SearchResult:
    """The refitted model and how it was found."""

    predictor: Predictor
    selection: Selection
    plan: Plan
    folds: list[Fold]
    tried: int
    seconds: float
    """Processor seconds."""
    budget_ended: bool
    """Whether a time budget ended the search."""
    best_by_family: dict[str, Candidate]
    explained: list[float]
    beyond_linear: float
    typical_error: float
    """Geometric mean of the validation errors of the selected model, in standard deviations."""
    linear_error: float
    comparison: Comparison | None = None
    """Comparison with simple models over rolling origins; None where a model of the family was asked for."""


def plan_for(trajectories: Sequence[FloatArray], settings: Settings) -> Plan:
    """Sizes for these trajectories and settings."""
    spacing = lag_spacing(trajectories)
    typical = int(np.median([len(z) for z in trajectories]))
    longest = settings.delays + 1 if settings.delays is not None else min(_LONGEST_WINDOW, typical // 8)
    shortest = min(len(z) for z in trajectories)
    longest = int(np.clip(longest, 1, max(1, shortest // 3 if settings.delays is None else shortest - 6)))
    horizon = settings.horizon if settings.horizon is not None else int(np.clip(20 * spacing, 100, 400))
    return Plan(spacing, longest, horizon)


def fit_family(trajectories: Sequence[FloatArray], outputs: int, settings: Settings) -> SearchResult:
    """Selected model of the family, refitted on all data, with the course of the search.

    Trajectories are normalised; channels after the first ``outputs`` are exogenous inputs.
    """
    check_record(settings.seasons or (), trajectories)
    time_budget = TimeBudget(settings.seconds, settings.budget)
    with in_stages("fit", STAGES, progress=settings.progress, most=settings.budget) as stages:
        stages.begin("delay windows")
        time_budget.on_check = stages.beat
        plan = plan_for(trajectories, settings)
        folds = make_folds(trajectories, outputs, plan.longest, plan.horizon)
        search = Search(folds[0], outputs, settings.seed, time_budget)
        embeddings = Embeddings(folds[0].training)
        wanted = _FAMILY_OF.get(settings.model, settings.model)
        stages.begin("linear models")
        _linear_stage(search, plan, embeddings)
        explained: list[float] = []
        if wanted in ("auto", "family", "polynomial", "reservoir", "attention"):
            stages.begin("polynomials")
            _polynomial_stage(search, plan, embeddings)
        if wanted in ("auto", "family", "attention"):
            stages.begin("attention")
            explained = _network_stage(search, plan, settings, outside_validation(trajectories))
        if wanted in ("auto", "family", "reservoir"):
            stages.begin("reservoirs")
            _reservoir_stage(search, plan, settings)
        stages.begin("selection")
        finalists = time_budget.affordable(40, 8)
        ranking = rank(search.candidates, folds, outputs, settings.seed, finalists, time_budget.time_for_ranking)
        stages.begin("bounded rollouts and refit")
        refit = Refit(trajectories, outputs, settings.seed, folds[0])
        training = sum(len(z) for z in folds[0].training)
        selection = _selected(ranking, refit, settings, time_budget, training, plan.longest)
        stages.begin("simple models")
        comparison = _compared(trajectories, outputs, plan, settings, refit, selection, time_budget)
        selection = _kept(selection, comparison)
        stages.begin("validation errors")
        path = refit.path(selection)
        held_out = folds_of(trajectories, outputs, plan.longest, plan.horizon, path)
        errors = refit.validation_errors(selection.chosen, held_out)
        predictor = refit.predictor(selection, errors, search.best(network_kind(settings.ablation)), path)
    best = {family: found for family in FAMILIES if (found := search.best(family)) is not None}
    beyond = explained_beyond_linear(selection, folds[0])
    typical = _typical(selection, folds[0], comparison)
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
        comparison,
    )


_FAMILY_OF = {"td-dmd": "linear", "ng-rc": "polynomial"}
"""Families of candidates under the names of the argument ``model``, where these differ."""


def _selected(
    ranking: Ranking, refit: Refit, settings: Settings, time_budget: TimeBudget, training: int, longest: int
) -> Selection:
    """The best model of the family, or of the one that was asked for.

    ``training`` is the number of samples before the held-out part, ``longest`` that of the longest window.
    """
    family = _FAMILY_OF.get(settings.model, settings.model)

    def is_bounded(finalist: Finalist) -> bool:
        # TD-DMD and single polynomial models are checked to the end: one of them remains when the time is over.
        cheap = finalist.is_linear or (len(finalist.sources) == 1 and finalist.sources[0].family == "polynomial")
        return refit.is_bounded(finalist) if cheap else refit.is_bounded(finalist, time_budget.time_for_selection)

    if settings.model in ("auto", "family"):
        return select(ranking, is_bounded, refit.score, time_budget.time_for_selection)
    if family not in FAMILIES:
        linear = ranking.linear
        return Selection(linear, linear, ranking.best, refit.is_bounded(linear), 0)
    found = select_family(ranking, family, is_bounded, time_budget.time_for_selection)
    if found is None:
        few = family == "reservoir" and training < _FEWEST_FOR_RESERVOIR
        raise InputError(
            "model",
            settings.model,
            f"needs {_FEWEST_FOR_RESERVOIR} samples before the held-out part, and the record has {training} there"
            if few
            else f"was not fitted: its windows of up to {longest} samples are too short for it, or the time was",
            'pass more samples, or model="auto"' if few else 'pass a larger budget or more delays, or model="auto"',
        )
    return found


def _compared(
    trajectories: Sequence[FloatArray],
    outputs: int,
    plan: Plan,
    settings: Settings,
    refit: Refit,
    selection: Selection,
    time_budget: TimeBudget,
) -> Comparison | None:
    """Comparison with simple models; None for a model of the family that was asked for."""
    if settings.model == "family" or settings.model in (*_FAMILY_OF, *FAMILIES):
        return None
    seasons = settings.seasons if settings.seasons is not None else find_seasons(trajectories, outputs)
    origins = make_origins(trajectories, outputs, plan.horizon, seasons)
    zero = None if settings.zero is None else np.asarray(settings.zero)
    reach = origins[0].windows.shape[1]
    # Windows of whole trajectories that are held out cannot grow with the data.
    most = longest_window(seasons) if len(trajectories) < 3 else reach
    given = most if settings.delays is None else settings.delays + 1
    recipes = recipes_for(trajectories, outputs, seasons, min(reach, given), zero, min(most, given))
    family: list[Recipe] = []
    if settings.model == "auto":
        family.append(refit.recipe(selection.chosen, "family"))
        if not selection.chosen.is_linear:
            family.append(refit.recipe(selection.linear, "td-dmd"))
    else:
        recipes = [recipe for recipe in recipes if recipe.kind == settings.model]
    found = compare(family, recipes, origins, seasons, time_budget.comparison()) if family or recipes else None
    if found is None and settings.model != "auto":
        raise InputError(
            "model",
            settings.model,
            f"could not be fitted to this record of {max(map(len, trajectories))} samples"
            + ("" if seasons else ", in which no season was found"),
            "pass season=, a longer record, or another model",
        )
    if found is None or zero is None or settings.count is None or settings.model != "auto":
        return found
    return in_whole_counts(found, origins, zero, np.asarray(settings.count))


def _kept(selection: Selection, comparison: Comparison | None) -> Selection:
    """The selection with the best simple model, or mean, in place of the family where that is better."""
    if comparison is None or comparison.kept.recipe.kind == "family":
        return selection
    chosen = replace(selection.chosen, recipe=comparison.kept.recipe)
    return replace(selection, chosen=chosen, bounded=True)


def _typical(selection: Selection, fold: Fold, comparison: Comparison | None) -> tuple[float, float]:
    """Typical errors of the selected model and of TD-DMD, over the rolling origins or on the first fold."""
    if comparison is not None:
        linear = comparison.linear_error
        return comparison.kept.error, comparison.kept.error if linear is None else linear
    chosen, plain = (
        fold.typical_error(roll(f.members, fold.windows, fold.horizon, future=fold.future)[0])
        for f in (selection.chosen, selection.linear)
    )
    return chosen, plain


def folds_for_errors(trajectories: Sequence[FloatArray], outputs: int, plan: Plan) -> list[Fold]:
    """Validation folds with many starts, to measure the growth of errors with the steps ahead.

    Of one or two records the end is taken only: forecasts continue there, and the beginning may be a transient.
    """
    folds = make_folds(trajectories, outputs, plan.longest, plan.horizon, _ERROR_STARTS)
    return folds if len(trajectories) >= 3 else folds[:1]


def exact_stage(search: Search, plan: Plan) -> None:
    """Search over TD-DMD and polynomials, whose features are neither trained nor random."""
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
    # NG-RC is a baseline of every backtest, so at least one is tried however little time there is.
    search.screen(groups, NOISES, share=0.4, at_least_one=True)
    search.screen(principal_polynomial_groups(channels, plan.spacing, plan.longest, embeddings), NOISES, share=0.5)
    search.evaluate_best(80)


def _reservoir_stage(search: Search, plan: Plan, settings: Settings) -> None:
    """Search over small reservoirs of many kinds, then large ones of the best kinds, alone and with polynomials."""
    channels = search.fold.windows.shape[2]
    base = search.best("polynomial") or search.best("linear")
    rows = sum(len(z) for z in search.fold.training)
    if (
        base is None
        or plan.longest < _SHORTEST_WARM_UP
        or rows < _FEWEST_FOR_RESERVOIR
        or not search.time_budget.within(_RESERVOIRS[0])
    ):
        return
    generator = np.random.default_rng([settings.seed, 5])
    alone = FeatureMap(channels, lags(channels, 1))
    noise = max(base.noise, 1e-3)
    kinds: list[tuple[float, tuple[float, float, float]]] = []
    small = draw_reservoir(channels, _SMALL, generator)
    for kind in product(RADII, STRENGTHS, LEAKS):
        before = len(search.screened)
        search.screen(
            reservoir_groups(plan.longest, small, alone, [kind]), (noise,), share=_RESERVOIRS[1], ridges=RIDGES[5:]
        )
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
            share=_RESERVOIRS[2],
            ridges=RIDGES[5:],
        )
    search.evaluate_best(40)


def _network_stage(search: Search, plan: Plan, settings: Settings, pieces: Sequence[FloatArray]) -> list[float]:
    base = search.best("polynomial")
    if base is None or not search.time_budget.within(_ATTENTION[0]):
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
        may_continue=lambda: search.time_budget.within(_ATTENTION[1]),
    )
    search.screen(found.groups, (base.noise,), share=_ATTENTION[2])
    search.evaluate_best(40)
    return found.explained


def network_kind(ablation: str | None) -> Kind:
    """Kind of network for an ablation; attention for None."""
    return "uniform" if ablation == "uniform" else "mlp" if ablation == "mlp" else "attention"


def explained_beyond_linear(selection: Selection, fold: Fold) -> float:
    """Share of the one-step error variance of TD-DMD on validation data that the selected model explains."""
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
    """One kind of model with the best validation rollouts, refitted on all data, without a boundedness check."""
    outputs = trajectories[0].shape[1]
    plan = plan_for(trajectories, settings)
    fold = make_folds(trajectories, outputs, plan.longest, plan.horizon)[0]
    search = Search(fold, outputs, settings.seed, TimeBudget(settings.seconds, for_the_search=1.0))
    for some, noises, ridges in groups(plan, fold.training):
        search.screen(some, noises, ridges=ridges)
    search.evaluate_best(60, in_time=False)
    best = search.candidates[0]
    solved = Learner(trajectories, outputs, settings.seed).readouts([best.features], best.noise, np.array([best.ridge]))
    return Member(best.features, solved[0])
