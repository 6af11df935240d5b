"""The cases of the forecasting paper: training data, starts of forecasts, and the true future."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..datasets.airfoil import airfoil
from ..datasets.chaotic import LYAPUNOV_EXPONENT, lorenz63
from ..datasets.cylinder_wake import cylinder_wake
from ..datasets.signals import sinusoids, spiral
from ..forecasting.data.pod import fit_pod
from ..forecasting.diagnostics.skill import error_curves, valid_times
from ..forecasting.protocol import AbstractForecaster

TRAINING_ANGLES, NEW_ANGLES = (0.02, 0.06, 0.1, 0.15, 0.2, 0.25, 0.3), (0.04, 0.12, 0.22)
TRAINING_AMPLITUDES, NEW_AMPLITUDES = (0.1, 0.2, 0.3, 0.5, 0.8, 1.2, 1.6), (0.15, 0.4, 1.4)
SPIRAL_MODES, WAKE_MODES = 6, 8


@dataclass(frozen=True, eq=False)
class FieldView:
    """Reconstruction of a field ``(x, y)`` from coefficients, with its coordinates and name."""

    shown: Callable[[np.ndarray], np.ndarray]
    x: np.ndarray
    y: np.ndarray
    name: str
    hidden: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class ForecastCase:
    """Training trajectories, windows before each start, and the true future without noise."""

    name: str
    training: list[np.ndarray]
    windows: np.ndarray
    truth: np.ndarray
    dt: float
    scale: np.ndarray
    """Unit of the error of each channel, shape (channels,)."""
    names: tuple[str, ...]
    lyapunov_time: float | None = None
    fields: FieldView | None = None
    """Reconstruction of the fields, where the channels are coefficients."""
    about: str = ""
    """A remark on the data, in words."""

    @property
    def horizon(self) -> int:
        """Number of steps that are compared."""
        return int(self.truth.shape[1])

    def curves(self, model: AbstractForecaster) -> np.ndarray:
        """Errors of a fitted model, shape (starts, steps)."""
        return error_curves(model.roll(self.windows, self.horizon), self.truth, self.scale)

    def error(self, curves: np.ndarray) -> float:
        """NRMSE of the rollouts: the root mean square over starts and steps."""
        return float(np.sqrt((curves**2).mean()))

    def valid_time(self, curves: np.ndarray) -> float:
        """Mean valid prediction time, in Lyapunov times if the case has one, else in units of time."""
        return float(valid_times(curves, self.dt, unit=self.lyapunov_time or 1.0).mean())


def sinusoid_case(*, noise: float = 0.0, quick: bool = False) -> ForecastCase:
    """A sum of four sinusoids; with noise the windows are noisy too and the truth is clean."""
    learned, ahead, context = 800 if quick else 2000, 150 if quick else 400, 300
    total = learned + context + 3 * ahead
    seen, clean = sinusoids(total, noise=noise), sinusoids(total)
    starts = np.linspace(learned + context, total - ahead, 10).astype(int)
    name = "sinusoids" if noise == 0 else f"sinusoids, {100 * noise:g} % noise"
    return _from_one(name, seen.values, clean.values, learned, starts, context, ahead, seen.dt, seen.names, None)


def lorenz_case(*, full: bool = False, quick: bool = False) -> ForecastCase:
    """Lorenz '63 at dt = 0.02, observed in x only or fully."""
    learned, ahead, context = 2000 if quick else 5000, 300 if quick else 600, 400
    series = lorenz63(learned + context + 2 * ahead)
    values = series.values if full else series.values[:, :1]
    starts = np.linspace(learned + context, len(values) - ahead, 20).astype(int)
    names = series.names if full else series.names[:1]
    name = "Lorenz '63, full state" if full else "Lorenz '63, x only"
    return _from_one(name, values, values, learned, starts, context, ahead, series.dt, names, 1 / LYAPUNOV_EXPONENT)


def airfoil_case(*, quick: bool = False) -> ForecastCase:
    """The typical section past flutter, released at angles outside the training set; pitch, plunge and lift."""
    length, context = 300 if quick else 400, 60
    training = [airfoil(length, initial_pitch=angle).values for angle in TRAINING_ANGLES]
    tests = [airfoil(length, initial_pitch=angle).values for angle in NEW_ANGLES]
    return _from_several("airfoil, new angles", training, tests, context, 2.0, ("pitch", "plunge", "lift"), False)


def spiral_case(*, quick: bool = False) -> ForecastCase:
    """Spirals that grow or shrink to their limit cycle from new amplitudes, in POD coefficients."""
    samples, grid, context, dt = 150 if quick else 250, 32 if quick else 48, 40, 0.05
    made = {a: spiral(samples, dt, amplitude=a, grid=grid) for a in (*TRAINING_AMPLITUDES, *NEW_AMPLITUDES)}
    pod, training = fit_pod([made[a] for a in TRAINING_AMPLITUDES], SPIRAL_MODES)
    tests = [pod.reduce(made[a]) for a in NEW_AMPLITUDES]
    names = tuple(f"POD mode {k + 1}" for k in range(SPIRAL_MODES))
    case = _from_several("spiral, new amplitudes", list(training), tests, context, dt, names, True)
    axis = (np.arange(grid) + 0.5) / grid * 20.0 - 10.0
    about = f"{SPIRAL_MODES} modes hold {100 * pod.energy:.3f} % of the energy of the training fields about their mean."
    return replace(case, fields=FieldView(lambda c: pod.reconstruct(c)[0], axis, axis, "u"), about=about)


def spiral_cycle_case(*, quick: bool = False) -> ForecastCase:
    """A spiral on its limit cycle, which is nearly linear in POD coefficients."""
    learned, ahead, context, dt = 300 if quick else 500, 100 if quick else 150, 60, 0.1
    settled = 100
    fields = spiral(settled + learned + context + ahead + 20, dt, grid=32)[settled:]
    pod, _ = fit_pod([fields[:learned]], SPIRAL_MODES)
    values = pod.reduce(fields)
    starts = np.linspace(learned + context, len(values) - ahead, 5).astype(int)
    names = tuple(f"POD mode {k + 1}" for k in range(SPIRAL_MODES))
    case = _from_one("spiral, its cycle", values, values, learned, starts, context, ahead, dt, names, None)
    return replace(case, scale=np.full_like(case.scale, np.sqrt((case.scale**2).mean())))


def wake_case(*, quick: bool = False) -> ForecastCase:
    """The wake of a confined cylinder, in POD coefficients of the training velocity."""
    learned, ahead, context, dt = 120 if quick else 500, 60 if quick else 150, 60, 0.1
    cells, warm_up = (6, 20.0) if quick else (10, 60.0)
    wake = cylinder_wake(learned + context + ahead + 20, dt, cells=cells, warm_up=warm_up)
    pod, _ = fit_pod([wake.velocity[:learned]], WAKE_MODES)
    values = pod.reduce(wake.velocity)
    starts = np.linspace(learned + context, len(values) - ahead, 5).astype(int)
    names = tuple(f"POD mode {k + 1}" for k in range(WAKE_MODES))
    case = _from_one("cylinder wake, its cycle", values, values, learned, starts, context, ahead, dt, names, None)
    view = FieldView(lambda c: wake.vorticity(pod.reconstruct(c)), wake.x, wake.y, "vorticity", wake.solid)
    drag, lift = wake.forces.values.max(axis=0)
    about = (
        f"{WAKE_MODES} modes hold {100 * pod.energy:.3f} % of the energy of the velocity about its mean. "
        f"With {cells} cells to a diameter the Strouhal number is {wake.strouhal():.4f}, the largest drag coefficient "
        f"{drag:.3f} and the largest lift coefficient {lift:.3f}; the benchmark of Schäfer and Turek (1996) has "
        "0.295–0.305, 3.22–3.24 and 0.99–1.01."
    )
    common = np.full_like(case.scale, np.sqrt((case.scale**2).mean()))
    return replace(case, scale=common, fields=view, about=about)


def _from_one(
    name: str,
    seen: np.ndarray,
    clean: np.ndarray,
    learned: int,
    starts: np.ndarray,
    context: int,
    ahead: int,
    dt: float,
    names: tuple[str, ...],
    lyapunov_time: float | None,
) -> ForecastCase:
    return ForecastCase(
        name,
        [seen[:learned]],
        np.stack([seen[k - context : k] for k in starts]),
        np.stack([clean[k : k + ahead] for k in starts]),
        dt,
        clean[:learned].std(axis=0),
        names,
        lyapunov_time,
    )


def _from_several(
    name: str,
    training: Sequence[np.ndarray],
    tests: Sequence[np.ndarray],
    context: int,
    dt: float,
    names: tuple[str, ...],
    common: bool,
) -> ForecastCase:
    """Each test goes on from its first samples; ``common`` measures errors by the whole state, not by channel."""
    spread = np.concatenate(training).std(axis=0)
    scale = np.full_like(spread, np.sqrt((spread**2).mean())) if common else spread
    windows, truth = np.stack([z[:context] for z in tests]), np.stack([z[context:] for z in tests])
    return ForecastCase(name, list(training), windows, truth, dt, scale, names)
