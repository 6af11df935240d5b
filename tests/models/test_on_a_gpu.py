"""Models on a GPU compute what they compute on the CPU."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import hardmax as hm

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


@pytest.mark.parametrize("family", ["bert", "gpt2", "llama"])
@pytest.mark.parametrize("rule", ["softmax", "hardmax", "top-4", "beta=2", "uniform", "zero"])
def test_batches_agree_with_the_cpu(family: str, rule: str) -> None:
    rng = np.random.default_rng(0)
    model = hm.models.random_transformer(family=family, layers=3, heads=4, d=64, vocabulary=100, random_state=0)
    texts = [rng.integers(0, 100, size=size).tolist() for size in (3, 40, 17)]
    for dtype, allowed in (("float32", 2e-5), ("float64", 1e-12)):
        here, there = (model.to(dtype, device).with_attention(rule) for device in ("cpu", "cuda"))
        for one, other in zip(here(texts), there(texts), strict=True):
            np.testing.assert_allclose(other, one, rtol=0, atol=allowed)
        if family != "bert":
            assert there.perplexity(texts[1]) == pytest.approx(here.perplexity(texts[1]), rel=1e-4)


def test_a_probe_agrees_with_the_cpu() -> None:
    model = hm.models.random_transformer(layers=2, heads=2, d=32, vocabulary=50, random_state=0).to("float64")
    texts = [np.random.default_rng(k).integers(0, 50, size=12).tolist() for k in range(3)]
    here, there = (
        hm.probe(model.to(device=device), texts, interventions=["hardmax", "every head"]) for device in ("cpu", "cuda")
    )
    for name in ("heads", "layers", "interventions"):
        one, other = (getattr(report, name).select_dtypes("number").astype(float) for report in (here, there))
        np.testing.assert_allclose(other, one, rtol=1e-9, atol=1e-11)
    assert here.heads["verdict"].tolist() == there.heads["verdict"].tolist()
