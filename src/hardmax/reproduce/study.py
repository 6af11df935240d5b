"""The forecasting study: every model on every system in every setting, resumable, one row a fit."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..errors import InputError
from ..forecasting.skill import error_curves, histogram_distance, valid_times
from ..sweeps import sweep
from .study_cases import LONGEST, SETTINGS, make_case, study_systems
from .study_models import FIRST_ROUND, MODELS
from .study_summary import ROWS

SECONDS = 5.0
SEEDS = 3
_FAR = 3.0


def run_study(
    folder: str | os.PathLike[str],
    *,
    seconds: float = SECONDS,
    seeds: int = SEEDS,
    settings: Sequence[str] = SETTINGS,
    systems: Sequence[str] | None = None,
    models: Sequence[str] | None = None,
    jobs: int = 1,
    progress: bool | None = None,
) -> None:
    """Run what is missing, in an order that keeps every part of it balanced.

    Seed by seed; in each the main models on all systems, setting by setting, then the others. ``jobs`` runs several
    fits at a time, which is fair only where every one has a core of its own.
    """
    for name, chosen, known in (
        ("settings", settings, SETTINGS),
        ("models", models or (), tuple(MODELS)),
        ("systems", systems or (), study_systems()),
    ):
        for one in chosen:
            if one not in known:
                raise InputError(name, repr(one), "is not part of the study", f"choose among {', '.join(known)}")
    wanted = tuple(MODELS) if models is None else tuple(models)
    rounds = [
        [m for m in wanted if m in FIRST_ROUND],
        [m for m in wanted if m not in FIRST_ROUND],
    ]
    for seed in range(seeds):
        for group in rounds:
            for setting in settings:
                points = [
                    {"setting": setting, "system": system, "model": model, "search": float(seconds)}
                    for system in (study_systems() if systems is None else systems)
                    for model in group
                ]
                if points:
                    sweep(study_row, points, path=Path(folder) / ROWS, seeds=[seed], jobs=jobs, progress=progress)


def study_row(setting: str, system: str, model: str, search: float, random_state: int) -> dict[str, object]:
    """Fit one model to one case and judge it from twenty starts."""
    case = make_case(system, setting, random_state)
    forecaster = MODELS[model](search, random_state)
    began = time.thread_time()
    forecaster.fit([case.training], case.dt)
    fitted = time.thread_time()
    ahead = forecaster.roll(case.windows, LONGEST)
    rolled = time.thread_time()
    low, high = case.training.min(axis=0), case.training.max(axis=0)
    with np.errstate(all="ignore"):
        beyond = np.abs(ahead - (low + high) / 2) / ((high - low) / 2) > _FAR
    diverged = (beyond | ~np.isfinite(ahead)).any(axis=(1, 2))
    curves = error_curves(ahead[:, : case.horizon], case.truth, case.training.std(axis=0))
    valid = valid_times(curves, case.dt, unit=case.lyapunov_time)
    one = min(case.horizon, max(1, round(case.lyapunov_time / case.dt))) - 1
    return {
        "valid_time": float(valid.mean()),
        "valid_times": valid.round(6).tolist(),
        "most": case.horizon * case.dt / case.lyapunov_time,
        "error_at_one": float(np.median(np.minimum(curves[:, one], 1e3))),
        "diverged": int(diverged.sum()),
        "starts": len(diverged),
        "climate": histogram_distance(ahead.reshape(-1, ahead.shape[2]), case.training),
        "fit_seconds": fitted - began,
        "roll_seconds": rolled - fitted,
    }
