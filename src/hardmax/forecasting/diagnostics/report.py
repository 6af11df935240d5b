"""What a fit found, in sentences and numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any

from ..search.model_search import Fitted, kind_of
from ..search.selection import Selection

if TYPE_CHECKING:
    from ..forecaster import TimeDelayedTransformer


_EQUAL = 5e-4
"""Scores are told to three digits; what is closer counts as equal."""


@dataclass(frozen=True, repr=False)
class Report:
    """``sentences`` for people, ``numbers`` for programs; ``str(report)`` joins the sentences."""

    sentences: tuple[str, ...]
    numbers: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return "\n".join(self.sentences)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return "".join(f"<p>{escape(sentence)}</p>" for sentence in self.sentences)

    def data(self) -> dict[str, Any]:
        """Both, as plain values."""
        return {"sentences": list(self.sentences), **self.numbers}


def _on_networks(model: TimeDelayedTransformer, found: Fitted) -> str:
    """Whether attention (or what stands in its place) earned its place."""
    kind = kind_of(model.ablation)
    name = {"attention": "Attention", "uniform": "Uniform attention", "mlp": "The MLP"}[kind]
    trained = found.best_by_family.get(kind)
    if trained is None:
        return f"{name} was not trained: too few windows, or too little time."
    others = [c.score for family, c in found.best_by_family.items() if family != kind]
    kept = any(source.family == kind for source in found.selection.chosen.sources)
    best = min(others)
    verdict = "better than" if trained.score < best else "worse than"
    if abs(trained.score - best) < _EQUAL:
        verdict = "as good as"
    return (
        f"{name} features are {'part of' if kept else 'not part of'} the model kept; on their own their held-out score "
        f"is {verdict} the best without them ({trained.score:.3f} against {best:.3f}, lower is better)."
    )


def _for_its_score(choice: Selection) -> str:
    """Why a model was kept whose error at the end of the record is not the smallest."""
    ours, linear = choice.chosen.score, choice.linear.score
    how = "as good" if abs(ours - linear) < _EQUAL else "better"
    return f"; over all held-out rollouts its score is {how} ({ours:.3f} against {linear:.3f}, lower is better)"


def _which_time(model: TimeDelayedTransformer) -> str:
    """The budgets that there were, in words."""
    parts = [f"its budget of {model.budget:.3g} s"] if model.budget is not None else []
    parts += [f"its {model.seconds:.3g} s of processor time"] if model.seconds is not None else []
    return " or ".join(parts)


def report_on(model: TimeDelayedTransformer, notes: tuple[str, ...]) -> Report:
    """Sentences about the model kept, why, and what was done to the data."""
    sentences = list(notes)
    constant = model.channels_ - len(model.units_.keep)
    if constant:
        sentences.append(f"{constant} of {model.channels_} channels are constant and are forecast as constant.")
    if model.fitted_ is None:
        if model.predictor_ is None:
            return Report((*sentences, "Nothing varies, so nothing was learned."), {"kept": "constant"})
        parameters = sum(m.features.inner_parameters + m.readouts.size for m in model.predictor_.members)
        sentences.append(
            f"The published model with {parameters} parameters was trained by AdamW, once more without the last part "
            "of the data to measure its errors there."
        )
        if model.budget_ended_:
            sentences.append(f"Training was cut short by {_which_time(model)}.")
        numbers = {"kept": "paper", "parameters": parameters, "seed": model.seed_, "budget_ended": model.budget_ended_}
        return Report(tuple(sentences), numbers)
    found, choice = model.fitted_, model.fitted_.selection
    kept = "linear" if choice.chosen.is_linear else "nonlinear"
    if choice.chosen.is_linear:
        sentences.append(
            f"The linear model was kept ({choice.chosen.label}): no nonlinear candidate"
            f"{' whose long rollouts keep to the range' if choice.rejected else ''} did better on held-out rollouts."
        )
    else:
        sentences.append(
            f"Kept {choice.chosen.label}: typical held-out error {found.typical_error:.3g} standard deviations over "
            f"{found.folds[0].horizon} steps, against {found.linear_error:.3g} for the best TD-DMD"
            f"{_for_its_score(choice) if found.typical_error > found.linear_error else ''}."
        )
    sentences.append(_on_networks(model, found))
    if choice.rejected and choice.guarded:
        sentences.append(f"{choice.rejected} better-scored models were rejected: their long rollouts left the range.")
    if not choice.guarded:
        sentences.append(
            "No model whose long rollouts keep to the training range did nearly as well; long forecasts may leave it."
            if choice.walked
            else "There was no time to find a model whose long rollouts keep to the training range; long forecasts may "
            "leave it."
        )
    if found.cut:
        sentences.append(
            f"The search was cut short by {_which_time(model)}: with more time more candidates are tried, and another "
            "run may select another model."
        )
    numbers = {
        "kept": kept,
        "label": choice.chosen.label,
        "score": choice.chosen.score,
        "error": found.typical_error,
        "linear_error": found.linear_error,
        "linear_score": choice.linear.score,
        "horizon": found.folds[0].horizon,
        "folds": len(found.folds),
        "window": model.window,
        "lag_spacing": found.plan.spacing,
        "candidates": found.tried,
        "rejected": choice.rejected,
        "guarded": choice.guarded,
        "seconds": found.seconds,
        "budget_ended": found.cut,
        "seed": model.seed_,
        "best_by_family": {family: c.score for family, c in found.best_by_family.items()},
    }
    return Report(tuple(sentences), numbers)
