"""The regularised-training experiment: thresholds, warm starts, and what training reaches."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from hardmax.errors import InputError
from hardmax.interpolation import interpolate
from hardmax.interpolation.regularised import (
    TrainableTransformer,
    TrainingData,
    as_trainable,
    decay_exponents,
    loss,
    paper_data,
    threshold,
    train,
    training_data,
)


def test_the_hidden_block_fits_its_data_exactly() -> None:
    data = paper_data(3)
    assert data.tokens.shape == (10, 100, 16)
    assert loss(data.exact, data.tokens, data.targets).item() < 1e-24
    assert threshold(data.exact, 1e-4) == pytest.approx(1e-4 * data.exact.squared_norm().item())


@pytest.mark.parametrize("construction", ["fewest", "leaders", "conditioned"])
def test_a_compiled_network_is_a_warm_start(construction: str) -> None:
    data = paper_data(1, sequences=4, tokens=5, dimension=3)
    targets = [[y] for y in data.targets.detach().tolist()]
    net = interpolate(data.tokens.tolist(), targets, construction=construction, attention="softmax")
    model = as_trainable(net)
    assert loss(model, data.tokens, data.targets).item() < 1e-12
    assert threshold(model, 1e-3) > 0
    run = train(TrainingData(data.tokens, data.targets, model), 1e-9, 5, start=model, progress=False)
    assert run.losses[0] < 1e-12
    assert run.reached_at == 1


def test_training_leaves_the_start_and_the_threshold_alone() -> None:
    net = interpolate([[[0, 0], [1, 0]], [[0, 0], [0, 1]]], [[[1, 1]], [[2, 0]]], attention="softmax")
    data = training_data(net)
    assert loss(data.exact, data.tokens, data.targets).item() < 1e-20
    before = threshold(data.exact, 0.1)
    run = train(data, 0.1, 30, start=data.exact, progress=False)
    assert run.threshold == before == threshold(data.exact, 0.1)
    assert run.model is not data.exact
    assert run.model.squared_norm().item() < data.exact.squared_norm().item()
    assert run.model(data.tokens).shape == data.tokens.shape


def test_only_sequences_of_one_length_are_trained_on() -> None:
    net = interpolate([[[0, 0], [1, 0]], [[0, 1]]], [[[1, 1]], [[2, 0]]], attention="softmax")
    with pytest.raises(InputError, match=r"must have sequences of one length .*, got sequences of 1, 2 tokens"):
        training_data(net)


def test_hardmax_networks_are_no_warm_start() -> None:
    net = interpolate([[[0, 0]], [[1, 1]]], [[[1, 1]], [[0, 0]]])
    with pytest.raises(InputError, match="must use softmax attention"):
        as_trainable(net)


def test_training_goes_below_the_threshold() -> None:
    data = paper_data(0, sequences=4, tokens=6, dimension=3)
    runs = [train(data, eps, 400, rate=2e-2, seed=2, progress=False) for eps in (3e-1, 3e-2)]
    for run in runs:
        assert run.reached_at is not None
        assert run.norms[-1] <= data.exact.squared_norm().item()
    assert runs[1].least_loss < runs[0].least_loss
    made = [replace(runs[0], eps=eps, losses=np.array([1e-9, 7 * eps])) for eps in (1e-1, 1e-2, 1e-3)]
    made = [replace(run, norms=np.array([1.0, 3.0])) for run in made]
    assert decay_exponents(made) == pytest.approx((1.0, 1.0))
    with pytest.raises(InputError, match="at least two"):
        decay_exponents(runs[:1])


def test_a_seed_gives_the_same_run() -> None:
    data = paper_data(0, sequences=2, tokens=3, dimension=2)
    a, b = (train(data, 1e-2, 20, seed=4, progress=False) for _ in range(2))
    assert torch.equal(torch.from_numpy(a.losses), torch.from_numpy(b.losses))


def test_initial_parameters_are_uniform_between_the_usual_bounds() -> None:
    model = TrainableTransformer(9, blocks=3, width=40, generator=torch.Generator().manual_seed(0))
    for name, inputs in (("Q", 9), ("K", 9), ("V", 9), ("U", 9), ("b", 40), ("W", 40)):
        largest = float(getattr(model, name).detach().abs().max())
        assert 0.8 * inputs**-0.5 < largest <= inputs**-0.5, name
