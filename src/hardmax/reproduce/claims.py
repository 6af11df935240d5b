"""Statements of the papers beside what was measured, with a verdict where the run can give one."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

AGREES, DIFFERS, NOT_JUDGED, SHOWN = "agrees", "differs", "not judged", "shown"
_QUICK = "a quick run is too short to judge this"
# Accuracies of single trainings differ by up to two points between seeds, see the page on sentiment analysis.
_ACCURACY = 0.02
# Slopes are fitted to few temperatures, at which terms of lower order still count.
_SLOPE = 0.1
# At times of about half the closest approach W_2 is larger at the next larger beta, by up to 0.0017 for densities and
# for tokens alike (0.002 between beta = 100 and 178). An artefact of few tokens is ten times as large.
_FALLS = 2e-3
# A ratio of errors of trained models within this factor counts as equal: seeds differ by as much.
_AS_GOOD = 2.0
# A sum of sinusoids can be forecast to rounding: below this error two models are equal.
_ROUNDING = 1e-6

Rows = Sequence[Mapping[str, Any]]
Tables = Mapping[str, Rows]


@dataclass(frozen=True)
class Claim:
    """One statement, table entry or figure of a paper beside what was found."""

    where: str
    """Place in the paper."""
    statement: str
    published: str
    measured: str
    verdict: str
    """``"agrees"``, ``"differs"``, ``"not judged"`` or ``"shown"`` (a figure without a number)."""
    reason: str = ""
    """Why it is not judged, or how it is."""

    def data(self) -> dict[str, str]:
        """The fields by name."""
        return asdict(self)


def clustering_claims(tables: Tables, *, quick: bool) -> list[Claim]:
    """Claims of the clustering paper: its two figures, the theorem and the facts of its proof."""
    figures = [
        Claim("Figure 1", "half-plane that can attract a token, for two matrices", "picture", "drawn again", SHOWN),
        Claim("Figure 2", "leaders, followers and polytope of four configurations", "picture", "drawn again", SHOWN),
    ]
    return figures + [
        Claim(
            "Theorem 1.1 and its proof",
            str(row["statement"]),
            "proved",
            f"{row['violations']:,} violations on {row['systems']:,} systems",
            DIFFERS if row["violations"] else AGREES,
            "no violation beyond rounding",
        )
        for row in tables["facts"]
    ]


def sentiment_claims(tables: Tables, *, quick: bool, same_reviews: bool) -> list[Claim]:
    """Claims of the clustering paper on sentiment analysis: best test accuracy by dimension."""
    from .sentiment_models import PUBLISHED

    claims = []
    for row in tables["accuracy"]:
        if row["model"] != "published":
            continue
        published, found = PUBLISHED[int(row["d"])], float(row["best test accuracy"])
        judged = "published" in row and same_reviews
        reason = f"within {100 * _ACCURACY:.0f} points, one seed each"
        if not judged:
            reason = _QUICK if "published" not in row else "other reviews than the paper's: pass them with --data"
        verdict = (AGREES if found >= published - _ACCURACY else DIFFERS) if judged else NOT_JUDGED
        statement = f"best test accuracy over 100 epochs, d = {row['d']}"
        claims.append(Claim("Sentiment analysis", statement, f"{published:.3f}", f"{found:.3f}", verdict, reason))
    return claims


def interpolation_claims(tables: Tables, *, quick: bool) -> list[Claim]:
    """Claims of the interpolation paper: exactness, size, and training with weight decay."""
    # One test per row of the table of claims, in its order.
    tests: tuple[Callable[[str], bool], ...] = (
        lambda found: found.startswith("proved"),
        lambda found: float(found.rpartition(" to ")[2]) <= 1.0,
        lambda found: found.startswith("epoch"),
        lambda found: float(found) < 1.0,
        lambda found: found == "yes",
        lambda found: abs(float(found) - 1.0) <= _SLOPE,
        lambda found: float(found) <= 1.0 + _SLOPE,
    )
    claims: list[Claim] = []
    for row, holds in zip(tables["claims"], tests, strict=True):
        found = str(row["found"])
        judged = "not evaluated" not in found
        verdict = (AGREES if holds(found) else DIFFERS) if judged else NOT_JUDGED
        where = "Theorem" if len(claims) < 2 else "Regularised training"
        measured = found if judged else "–"
        reason = "" if judged else _QUICK
        claims.append(Claim(where, str(row["claim"]), str(row["published"]), measured, verdict, reason))
    return claims


def meanfield_claims(tables: Tables, *, quick: bool) -> list[Claim]:
    """Claims of the mean-field paper and their derived constants: phases and the error at a fixed time."""
    phases, scaling = tables["phases"], tables["scaling-in-beta"]
    claims = []
    for what, column, theory in (
        ("time of closest approach against ln(beta), slope", "closest at t", 1.0),
        ("time of escape against ln(beta), slope", "escape at t", 1.5),
    ):
        pairs = [(math.log(row["beta"]), row[column]) for row in phases if row[column] is not None]
        x, y = np.array(pairs).reshape(-1, 2).T
        slope = float(np.polyfit(x, y, 1)[0]) if len(pairs) > 1 else math.nan
        near = abs(slope - theory) <= _SLOPE * theory
        verdict = NOT_JUDGED if quick else AGREES if near else DIFFERS
        reason = _QUICK if quick else f"derived constant; within {100 * _SLOPE:.0f} %"
        claims.append(Claim("Metastability", what, f"{theory:g}", f"{slope:.3f}", verdict, reason))
    least = np.log(np.array([[row["beta"], row["least W2 of the density"]] for row in tables["least-distance"]])).T
    power = float(np.polyfit(least[0], least[1], 1)[0])
    verdict = NOT_JUDGED if quick else AGREES if abs(power + 0.5) <= 0.5 * _SLOPE else DIFFERS
    reason = _QUICK if quick else f"derived constant, beta from 100 to 1,000; within {100 * _SLOPE:.0f} %"
    claims.append(Claim("Concentration", "least W2 as a power of beta", "-0.5", f"{power:.3f}", verdict, reason))
    rises = [row["largest rise of W2 above the beta before"] for row in tables["phase-diagram"]]
    rise = max(value for value in rises if value is not None)
    falling = all(np.diff([row["least W2"] for row in tables["phase-diagram"]]) < 0) and rise <= _FALLS
    verdict = NOT_JUDGED if quick else AGREES if falling else DIFFERS
    reason = _QUICK if quick else f"{len(rises)} densities; W2 rises by at most {_FALLS:g} before, as for tokens"
    what = "least W2 falls with beta up to 1,000; largest rise of W2 before the closest approach"
    claims.append(Claim("Concentration", what, "falls", f"{rise:.2g}", verdict, reason))
    logs = np.log(np.array([[row["beta"], row["rms error"]] for row in scaling])).T
    power = float(np.polyfit(logs[0], logs[1], 1)[0])
    verdict = NOT_JUDGED if quick else AGREES if power <= -0.5 else DIFFERS
    reason = _QUICK if quick else "a bound: faster decay agrees"
    where, what = "Main theorem", "error at a fixed time as a power of beta"
    claims.append(Claim(where, what, "at most -1/2, up to a logarithm", f"{power:.3f}", verdict, reason))
    return claims


def forecasting_claims(tables: Tables, *, quick: bool) -> list[Claim]:
    """Claims of the time-delayed transformer paper: its layer, trained as published, against TD-DMD in each case."""
    from .forecasting import PARTS
    from .forecasting_comparison import DMD, PAPER

    claims = []
    for part in PARTS:
        if not part.claim:
            continue
        rows = {row["model"]: row for row in tables["cases"] if row["case"] == part.title}
        dmd, layer = (max(float(rows[name]["NRMSE"]), _ROUNDING) for name in (DMD, PAPER))
        better = "better" in part.claim
        holds = layer < dmd if better else layer <= _AS_GOOD * dmd
        verdict = NOT_JUDGED if quick else AGREES if holds else DIFFERS
        measured = f"NRMSE {_error(layer)}, TD-DMD {_error(dmd)}"
        reason = _QUICK if quick else "the layer trained as published, against tuned TD-DMD"
        claims.append(
            Claim(part.title, "error of rollouts of the published layer", part.claim, measured, verdict, reason)
        )
    return claims


def _error(value: float) -> str:
    return f"below {_ROUNDING:g}" if value <= _ROUNDING else f"{value:.3g}"
