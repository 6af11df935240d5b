"""Masks, heads, weightings and flows on a GPU: the numbers of the CPU; skipped where there is none."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import hardmax as hm

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

HEADS = [np.eye(3), np.eye(3) + 0.2]
LAYERS = [
    hm.HardmaxLayer(causal=True),
    hm.HardmaxLayer(heads=HEADS),
    hm.HardmaxLayer(heads=HEADS, causal=True),
    hm.HardmaxLayer(alpha=hm.PowerSteps(1.0, power=2.0)),
]
FLOWS: list[hm.AbstractFlow] = [
    hm.NoisyFlow(hm.AttentionFlow(weighting=hm.Softmax(2.0)), 0.3),
    hm.AttentionFlow(weighting=hm.Softmax(2.0), causal=True),
    hm.MomentumFlow(hm.AttentionFlow()),
    hm.SphereFlow(np.eye(3), np.eye(3), beta=3.0, causal=True, few_tokens="ignore"),
]


def _tokens(kind: str) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    if kind == "grid":
        return torch.randint(-2, 3, (300, 3), generator=generator).double()
    return torch.randn(1000, 3, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize("kind", ["random", "grid"])
@pytest.mark.parametrize("layer", LAYERS, ids=str)
def test_limits(layer: hm.HardmaxLayer, kind: str) -> None:
    tokens = _tokens(kind)
    here, there = (hm.equilibrium(some, layer, max_layers=200) for some in (tokens, tokens.cuda()))
    assert here.leaders.tolist() == there.leaders.tolist()
    assert here.decided_at.tolist() == there.decided_at.tolist()
    assert float((here.positions - there.positions.cpu()).abs().max()) < 1e-12
    run = hm.simulate(tokens.cuda(), layer, depth=10)
    assert np.array_equal(hm.leaders(run).index, hm.leaders(hm.simulate(tokens, layer, depth=10)).index)


@pytest.mark.parametrize("sight", [{}, {"causal": True}, {"window": 9}])
@pytest.mark.parametrize("weighting", [hm.Hardmax(), hm.Softmax(3.0), hm.TopK(3), hm.Sigmoid(), hm.Linear()], ids=str)
def test_weightings(weighting: hm.AbstractWeighting, sight: dict[str, int | bool]) -> None:
    head = hm.Head(bias=hm.LinearBias(0.1), V=np.eye(3))
    layer = hm.AttentionLayer([head], weighting=weighting, move=hm.ResidualStep(0.1), post_norm=hm.RmsNorm(), **sight)
    tokens = _tokens("random")[:300]
    assert float((layer(tokens) - layer(tokens.cuda()).cpu()).abs().max()) < 1e-13


@pytest.mark.parametrize("flow", FLOWS, ids=str)
def test_flows(flow: hm.AbstractFlow) -> None:
    tokens = hm.UnitNorm()(_tokens("random")[:200])
    here, there = (hm.simulate(some, flow, time=0.3, random_state=0) for some in (tokens, tokens.cuda()))
    assert float((here.final - there.final.cpu()).abs().max()) < 1e-12
