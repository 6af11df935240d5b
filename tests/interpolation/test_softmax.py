"""Genuine softmax attention: proved with balls, at every temperature."""

from __future__ import annotations

import pytest
from flint import fmpq

from hardmax.interpolation import Block, Neuron, interpolate
from hardmax.interpolation.rationals import evaluate
from interpolation.families import FAMILIES, make

TEMPERATURES = ("0.01", "0.1", "1", "10", "100")


@pytest.mark.parametrize("temperature", TEMPERATURES)
@pytest.mark.parametrize("construction", ["leaders", "fewest", "conditioned"])
def test_every_temperature(construction: str, temperature: str) -> None:
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


@pytest.mark.parametrize("family", sorted(set(FAMILIES) - {"many"}))
def test_families(family: str) -> None:
    inputs, outputs = make(family, 1, d=2)
    net = interpolate(inputs[:6], outputs[:6], attention="softmax", temperature=1)
    assert net.certify().proved


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
    from dataclasses import replace

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
