"""Runs to save, and the comparison of two of them."""

from __future__ import annotations

import math
from dataclasses import fields
from fractions import Fraction

import numpy as np
import torch

import hardmax as hm

_POINTS = np.random.default_rng(5).normal(size=(12, 2))
_MATRIX = [[2.0, 1.0], [1.0, 1.0]]
# Token 2 lies between two leaders of equal length and follows both for ever.
_TIED = torch.tensor([[1.0, 1.0], [1.0, -1.0], [0.5, 0.0], [-1.0, 0.0]], dtype=torch.float32)


def make_runs() -> dict[str, hm.Trajectory | hm.Equilibrium]:
    """One of every kind of run that a file must hold."""
    feed_forward = hm.FeedForwardLayer([[1.0, 0.0]], [0.5], [[0.1], [0.2]], eta=0.9)
    soft = hm.SoftmaxLayer(0.25, _MATRIX, beta=3.0, V=[[0.5, 0.0], [0.0, 0.5]])
    weights = np.linspace(1.0, 2.0, len(_POINTS))
    return {
        "hardmax": hm.simulate(_POINTS, hm.HardmaxLayer(0.1, _MATRIX), depth=4),
        "exact with a fraction": hm.simulate(
            _POINTS, hm.HardmaxLayer(Fraction(1, 3), tolerance="exact"), depth=3, keep=[1, 3]
        ),
        "weights and tolerance": hm.simulate(
            _POINTS, hm.HardmaxLayer(1.0, tolerance=1e-6), depth=2, weights=weights, keep="last"
        ),
        "value matrix": hm.simulate(_POINTS, hm.HardmaxLayer(V=_MATRIX), depth=2),
        "softmax": hm.simulate(_POINTS, soft, depth=2),
        "block": hm.simulate(_POINTS, hm.Block(hm.HardmaxLayer(0.5), feed_forward), depth=2),
        "flow on the sphere": hm.simulate(
            _POINTS, hm.SphereFlow(_MATRIX, beta=3.0, normalise=True, few_tokens="ignore"), time=0.5, step=0.1
        ),
        "zero temperature, adaptive": hm.simulate(
            _POINTS,
            hm.SphereFlow(V=_MATRIX, beta=math.inf, normalise=True, precision="float32"),
            time=0.2,
            integrator=hm.Adaptive(1e-6),
        ),
        "hardmax on the sphere": hm.simulate(
            _POINTS, hm.SphereHardmaxFlow(_MATRIX, normalise=True), time=0.5, integrator="rk4"
        ),
        "tied tensors in float32": hm.simulate(_TIED, hm.HardmaxLayer(), depth=2),
        "limit": hm.equilibrium(_POINTS, hm.HardmaxLayer(0.5, _MATRIX)),
        "weighted limit": hm.equilibrium(_POINTS, hm.HardmaxLayer(0.5), weights=weights),
        "tied limit of tensors in float32": hm.equilibrium(_TIED, hm.HardmaxLayer(Fraction(2, 7))),
        "undecided limit": hm.equilibrium(_POINTS * [[1e-6, 1.0]], hm.HardmaxLayer(1e-3), max_layers=0),
        "no leader": hm.equilibrium([[0.0, 0.0]]),
    }


def assert_equal(found: object, wanted: object) -> None:
    """Equal in type and, field by field, in every value."""
    assert type(found) is type(wanted)
    if isinstance(wanted, torch.Tensor):
        assert isinstance(found, torch.Tensor)
        assert found.dtype == wanted.dtype
        assert torch.equal(found, wanted)
    elif isinstance(wanted, np.ndarray):
        assert isinstance(found, np.ndarray)
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted)
    elif isinstance(wanted, tuple):
        assert isinstance(found, tuple)
        for one, other in zip(found, wanted, strict=True):
            assert_equal(one, other)
    elif hasattr(wanted, "__dataclass_fields__"):
        for field in fields(wanted):  # type: ignore[arg-type]
            assert_equal(getattr(found, field.name), getattr(wanted, field.name))
    else:
        assert found == wanted
