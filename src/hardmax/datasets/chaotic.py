"""The chaotic systems of the package ``dysts``, integrated here: its own integrator takes minutes, this takes seconds.

Right-hand sides, parameters, a state on the attractor, the dominant period and the largest Lyapunov exponent are those
of the package (Gilpin, "Chaos as an interpretable benchmark", arXiv 2110.05266).
"""

from __future__ import annotations

import json
import warnings
from functools import lru_cache
from typing import Any

import numpy as np

from ..errors import InputError, MissingExtraError
from ..randomness import seeded
from .integrate import sampled_solution
from .series import Series

_SPIN_UP = 5.0
"""Periods that are not kept."""
_NUDGE = 1e-3
"""How far seeds start from the package's state, in standard deviations of the attractor."""


def chaotic_systems() -> tuple[str, ...]:
    """The names of the ordinary differential equations with a positive Lyapunov exponent, in alphabetical order."""
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
    """``n`` samples of a system of ``dysts``, ``per_period`` to its dominant period; kept in memory once made.

    Every seed starts near the package's state and goes five periods before the first sample. Unbounded coordinates
    (phases, drifting positions) are folded as the package does.
    """
    from ..inputs import as_count

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
            warnings.simplefilter("ignore")  # it warns that it would rather have numba
            import dysts.base as base
            import dysts.flows as flows
    except ImportError:
        raise MissingExtraError("dysts", "rivals", "the chaotic systems") from None
    with open(base.DATAPATH_CONTINUOUS, encoding="utf-8") as file:
        return flows, json.load(file)
