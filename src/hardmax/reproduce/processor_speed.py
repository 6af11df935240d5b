"""Speed of the processor on the work of a search, to be stored beside results whose budgets are processor seconds."""

from __future__ import annotations

import time
from functools import cache

import numpy as np

_STEPS, _STARTS, _ROWS = 400, 64, 2000
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
    states = generator.standard_normal((_STARTS, 10))
    began = time.thread_time()
    for _ in range(_STEPS):
        products = states[:, upper[0]] * states[:, upper[1]]
        features = np.concatenate([np.ones((_STARTS, 1)), states, products], axis=1)
        states = np.clip(states + features @ readout, -3.0, 3.0)
    rows = generator.standard_normal((_ROWS, 66))
    np.linalg.qr(rows, mode="r")
    return time.thread_time() - began
