"""Impossible and malformed requests are refused before any work starts, in words that help."""

from __future__ import annotations

import warnings
from fractions import Fraction

import numpy as np
import pytest
import torch

from hardmax.errors import InputError
from hardmax.interpolation import classify_exactly, interpolate
from hardmax.interpolation.arithmetic.numbers import as_fraction

X = [[[0, 0], [1, 0]], [[0, 0], [0, 1]]]
Y = [[[1, 1]], [[2, 2]]]


@pytest.mark.parametrize(
    ("inputs", "outputs", "options", "message"),
    [
        ([[[0, 0], [1, 0]], [[1, 0], [0, 0]]], Y, {}, r"inputs\[0\] and inputs\[1\].*positions separates them"),
        (X, [[[1, 1], [2, 2], [3, 3]], [[2, 2]]], {}, r"outputs\[0\].*3 distinct points for 2 distinct tokens"),
        ([[[0, 0], [0, 0]], [[1, 1]]], [[[1, 1], [2, 2]], [[0, 0]]], {}, r"2 distinct points for 1 distinct"),
        ([[], [[0, 1]]], Y, {}, r"inputs\[0\] must not be empty"),
        ([], [], {}, r"inputs must not be empty"),
        ([[[0], [1]], [[2]]], [[[1]], [[2]]], {}, r"at least two coordinates"),
        ([[[0, float("nan")]], [[0, 1]]], Y, {}, r"inputs\[0\]\[0\] must be finite, got nan"),
        ([[[0, float("inf")]], [[0, 1]]], Y, {}, r"must be finite, got inf"),
        ([[[0, 1]], [[0, 1, 2]]], Y, {}, r"inputs\[1\]\[0\] must have 2 coordinates"),
        (X, [[[1, 1, 1]], [[2, 2]]], {}, r"outputs\[0\]\[0\] must have 2 coordinates"),
        (X, Y[:1], {}, r"one entry per input, 2"),
        ([[[0, "three"]], [[0, 1]]], Y, {}, r"must be a finite number, got 'three'"),
        ([[[0, "1/0"]], [[0, 1]]], Y, {}, r"must be a finite number"),
        ([[[0, "1e999999"]], [[0, 1]]], Y, {}, r"must be a finite number"),
        ([[[0, True]], [[0, 1]]], Y, {}, r"must be a number, got True"),
        ([[[0, None]], [[0, 1]]], Y, {}, r"must be a finite number, got None"),
        (3, Y, {}, r"inputs must be a list"),
        (X, Y, {"attention": "softmax", "temperature": 0}, r"temperature must be positive, got 0"),
        (X, Y, {"attention": "softmax", "temperature": -1.5}, r"temperature must be positive, got -1.5"),
        (X, Y, {"attention": "softmax", "temperature": float("inf")}, r"temperature must be finite"),
        (X, Y, {"attention": "sparsemax"}, r"attention is not known.*hardmax, softmax"),
        (X, Y, {"construction": "magic"}, r"construction is not known.*leaders"),
        (X, Y, {"construction": "witness", "attention": "softmax"}, r"true argmax under softmax"),
        (X, Y, {"construction": "paper", "token_level": True}, r"token-level|one image per token"),
        (X, Y, {"attention": "softmax", "flat": False}, r"flat must be true"),
        (X, Y, {"width": 0}, r"width must be a whole number, at least 1"),
        (X, Y, {"width": 2.5}, r"width must be a whole number"),
        (X, Y, {"token_level": True}, r"one image per token, 2"),
        ([[[0, 0], [0, 0]]], [[[1, 1], [2, 2]]], {"token_level": True}, r"must agree on equal tokens"),
    ],
)
def test_refused(inputs: object, outputs: object, options: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        interpolate(inputs, outputs, **options)


def test_absurd_sizes_are_refused_before_work_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hardmax.interpolation.constructions.interpolate._MOST_WEIGHTS", 10)
    monkeypatch.setattr("hardmax.interpolation.constructions.interpolate.Lattice", None)  # nothing is computed with
    with pytest.raises(InputError, match=r"would need up to .* weights"):
        interpolate(X, Y)
    monkeypatch.setattr("hardmax.interpolation.data._MOST_NUMBERS", 5)
    with pytest.raises(InputError, match="inputs is too large to compile, got more than 5 numbers"):
        interpolate(X, Y)


def test_repeated_tokens_are_removed_and_said_so() -> None:
    doubled = [[[0, 0], [1, 0], [1, 0]], [[0, 0], [0, 1]]]
    with pytest.warns(UserWarning, match="repeated tokens were removed: construction 'fewest' reads means"):
        net = interpolate(doubled, Y, construction="fewest")
    assert "repeat tokens" in net.notes[0]
    assert net.certify().proved
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "repeat tokens" in interpolate(doubled, Y, construction="leaders").summary()


def test_a_pair_given_twice_is_dropped() -> None:
    net = interpolate([*X, X[0]], [*Y, Y[0]])
    assert len(net.data) == 2
    assert net.notes == ("1 repeated pairs were dropped",)


def test_all_kinds_of_numbers_are_read_exactly() -> None:
    kinds = [[["3/8", 0.1], [Fraction(1, 3), np.float32(0.5)]], torch.tensor([[1.0, 2.0]]), np.array([[1, 2], [3, 4]])]
    net = interpolate(kinds, [["0.25", "-1/7"], [[1, 1]], [[2, 2]]])
    assert str(net.data.inputs[0][0][0]) == "3/8"
    assert as_fraction(net.data.inputs[0][0][1]) == Fraction(0.1)
    assert str(net.data.outputs[0][0][1]) == "-1/7"
    assert net.certify().proved


def test_labels_must_match() -> None:
    with pytest.raises(InputError, match="must be one per input, 2"):
        classify_exactly(X, ["a"])
    with pytest.raises(InputError, match="has no meaning for labels"):
        classify_exactly(X, ["a", "b"], token_level=True)
    with pytest.raises(InputError, match="same set of tokens with different outputs"):
        classify_exactly([X[0], X[0]], ["a", "b"])


def test_progress_is_told_and_interruption_is_clean() -> None:
    told = []
    interpolate(X, Y, progress=lambda stage, done, total: told.append((stage, done, total)))
    assert told[0] == ("choosing a direction", 0, 3)
    assert told[-1] == ("done", 3, 3)
    assert [done for _, done, _ in told] == sorted(done for _, done, _ in told)
    assert {total for _, _, total in told} == {3}

    def stop(stage: str, done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interpolate(X, Y, progress=stop)
    with pytest.raises(KeyboardInterrupt):
        interpolate(X, Y).certify(progress=stop)


def test_a_long_value_is_shortened_in_the_message() -> None:
    with pytest.raises(InputError, match=r"got 'x{56}\.\.\."):
        interpolate([[[0, "x" * 500]], [[0, 1]]], Y)
    with pytest.raises(InputError, match=r"got 'x{50}'"):
        interpolate([[[0, "x" * 50]], [[0, 1]]], Y)


def test_the_first_masked_value_is_named() -> None:
    inputs = np.ma.masked_array(np.arange(12.0).reshape(2, 3, 2), mask=False)
    inputs[0, 2, 1] = inputs[1, 0, 0] = np.ma.masked
    with pytest.raises(InputError, match=r"a masked value at index \(0, 2, 1\)"):
        interpolate(inputs, [[[1, 1]], [[2, 2]]])
