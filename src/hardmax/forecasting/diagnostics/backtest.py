"""Backtest: forecasts of the last part of the data by models fitted to the rest, beside simple baselines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..data.units import Units
from ..forecast import html_table
from ..models.baselines import Analogue, Mean, SeasonalNaive, find_season
from ..protocol import FloatArray
from ..rollout import Member, Predictor, roll, window_of
from ..search.held_out import folds_of
from ..search.model_search import exact_stage, fit_family, plan_for
from ..search.readout_search import Candidate, Learner, Search
from ..search.refit import Refit, refit_member
from ..search.selection import Finalist, Selection
from ..search.time_budget import TimeBudget
from ..search.validation import make_folds
from ..settings import Settings
from .skill import THRESHOLD, error_curves, valid_times

_SHARE = 0.25
"""Share of the data that is forecast: the last quarter."""
_CEILING = 1e3
"""Baselines are clipped at this many standard deviations, far beyond any limit on divergence."""
_NOMINAL = (0.68, 0.95)
"""Levels of the intervals whose coverage is measured."""
_TREND = 0.5
"""Share of the variance explained by a straight line from which on errors are scaled by the spread about the line."""
ANEW = "selected anew"
"""Name of the row of the model that the search selects without the last quarter, where it is another one."""
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
        Mean error over starts and steps, in standard deviations; about their trend for data with a trend.
    median_error
        Median of the same errors.
    valid_time
        Mean time during which the error stays below the threshold of validity.
    diverged
        Number of starts whose forecast goes beyond ten times the largest training value.
    mase
        Mean absolute scaled error: in units of the mean absolute change of the training data over one season, or from
        one sample to the next where there is no season.
    """

    model: str
    error: float
    median_error: float
    valid_time: float
    diverged: int
    mase: float = float("nan")


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
        Description of the model of the first row.
    coverage
        Share of the true samples within the intervals of that model, by nominal level.
    season
        Season in samples by which errors are scaled; 1 without one.
    anew
        Description of the model that the search selected without the last quarter.
    is_kept
        Whether the model of the first row is the selected one, refitted; of a model from a file it may be what a search
        selects.
    """

    rows: tuple[BacktestRow, ...]
    curves: dict[str, FloatArray]
    times: FloatArray
    starts: int
    label: str
    coverage: dict[float, float] = field(default_factory=dict)
    season: int = 1
    anew: str = ""
    is_kept: bool = True

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        return self.html()

    def html(self, unit: str = "units of time", size: float = 1.0) -> str:
        """Table in HTML.

        Parameters
        ----------
        unit
            Name of the unit of time.
        size
            Length of that unit.

        Returns
        -------
        str
            A table with one row per model; its caption has the sentences of :meth:`text`.
        """
        rows = [
            [
                row.model,
                f"{row.mase:.3g}",
                f"{row.error:.3g}",
                f"{row.median_error:.3g}",
                f"{row.valid_time / size:.4g}",
                str(row.diverged),
            ]
            for row in self.rows
        ]
        about = " ".join([self._about(unit, size), *self._after()])
        return html_table(about, ("model", "MASE", "mean error", "median", "valid time", "diverged"), rows)

    def row(self, model: str) -> BacktestRow:
        """Row of one model.

        Parameters
        ----------
        model
            Name of the model: ``"TD-TF"``, ``"persistence"``, ``"mean"``, ``"seasonal naive"``, ``"analogue"``,
            ``"TD-DMD"``, ``"NG-RC"`` or ``"selected anew"``.

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
            One line per model, below two lines of heading, and sentences on intervals and on the selection.
        """
        head = f"{'model':<15}{'MASE':>10}{'mean error':>12}{'median':>10}{'valid time':>12}{'diverged':>10}"
        lines = [
            f"{row.model:<15}{row.mase:>10.3g}{row.error:>12.3g}{row.median_error:>10.3g}"
            f"{row.valid_time / size:>12.4g}{row.diverged:>10d}"
            for row in self.rows
        ]
        return "\n".join([self._about(unit, size), head, *lines, *self._after()])

    def _about(self, unit: str = "units of time", size: float = 1.0) -> str:
        apart = "one sample" if self.season == 1 else f"a season of {self.season} samples"
        return (
            f"{self.starts} starts, {len(self.times)} steps ({self.times[-1] / size:.4g} {unit}); MASE in mean changes "
            f"over {apart}, other errors in standard deviations; valid while below {THRESHOLD}."
        )

    def _after(self) -> list[str]:
        """Sentences on the coverage of intervals, and on a search that selects another model without the last part."""
        sentences = []
        if self.coverage:
            held = " and ".join(
                f"{100 * share:.0f} % of the samples (nominal {100 * level:.0f} %)"
                for level, share in self.coverage.items()
            )
            sentences.append(f"Intervals of {self.rows[0].model} held {held}.")
        if not self.is_kept:
            sentences.append(
                f"TD-TF is here what a search without the last quarter selects ({_short(self.label)}): a model from a "
                "file does not hold how it was fitted."
            )
        if any(row.model == ANEW for row in self.rows):
            sentences.append(
                f"TD-TF is the selected model ({_short(self.label)}), refitted without the last quarter; a search "
                f'without it selects another one ("{ANEW}": {_short(self.anew)}).'
            )
        return sentences

    def data(self) -> dict[str, Any]:
        """Everything as plain values for JSON.

        Returns
        -------
        dict
            ``"rows"``, ``"curves"``, ``"times"``, ``"starts"``, ``"kept"`` (the label), ``"coverage"`` (pairs of the
            nominal level and the measured share), ``"season"`` and ``"anew"``.
        """
        return {
            "rows": [vars(row) for row in self.rows],
            "curves": {name: curve.tolist() for name, curve in self.curves.items()},
            "times": self.times.tolist(),
            "starts": self.starts,
            "kept": self.label,
            "coverage": [list(pair) for pair in self.coverage.items()],
            "season": self.season,
            "anew": self.anew,
        }


@dataclass(frozen=True)
class _Models:
    """The model with TD-DMD and NG-RC tuned on the same data; ``polynomial`` is None where NG-RC could not be tried."""

    predictor: Predictor
    linear: Member
    polynomial: Member | None
    label: str
    anew: Predictor | None = None
    anew_label: str = ""
    is_kept: bool = True
    """Whether the model is the selected one; without it a search selects one."""

    @property
    def window(self) -> int:
        """Number of samples in the longest window among them."""
        baselines = [self.linear] if self.polynomial is None else [self.linear, self.polynomial]
        others = [] if self.anew is None else [self.anew.window]
        return max(self.predictor.window, window_of(baselines), *others)


def backtest(
    trajectories: Sequence[FloatArray],
    outputs: int,
    settings: Settings,
    dt: float,
    horizon: int | None,
    starts: int,
    *,
    recipe: str = "family",
    kept: Finalist | None = None,
    units: Units | None = None,
    seasons: Sequence[int] = (),
) -> Backtest:
    """Errors on the last quarter of normalised trajectories, by models fitted to the first three quarters.

    Channels after the first ``outputs`` are exogenous inputs. ``kept`` is the model whose errors come first, refitted;
    without it that is the model which a search selects without the last quarter. Errors are measured in the units of
    the data, where ``units`` are given. ``seasons`` are those that the fit found: three quarters of a short record may
    hold too few cycles to find them again.
    """
    training, tests = _split(trajectories)
    plan = plan_for(training, settings)
    found = _published(training, outputs, settings) if recipe == "paper" else _family(training, outputs, settings, kept)
    known = [z[:, :outputs] for z in training]
    taken = seasons if settings.seasons is None else settings.seasons
    season = max(taken, default=1) if taken or settings.seasons is not None else find_season(known)
    # The mean change over a season needs pairs of samples.
    season = season if season < min(len(z) for z in known) else 1
    simple = [model.fit(known, dt) for model in (Mean(), SeasonalNaive(season), Analogue())]
    # A simple forecast that needs most of a short trajectory would leave nothing to compare on.
    room = max(found.window, min(len(z) for z, _ in tests) // 2)
    simple = [model for model in simple if model.window <= room]
    longest = max(found.window, *(model.window for model in simple))
    steps = _steps(tests, max(plan.longest, longest), horizon, plan.horizon)
    windows, truth, future = _starts(tests, outputs, longest, steps, starts)
    paths = {"TD-TF": found.predictor.roll(windows, steps, future)}
    if found.anew is not None:
        paths[ANEW] = found.anew.roll(windows, steps, future)
    paths["persistence"] = np.repeat(windows[:, -1:, :outputs], steps, axis=1)
    for model in simple:
        # Without a season, its forecast is persistence.
        if model.name != SeasonalNaive.name or season > 1:
            paths[model.name] = model.roll(windows[:, :, :outputs], steps)
    paths["TD-DMD"] = roll([found.linear], windows, steps, future=future, ceiling=_CEILING)[0]
    if found.polynomial is not None:
        paths["NG-RC"] = roll([found.polynomial], windows, steps, future=future, ceiling=_CEILING)[0]
    restore = _identity if units is None else _varying(units)
    measure = _Measure([restore(z[:, :outputs]) for z in training], season, dt)
    actual = restore(truth)
    curves, rows = {}, []
    for name, path in paths.items():
        row, curves[name] = measure.row(name, restore(path), actual)
        rows.append(row)
    times = np.asarray(dt * np.arange(1, steps + 1), dtype=np.float64)
    coverage = _coverage(found.predictor, paths["TD-TF"], truth)
    return Backtest(
        tuple(rows), curves, times, len(windows), found.label, coverage, season, found.anew_label, found.is_kept
    )


def _short(label: str) -> str:
    """Label of a model; of a mean of models without their list, which the report of the fit has."""
    return label.partition(" (")[0] if label.startswith("the mean of") else label


def _identity(values: FloatArray) -> FloatArray:
    return values


def _varying(units: Units) -> Callable[[FloatArray], FloatArray]:
    """Function from normalised values to the units of the data, of the channels that vary."""
    return lambda values: units.restore(values)[..., units.keep]


class _Measure:
    """Errors of forecasts, scaled by the training data."""

    def __init__(self, training: Sequence[FloatArray], season: int, dt: float) -> None:
        self._dt = dt
        self._scale = spread_about_trend(training)
        changes = [np.abs(z[season:] - z[:-season]) for z in training if len(z) > season]
        mean = np.concatenate(changes).mean(axis=0) if changes else self._scale
        self._change = np.where(mean > 0, mean, self._scale)
        data = np.concatenate(list(training))
        self._middle = data.mean(axis=0)
        self._limit = 10.0 * np.abs(data - self._middle).max(axis=0)

    def row(self, name: str, path: FloatArray, truth: FloatArray) -> tuple[BacktestRow, FloatArray]:
        """Row of one model, and its root mean square error at every step."""
        errors = error_curves(path, truth, self._scale)
        diverged = int((np.abs(path - self._middle) > self._limit).any(axis=(1, 2)).sum())
        valid = float(valid_times(errors, self._dt).mean())
        mase = float((np.abs(path - truth) / self._change).mean())
        row = BacktestRow(name, float(errors.mean()), float(np.median(errors)), valid, diverged, mase)
        return row, np.asarray(np.sqrt((errors**2).mean(axis=0)))


def spread_about_trend(trajectories: Sequence[FloatArray]) -> FloatArray:
    """Standard deviation per channel, shape (channels,), about a straight line where that explains half the variance.

    The standard deviation of a record with a trend is that of the trend: every forecast would have a small error.
    """
    data = np.concatenate(list(trajectories))
    squares = np.zeros(data.shape[1])
    for z in trajectories:
        t = np.arange(len(z)) - (len(z) - 1) / 2
        rest = z - z.mean(axis=0) - (np.outer(t, t @ z / (t @ t)) if len(z) > 2 else 0.0)
        squares += (rest**2).sum(axis=0)
    about, whole = np.sqrt(squares / len(data)), data.std(axis=0)
    return np.where((about**2 < (1 - _TREND) * whole**2) & (about > 1e-12 * whole), about, whole)


def _coverage(predictor: Predictor, path: FloatArray, truth: FloatArray) -> dict[float, float]:
    """Share of the true samples within the intervals, by nominal level; empty where there are none."""
    if predictor.errors is None:
        return {}
    widths = predictor.errors.half_widths(np.array(_NOMINAL), path.shape[1])
    inside = np.abs(truth - path) <= widths[:, None]
    return {level: float(share) for level, share in zip(_NOMINAL, inside.mean(axis=(1, 2, 3)), strict=True)}


def _family(training: Sequence[FloatArray], outputs: int, settings: Settings, kept: Finalist | None) -> _Models:
    """Model of the default recipe; its search has tuned the baselines as well."""
    fitted = fit_family(training, outputs, settings)
    polynomial = _refitted(fitted.best_by_family.get("polynomial"), training, outputs, settings)
    linear, chosen = fitted.predictor.linear, fitted.selection.chosen
    predictor = None if kept is None else _kept(kept, fitted.selection.linear, training, outputs, settings)
    if kept is None or predictor is None or kept.label == chosen.label:
        # The same kind of model, with its regularisation chosen without the last quarter.
        return _Models(fitted.predictor, linear, polynomial, chosen.label, None, chosen.label, kept is not None)
    return _Models(predictor, linear, polynomial, kept.label, fitted.predictor, chosen.label)


def _kept(
    kept: Finalist, linear: Finalist, training: Sequence[FloatArray], outputs: int, settings: Settings
) -> Predictor | None:
    """The kept model with its readout and its held-out errors from these data; None where they are too few."""
    plan = plan_for(training, settings)
    path = None if kept.recipe is None else kept.recipe.fit(training, outputs)
    if kept.recipe is not None and path is None:
        return None
    window = max(plan.longest, window_of(kept.members))
    if min(len(z) for z in training) < 2 * window:
        return None
    fold = make_folds(training, outputs, window, plan.horizon)[0]
    refit = Refit(training, outputs, settings.seed, fold)
    try:
        held_out = folds_of(training, outputs, window, plan.horizon, path)
        errors = refit.validation_errors(kept, held_out, fitted_on_first=False)
        return refit.predictor(Selection(kept, linear, (kept,), True, 0), errors, None, path)
    except np.linalg.LinAlgError:
        return None


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
