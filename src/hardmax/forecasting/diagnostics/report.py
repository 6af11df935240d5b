"""Report of a fit: sentences for people, numbers for programs."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np

from ...outcomes import counted
from ..classical.counts import Counts
from ..data.series import Units
from ..rollout import Predictor
from ..search.model_search import SearchResult, network_kind
from ..search.selection import Selection
from ..search.simple_candidates import LOGARITHM
from ..search.simple_comparison import Scored
from ..settings import Settings

_EQUAL = 5e-4
"""Scores are printed with three decimals; two that print alike are called equal."""


@dataclass(frozen=True, repr=False)
class Report:
    """What a fit selected, why, and what was done to the data.

    Attributes
    ----------
    sentences
        For people; ``str(report)`` joins them.
    numbers
        For programs, by name: ``"kept"`` (``"linear"``, ``"nonlinear"``, ``"simple"`` for a model outside the family,
        ``"paper"`` or ``"constant"``), ``"errors"`` of each kind, ``"seasons"``, ``"error"``,
        ``"horizon"``, ``"guarded"`` (whether long rollouts of the model stay bounded), ``"seed"`` and others.
    """

    sentences: tuple[str, ...]
    numbers: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return "\n".join(self.sentences)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return "".join(f"<p>{escape(sentence)}</p>" for sentence in self.sentences)

    def data(self) -> dict[str, Any]:
        """Sentences and numbers as one dictionary for JSON.

        Returns
        -------
        dict
            ``"sentences"`` as a list, and the numbers under their own names.
        """
        return {"sentences": list(self.sentences), **self.numbers}


def report_on(
    settings: Settings,
    units: Units,
    *,
    predictor: Predictor | None,
    search: SearchResult | None,
    budget_ended: bool,
    notes: tuple[str, ...],
) -> Report:
    """Report of a fit; ``notes`` on the preparation of the data come first.

    ``predictor`` is None where no channel varies, ``search`` for the published recipe.
    """
    sentences = list(notes)
    channels = len(units.mean)
    constant = channels - len(units.keep)
    if constant:
        which = "The channel is" if channels == 1 else f"{constant} of {channels} channels {_is(constant)}"
        sentences.append(f"{which} constant and forecast as constant.")
    if predictor is None:
        zeros = not np.any(units.mean)
        what = "Nothing varies (all values are zero)" if zeros else "Nothing varies"
        return Report((*sentences, f"{what}, so nothing was learned."), {"kept": "constant"})
    if search is None:
        return _published_report(sentences, predictor, settings, budget_ended)
    return Report((*sentences, *_search_sentences(search, settings)), _numbers(search, predictor.window, settings.seed))


def _published_report(sentences: list[str], predictor: Predictor, settings: Settings, budget_ended: bool) -> Report:
    parameters = sum(m.features.inner_parameters + m.readouts.size for m in predictor.members)
    sentences.append(
        f"The published model with {parameters} parameters was trained by AdamW, and a second time without the last "
        "part of the data to measure its errors there."
    )
    if budget_ended:
        sentences.append(f"Training was cut short by {_which_time(settings)}.")
    numbers = {"kept": "paper", "parameters": parameters, "seed": settings.seed, "budget_ended": budget_ended}
    return Report(tuple(sentences), numbers)


def _search_sentences(found: SearchResult, settings: Settings) -> list[str]:
    choice = found.selection
    sentences = []
    if choice.chosen.is_linear:
        sentences.append(
            f"The linear model was selected ({choice.chosen.label}): no nonlinear candidate"
            f"{' with bounded long rollouts' if choice.rejected else ''} did better on validation rollouts."
        )
    else:
        sentences.append(
            f"Selected {choice.chosen.label}: typical validation error {found.typical_error:.3g} standard deviations "
            f"over {_horizon(found)} steps"
            f"{f', against {found.linear_error:.3g} for the best TD-DMD' if _linear_is_known(found) else ''}"
            f"{_on_the_score(choice) if found.comparison is None and found.typical_error > found.linear_error else ''}."
        )
    sentences += _on_simple_models(found)
    if isinstance(found.predictor.path, Counts):
        sentences.append(
            "Forecasts are medians, as whole counts. Sums over many steps need means, which a model of one kind "
            'forecasts: model="smoothing".'
        )
    if _is_logarithmic(found) and settings.zero is not None:
        sentences.append(
            "Models of the logarithm are the most accurate, so errors may grow with the level, but intervals have the "
            'same width at every level: transform="log" makes them grow with it.'
        )
    sentences.append(_on_networks(found, settings.ablation))
    if choice.rejected and choice.bounded:
        were, whose = ("was", "its") if choice.rejected == 1 else ("were", "their")
        models = counted(choice.rejected, "better-scored model")
        sentences.append(f"{models} {were} rejected: {whose} long rollouts left the range.")
    if not choice.bounded:
        sentences.append(
            "No model whose long rollouts stay within the training range did nearly as well; long forecasts may leave "
            "it."
            if choice.all_checked
            else "There was no time to find a model whose long rollouts stay within the training range; long forecasts "
            "may leave it."
        )
    if found.budget_ended:
        sentences.append(
            f"The search was cut short by {_which_time(settings)}: with more time more candidates are tried, and "
            "another run may select another model."
        )
    return sentences


def _is(count: int) -> str:
    return "is" if count == 1 else "are"


def _linear_is_known(found: SearchResult) -> bool:
    """Whether the best TD-DMD was compared over the same forecasts; where one simple kind was asked for, it was not."""
    return found.comparison is None or found.comparison.linear_error is not None


def _horizon(found: SearchResult) -> int:
    """Steps of the forecasts whose typical error is told."""
    return found.folds[0].horizon if found.comparison is None else found.comparison.horizon


_SHOWN = 4
"""Kinds of models whose typical errors are told."""
_NAMES = {
    "family": "dynamic models (TD-DMD, NG-RC, reservoirs, attention)",
    "td-dmd": "TD-DMD",
    "arima": "ARIMA",
    "seasonal-naive": "seasonal naive",
    "seasonal-trend": "seasonal-trend decomposition",
    "seasonal-difference": "TD-DMD of seasonal differences",
    "smoothing": "exponential smoothing",
    "analogue": "analogues",
    "mean": "the mean of several models",
}
"""Names of kinds of models in sentences, where they differ from the values of the argument ``model``."""


def _named(scored: Scored) -> str:
    """Name of the kind of a candidate; models of logarithms are kinds of their own."""
    name = _NAMES.get(scored.recipe.kind, scored.recipe.kind)
    return f"{name} {LOGARITHM}" if scored.recipe.label.endswith(LOGARITHM) else name


def _on_simple_models(found: SearchResult) -> list[str]:
    """Typical errors of the simple models, and why one with a larger error may be selected."""
    comparison = found.comparison
    if comparison is None:
        return []
    kept = comparison.kept
    others = [s for s in comparison.scored if s is not kept]
    naive = [s for s in others[_SHOWN:] if s.recipe.kind == "seasonal-naive"]
    told = "; ".join(f"{_named(s)} {s.error:.3g}" for s in [*others[:_SHOWN], *naive])
    seasons = " and ".join(map(str, comparison.seasons))
    sentences = [f"The season is {seasons} samples."] if seasons else ["No season was found or given."]
    if told:
        sentences.append(f"Typical errors of others over the same {comparison.starts} forecasts: {told}.")
    if others and others[0].error < kept.error:
        why = (
            "dynamic models are ranked by how long their rollouts stay accurate, which the first steps decide"
            if kept.recipe.kind == "family"
            else "on so few held-out forecasts the smallest error is partly luck, and a mean errs less on new data"
        )
        sentences.append(f"The selected model is not the one with the smallest error: {why}.")
    return sentences


def _is_logarithmic(found: SearchResult) -> bool:
    """Whether the simple model with the smallest typical error is one of logarithms, and a simple model is selected."""
    if found.comparison is None or found.selection.chosen.recipe is None:
        return False
    single = next((s for s in found.comparison.scored if s.recipe.kind != "mean"), None)
    return single is not None and single.recipe.label.endswith(LOGARITHM)


def _on_networks(found: SearchResult, ablation: str | None) -> str:
    """How attention, or its replacement, compares with the best candidate without it."""
    kind = network_kind(ablation)
    name = {"attention": "Attention", "uniform": "Uniform attention", "mlp": "The MLP"}[kind]
    trained = found.best_by_family.get(kind)
    if trained is None:
        return f"{name} was not trained: too few windows, or too little time."
    others = [c.score for family, c in found.best_by_family.items() if family != kind]
    chosen = found.selection.chosen
    used = chosen.recipe is None and any(source.family == kind for source in chosen.sources)
    best = min(others)
    verdict = "better than" if trained.score < best else "worse than"
    if abs(trained.score - best) < _EQUAL:
        verdict = "as good as"
    return (
        f"{name} features are {'part of' if used else 'not part of'} the selected model; on their own their validation "
        f"score is {verdict} the best without them ({trained.score:.3f} against {best:.3f}, lower is better)"
        f"{', but simple models were selected' if chosen.recipe is not None and verdict == 'better than' else ''}."
    )


def _on_the_score(choice: Selection) -> str:
    """Why a model was selected whose error on the first fold is not the smallest."""
    score, linear = choice.chosen.score, choice.linear.score
    numbers = f"({score:.3f} against {linear:.3f}, lower is better)"
    if abs(score - linear) < _EQUAL:
        return f"; over all validation rollouts its score is as good {numbers}"
    if score < linear:
        return f"; over all validation rollouts its score is better {numbers}"
    # TD-DMD comes earlier in the ranking then, so that its boundedness check has failed.
    return f", whose score over all validation rollouts is better too {numbers} but whose long rollouts left the range"


def _which_time(settings: Settings) -> str:
    """The time budgets that were set, in words."""
    parts = [f"its budget of {settings.budget:.3g} s"] if settings.budget is not None else []
    parts += [f"its {settings.seconds:.3g} s of processor time"] if settings.seconds is not None else []
    return " or ".join(parts)


def _numbers(found: SearchResult, window: int, seed: int) -> dict[str, Any]:
    """Numbers under the names that saved reports have."""
    choice = found.selection
    return {
        "kept": "simple" if choice.chosen.recipe is not None else "linear" if choice.chosen.is_linear else "nonlinear",
        "label": choice.chosen.label,
        "score": choice.chosen.score,
        "error": found.typical_error,
        "linear_error": found.linear_error,
        "linear_score": choice.linear.score,
        "horizon": _horizon(found),
        "folds": len(found.folds),
        "window": window,
        "lag_spacing": found.plan.spacing,
        "candidates": found.tried,
        "rejected": choice.rejected,
        "guarded": choice.bounded,
        "seconds": found.seconds,
        "budget_ended": found.budget_ended,
        "seed": seed,
        "seasons": [] if found.comparison is None else list(found.comparison.seasons),
        "errors": {} if found.comparison is None else found.comparison.errors,
        "best_by_family": {family: c.score for family, c in found.best_by_family.items()},
    }
