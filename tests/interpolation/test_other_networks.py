"""Random networks with every kind of weight: PyTorch and ONNX against the exact evaluator."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import onnxruntime
import pytest
import torch
from flint import fmpq

from hardmax.interpolation import Block, ExactTransformer, Neuron, OuterProduct, interpolate
from hardmax.interpolation.arithmetic.numbers import to_floats
from hardmax.interpolation.regularised import paper_data, train
from interpolation import softmax_oracle

SEQUENCES = [[[0, 0], [1, 0]], [[2, 1], [1, -1], [0, 2]], [[3, 3]]]


def some_network(seed: int, temperature: fmpq | None) -> ExactTransformer:
    """Factors zero, one and neither; no, one and two outer products; layers without neurons."""
    rng = np.random.default_rng(seed)

    def vector() -> tuple[fmpq, ...]:
        return tuple(fmpq(int(c)) for c in rng.integers(-2, 3, size=2))

    def factor() -> fmpq:
        return (fmpq(0), fmpq(1), fmpq(1, 2), fmpq(-1, 4))[int(rng.integers(4))]

    def matrix() -> tuple[OuterProduct, ...]:
        return tuple(OuterProduct(vector(), vector()) for _ in range(int(rng.integers(3))))

    def block() -> Block:
        neurons = tuple(Neuron(vector(), fmpq(int(rng.integers(-2, 3))), vector()) for _ in range(int(rng.integers(4))))
        return Block(factor(), neurons, factor(), matrix(), matrix())

    made = interpolate(SEQUENCES, [[[0, 0]]] * 3)
    attention = "hardmax" if temperature is None else "softmax"
    return replace(made, blocks=tuple(block() for _ in range(3)), attention=attention, temperature=temperature)


@pytest.mark.parametrize("temperature", [None, fmpq(3), fmpq(1, 2)])
def test_floats_do_what_the_exact_weights_say(temperature: fmpq | None, tmp_path) -> None:
    moved_somewhere = 0
    for seed in range(12):
        net = some_network(seed, temperature)
        if temperature is None:
            wanted = [np.array(x, dtype=float) for x in net(SEQUENCES, exact=True)]
        else:
            wanted = [np.array(softmax_oracle.run(net.blocks, x, temperature), dtype=float) for x in SEQUENCES]
            for found, want in zip(net(SEQUENCES), wanted, strict=True):
                np.testing.assert_allclose(found, want, rtol=1e-12, atol=1e-12)
        moved_somewhere += any(np.ptp(want) > 0 for want in wanted)
        tensors = [torch.tensor(x, dtype=torch.float64) for x in SEQUENCES]
        for module in (net.to_torch().eval(), net.to_torch().train()):
            with torch.no_grad():
                for found, want in zip(module(tensors), wanted, strict=True):
                    np.testing.assert_allclose(found, want, rtol=1e-9, atol=1e-9)
        padded, mask = np.full((3, 4, 2), 9.0), np.zeros((3, 4), dtype=bool)
        for j, x in enumerate(SEQUENCES):
            padded[j, : len(x)], mask[j, : len(x)] = x, True
        path = net.to_onnx(tmp_path / f"{seed}.onnx")
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        moved = session.run(None, {"tokens": padded, "mask": mask})[0]
        for j, want in enumerate(wanted):
            np.testing.assert_allclose(moved[j][mask[j]], want, rtol=1e-9, atol=1e-9)
    assert moved_somewhere > 4


def test_a_run_records_its_first_and_last_epoch() -> None:
    data = paper_data(2, sequences=2, tokens=3, dimension=2)
    run = train(data, 1e-3, 12, progress=False)
    assert (run.epochs[0], run.epochs[-1]) == (1, 12)
    assert len(run.losses) == len(run.norms) == len(run.epochs)
    assert (np.diff(run.epochs) > 0).all()
    made = replace(run, epochs=np.array([1, 4, 9]), losses=np.array([3.0, 2.0, 1.0]), norms=np.array([1.0, 1.0, 5.0]))
    assert replace(made, threshold=2.0).reached_at == 4
    assert replace(made, threshold=0.5).reached_at is None
    assert (made.least_loss, made.final_loss) == (1.0, 1.0)
    assert made.final_objective == 1.0 + 5.0 * made.eps


def test_float_errors_of_every_kind_of_token() -> None:
    net = interpolate([[["1/3", 0]], [[Fraction(1, 7), 1]]], [[[1, 1]], [[2, 2]]])
    tokens = [torch.from_numpy(to_floats(x, 2)) for x in net.data.inputs]
    with torch.no_grad():
        for found, want in zip(net.to_torch()(tokens), net.data.outputs, strict=True):
            np.testing.assert_allclose(found, to_floats(want, 2), atol=1e-12)
