"""The models of the forecasting study, by name, each given a search time and a seed."""

from __future__ import annotations

from collections.abc import Callable

from ..forecasting.forecaster import TimeDelayedTransformer
from ..forecasting.linear import TimeDelayedDMD
from ..forecasting.polynomial import NextGenerationReservoir
from ..forecasting.protocol import AbstractForecaster
from ..forecasting.rivals import EchoState, HigherOrderDMD, Perceptron, Persistence, Sindy

OURS = "TD-TF (ours)"
UNIFORM, IN_PLACE = "TD-TF, uniform attention", "TD-TF, MLP in place of attention"
DMD, NGRC, ESN = "TD-DMD", "NG-RC", "ESN (reservoirpy)"
PERSISTENCE = "persistence"

AFTER_SEARCH = 1.5
"""Our search ends with a selection and a refit beyond its budget; rivals get that time for searching."""

MODELS: dict[str, Callable[[float, int], AbstractForecaster]] = {
    PERSISTENCE: lambda seconds, seed: Persistence(),
    DMD: lambda seconds, seed: TimeDelayedDMD(seconds=AFTER_SEARCH * seconds, random_state=seed),
    NGRC: lambda seconds, seed: NextGenerationReservoir(seconds=AFTER_SEARCH * seconds, random_state=seed),
    ESN: lambda seconds, seed: EchoState(seconds=AFTER_SEARCH * seconds, random_state=seed),
    OURS: lambda seconds, seed: _ours(seconds, seed, None),
    UNIFORM: lambda seconds, seed: _ours(seconds, seed, "uniform"),
    IN_PLACE: lambda seconds, seed: _ours(seconds, seed, "mlp"),
    "HODMD (PyDMD)": lambda seconds, seed: HigherOrderDMD(seconds=AFTER_SEARCH * seconds, random_state=seed),
    "SINDy (PySINDy)": lambda seconds, seed: Sindy(seconds=AFTER_SEARCH * seconds, random_state=seed),
    "MLP": lambda seconds, seed: Perceptron(seconds=AFTER_SEARCH * seconds, random_state=seed),
}
"""Every model by name, made from a search time in processor seconds and a seed."""

FIRST_ROUND = (PERSISTENCE, DMD, NGRC, ESN, OURS)
"""Run for all systems before the others, so that a study stopped early is a balanced sample."""


def _ours(seconds: float, seed: int, ablation: str | None) -> AbstractForecaster:
    return TimeDelayedTransformer(ablation=ablation, seconds=seconds, random_state=seed, progress=False)
