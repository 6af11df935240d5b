"""The experiments that a sweep file may name."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..attention.layer import AbstractLayer, HardmaxLayer, SoftmaxLayer
from ..datasets import make_matrix, make_tokens
from ..datasets.airfoil import airfoil
from ..datasets.chaotic import chaotic_series, lorenz63
from ..datasets.series import Series
from ..datasets.series_files import read_series as read_file
from ..datasets.signals import sinusoids
from ..dynamics import equilibrium as limits
from ..dynamics.simulate import simulate as run_layers
from ..errors import InputError
from ..forecasting.data.series import Units, read_series
from ..forecasting.diagnostics.backtest import backtest
from ..forecasting.settings import Settings, one_of, whole
from ..inputs import as_positive
from ..meanfield.flow import SphereFlow
from ..meanfield.measures import sphere_sample
from ..meanfield.phases import phases

_MADE: dict[str, Callable[[int, int], Series]] = {
    "lorenz63": lambda n, seed: lorenz63(n, random_state=seed),
    "sinusoids": lambda n, seed: sinusoids(n, random_state=seed),
    "airfoil": lambda n, seed: airfoil(n, initial_pitch=np.random.default_rng(seed).uniform(0.02, 0.3)),
}


def forecast(
    system: str = "lorenz63",
    file: str = "",
    n: int = 3000,
    observed: int = 0,
    every: int = 1,
    noise: float = 0.0,
    recipe: str = "family",
    ablation: str = "",
    delays: int = -1,
    restarts: int = 3,
    budget: float = 0.0,
    horizon: int = 200,
    starts: int = 20,
    random_state: int = 0,
) -> dict[str, object]:
    """Errors and valid times of the forecaster and of baselines, fitted to three quarters of a series.

    ``system`` is ``lorenz63``, ``sinusoids``, ``airfoil`` or a system of ``dysts``; ``file`` names a table instead.
    ``observed`` counts the first channels that are seen (0: all), ``every`` keeps one sample in so many, ``noise`` is
    in standard deviations. ``delays`` below zero leaves the window to the recipe; ``budget`` bounds the search in
    processor seconds, 0 for a whole one.
    """
    one_of("recipe", recipe, ("family", "paper"))
    one_of("ablation", ablation, ("", "uniform", "mlp"))
    settings = Settings(
        delays=None if delays < 0 else whole("delays", delays, 0),
        horizon=None,
        restarts=whole("restarts", restarts, 1),
        ablation=ablation or None,
        seconds=None if budget == 0 else as_positive("budget", budget),
        seed=random_state,
        progress=False,
    )
    series = _seen(
        system, file, whole("n", n, 2), whole("observed", observed, 0), whole("every", every, 1), random_state
    )
    if noise:
        series = series.with_noise(as_positive("noise", noise), random_state)
    record = read_series(series.values, times=series.times)
    needed = 16 + (settings.delays or 0)
    if len(series) < needed:
        raise InputError("n", f"{len(series)} samples", f"must leave at least {needed} samples", "take more of them")
    units = Units.of(record.trajectories)
    if not len(units.keep):
        raise InputError("system", series.source, "never varies", "choose another series")
    rows = [units.normalise(z) for z in record.trajectories]
    found = backtest(
        rows,
        len(units.keep),
        settings,
        record.dt,
        whole("horizon", horizon, 2),
        whole("starts", starts, 1),
        recipe=recipe,
    )
    row_of: dict[str, object] = {"kept": found.label, "starts_made": found.starts, "steps": len(found.times)}
    for row in found.rows:
        row_of |= {
            f"{row.model} error": row.error,
            f"{row.model} valid time": row.valid_time,
            f"{row.model} diverged": row.diverged,
        }
        if series.lyapunov_exponent:
            row_of[f"{row.model} Lyapunov times"] = row.valid_time * series.lyapunov_exponent
    return row_of


def _seen(system: str, file: str, n: int, observed: int, every: int, seed: int) -> Series:
    """The series as it is observed; a file is taken to its last ``n`` samples only where it is longer."""
    if file:
        whole_file = read_file(file)
        series = Series(
            whole_file.values[-n:].copy(), whole_file.times[-n:].copy(), whole_file.names, whole_file.source
        )
    elif system in _MADE:
        series = _MADE[system](n * every, seed)
    else:
        series = chaotic_series(system, n * every, random_state=seed)
    if observed > series.channels:
        raise InputError("observed", observed, f"must be at most the {series.channels} channels there are", "lower it")
    if observed:
        series = series.observing(*range(observed))
    return series.every(every) if every > 1 else series


Numbers = dict[str, object]


def equilibrium(
    law: str = "gaussian",
    n: int = 1000,
    d: int = 2,
    alpha: float = 0.5,
    matrix: str = "identity",
    max_layers: int = 10_000,
    random_state: int = 0,
) -> Numbers:
    """Infinite depth: how many lead, how soon all is decided, how many limit points lie on faces."""
    tokens = make_tokens(law, n, d, random_state=random_state)
    layer = HardmaxLayer(alpha, make_matrix(matrix, d, random_state=random_state))
    limit = limits.equilibrium(tokens, layer, max_layers=max_layers, progress=False)
    return {
        "leaders": len(limit.leaders),
        "on_faces": int(limit.on_faces.sum()),
        "layers": limit.layers,
        "decided_at_once": float((limit.decided_at == 0).mean()),
        "largest_following": int(np.bincount(limit.follows[limit.follows >= 0], minlength=1).max()),
        "outcome": limit.outcome,
    }


def simulate(
    law: str = "gaussian",
    n: int = 1000,
    d: int = 2,
    alpha: float = 0.5,
    beta: float | None = None,
    matrix: str = "identity",
    depth: int = 20,
    random_state: int = 0,
) -> Numbers:
    """So many layers, hardmax or (with ``beta``) softmax: how far tokens still are from one another."""
    tokens = make_tokens(law, n, d, random_state=random_state)
    A = make_matrix(matrix, d, random_state=random_state)
    layer: AbstractLayer = HardmaxLayer(alpha, A) if beta is None else SoftmaxLayer(alpha, A, beta=beta)
    run = run_layers(tokens, layer, depth=depth, keep="last", progress=False)
    known = {} if run.leadership is None else {"leaders": len(run.leadership.leaders)}
    known |= {} if run.leadership is None else {"undecided": run.leadership.undecided}
    return {**known, "spread": float(np.asarray(run.final).std(axis=0).mean()), "outcome": run.outcome}


def meanfield(
    beta: float = 100.0,
    n: int = 1000,
    B: tuple[tuple[float, ...], ...] = ((4.0, 0.0), (0.0, 1.0)),
    V: tuple[tuple[float, ...], ...] = ((1.0, 0.0), (0.0, 2.0)),
    tilt: float = 0.5,
    time: float = 14.0,
    step: float = 0.1,
    random_state: int = 0,
) -> Numbers:
    """A law on the sphere at inverse temperature beta: when and how fast it concentrates and escapes."""
    if not -1 < tilt < 1:
        raise InputError("tilt", tilt, "must lie between -1 and 1", "pass for example tilt = 0.5")
    law = sphere_sample(n, len(B), lambda x: 1 + tilt * x[:, -1], random_state=random_state)
    flow = SphereFlow(B, V, beta, few_tokens="ignore")
    run = run_layers(law.points, flow, time=time, step=step, weights=law.weights, progress=False)
    found = phases(run)
    return {**{name: value for name, value, _, _ in found.rows()}, "outcome": run.outcome}


RUNS: dict[str, Callable[..., Numbers]] = {
    "equilibrium": equilibrium,
    "simulate": simulate,
    "meanfield": meanfield,
    "forecast": forecast,
}
"""A new kind of run is one function and one entry here."""
