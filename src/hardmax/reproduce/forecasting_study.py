"""The forecasting study: every model on every system in every setting, and its summary.

The summary works on any part of the study and states its number of rows. Only cases (a system and a seed) that all
compared models have finished are compared, so that a missing row favours no model.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..errors import FileError, InputError
from ..figures import figure_bytes, save_figure
from ..figures.forecast_diagnostics import draw_study
from ..files import make_folder, write_text
from ..forecasting.diagnostics.skill import (
    compare,
    confidence,
    error_curves,
    histogram_distance,
    mean_ranks,
    valid_times,
)
from ..forecasting.forecaster import TimeDelayedTransformer
from ..sweeps import read_sweep, sweep
from .forecasting_study_cases import (
    CONTEXT,
    DMD,
    ESN,
    FIRST_ROUND,
    IN_PLACE,
    LONGEST,
    MODELS,
    NGRC,
    OURS,
    SETTINGS,
    UNIFORM,
    make_case,
    processor_speed,
    study_systems,
)
from .report import Report, Table

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


ROWS, PAGE, WORDS, CSV, PICTURE = "rows", "study.html", "summary.md", "rows.csv", "study.svg"
"""Names in the folder of a study: the rows, and the files that a summary writes."""
_VARIANTS = (UNIFORM, IN_PLACE)
# Smaller differences are rounding errors and count as ties.
_SAME = 1e-9
_LEAD = (
    "Models with one fixed recipe, or tuned on held-out training rollouts in the same time, forecast chaotic systems "
    "that were chosen by a rule before any run."
)


def read_study(folder: str | os.PathLike[str]) -> pd.DataFrame:
    """The rows of a study, finished and failed; the column ``outcome`` tells them apart."""
    rows = read_sweep(Path(folder) / ROWS)
    if len(rows) == 0:
        raise FileError(folder, "holds no finished rows", "run the study first")
    return rows


def write_forecasting_summary(folder: str | os.PathLike[str]) -> list[Table]:
    """Write the finished rows of a study as CSV, its tables as a page and as Markdown, and its figure.

    Parameters
    ----------
    folder
        Folder of the study.

    Returns
    -------
    list of Table
        The tables.
    """
    target = make_folder(folder)
    rows = read_study(target)
    tables = summary_tables(rows)
    page = Report("Forecasting chaotic systems", lead=_LEAD)
    picture = draw_forecasting_summary(rows)
    if picture is not None:
        save_figure(picture, target / PICTURE)
        page.section("Valid prediction times").picture(
            figure_bytes(picture, "png"),
            "A dot is a system, the bar the mean over systems, the number at the end of a line the mean rank.",
            alt="Valid prediction times of every model in every setting",
        )
    for table in tables:
        page.section(table.title).table(table)
    page.write(target / PAGE)
    write_text(target / WORDS, "\n\n".join(f"### {t.title}\n\n{t.to_markdown()}\n\n{t.note}" for t in tables) + "\n")
    short = rows.drop(columns=[name for name in ("valid_times",) if name in rows])
    write_text(target / CSV, short.to_csv(index=False))
    return tables


def summary_tables(rows: pd.DataFrame) -> list[Table]:
    """Tables of a study: one per setting, the comparisons with other models, and the ablations of attention."""
    done = rows[rows["outcome"] == "finished"]
    tables = []
    for setting in SETTINGS:
        part = done[done["setting"] == setting]
        for place, models in enumerate(_together(part)):
            title = f"{setting.capitalize()}, every model" if place else setting.capitalize()
            tables.append(_setting_table(title, part, models))
    rivals = [m for m in MODELS if m != OURS and m not in _VARIANTS]
    tables.append(_comparisons("TD-TF against each other model", done, OURS, rivals))
    if set(_VARIANTS) & set(done["model"]):
        tables.append(_comparisons("Ablation: attention against its replacements", done, OURS, _VARIANTS))
    failed = int((rows["outcome"] == "failed").sum())
    if failed:
        first = str(rows[rows["outcome"] == "failed"]["error"].iloc[0])
        tables.append(Table("Failed rows", ("rows", "the first says"), ((failed, first),)))
    return tables


def draw_forecasting_summary(rows: pd.DataFrame) -> Figure | None:
    """Figure of the valid prediction times on the cases that all models of a setting have finished.

    Parameters
    ----------
    rows
        Rows of a study, as a table.

    Returns
    -------
    Figure or None
        The figure; None where no case is finished by all models.
    """
    done = rows[rows["outcome"] == "finished"]
    times: dict[str, dict[str, np.ndarray]] = {}
    ranks: dict[str, dict[str, float]] = {}
    for setting in SETTINGS:
        part = done[done["setting"] == setting]
        groups = _together(part)
        if groups:
            models = groups[0]
            by_system = _complete(part, models).groupby(level="system").mean()
            times[setting] = {model: by_system[model].to_numpy() for model in models}
            ranks[setting] = dict(zip(models, _ranks(by_system), strict=True))
    return draw_study(times, ranks, ours=OURS) if times else None


def _ranks(by_system: pd.DataFrame) -> list[float]:
    """Mean ranks of the models; times that differ by rounding alone are tied."""
    return [float(rank) for rank in mean_ranks(by_system.to_numpy().round(9))]


def _complete(part: pd.DataFrame, models: Sequence[str]) -> pd.DataFrame:
    """Mean valid times, one row per case that every model has finished, one column per model."""
    wide = part.pivot_table(index=["system", "seed"], columns="model", values="valid_time", aggfunc="mean")
    return wide.reindex(columns=list(models)).dropna()


def _together(part: pd.DataFrame) -> list[list[str]]:
    """Groups of models to rank together: all, or also the first round where others have not finished its cases.

    The ablations are variants of TD-TF, so they are not ranked beside it.
    """
    there = set(part["model"]) - set(_VARIANTS)
    begun, first = ([m for m in models if m in there] for models in (MODELS, FIRST_ROUND))
    everything, most = len(_complete(part, begun)), len(_complete(part, first))
    groups = [begun] if everything == most else [first, begun] if everything else [first]
    return groups if most else []


def _setting_table(title: str, part: pd.DataFrame, models: list[str]) -> Table:
    wide = _complete(part, models)
    by_system = wide.groupby(level="system").mean()
    ranks = dict(zip(models, _ranks(by_system), strict=True))
    for variant in _VARIANTS:
        beside = _complete(part, [*models, variant])
        if len(beside) == len(wide) and OURS in models:
            in_place = beside.groupby(level="system").mean().drop(columns=OURS)
            ranks[variant] = _ranks(in_place)[-1]
    rows = []
    cases = set(wide.index)
    for model, rank in ranks.items():
        own = part[part["model"] == model]
        own = own[[(s, e) in cases for s, e in zip(own["system"], own["seed"], strict=True)]]
        valid = confidence(np.array(own["valid_times"].tolist()))
        diverged, starts = int(own["diverged"].sum()), int(own["starts"].sum())
        rows.append(
            (
                model,
                round(rank, 2),
                round(valid.mean, 2),
                f"{valid.low:.2f} to {valid.high:.2f}",
                f"{diverged} of {starts}",
                round(float(own["climate"].mean()), 3),
                round(float(own["fit_seconds"].mean()), 1),
            )
        )
    rows.sort(key=lambda row: row[1])
    seeds = sorted({int(seed) for _, seed in cases})
    note = (
        f"{len(by_system)} of {len(study_systems())} systems, seeds {', '.join(map(str, seeds)) or 'none'}, "
        f"{len(cases)} cases of {len(models)} models: {len(cases) * len(models)} fits. Valid time in Lyapunov times "
        "until the error exceeds 0.4 standard deviations; the interval is over cases and their starts. Ranks are of "
        "the means over seeds; those of the ablations (uniform attention, MLP) are what they would be in place of "
        "TD-TF. Diverged: beyond three half-ranges of the training data within 1,200 steps."
    )
    columns = ("model", "mean rank", "valid time", "95 % interval", "diverged", "climate distance", "fit, s")
    return Table(title, columns, rows, note)


def _comparisons(title: str, done: pd.DataFrame, ours: str, rivals: Sequence[str]) -> Table:
    rows = []
    for setting in SETTINGS:
        part = done[done["setting"] == setting]
        for rival in rivals:
            if rival not in set(part["model"]) or ours not in set(part["model"]):
                continue
            both = _complete(part, [ours, rival]).groupby(level="system").mean()
            if len(both) == 0:
                continue
            gap = both[ours].to_numpy() - both[rival].to_numpy()
            gap = np.where(np.abs(gap) < _SAME, 0.0, gap)
            found = compare(gap, np.zeros_like(gap))
            worst = both.index[int(np.argmin(gap))] if gap.min() < 0 else None
            rows.append(
                (
                    setting,
                    rival,
                    len(both),
                    found.wins,
                    found.losses,
                    found.ties,
                    f"{found.sign:.2g}",
                    f"{found.wilcoxon:.2g}",
                    round(float(gap.mean()), 2),
                    None if worst is None else f"{worst} ({gap.min():+.2f})",
                )
            )
    note = (
        "System by system, means over seeds and starts of the valid prediction time; p-values are two-sided. "
        f"The main baselines are {DMD}, {NGRC} and {ESN}."
    )
    columns = (
        "setting",
        "against",
        "systems",
        "wins",
        "losses",
        "ties",
        "p (sign)",
        "p (Wilcoxon)",
        "mean gain",
        "worst loss",
    )
    return Table(title, columns, rows, note)


SECONDS = 5.0
SEEDS = 3
LEVELS = {"in68": 0.68, "in95": 0.95}
"""Columns with the share of the true samples, without noise, inside the intervals of these levels."""
_FAR = 3.0
"""Half-ranges of the training data beyond which a rollout counts as diverged."""


def run_forecasting_study(
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
    """Run the part of the study that is missing in a folder; rows are written as they finish.

    Rows are computed seed by seed; per seed the main models on all systems, setting by setting, then the other models.
    A study that is stopped early is therefore a balanced sample.

    Parameters
    ----------
    folder
        Folder of the study.
    seconds
        Processor seconds; every model has 1.5 times as many for its fit.
    seeds
        Number of seeds, each with data of its own.
    settings
        The settings to run.
    systems
        The systems to run; all of :func:`study_systems` when left out.
    models
        The models to run; all when left out.
    jobs
        Fits at a time. Times are comparable only if every fit has a core of its own.
    progress
        Show a progress bar: True, False, or None for only when it takes long and there is a terminal.

    Returns
    -------
    None
        The rows are in the folder.
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
    """The row of one model on one case: errors of rollouts from twenty starts; of TD-TF also the coverage."""
    case = make_case(system, setting, random_state)
    forecaster = MODELS[model](search, random_state)
    began = time.thread_time()
    forecaster.fit([case.training], case.dt)
    fitted = time.thread_time()
    windows = case.windows
    if isinstance(forecaster, TimeDelayedTransformer) and forecaster.window > CONTEXT:
        windows = case.history
    ahead = forecaster.roll(windows, LONGEST)
    rolled = time.thread_time()
    low, high = case.training.min(axis=0), case.training.max(axis=0)
    with np.errstate(all="ignore"):
        beyond = np.abs(ahead - (low + high) / 2) / ((high - low) / 2) > _FAR
    diverged = (beyond | ~np.isfinite(ahead)).any(axis=(1, 2))
    curves = error_curves(ahead[:, : case.horizon], case.truth, case.training.std(axis=0))
    valid = valid_times(curves, case.dt, unit=case.lyapunov_time)
    one = min(case.horizon, max(1, round(case.lyapunov_time / case.dt))) - 1
    inside = {}
    if isinstance(forecaster, TimeDelayedTransformer):
        bands = forecaster.forecast(case.horizon, window=windows)
        for name, level in LEVELS.items():
            band = bands.interval(level)
            inside[name] = float(((band.lower <= case.truth) & (case.truth <= band.upper)).mean())
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
        "data": case.fingerprint,
        "speed": processor_speed(),
        **inside,
    }
