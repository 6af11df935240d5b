"""The runs that a file may name: a fixed set, each a function from plain numbers and words to a row."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..attention.layer import AbstractLayer, HardmaxLayer, SoftmaxLayer
from ..datasets import make_matrix, make_tokens
from ..dynamics import equilibrium as limits
from ..dynamics.simulate import simulate as run_layers
from ..errors import InputError
from ..meanfield.flow import SphereFlow
from ..meanfield.measures import sphere_sample
from ..meanfield.phases import phases
from .forecasts import forecast

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
