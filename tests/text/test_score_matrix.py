"""The learned score matrix, against the simulator and against softmax attention to the leaders."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import hardmax as hm
from hardmax.text import LeaderClassifier
from hardmax.text.model.hardmax_forward import final_positions
from hardmax.text.model.network import Network
from hardmax.text.model.score_matrix_gradient import batch_surrogate, factor_of
from hardmax.text.words.counts import Batch
from made_up_texts import opinions

TEXTS, LABELS = opinions(300)
FRESH, TRUTH = opinions(200, seed=1)


def _one_document(seed: int, d: int, n: int = 9) -> tuple[Network, Batch]:
    rng = np.random.default_rng(seed)
    network = Network(
        embedding=torch.from_numpy(rng.normal(size=(n, d))),
        decoder=torch.from_numpy(rng.normal(size=(1, d))),
        bias=torch.zeros(1, dtype=torch.float64),
        raw_alpha=torch.tensor(0.0, dtype=torch.float64),
        least_alpha=0.0,
        depth=6,
        norm_masses=True,
        raw_factor=torch.from_numpy(0.7 * rng.normal(size=(d, d))),
    )
    return network, Batch(np.arange(n), np.ones(n), np.array([0, n]), np.zeros(n, dtype=np.int64))


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10_000), st.integers(1, 4))
def test_agrees_with_the_simulator(seed: int, d: int) -> None:
    network, documents = _one_document(seed, d)
    assert network.raw_factor is not None
    factor = factor_of(network.raw_factor).numpy()
    matrix = factor @ factor.T
    assert np.linalg.eigvalsh(matrix).min() > 0
    path = network.attention_path(network.embedding.numpy(), documents.starts)
    final = final_positions(network.embedding, path, 1.0, 6).numpy()
    run = hm.simulate(network.embedding.numpy(), hm.HardmaxLayer(alpha=1.0, A=matrix), depth=6)
    np.testing.assert_allclose(final, run.tokens[-1], atol=1e-9)


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 10_000), st.integers(1, 3))
def test_the_gradient_is_that_of_softmax_over_the_leaders(seed: int, d: int) -> None:
    network, documents = _one_document(seed, d)
    assert network.raw_factor is not None
    raw = network.raw_factor.requires_grad_(True)
    path = network.attention_path(network.embedding.numpy(), documents.starts)
    wanted = torch.from_numpy(np.random.default_rng(seed).normal(size=network.embedding.shape))
    added = batch_surrogate(network.embedding, factor_of(raw), documents, path)
    assert not added.detach().any()
    (found,) = torch.autograd.grad((added * wanted).sum(), raw)
    leaders = network.embedding[torch.from_numpy(np.flatnonzero(path.leaders))]
    matrix = factor_of(raw) @ factor_of(raw).T
    plain = torch.softmax(network.embedding @ matrix @ leaders.T, dim=1) @ leaders
    (expected,) = torch.autograd.grad((plain * wanted).sum(), raw)
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("temperature", [0.0, 0.1])
def test_a_learned_matrix_is_saved_and_explained(temperature: float, tmp_path: Path) -> None:
    fitted = LeaderClassifier(
        random_state=0, learn_matrix=True, temperature=temperature, batch_size=64, epochs=20, cone=np.inf
    ).fit(TEXTS, LABELS)
    assert fitted.score(FRESH, TRUTH) > 0.9
    assert fitted.network_.raw_factor is not None
    assert fitted.network_.raw_factor.abs().max() > 1e-3
    fitted.save(tmp_path / "model.safetensors")
    again = LeaderClassifier.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(again.decision_function(FRESH), fitted.decision_function(FRESH))
    told = again.explain(FRESH[0])
    total = told.bias[0] + sum(leader.contribution[0] for leader in told.leaders)
    assert total == pytest.approx(fitted.decision_function(FRESH[:1])[0], abs=1e-10)
