"""Systems, settings, data and models of the forecasting study.

The rule, written down before any run: of the ordinary differential equations of ``dysts`` with a positive Lyapunov
exponent, in alphabetical order, every sixth, beginning with the earliest one for which none of the nine systems appears
that the recipe was developed on; of these the first twenty, and Lorenz '63 with the classical parameters.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np

from ..datasets.chaotic import chaotic_series, chaotic_systems, lorenz63
from ..datasets.series import Series
from ..errors import InputError
from ..forecasting.forecaster import TimeDelayedTransformer
from ..forecasting.models.baselines import HigherOrderDMD, Perceptron, Persistence, Sindy
from ..forecasting.models.echo_state import EchoState
from ..forecasting.models.ng_rc import NextGenerationReservoir
from ..forecasting.models.td_dmd import TimeDelayedDMD
from ..forecasting.protocol import AbstractForecaster

OURS = "TD-TF (ours)"
UNIFORM, IN_PLACE = "TD-TF, uniform attention", "TD-TF, MLP in place of attention"
DMD, NGRC, ESN = "TD-DMD", "NG-RC", "ESN (reservoirpy)"
PERSISTENCE = "persistence"

PER_MODEL = 1.5
"""Processor time of every model, relative to the ``seconds`` of the study: earlier TD-TF ended its search after these,
with a selection and a refit beyond them, and the other models had that time too. Now each whole fit is within it."""

MODELS: dict[str, Callable[[float, int], AbstractForecaster]] = {
    PERSISTENCE: lambda seconds, seed: Persistence(),
    DMD: lambda seconds, seed: TimeDelayedDMD(seconds=PER_MODEL * seconds, random_state=seed),
    NGRC: lambda seconds, seed: NextGenerationReservoir(seconds=PER_MODEL * seconds, random_state=seed),
    ESN: lambda seconds, seed: EchoState(seconds=PER_MODEL * seconds, random_state=seed),
    OURS: lambda seconds, seed: _ours(seconds, seed, None),
    UNIFORM: lambda seconds, seed: _ours(seconds, seed, "uniform"),
    IN_PLACE: lambda seconds, seed: _ours(seconds, seed, "mlp"),
    "HODMD (PyDMD)": lambda seconds, seed: HigherOrderDMD(seconds=PER_MODEL * seconds, random_state=seed),
    "SINDy (PySINDy)": lambda seconds, seed: Sindy(seconds=PER_MODEL * seconds, random_state=seed),
    "MLP": lambda seconds, seed: Perceptron(seconds=PER_MODEL * seconds, random_state=seed),
}
"""Models by name: functions of a search time in processor seconds and a seed."""

FIRST_ROUND = (PERSISTENCE, DMD, NGRC, ESN, OURS)
"""Run for all systems before the others, so that a study stopped early is a balanced sample."""


def _ours(seconds: float, seed: int, ablation: str | None) -> AbstractForecaster:
    return TimeDelayedTransformer(ablation=ablation, seconds=PER_MODEL * seconds, random_state=seed, progress=False)


DEVELOPED_ON = (
    *("Aizawa", "CaTwoPlus", "Duffing", "Hopfield", "ItikBanksTumor", "MooreSpiegel", "Sakarya", "SprottK", "Torus"),
)
"""The systems on which the recipe was developed, which are excluded from the study."""
LORENZ = "Lorenz '63"
# The rule of the study: every sixth system, the first twenty of them.
EVERY, COUNT = 6, 20

FIRST, NOISY, FULL, COARSE = "first coordinate", "first coordinate, 2 % noise", "full state", "coarse sampling"
SETTINGS = (FIRST, NOISY, FULL, COARSE)
"""The settings (what is observed), in the order in which they are run."""

TRAINING, CONTEXT, LONGEST, STARTS = 4000, 500, 1200, 20
"""Training samples, samples before a start, steps of the longest rollout, number of starts."""
# Samples after the training data, in which forecasts start and are evaluated.
_TEST = 1800
_PER_PERIOD, _COARSE_PER_PERIOD = 80, 16
_LYAPUNOV_TIMES = 12.0
_NOISE = 0.02
_LORENZ_PERIOD = 0.75


def study_systems() -> tuple[str, ...]:
    """Names of the 21 systems of the study, chosen by the rule at the head of this module.

    Returns
    -------
    tuple of str
        The names, Lorenz '63 last.

    Examples
    --------
    >>> "Torus" in study_systems(), len(study_systems())
    (False, 21)
    """
    names = chaotic_systems()
    for offset in range(EVERY):
        chosen = names[offset::EVERY]
        if not set(chosen) & set(DEVELOPED_ON):
            return (*chosen[:COUNT], LORENZ)
    raise InputError("systems", f"{len(names)} of dysts", "must leave an offset without the nine", "change the rule")


@dataclass(frozen=True, eq=False)
class Case:
    """One system in one setting: training data, windows before each start, and the true future."""

    training: np.ndarray
    windows: np.ndarray
    """Samples before each start, shape (starts, CONTEXT, channels)."""
    history: np.ndarray
    """As many samples before each start as the training data hold: windows for models that look back far."""
    truth: np.ndarray
    """The true future without noise, shape (starts, horizon, channels)."""
    dt: float
    lyapunov_time: float

    @property
    def horizon(self) -> int:
        """Number of steps that are compared: twelve Lyapunov times, at most 1,200."""
        return int(self.truth.shape[1])

    @property
    def fingerprint(self) -> str:
        """Checksum of the data: rows of a system and a seed are of the same data only where it is the same.

        Chaos amplifies the last digit of a number, so that records of one seed differ between processors.
        """
        data = hashlib.sha256(self.training.tobytes())
        data.update(self.truth.tobytes())
        return data.hexdigest()[:12]


def make_case(system: str, setting: str, random_state: int) -> Case:
    """The data of one system in one setting; each seed starts the system elsewhere and draws its own noise."""
    if setting not in SETTINGS:
        raise InputError("setting", repr(setting), "is not known", f"choose among {', '.join(SETTINGS)}")
    series = _record(system, _COARSE_PER_PERIOD if setting == COARSE else _PER_PERIOD, random_state)
    clean = series if setting in (FULL, COARSE) else series.observing(0)
    seen = clean.with_noise(_NOISE, 1000 + random_state) if setting == NOISY else clean
    exponent = series.lyapunov_exponent or 1.0
    horizon = int(min(_LYAPUNOV_TIMES / exponent / series.dt, LONGEST))
    first, last = TRAINING + CONTEXT, TRAINING + _TEST
    starts = np.linspace(first, last, STARTS).astype(int)
    return Case(
        seen.values[:TRAINING],
        np.stack([seen.values[k - CONTEXT : k] for k in starts]),
        np.stack([seen.values[k - TRAINING : k] for k in starts]),
        np.stack([clean.values[k : k + horizon] for k in starts]),
        series.dt,
        1.0 / exponent,
    )


@lru_cache(maxsize=64)
def _record(system: str, per_period: int, random_state: int) -> Series:
    samples = TRAINING + _TEST + LONGEST
    if system == LORENZ:
        return lorenz63(samples, _LORENZ_PERIOD / per_period, random_state=random_state)
    return chaotic_series(system, samples, per_period, random_state=random_state)


_SPEED_STEPS, _SPEED_STARTS, _SPEED_ROWS = 400, 64, 2000
"""Steps and starts of the rollout, and rows of the factorisation: typical of a search on the forecasting study."""
_REPEATS = 3
"""Repetitions, of which the fastest counts: the others were disturbed."""


@cache
def processor_speed() -> float:
    """Reference computations per processor second of this thread; measured once per process, in about half a second.

    One computation is a rollout of 400 steps of a quadratic model from 64 starts and a QR factorisation of 2,000 rows
    of its 66 features. A budget of ``s`` seconds at a speed ``v`` allows as much work as ``s * v / w`` seconds at a
    speed ``w``.

    Returns
    -------
    float
        Computations per second.
    """
    return 1.0 / min(_seconds() for _ in range(_REPEATS))


def _seconds() -> float:
    generator = np.random.default_rng(0)
    upper = np.triu_indices(10)
    readout = 1e-3 * generator.standard_normal((66, 10))
    states = generator.standard_normal((_SPEED_STARTS, 10))
    began = time.thread_time()
    for _ in range(_SPEED_STEPS):
        products = states[:, upper[0]] * states[:, upper[1]]
        features = np.concatenate([np.ones((_SPEED_STARTS, 1)), states, products], axis=1)
        states = np.clip(states + features @ readout, -3.0, 3.0)
    rows = generator.standard_normal((_SPEED_ROWS, 66))
    np.linalg.qr(rows, mode="r")
    return time.thread_time() - began
