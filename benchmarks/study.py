"""TD-TF by the present code on the systems of the chaotic study, beside the stored rows of its rivals.

``hardmax reproduce forecasting-study`` runs all models for hours. This fits TD-TF with the same systems and seeds, seed
by seed, beside NG-RC. Its search tries everything within a second, so that it tells two things. Where it gives the
stored valid time the data are the stored ones (chaos amplifies the rounding of another processor), and the stored rows
of all rivals count; elsewhere NG-RC and the echo state network are measured again. And the ratio of its time here to
the stored one is that of the processors: the budget of TD-TF in processor seconds is multiplied by it, so that TD-TF
has as much work as its rivals had.

Each fit is stored in ``benchmarks/forecasting_study/again.csv`` when it is measured, with a checksum of its data; those
of TD-TF count only for the code that they were measured with. The environment variable ``STUDY_MINUTES`` ends the fits
after so many minutes; 0 reports what is stored. ``STUDY_SEEDS`` takes some seeds only, such as ``1,2``, so that two
processes can share the work. ``STUDY_JOBS`` is the number of fits at a time, on a machine with as many cores: the
models are then fitted one after the other, NG-RC first, so that its time is that of the machine under this load.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
import pandas as pd
from joblib import Parallel, delayed

from hardmax.forecasting.diagnostics.skill import mean_ranks
from hardmax.reproduce.forecasting_study import LEVELS, SECONDS, SEEDS, study_row
from hardmax.reproduce.forecasting_study_cases import (
    ESN,
    IN_PLACE,
    NGRC,
    OURS,
    SETTINGS,
    UNIFORM,
    study_systems,
)

from ._series_rows import code_version
from ._table import Check, Report
from .series import coverage_checks

FOLDER = Path(__file__).parent / "forecasting_study"
STORED, AGAIN = FOLDER / "2026-11-15.csv", FOLDER / "again.csv"
"""Rows of the whole study, and those that were measured since."""
RIVALS = (NGRC, ESN)
"""The nearest rivals, measured again where the data are not the stored ones."""
_CALIBRATION = 5
"""Systems, in every setting, on which NG-RC is timed before anything else."""
_Case = tuple[str, str, str, int]
"""Setting, system, model and seed of a fit."""
_CASE = ["setting", "system", "seed"]
_SAME = 1e-6
"""Relative difference up to which valid times of NG-RC are those of the same data; they are stored to 9 digits."""
_NOT_WORSE = 0.05
"""Difference of mean ranks that counts as none: one rank on one of 21 systems."""
_COLUMNS = ("valid_time", "diverged", "starts", "climate", "fit_seconds", "data", "speed")
"""Columns of a row of the study that are stored, beside the search seconds and the coverage of TD-TF."""


def run(*, quick: bool = False) -> Report:
    """Fit what is not stored; ``quick`` takes one system, one seed and one second, and stores nothing."""
    stored = pd.read_csv(STORED)
    if quick:
        found = [_row(setting, study_systems()[-1], OURS, 0, 1.0) for setting in SETTINGS]
        return summary(pd.DataFrame(found), stored)
    began, minutes = time.monotonic(), float(os.environ.get("STUDY_MINUTES", "inf"))
    jobs = int(os.environ.get("STUDY_JOBS", "1"))
    done, wanted = _done(), os.environ.get("STUDY_SEEDS", ",".join(map(str, range(SEEDS)))).split(",")
    todo = [case for case in cases() if case not in done and str(case[3]) in wanted]
    for batch in _batches(todo, jobs):
        if time.monotonic() - began >= 60 * minutes:
            break
        rows = _measured()
        same = set(_on_stored_data(rows, stored)[_CASE].itertuples(index=False, name=None))
        budget = SECONDS * slowness(rows, stored)
        fits = [
            delayed(_row)(setting, system, model, seed, budget if model == OURS else SECONDS)
            for setting, system, model, seed in batch
            if model != ESN or (setting, system, seed) not in same
        ]
        for row in Parallel(n_jobs=jobs, return_as="generator")(fits):
            pd.DataFrame([row]).to_csv(AGAIN, mode="a", header=not AGAIN.exists(), index=False)
    return summary(pd.read_csv(AGAIN), stored)


def cases() -> list[_Case]:
    """Setting, system, model and seed of every fit, in the order in which they are made."""
    timed = [(t, s, NGRC, 0) for s in study_systems()[:_CALIBRATION] for t in SETTINGS]
    first = [(t, s, model, 0) for s in study_systems() for t in SETTINGS for model in (NGRC, OURS)]
    second = [(t, s, ESN, 0) for s in study_systems() for t in SETTINGS]
    rest = [
        (t, s, model, seed)
        for seed in range(1, SEEDS)
        for s in study_systems()
        for t in SETTINGS
        for model in (NGRC, OURS, ESN)
    ]
    return list(dict.fromkeys([*timed, *first, *second, *rest]))


def _batches(todo: list[_Case], jobs: int) -> list[list[_Case]]:
    """Fits that are made together: one by one, or with several at a time all of NG-RC, of ours, and of the ESN."""
    if jobs == 1:
        return [[case] for case in todo]
    return [[case for case in todo if case[2] == model] for model in (NGRC, OURS, ESN)]


def slowness(rows: pd.DataFrame, stored: pd.DataFrame) -> float:
    """Median ratio of the time of NG-RC in ``rows`` to its stored time, on the same data; 1 without such rows."""
    both = _on_stored_data(rows, stored)
    return float((both["fit_seconds"] / both["fit_seconds_stored"]).median()) if len(both) else 1.0


def _on_stored_data(rows: pd.DataFrame, stored: pd.DataFrame) -> pd.DataFrame:
    """Rows of NG-RC whose valid time is the stored one of the same case, beside the stored rows."""
    before = stored[stored["model"] == NGRC]
    both = rows[rows["model"] == NGRC].merge(before, on=_CASE, suffixes=("", "_stored"))
    gap = (both["valid_time"] - both["valid_time_stored"]).abs()
    return both[gap <= _SAME * both["valid_time_stored"].abs()]


def _measured() -> pd.DataFrame:
    """Rows that are stored since; none before the first."""
    return pd.read_csv(AGAIN) if AGAIN.exists() else pd.read_csv(STORED).iloc[:0]


def _done() -> set[_Case]:
    """Fits that are stored: of TD-TF by the present code, of the rivals by any."""
    if not AGAIN.exists():
        return set()
    rows = pd.read_csv(AGAIN)
    rows = rows[(rows["model"] != OURS) | (rows["code"] == code_version())]
    return set(zip(rows["setting"], rows["system"], rows["model"], rows["seed"], strict=True))


def _row(setting: str, system: str, model: str, seed: int, seconds: float) -> dict[str, object]:
    found = study_row(setting, system, model, seconds, seed)
    inside = {name: found.get(name) for name in LEVELS}
    where = {"setting": setting, "system": system, "model": model, "seed": seed, "code": code_version()}
    return where | {name: found[name] for name in _COLUMNS} | {"search": seconds} | inside


def summary(rows: pd.DataFrame, stored: pd.DataFrame) -> Report:
    """Mean rank, valid time, divergence and coverage of ours in each setting, beside the stored TD-TF.

    The rows of ours are those of the code of the last one, of several fits in one case the last. A rival's row replaces
    the stored one where it is of the same data as that of ours.
    """
    ours = rows[rows["model"] == OURS]
    ours = ours[ours["code"] == ours["code"].iloc[-1]].drop_duplicates(_CASE, keep="last")
    columns = ["setting", "fits", "mean rank", "stored", "valid time", "stored", "diverged", "in 68 %", "in 95 %"]
    columns += [f"mean rank, {name}" for name in RIVALS]
    columns += [f"wins : losses, {name}" for name in RIVALS] + ["longest fit, s"]
    report = Report("Chaotic systems", columns)
    models = [m for m in stored["model"].unique() if m not in (UNIFORM, IN_PLACE)]
    replaced = 0
    for setting in SETTINGS:
        part = ours[ours["setting"] == setting]
        if len(part) == 0:
            continue
        here = part.set_index(["system", "seed"])
        table = stored[stored["setting"] == setting]
        before = table.pivot(index=["system", "seed"], columns="model", values="valid_time").loc[here.index, models]
        after = before.assign(**{OURS: here["valid_time"]})
        for rival in RIVALS:
            again = rows[(rows["setting"] == setting) & (rows["model"] == rival)].set_index(["system", "seed"])
            for case in again.index.intersection(here.index):
                if again.loc[case, "data"] == here.loc[case, "data"]:
                    after.loc[case, rival] = again.loc[case, "valid_time"]
                    replaced += 1
        ranks = [_rank(valid, models) for valid in (after, before)]
        times = [float(valid[OURS].mean()) for valid in (after, before)]
        report.rows.append(
            [
                setting,
                len(part),
                *ranks,
                *times,
                int(part["diverged"].sum()),
                *(float(part[name].mean()) for name in LEVELS),
                *(_rank(after, models, rival) for rival in RIVALS),
                *(_wins(after, rival) for rival in RIVALS),
                float(part["fit_seconds"].max()),
            ]
        )
        what = f"{setting}: mean rank, above the stored one by"
        report.checks.append(Check(what, ranks[0] - ranks[1], _NOT_WORSE, at_least=False, unit=""))
    report.checks.append(Check("diverged forecasts", int(ours["diverged"].sum()), 0, at_least=False, unit=""))
    report.checks += coverage_checks("chaotic systems", [float(ours[name].mean()) for name in LEVELS])
    report.notes += _notes(ours, len(models), replaced, rows, stored)
    return report


def _notes(ours: pd.DataFrame, models: int, replaced: int, rows: pd.DataFrame, stored: pd.DataFrame) -> list[str]:
    code = "the present code" if ours["code"].iloc[-1] == code_version() else f"code {ours['code'].iloc[-1]}"
    seeds = ", ".join(str(seed) for seed in sorted(ours["seed"].unique()))
    return [
        f"TD-TF by {code}: {len(ours)} fits on {ours['system'].nunique()} systems, seeds {seeds}; ranks among "
        f"{models} models, valid times in Lyapunov times. Stored: by the code of {STORED.stem}, on the same systems "
        "and seeds.",
        f"{replaced} rows of {' and '.join(RIVALS)} are measured again on the data of TD-TF; the other rows of other "
        f"models are the stored ones. NG-RC gives the stored valid time in {len(_on_stored_data(rows, stored))} of "
        f"{int((rows['model'] == NGRC).sum())} cases: their data are the stored ones.",
        "Forecasts that diverge in the stored rows of the same seeds: "
        + ", ".join(f"{count} of {name}" for name, count in _diverged(stored, ours).items())
        + f"; of TD-TF {int(ours['diverged'].sum())} of {int(ours['starts'].sum()):,}.",
        f"NG-RC takes {slowness(rows, stored):.2f} times as long as on the machine of the stored rows, and the budget "
        "of TD-TF in processor seconds is multiplied by the ratio that was known at each fit: equal work on this "
        f"processor, whose speed is {ours['speed'].median():.1f} reference computations per processor second.",
    ]


def _diverged(stored: pd.DataFrame, ours: pd.DataFrame) -> dict[str, int]:
    """Diverged forecasts of the stored models that have any, on the cases of ours, most first."""
    same = stored.merge(ours[_CASE], on=_CASE)
    counts = same.groupby("model")["diverged"].sum().sort_values(ascending=False)
    return {str(name): int(count) for name, count in counts.items() if count}


def _wins(valid: pd.DataFrame, rival: str) -> str:
    """Systems on which ours is ahead of a rival and behind it, by means over seeds."""
    gap = valid.groupby(level="system").mean().round(9)
    return f"{int((gap[OURS] > gap[rival]).sum())} : {int((gap[OURS] < gap[rival]).sum())}"


def _rank(valid: pd.DataFrame, models: list[str], model: str = OURS) -> float:
    """Mean rank of a model over the systems, by means over seeds; times that differ by rounding alone are tied."""
    by_system = valid.groupby(level="system").mean()[models].to_numpy()
    return float(np.asarray(mean_ranks(by_system.round(9)))[models.index(model)])
