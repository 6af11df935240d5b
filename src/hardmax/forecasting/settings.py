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


def settings_of(model: TimeDelayedTransformer) -> Settings:
    """The model's parameters, if a fit can use them; a seed is drawn where none was given."""
    one_of("recipe", model.recipe, ("family", "paper"))
    one_of("ablation", model.ablation, (None, "uniform", "mlp"))
    if model.delays is not None:
        whole("delays", model.delays, 0)
    if model.horizon is not None:
        whole("horizon", model.horizon, 2)
    if model.seconds is not None and not (
        isinstance(model.seconds, (int, float)) and np.isfinite(model.seconds) and model.seconds > 0
    ):
        raise InputError("seconds", repr(model.seconds), "must be a positive number", "pass seconds=10, or None")
    seed = seeded(model.random_state)
    return Settings(
        model.delays,
        model.horizon,
        whole("restarts", model.restarts, 1),
        model.ablation,
        None if model.seconds is None else float(model.seconds),
        seed.seed if seed.seed is not None else int(seed.generator.integers(2**31)),
        model.progress,
    )
