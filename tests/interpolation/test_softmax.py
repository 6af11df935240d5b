"""Genuine softmax attention: proved with balls, at every temperature."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import onnxruntime
import pytest
import torch
from flint import arb, ctx, fmpq

from hardmax.errors import InputError
from hardmax.interpolation import Block, Neuron, OuterProduct, interpolate
from hardmax.interpolation.arithmetic.exact_evaluation import evaluate
from hardmax.interpolation.arithmetic.numbers import to_floats
from hardmax.interpolation.constructions.leaders import hull
from hardmax.interpolation.regularised import as_trainable
from interpolation import softmax_oracle
from interpolation.families import FAMILIES, make

TEMPERATURES = (
    "0.01", "0.1", 1, "10", 100, 5e-324, 1e-300, 1e-50, "1/3", 1e27, 1e300, 1.7976931348623157e308, "1e400", "1e-4000",
)  # fmt: skip
CONSTRUCTIONS = ("leaders", "fewest", "conditioned")


@pytest.mark.parametrize("temperature", TEMPERATURES)
@pytest.mark.parametrize("construction", CONSTRUCTIONS)
def test_every_temperature(construction: str, temperature: object) -> None:
    for family, seed in (("grid", 2), ("subsets", 1), ("symmetric", 3)):
        inputs, outputs = make(family, seed, d=2)
        net = interpolate(
            inputs[:8], outputs[:8], construction=construction, attention="softmax", temperature=temperature
        )
        certificate = net.certify()
        assert certificate.proved, str(certificate)
        assert net.counts.blocks <= net.counts.formula <= net.counts.published
        assert certificate.float64_error < 1e-9
        if construction == "leaders":
            assert "balls" in certificate.arithmetic
            assert any(block.B for block in net.blocks)


@pytest.mark.parametrize("construction", CONSTRUCTIONS)
@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_families(family: str, construction: str) -> None:
    inputs, outputs = make(family, 1, d=2)
    for temperature in (1e-300, 1, 1e300):
        net = interpolate(
            inputs[:6], outputs[:6], construction=construction, attention="softmax", temperature=temperature
        )
        assert net.certify().proved
        assert net.temperature == fmpq(*float(temperature).as_integer_ratio())


@pytest.mark.parametrize("temperature", [1e-300, 1e-50, "1/3", 1e27, "1e400"])
def test_softmax_from_its_definition_with_many_digits(temperature: object) -> None:
    inputs, outputs = make("rationals", 2, d=2)
    net = interpolate(inputs, outputs, attention="softmax", temperature=temperature)
    for x, y in zip(net.data.inputs, net.data.outputs, strict=True):
        reached = softmax_oracle.run(net.blocks, x, net.temperature)
        targets = [[Fraction(str(c)) for c in point] for point in y]
        found = set()
        for point in reached:
            distance = [max(abs(Fraction(str(a)) - b) for a, b in zip(point, z, strict=True)) for z in targets]
            assert min(distance) < Fraction(1, 10**20)
            found.add(distance.index(min(distance)))
        assert len(found) == len(targets)


@pytest.mark.parametrize("temperature", TEMPERATURES)
def test_floats_at_every_temperature(temperature: object, tmp_path) -> None:
    inputs, outputs = make("grid", 2, d=2)
    net = interpolate(inputs, outputs, attention="softmax", temperature=temperature)
    session = onnxruntime.InferenceSession(net.to_onnx(tmp_path / "net.onnx"), providers=["CPUExecutionProvider"])
    elsewhere = np.array([[0.25, 1.5], [-1.0, 0.75], [2.0, -3.0]])
    exact = net(elsewhere)
    for dtype, allowed in ((torch.float64, 1e-9), (torch.float32, 1e-3)):
        module = net.to_torch(dtype).eval()
        with torch.no_grad():
            np.testing.assert_allclose(module([torch.from_numpy(elsewhere)])[0].double(), exact, atol=allowed)
    mask = np.ones((1, 3), dtype=bool)
    np.testing.assert_allclose(session.run(None, {"tokens": elsewhere[None], "mask": mask})[0][0], exact, atol=1e-9)
    model = as_trainable(net)
    for x, y in zip(net.data.inputs, net.data.outputs, strict=True):
        moved = model(torch.from_numpy(to_floats(x, 2))[None])[0].detach().numpy()
        distance = np.abs(moved[:, None] - to_floats(y, 2)[None]).max(axis=-1)
        assert max(distance.min(axis=0).max(), distance.min(axis=1).max()) < 1e-8


def test_the_temperature_changes_nothing_but_the_scores() -> None:
    inputs, outputs = make("grid", 2, d=2)
    one, hot = (interpolate(inputs, outputs, attention="softmax", temperature=t) for t in (1, "1e30"))
    assert hot.report.gain == one.report.gain * 10**30
    for a, b in zip(one.blocks, hot.blocks, strict=True):
        scaled = tuple(OuterProduct(tuple(c * 10**30 for c in t.left), t.right) for t in a.B)
        assert replace(a, B=scaled) == b
    assert "temperature 1e30" in hot.certify().attention
    assert "at temperature 1e30" in hot.summary()


@pytest.mark.parametrize("scale", ["1e-300", "1e-150", "1e-9", "1", "1e9", "1e150", "1e300"])
def test_tokens_of_every_size(scale: str) -> None:
    inputs, outputs = make("grid", 1, d=2)
    tokens = [[[c * Fraction(scale) for c in x] for x in own] for own in inputs]
    net = interpolate(tokens, outputs, attention="softmax", temperature="1e-50")
    certificate = net.certify()
    assert certificate.proved
    if 1e-100 < float(scale) < 1e100:  # beyond, weights that multiply such tokens leave float64
        assert certificate.float64_error < 1e-9


def test_tokens_that_span_all_of_float64(monkeypatch: pytest.MonkeyPatch) -> None:
    inputs, outputs = [[[1e300, 0], [0, 0]], [[1e-300, 0], [0, 0]], [[-1e-300, 1]]], [[[1, 1]], [[2, 2]], [[3, 3]]]
    net = interpolate(inputs, outputs, attention="softmax", temperature=1e-300)
    assert net.certify().proved
    monkeypatch.setattr("hardmax.interpolation.constructions.leaders._LAST_EXPONENT", 100)
    with pytest.raises(InputError, match=r"inputs must be closer in scale .*2\^100: use construction='fewest'"):
        interpolate(inputs, outputs, attention="softmax")
    assert interpolate(inputs, outputs, construction="fewest", attention="softmax").certify().proved


def test_a_cold_network_that_was_not_compiled_for_its_temperature() -> None:
    """Scores of 1e60 over the temperature: the best one wins, whatever the float exponents say."""
    e1, e2 = (fmpq(1), fmpq(0)), (fmpq(0), fmpq(1))
    block = Block(fmpq(1), (), B=(OuterProduct(e1, e1),), V=(OuterProduct(e2, e1),))
    tokens = [(fmpq(1), fmpq(0)), (fmpq(2), fmpq(0)), (fmpq(3), fmpq(0))]
    for heat in (fmpq(1, 10**60), fmpq(1, 10**400)):
        for order in (tokens, tokens[::-1]):
            state = evaluate([block], [order], heat)
            np.testing.assert_array_equal(state.middle[:, 1], [3.0, 3.0, 3.0])
            assert (state.radius[:, 1] < 1e-12).all()


def test_ends_of_an_enclosure() -> None:
    with ctx.workprec(64):
        low, high = hull(arb(fmpq(1, 3)))
        assert low < fmpq(1, 3) < high
        assert high - low < fmpq(1, 2**60)
        assert hull(fmpq(1, 3)) == (fmpq(1, 3), fmpq(1, 3))
        tiny = (-(arb(10) ** 60)).exp()
        low, high = hull(tiny)
        assert low <= 0 < high < fmpq(1, 10**300)
        low, high = hull(-tiny)
        assert -fmpq(1, 10**300) < low < 0 <= high
        low, high = hull(1 + tiny)
        assert low <= 1 < high < 1 + fmpq(1, 2**60)
        assert hull(arb(12)) == (fmpq(12), fmpq(12))


def test_pooling_weights_serve_every_temperature() -> None:
    inputs, outputs = make("chain", 2, d=3)
    hard = interpolate(inputs, outputs, construction="fewest")
    soft = interpolate(inputs, outputs, construction="fewest", attention="softmax", temperature=7)
    assert hard.blocks == soft.blocks
    assert soft.certify().proved


def test_width_one_and_token_level() -> None:
    inputs, outputs = make("grid", 3, d=2)
    assert interpolate(inputs, outputs, attention="softmax", width=1).certify().proved
    images = [[[len(x), i] for i in range(len(x))] for x in inputs]
    assert interpolate(inputs, images, attention="softmax", token_level=True).certify().proved


def test_a_wrong_softmax_network_is_not_proved() -> None:
    inputs, outputs = make("grid", 2, d=2)
    net = interpolate(inputs, outputs, attention="softmax")
    hardened = replace(net, blocks=net.blocks[:-1])
    certificate = hardened.certify()
    assert not certificate.proved
    assert certificate.failures


def test_a_linear_part_that_cancels_turns_a_ball_back_into_a_rational() -> None:
    inputs, outputs = make("grid", 2, d=2)
    net = interpolate(inputs[:3], outputs[:3], attention="softmax")
    first = sum(block.stage == "leader" for block in net.blocks)
    middle = evaluate(net.blocks[:first], net.data.inputs, fmpq(1))
    assert (middle.radius > 0).any()
    flat = Block(fmpq(0), (Neuron((fmpq(0), fmpq(1)), fmpq(10**9), (fmpq(0), fmpq(0))),))
    assert (evaluate([*net.blocks[:first], flat], net.data.inputs, fmpq(1)).radius == 0).all()
