"""What the caller of a fit may choose, checked before anything is computed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..errors import InputError
from ..progress import Progress
from ..randomness import seeded
from .checks import one_of, whole

if TYPE_CHECKING:
    from .forecaster import TimeDelayedTransformer


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
