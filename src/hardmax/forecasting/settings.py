"""Arguments of a fit, checked before any computation, and scikit-learn's get_params without scikit-learn.

Forecasting from a saved model needs NumPy only, so the estimator cannot inherit from ``sklearn.base.BaseEstimator``;
``sklearn.clone`` and whatever else goes by ``get_params`` works with this class as well.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ..errors import InputError
from ..progress import Progress
from ..randomness import seeded

if TYPE_CHECKING:
    from .forecaster import TimeDelayedTransformer


def whole(argument: str, value: object, least: int) -> int:
    """A whole number that is at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise InputError(
            argument, repr(value), f"must be a whole number, at least {least}", f"pass for example {argument}=50"
        )
    return int(value)


def one_of(argument: str, value: object, allowed: tuple[object, ...]) -> None:
    """One of a few values."""
    if value not in allowed:
        raise InputError(argument, repr(value), f"must be one of {allowed}", f"pass {argument}={allowed[0]!r}")


@dataclass(frozen=True)
class Settings:
    """What the caller chose."""

    delays: int | None
    horizon: int | None
    restarts: int
    ablation: str | None
    seconds: float | None
    seed: int
    progress: Progress
    budget: float | None = None


def settings_of(model: TimeDelayedTransformer) -> Settings:
    """The model's parameters, if a fit can use them; a seed is drawn where none was given."""
    one_of("recipe", model.recipe, ("family", "paper"))
    one_of("ablation", model.ablation, (None, "uniform", "mlp"))
    if model.delays is not None:
        whole("delays", model.delays, 0)
    if model.horizon is not None:
        whole("horizon", model.horizon, 2)
    seed = seeded(model.random_state)
    return Settings(
        model.delays,
        model.horizon,
        whole("restarts", model.restarts, 1),
        model.ablation,
        _time("seconds", model.seconds),
        seed.seed if seed.seed is not None else int(seed.generator.integers(2**31)),
        model.progress,
        _time("budget", model.budget),
    )


def _time(argument: str, value: object) -> float | None:
    """A positive number of seconds, or None for no limit."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)) or not 0 < float(value) < np.inf:
        raise InputError(argument, repr(value), "must be a positive number", f"pass {argument}=10, or None")
    return float(value)


class Parameters:
    """Base of estimators whose ``__init__`` stores each of its arguments under its own name and does nothing else."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The arguments that the estimator was made with, by name; ``deep`` makes no difference here."""
        return {name: getattr(self, name) for name in self._defaults()}

    def set_params(self, **params: Any) -> Self:
        """Change arguments by name; they count from the next call on."""
        known = self._defaults()
        for name, value in params.items():
            if name not in known:
                raise InputError(name, repr(value), "is no parameter", f"choose among {', '.join(known)}")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        changed = [
            f"{name}={getattr(self, name)!r}"
            for name, default in self._defaults().items()
            if getattr(self, name) != default
        ]
        return f"{type(self).__name__}({', '.join(changed)})"

    def __sklearn_tags__(self) -> Any:
        from sklearn.base import BaseEstimator

        return BaseEstimator().__sklearn_tags__()

    @classmethod
    def _defaults(cls) -> dict[str, Any]:
        return {name: parameter.default for name, parameter in inspect.signature(cls).parameters.items()}
