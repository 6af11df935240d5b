"""A sequence is a set of tokens: every evaluator counts a token that is repeated once, and all of them agree."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import onnxruntime
import pytest
import torch
from flint import fmpq

import hardmax as hm
from hardmax.interpolation import ExactTransformer
from hardmax.interpolation.arithmetic import reference
from hardmax.interpolation.arithmetic.exact_evaluation import evaluate, first_occurrences
from interpolation import softmax_oracle

INPUTS = [[[0, 0], [1, 0]], [[0, 0], [0, 1]], [[3, 1], [1, 1], [2, 0]], [[0, 0], [1, 0], [0, 1], [2, 2]]]
OUTPUTS = [[[1, 1]], [[2, 2]], [[0, 1], [5, -2]], [[3, 0], [0, 3]]]
HARD = [(c, None) for c in ("leaders", "fewest", "witness", "conditioned", "paper")]
SOFT = [(c, t) for c in ("leaders", "fewest", "conditioned") for t in ("1/3", "1e-60", "1e60")]


def build(construction: str, temperature: str | None) -> ExactTransformer:
    softmax = {} if temperature is None else {"attention": "softmax", "temperature": temperature}
    return hm.interpolate(INPUTS, OUTPUTS, construction=construction, **softmax)  # type: ignore[arg-type]


def sequences(generator: np.random.Generator) -> list[list[list[int]]]:
    """Data with repeats, one token, all tokens equal, and sequences that the network was not made for."""
    chosen: list[list[list[int]]] = [[[0, 0], [1, 0], [1, 0]], [[2, 1]], [[1, 0]] * 4, [[5, -3], [5, -3]]]
    for x in INPUTS:
        chosen.append([x[i] for i in generator.integers(0, len(x), size=len(x) + 3)] + x)
    pool = [list(p) for p in itertools.product(range(-1, 4), repeat=2)]
    chosen += [[pool[i] for i in generator.integers(0, len(pool), size=n)] for n in (1, 2, 5, 9)]
    chosen += [[pool[i] for i in generator.integers(0, 3, size=7)] for _ in range(4)]
    return chosen


def expected(net: ExactTransformer, tokens: list[list[int]]) -> np.ndarray:
    """From the definition, on the distinct tokens alone."""
    once = [list(x) for x in dict.fromkeys(map(tuple, tokens))]
    if net.temperature is None:
        ends = reference.run(net.blocks, [[Fraction(c) for c in x] for x in once])
    else:
        ends = softmax_oracle.run(net.blocks, once, net.temperature)  # type: ignore[assignment]
    return np.array([[float(c) for c in ends[once.index(x)]] for x in tokens])


@pytest.mark.parametrize(("construction", "temperature"), HARD + SOFT)
def test_all_evaluators_agree(construction: str, temperature: str | None, tmp_path) -> None:
    net = build(construction, temperature)
    generator = np.random.default_rng([len(construction), len(temperature or "")])
    batch = sequences(generator)
    close = {"rtol": 1e-7, "atol": 1e-7 if construction != "paper" else 1e-4}
    wanted = [expected(net, x) for x in batch]
    for found, want in zip(net(batch), wanted, strict=True):
        np.testing.assert_allclose(found, want, rtol=1e-12, atol=1e-12)
    for x, want in zip(batch, wanted, strict=True):
        np.testing.assert_allclose(net(x), want, rtol=1e-12, atol=1e-12)
        if temperature is None:
            ends = reference.run(net.blocks, [[Fraction(c) for c in token] for token in x])
            assert net(x, exact=True) == ends
            np.testing.assert_array_equal(np.array(ends, dtype=float), want)

    tensors = [torch.tensor(x, dtype=torch.float64) for x in batch]
    longest = max(map(len, batch)) + 2
    # Padding that repeats tokens of the sequence itself, in the middle of it, must change nothing either.
    padded, mask = torch.zeros(len(batch), longest, 2, dtype=torch.float64), torch.zeros(len(batch), longest).bool()
    for j, x in enumerate(tensors):
        places = torch.from_numpy(np.sort(generator.choice(longest, len(x), replace=False)))
        padded[j] = x[0]
        padded[j, places], mask[j, places] = x, True
    for module in (net.to_torch().eval(), net.to_torch().train()):
        with torch.no_grad():
            lists, table = module(tensors), module(padded, mask)
            alone = [module([x])[0] for x in tensors]
        for j, want in enumerate(wanted):
            np.testing.assert_allclose(lists[j], want, **close)
            np.testing.assert_allclose(alone[j], want, **close)
            np.testing.assert_allclose(table[j][mask[j]], want, **close)
        assert torch.equal(table[~mask], padded[~mask])
    session = onnxruntime.InferenceSession(net.to_onnx(tmp_path / "net.onnx"), providers=["CPUExecutionProvider"])
    moved = session.run(None, {"tokens": padded.numpy(), "mask": mask.numpy()})[0]
    assert moved.shape == padded.shape
    for j, want in enumerate(wanted):
        np.testing.assert_allclose(moved[j][mask[j].numpy()], want, **close)


@pytest.mark.parametrize(("construction", "temperature"), HARD + SOFT)
def test_repeats_do_not_change_where_the_data_go(construction: str, temperature: str | None) -> None:
    net = build(construction, temperature)
    for x, y in zip(INPUTS, OUTPUTS, strict=True):
        doubled = x[:1] + x + x[-1:] + x[:1]
        ends = net(doubled, exact=True)
        assert set(ends) == {tuple(map(Fraction, point)) for point in y}
        assert [ends[doubled.index(token)] for token in doubled] == ends


@pytest.mark.parametrize("construction", ["leaders", "fewest", "conditioned"])
def test_single_precision_and_negative_zero(construction: str, tmp_path) -> None:
    net = build(construction, None)
    tokens = torch.tensor([[[0.0, 0.0], [-0.0, 0.0], [1.0, -0.0], [1.0, 0.0]]], dtype=torch.float32)
    want = torch.ones(1, 4, 2)
    with torch.no_grad():
        torch.testing.assert_close(net.to_torch(torch.float32)(tokens), want, atol=1e-4, rtol=0)
    path = net.to_onnx(tmp_path / "net.onnx", single_precision=True)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    moved = session.run(None, {"tokens": tokens.numpy(), "mask": np.ones((1, 4), dtype=bool)})[0]
    assert moved.dtype == np.float32
    np.testing.assert_allclose(moved, want, atol=1e-4)


def test_equal_tokens_of_different_sequences_all_count() -> None:
    module = build("fewest", None).to_torch()
    tokens = torch.tensor([[[0.0, 0.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 0.0]]], dtype=torch.float64)
    with torch.no_grad():
        torch.testing.assert_close(module(tokens), torch.ones(2, 2, 2, dtype=torch.float64))


def test_an_empty_batch_comes_back_empty() -> None:
    module = build("leaders", None).to_torch()
    assert module(torch.zeros(0, 3, 2, dtype=torch.float64)).shape == (0, 3, 2)
    tokens = torch.ones(2, 3, 2, dtype=torch.float64)
    assert torch.equal(module(tokens, torch.zeros(2, 3, dtype=torch.bool)), tokens)


def test_predictions_count_a_repeated_token_once() -> None:
    net = hm.classify_exactly(INPUTS, ["a", "b", "c", "a"], construction="fewest")
    generator = np.random.default_rng(3)
    for x in sequences(generator):
        once = [list(token) for token in dict.fromkeys(map(tuple, x))]
        assert net.predict([x]) == net.predict([once])
    assert net.predict([x + x[:1] * 5 for x in INPUTS]) == ["a", "b", "c", "a"]


def test_a_prediction_is_not_swayed_by_repetition() -> None:
    """Token-wise outputs that differ: nine copies of one token must not outweigh the other."""
    net = hm.classify_exactly([[[0, 0]], [[4, 0]], [[8, 0]]], ["low", "middle", "high"], construction="fewest")
    pair = [[0, 0], [5, 0]]
    assert net.predict([pair]) == net.predict([[[0, 0]] * 9 + [[5, 0]]]) == net.predict([[[0, 0]] + [[5, 0]] * 9])


def test_gradients_reach_every_copy() -> None:
    module = build("fewest", None).to_torch()
    tokens = torch.tensor([[[0.0, 0.0], [1.0, 0.0], [1.0, 0.0]]], dtype=torch.float64, requires_grad=True)
    moved = module(tokens)
    assert torch.autograd.grad(moved.sum(), tokens)[0].isfinite().all()


def test_first_occurrences_and_their_means() -> None:
    a, b = (fmpq(0), fmpq(0)), (fmpq(4), fmpq(1))
    assert first_occurrences([a, b, a, b, a]) == [0, 1]
    assert first_occurrences([b]) == [0]
    one = (fmpq(1), fmpq(0)), (fmpq(0), fmpq(1))
    mean = hm.interpolation.Block(fmpq(1), (), fmpq(0), V=tuple(hm.interpolation.OuterProduct(e, e) for e in one))
    state = evaluate([mean], [[a, b, b, b]])
    assert state.rows == [[fmpq(2), fmpq(1, 2)]] * 4
    assert (
        reference.run([mean], [[Fraction(0)] * 2, *[[Fraction(4), Fraction(1)]] * 3])
        == [(Fraction(2), Fraction(1, 2))] * 4
    )
