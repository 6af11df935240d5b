"""Chaotic systems: Lorenz '63 and those of the package ``dysts``, integrated by an adaptive method of order 8.

Right-hand sides, parameters, a state on the attractor, the dominant period and the largest Lyapunov exponent are those
of the package (Gilpin, "Chaos as an interpretable benchmark", arXiv 2110.05266).
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ..errors import InputError, MissingExtraError
from ..randomness import seeded
from ..scalars import as_count, as_positive
from .series import Series


def sampled_solution(
    speed: Callable[[float, np.ndarray], Sequence[float] | np.ndarray],
    start: np.ndarray,
    times: np.ndarray,
    *,
    tolerance: float = 1e-10,
    source: str = "the system",
) -> np.ndarray:
    """States of ``x' = speed(t, x)`` at ``times``, from ``start`` at the first; shape (times, coordinates)."""
    from scipy.integrate import solve_ivp

    with np.errstate(all="ignore"):
        found = solve_ivp(
            speed, (times[0], times[-1]), start, method="DOP853", t_eval=times, rtol=tolerance, atol=tolerance
        )
    if not found.success or found.y.shape[1] != len(times) or not np.isfinite(found.y).all():
        reached = found.t[-1] if len(found.t) else times[0]
        raise InputError(
            "start",
            np.array2string(np.asarray(start), precision=4),
            f"must give a solution of {source} up to time {times[-1]:.4g}; this one ended at {reached:.4g}",
            "start elsewhere or ask for fewer samples",
        )
    return np.ascontiguousarray(found.y.T)


LYAPUNOV_EXPONENT = 0.9056
"""The largest one, of the classical parameters (Viswanath)."""
# Time units until the start is on the attractor.
_LORENZ_SPIN_UP = 20.0


def lorenz63(n: int = 5000, dt: float = 0.02, *, random_state: int | np.random.Generator | None = 0) -> Series:
    r"""Series of the Lorenz system :math:`x' = 10(y-x),\ y' = x(28-z)-y,\ z' = xy - \tfrac{8}{3}z` on its attractor.

    The first 20 units of time are left out.

    Parameters
    ----------
    n
        Number of samples.
    dt
        Time between samples.
    random_state
        A seed or a NumPy generator of the start; None draws a seed.

    Returns
    -------
    Series
        Three channels, x, y and z.

    Examples
    --------
    >>> lorenz63(50).names
    ('x', 'y', 'z')
    """
    n, dt = as_count("n", n, least=2), as_positive("dt", dt)
    rng = seeded(random_state).generator
    start = np.array([1.0, 1.0, 20.0]) + rng.standard_normal(3)
    on_it = sampled_solution(_speed, start, np.array([0.0, _LORENZ_SPIN_UP]), source="Lorenz '63")[-1]
    times = dt * np.arange(n)
    values = sampled_solution(_speed, on_it, times, source="Lorenz '63")
    return Series(values, times, ("x", "y", "z"), "Lorenz '63", LYAPUNOV_EXPONENT)


def _speed(_: float, state: np.ndarray) -> tuple[float, float, float]:
    x, y, z = state
    return 10.0 * (y - x), x * (28.0 - z) - y, x * y - 8.0 / 3.0 * z


_SPIN_UP = 5.0
"""Periods that are left out at the start."""
_NUDGE = 1e-3
"""Distance of the starts of seeds from the package's state, in standard deviations of the attractor."""


def chaotic_systems() -> tuple[str, ...]:
    """Names of the ordinary differential equations with a positive Lyapunov exponent, in alphabetical order.

    Returns
    -------
    tuple of str
        Names that :func:`chaotic_series` takes.
    """
    flows, facts = _package()
    return tuple(
        name
        for name in sorted(facts)
        if hasattr(flows, name)
        and not facts[name]["delay"]
        and (facts[name]["maximum_lyapunov_estimated"] or 0.0) > 0.0
    )


@lru_cache(maxsize=64)
def chaotic_series(name: str, n: int = 5000, per_period: int = 80, *, random_state: int = 0) -> Series:
    """``n`` samples of a system of ``dysts``, ``per_period`` to its dominant period; cached in memory.

    Every seed starts near the package's state and goes five periods before the first sample. Unbounded coordinates
    (phases, drifting positions) are folded as the package does.
    """
    known = chaotic_systems()
    if name not in known:
        near = [other for other in known if other.lower().startswith(str(name)[:3].lower())] or list(known[:5])
        raise InputError("name", repr(name), "is no chaotic system of dysts", f"for example {', '.join(near[:6])}")
    n, per_period = as_count("n", n, least=2), as_count("per_period", per_period, least=1)
    flows, facts = _package()
    fact = facts[name]
    system = _system(getattr(flows, name), fact["parameters"])
    period, exponent = float(fact["period"]), float(fact["maximum_lyapunov_estimated"])
    rng = seeded(random_state).generator
    start = np.asarray(fact["initial_conditions"], dtype=np.float64)
    scale = np.abs(np.asarray(fact.get("std", start), dtype=np.float64))
    start = start + _NUDGE * scale * rng.standard_normal(len(start))

    dt = period / per_period
    times = np.concatenate([[0.0], _SPIN_UP * period + dt * np.arange(n)])
    states = sampled_solution(lambda t, x: system.rhs(x, t), start, times, source=name)[1:]
    if hasattr(system, "_postprocessing"):
        states = np.column_stack(system._postprocessing(*states.T))
    names = tuple(f"x{k + 1}" for k in range(states.shape[1]))
    return Series(states, dt * np.arange(n), names, f"{name} (dysts)", exponent)


def _system(kind: Any, parameters: dict[str, Any]) -> Any:
    """An instance with its parameters; the package's constructor would seed NumPy's global generator."""
    system = kind.__new__(kind)
    given = {name: np.array(value) if isinstance(value, list) else value for name, value in parameters.items()}
    system.__dict__.update(given, params=given, param_list=[given[name] for name in sorted(given)])
    return system


@lru_cache(maxsize=1)
def _package() -> tuple[Any, dict[str, Any]]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the package warns where numba is missing
            import dysts.base as base
            import dysts.flows as flows
    except ImportError:
        raise MissingExtraError("dysts", "rivals", "the chaotic systems") from None
    with open(base.DATAPATH_CONTINUOUS, encoding="utf-8") as file:
        return flows, json.load(file)
