"""Arguments of a fit, checked before any computation, and scikit-learn's ``get_params`` without scikit-learn.

Forecasting from a saved model needs NumPy only, so the estimator does not inherit from ``sklearn.base.BaseEstimator``.
``sklearn.clone`` and other functions that use ``get_params`` work with :class:`Parameters` as well.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from ..errors import InputError
from ..progress import Progress
from ..randomness import seeded
from ..scalars import as_choice, as_count


@dataclass(frozen=True)
class Settings:
    """Checked settings of a fit.

    Attributes
    ----------
    delays
        Samples before the latest that the longest window holds; None chooses from the data.
    horizon
        Steps over which models are compared; None chooses from the data.
    restarts
        Sets of inner weights that are trained.
    ablation
        Replacement for attention: None (attention), ``"uniform"`` or ``"mlp"``.
    seconds
        Budget of processor seconds for search, selection and refit, or None.
    seed
        Seed of all random numbers.
    progress
        How stages are reported, as in :class:`~hardmax.TimeDelayedTransformer`.
    budget
        Budget of wall seconds, or None.
    model
        One of :data:`MODELS`.
    seasons
        Seasons in samples, shortest first; None finds them from the data, an empty tuple is none.
    zero
        What normalised data lack, per output, to be proportional to the data; None where that is not known.
    count
        Size of one count in normalised units, per output, 0 for outputs that hold no small counts; None without any.
    """

    delays: int | None
    horizon: int | None
    restarts: int
    ablation: str | None
    seconds: float | None
    seed: int
    progress: Progress
    budget: float | None = None
    model: str = "auto"
    seasons: tuple[int, ...] | None = None
    zero: tuple[float, ...] | None = None
    count: tuple[float, ...] | None = None


MODELS = (
    "auto",
    "family",
    "td-dmd",
    "ng-rc",
    "reservoir",
    "attention",
    "persistence",
    "seasonal-naive",
    "drift",
    "median",
    "smoothing",
    "arima",
    "seasonal-trend",
    "seasonal-difference",
    "analogue",
)
"""Values of the argument ``model``: all candidates, those of the family, or one kind."""


def check_settings(
    *,
    delays: int | None,
    recipe: str,
    ablation: str | None,
    horizon: int | None,
    restarts: int,
    seconds: float | None,
    budget: float | None,
    random_state: int | np.random.Generator | None,
    progress: Progress,
    model: str = "auto",
    season: object = None,
) -> Settings:
    """Settings of a fit from the parameters of the estimator; a seed is drawn where ``random_state`` holds none."""
    as_choice("recipe", recipe, ("family", "paper"))
    as_choice("ablation", ablation, (None, "uniform", "mlp"))
    as_choice("model", model, MODELS)
    if recipe == "paper" and model != "auto":
        raise InputError("model", model, 'selects among the models of recipe="family"', 'leave recipe="paper" out')
    if delays is not None:
        as_count("delays", delays, 0)
    if horizon is not None:
        as_count("horizon", horizon, 2)
    seed = seeded(random_state)
    return Settings(
        delays,
        horizon,
        as_count("restarts", restarts, 1),
        ablation,
        _time("seconds", seconds),
        seed.seed if seed.seed is not None else int(seed.generator.integers(2**31)),
        progress,
        _time("budget", budget),
        model,
        _seasons(season),
    )


def _seasons(season: object) -> tuple[int, ...] | None:
    """Seasons from the argument, shortest first: None to find them, an empty tuple for none."""
    if season is None:
        return None
    given: list[Any] = list(season) if isinstance(season, (list, tuple, np.ndarray)) else [season]
    for part in given:
        whole = isinstance(part, (int, np.integer)) and not isinstance(part, (bool, np.bool_))
        if not whole or part < 2:
            raise InputError(
                "season", repr(season), "must be a number of samples, 2 or more, or a list of such", "pass season=12"
            )
    return tuple(sorted({int(part) for part in given}))


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
        """Arguments of the constructor by name; ``deep`` has no effect, because no argument is an estimator."""
        return {name: getattr(self, name) for name in self._defaults()}

    def set_params(self, **params: Any) -> Self:
        """The estimator itself, with the arguments changed by name; the change applies from the next call on."""
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
            if repr(getattr(self, name)) != repr(default)
        ]
        return f"{type(self).__name__}({', '.join(changed)})"

    def __sklearn_tags__(self) -> Any:
        from sklearn.base import BaseEstimator

        return BaseEstimator().__sklearn_tags__()

    @classmethod
    def _defaults(cls) -> dict[str, Any]:
        return {name: parameter.default for name, parameter in inspect.signature(cls).parameters.items()}
