"""TD-TF by the present code on systems of the chaotic study, among the stored rows of the other models.

``hardmax reproduce forecasting-study`` runs all models for hours. This fits TD-TF alone, with the same data, budget and
seeds, on every third system in all settings, and ranks it in place of the stored TD-TF. Each fit is stored in
``benchmarks/forecasting_study/again.csv`` when it is measured, and counts only for the code that it was measured with.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from hardmax.forecasting.diagnostics.skill import mean_ranks
from hardmax.reproduce.forecasting_study import LEVELS, SECONDS, SEEDS, study_row
from hardmax.reproduce.forecasting_study_cases import IN_PLACE, OURS, SETTINGS, UNIFORM, study_systems

from ._series_rows import code_version
from ._table import Check, Report
from .series import coverage_checks

FOLDER = Path(__file__).parent / "forecasting_study"
STORED, AGAIN = FOLDER / "2026-11-15.csv", FOLDER / "again.csv"
"""Rows of the whole study, and those of TD-TF that were measured since."""
_EVERY = 3
"""Systems in the order of the study from one that is fitted to the next: all of them take an hour of one core."""
_NOT_WORSE = 0.15
"""Difference of mean ranks that counts as none: one rank on one of seven systems."""


def run(*, quick: bool = False) -> Report:
    """Fit what is not stored; ``quick`` takes one system, one seed and one second, and stores nothing."""
    systems = study_systems()[::_EVERY]
    if quick:
        found = [_row(setting, systems[-1], 0, 1.0) for setting in SETTINGS]
        return summary(pd.DataFrame(found), pd.read_csv(STORED))
    known = pd.read_csv(AGAIN) if AGAIN.exists() else pd.DataFrame(columns=["code"])
    known = known[known["code"] == code_version()]
    done = set(zip(known.get("setting", []), known.get("system", []), known.get("seed", []), strict=True))
    for seed in range(SEEDS):
        for setting in SETTINGS:
            for system in systems:
                if (setting, system, seed) not in done:
                    row = pd.DataFrame([_row(setting, system, seed, SECONDS)])
                    row.to_csv(AGAIN, mode="a", header=not AGAIN.exists(), index=False)
    rows = pd.read_csv(AGAIN)
    return summary(rows[rows["code"] == code_version()], pd.read_csv(STORED))


def _row(setting: str, system: str, seed: int, seconds: float) -> dict[str, object]:
    found = study_row(setting, system, OURS, seconds, seed)
    chosen = ("valid_time", "diverged", "starts", "climate", "fit_seconds", *LEVELS)
    return {"setting": setting, "system": system, "seed": seed, "code": code_version()} | {k: found[k] for k in chosen}


def summary(ours: pd.DataFrame, stored: pd.DataFrame) -> Report:
    """Mean rank, valid time, divergence and coverage of ours in each setting, beside the stored TD-TF."""
    columns = ["setting", "fits", "mean rank", "stored", "valid time", "stored", "diverged", "in 68 %", "in 95 %"]
    report = Report("Chaotic systems", columns)
    models = [m for m in stored["model"].unique() if m not in (UNIFORM, IN_PLACE)]
    for setting in SETTINGS:
        part = ours[ours["setting"] == setting]
        if len(part) == 0:
            continue
        cases = part.set_index(["system", "seed"])["valid_time"]
        rows = stored[stored["setting"] == setting]
        wide = rows.pivot(index=["system", "seed"], columns="model", values="valid_time")
        before = wide.loc[cases.index, models]
        after = before.assign(**{OURS: cases})
        ranks = [_rank(table, models) for table in (after, before)]
        inside = [float(part[name].mean()) for name in LEVELS]
        times = [float(table[OURS].mean()) for table in (after, before)]
        diverged = int(part["diverged"].sum())
        report.rows.append([setting, len(part), *ranks, *times, diverged, *inside])
        what = f"{setting}: mean rank, above the stored one by"
        report.checks.append(Check(what, ranks[0] - ranks[1], _NOT_WORSE, at_least=False, unit=""))
    report.checks.append(Check("diverged forecasts", int(ours["diverged"].sum()), 0, at_least=False, unit=""))
    report.checks += coverage_checks("chaotic systems", [float(ours[name].mean()) for name in LEVELS])
    report.notes.append(
        f"Every third system of the study, {ours['seed'].nunique()} seeds; ranks among "
        f"{len(models)} models, valid times in Lyapunov times. Stored: by the code of {STORED.stem}, on the same cases."
    )
    return report


def _rank(valid: pd.DataFrame, models: list[str]) -> float:
    """Mean rank of ours over the systems, by means over seeds; times that differ by rounding alone are tied."""
    by_system = valid.groupby(level="system").mean()[models].to_numpy()
    return float(np.asarray(mean_ranks(by_system.round(9)))[models.index(OURS)])
