"""Backtest: forecasts of the last part of the data by models fitted to the rest, beside three baselines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..forecast import html_table
from ..protocol import FloatArray
from ..rollout import Member, Predictor, roll, window_of
from ..search.model_search import exact_stage, fit_family, plan_for
from ..search.readout_search import Candidate, Learner, Search
from ..search.refit import refit_member
from ..search.time_budget import TimeBudget
from ..search.validation import make_folds
from ..settings import Settings
from .skill import THRESHOLD, error_curves, valid_times

_SHARE = 0.25
"""Share of the data that is forecast: the last quarter."""
_CEILING = 1e3
"""Baselines are clipped at so many standard deviations, far beyond any limit on divergence."""
_TRAINING = 0.7
"""Share of wall time for training the published layer; the rest is for tuning the baselines."""


@dataclass(frozen=True)
class BacktestRow:
    """Errors of one model.

    Attributes
    ----------
    model
        Name of the model.
    error
        Mean error over starts and steps, in standard deviations.
    median_error
        Median of the same errors.
    valid_time
        Mean time during which the error stays below the threshold of validity.
    diverged
        Number of starts whose forecast goes beyond ten times the largest training value.
    """

    model: str
    error: float
    median_error: float
    valid_time: float
    diverged: int


@dataclass(frozen=True, repr=False)
class Backtest:
    """Errors of the model and of its baselines on data that they were not fitted to.

    Attributes
    ----------
    rows
        One row per model, the time-delayed transformer first.
    curves
        Root mean square error over the starts at every step, shape (steps,) per model, in standard deviations.
    times
        Times of the steps after the start, shape (steps,).
    starts
        Number of starts.
    label
        Description of the model that was selected.
    """

    rows: tuple[BacktestRow, ...]
    curves: dict[str, FloatArray]
    times: FloatArray
    starts: int
    label: str

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        rows = [
            [row.model, f"{row.error:.3g}", f"{row.median_error:.3g}", f"{row.valid_time:.4g}", str(row.diverged)]
            for row in self.rows
        ]
        return html_table(self._about(), ("model", "mean error", "median", "valid time", "diverged"), rows)

    def row(self, model: str) -> BacktestRow:
        """Row of one model.

        Parameters
        ----------
        model
            Name of the model: ``"TD-TF"``, ``"persistence"``, ``"TD-DMD"`` or ``"NG-RC"``.

        Returns
        -------
        BacktestRow
            Its errors.
        """
        return next(row for row in self.rows if row.model == model)

    def text(self, unit: str = "units of time", size: float = 1.0) -> str:
        """Table in plain characters.

        Parameters
        ----------
        unit
            Name of the unit of time.
        size
            Length of that unit.

        Returns
        -------
        str
            One line per model, below two lines of heading.
        """
        head = f"{'model':<14}{'mean error':>12}{'median':>10}{'valid time':>12}{'diverged':>10}"
        lines = [
            f"{row.model:<14}{row.error:>12.3g}{row.median_error:>10.3g}"
            f"{row.valid_time / size:>12.4g}{row.diverged:>10d}"
            for row in self.rows
        ]
        return "\n".join([self._about(unit, size), head, *lines])

    def _about(self, unit: str = "units of time", size: float = 1.0) -> str:
        return (
            f"{self.starts} starts, {len(self.times)} steps ({self.times[-1] / size:.4g} {unit}); errors in standard "
            f"deviations; valid while below {THRESHOLD}."
        )

    def data(self) -> dict[str, Any]:
        """Everything as plain values for JSON.

        Returns
        -------
        dict
            ``"rows"``, ``"curves"``, ``"times"``, ``"starts"`` and ``"kept"`` (the label).
        """
        return {
            "rows": [vars(row) for row in self.rows],
            "curves": {name: curve.tolist() for name, curve in self.curves.items()},
            "times": self.times.tolist(),
            "starts": self.starts,
            "kept": self.label,
        }


@dataclass(frozen=True)
class _Models:
    """The model with TD-DMD and NG-RC tuned on the same data; ``polynomial`` is None where NG-RC could not be tried."""

    predictor: Predictor
    linear: Member
    polynomial: Member | None
    label: str

    @property
    def window(self) -> int:
        """Number of samples in the longest window among them."""
        baselines = [self.linear] if self.polynomial is None else [self.linear, self.polynomial]
        return max(self.predictor.window, window_of(baselines))


def backtest(
    trajectories: Sequence[FloatArray],
    outputs: int,
    settings: Settings,
    dt: float,
    horizon: int | None,
    starts: int,
    *,
    recipe: str = "family",
) -> Backtest:
    """Errors on the last quarter of normalised trajectories, by models fitted to the first three quarters.

    Channels after the first ``outputs`` are exogenous inputs.
    """
    training, tests = _split(trajectories)
    plan = plan_for(training, settings)
    found = (_published if recipe == "paper" else _family)(training, outputs, settings)
    steps = _steps(tests, max(plan.longest, found.window), horizon, plan.horizon)
    windows, truth, future = _starts(tests, outputs, found.window, steps, starts)
    paths = {
        "TD-TF": found.predictor.roll(windows, steps, future),
        "persistence": np.repeat(windows[:, -1:, :outputs], steps, axis=1),
        "TD-DMD": roll([found.linear], windows, steps, future=future, ceiling=_CEILING)[0],
    }
    if found.polynomial is not None:
        paths["NG-RC"] = roll([found.polynomial], windows, steps, future=future, ceiling=_CEILING)[0]
    curves, rows = {}, []
    limit = 10.0 * np.abs(np.concatenate([z[:, :outputs] for z in training])).max()
    for name, path in paths.items():
        errors = error_curves(path, truth, np.ones(outputs))
        curves[name] = np.sqrt((errors**2).mean(axis=0))
        diverged = int((np.abs(path).max(axis=(1, 2)) > limit).sum())
        valid = float(valid_times(errors, dt).mean())
        rows.append(BacktestRow(name, float(errors.mean()), float(np.median(errors)), valid, diverged))
    times = np.asarray(dt * np.arange(1, steps + 1), dtype=np.float64)
    return Backtest(tuple(rows), curves, times, len(windows), found.label)


def _family(training: Sequence[FloatArray], outputs: int, settings: Settings) -> _Models:
    """Model of the default recipe; its search has tuned the baselines as well."""
    fitted = fit_family(training, outputs, settings)
    polynomial = _refitted(fitted.best_by_family.get("polynomial"), training, outputs, settings)
    return _Models(fitted.predictor, fitted.predictor.linear, polynomial, fitted.selection.chosen.label)


def _published(training: Sequence[FloatArray], outputs: int, settings: Settings) -> _Models:
    """Model of the published recipe; the baselines are tuned separately, because it has no search."""
    from ..models.published import LABEL, fit_paper  # imports torch, which takes seconds

    own = replace(settings, budget=None if settings.budget is None else _TRAINING * settings.budget)
    predictor, _ = fit_paper(training, outputs, own)
    plan = plan_for(training, settings)
    fold = make_folds(training, outputs, plan.longest, plan.horizon)[0]
    rest = None if settings.budget is None else (1 - _TRAINING) * settings.budget
    search = Search(fold, outputs, settings.seed, TimeBudget(settings.seconds, rest))
    exact_stage(search, plan)
    linear = _refitted(search.best("linear"), training, outputs, settings)
    polynomial = _refitted(search.best("polynomial"), training, outputs, settings)
    return _Models(predictor, linear or predictor.linear, polynomial, LABEL)


def _refitted(
    candidate: Candidate | None, training: Sequence[FloatArray], outputs: int, settings: Settings
) -> Member | None:
    """The candidate with its readout fitted to all training data."""
    return None if candidate is None else refit_member(Learner(training, outputs, settings.seed), candidate)


def _split(trajectories: Sequence[FloatArray]) -> tuple[list[FloatArray], list[tuple[FloatArray, int]]]:
    """Training trajectories, and test trajectories each with the index of their first unseen sample."""
    if len(trajectories) >= 4:
        count = max(1, round(_SHARE * len(trajectories)))
        return list(trajectories[:-count]), [(z, 0) for z in trajectories[-count:]]
    cuts = [len(z) - int(_SHARE * len(z)) for z in trajectories]
    return [z[:cut] for z, cut in zip(trajectories, cuts, strict=True)], list(zip(trajectories, cuts, strict=True))


def _steps(tests: list[tuple[FloatArray, int]], context: int, horizon: int | None, usual: int) -> int:
    room = max(len(z) - max(cut, context) for z, cut in tests)
    wanted = min(usual, max(2, room // 2)) if horizon is None else horizon
    return max(1, min(wanted, room))


def _starts(
    tests: list[tuple[FloatArray, int]], outputs: int, window: int, steps: int, starts: int
) -> tuple[FloatArray, FloatArray, FloatArray | None]:
    places = []
    share = -(-starts // len(tests))
    for z, cut in tests:
        first, last = max(cut, window), len(z) - steps
        if first <= last:
            places += [(z, int(k)) for k in np.unique(np.linspace(first, last, share).astype(int))]
    windows = np.stack([z[k - window : k] for z, k in places])
    after = np.stack([z[k : k + steps] for z, k in places])
    future = after[:, :, outputs:] if after.shape[2] > outputs else None
    return windows, after[:, :, :outputs], future
