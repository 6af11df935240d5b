"""A network called on sequences: compared with plain fractions, rounded once, in the caller's kind of array."""

from fractions import Fraction

import numpy as np
import pandas
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import hardmax as hm
from hardmax.interpolation.arithmetic.reference import run as slowly
from helpers import examples

INPUTS = [[[0, 0], [1, 0]], [[0, 0], [0, 1]], [[3, 1], [1, 1], [2, 0]]]
OUTPUTS = [[["1/3", 1]], [[2, 2]], [[0, 1], [5, "1/7"]]]
TARGETS = [{(Fraction(c[0]), Fraction(c[1])) for c in points} for points in OUTPUTS]
NET = hm.interpolate(INPUTS, OUTPUTS)


@pytest.mark.parametrize("construction", ["leaders", "fewest", "witness", "conditioned", "paper"])
@settings(deadline=None, max_examples=examples(20))
@given(
    points=st.lists(
        st.tuples(st.fractions(-4, 4, max_denominator=9), st.fractions(-4, 4, max_denominator=9)),
        min_size=1,
        max_size=4,
        unique=True,
    )
)
def test_any_sequence_goes_where_plain_fractions_say(construction: str, points: list[tuple[Fraction, ...]]) -> None:
    net = hm.interpolate(INPUTS, OUTPUTS, construction=construction)  # type: ignore[arg-type]
    assert net(points, exact=True) == slowly(net.blocks, points)
    assert np.array_equal(net(points), [[float(c) for c in image] for image in slowly(net.blocks, points)])


@pytest.mark.parametrize("attention", ["hardmax", "softmax"])
def test_the_data_go_exactly_to_their_targets(attention: str) -> None:
    net = hm.interpolate(INPUTS, OUTPUTS, attention=attention)  # type: ignore[arg-type]
    found = net(INPUTS, exact=True)
    assert [set(image) for image in found] == TARGETS


def test_one_sequence_and_several_in_every_kind_of_array() -> None:
    one = NET(INPUTS[1])
    assert isinstance(one, np.ndarray)
    np.testing.assert_array_equal(one, [[2.0, 2.0], [2.0, 2.0]])
    batch = np.array(INPUTS[:2], dtype=np.float32)
    found = NET(batch)
    assert (found.dtype, found.shape) == (np.float32, (2, 2, 2))
    np.testing.assert_array_equal(found[1], one)
    tensor = torch.tensor(INPUTS[1], dtype=torch.float32, requires_grad=True)
    assert torch.equal(NET(tensor), torch.full((2, 2), 2.0))
    assert NET(torch.tensor(INPUTS[:2])).dtype == torch.float64
    np.testing.assert_array_equal(NET(pandas.DataFrame(INPUTS[1])), one)
    ragged = NET([torch.tensor(INPUTS[1], dtype=torch.float64), np.array(INPUTS[2])])
    assert [type(x) for x in ragged] == [torch.Tensor, np.ndarray]
    assert [len(x) for x in ragged] == [2, 3]
    np.testing.assert_array_equal(NET([["0", "0"], [0, Fraction(1)]]), one)


@pytest.mark.parametrize("construction", ["leaders", "fewest", "conditioned"])
def test_a_repeated_token_counts_once(construction: str) -> None:
    net = hm.interpolate(INPUTS, OUTPUTS, construction=construction)  # type: ignore[arg-type]
    (a, b) = net(INPUTS[0], exact=True)
    assert net([INPUTS[0][0], INPUTS[0][0], INPUTS[0][1]], exact=True) == [a, a, b]


def test_softmax_elsewhere_is_close_to_its_float_module() -> None:
    net = hm.interpolate(INPUTS, OUTPUTS, attention="softmax")
    tokens = torch.tensor([[0.3, 0.1], [1.7, -0.2]], dtype=torch.float64)
    with torch.no_grad():
        torch.testing.assert_close(net(tokens), net.to_torch().eval()([tokens])[0], rtol=0, atol=1e-9)
    with pytest.raises(hm.InputError, match=r"exact is not possible: the output of token 1 is not rational"):
        net(tokens, exact=True)


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        ([0, 1], "tokens must be a list of tokens, or a list of sequences of tokens, got a list of numbers"),
        ([], "tokens must be a list of tokens, or a list of sequences of tokens, got nothing"),
        (np.zeros(2), r"tokens must have shape \(token, coordinate\) or .*, got shape \(2,\)"),
        ([[1, 2, 3]], "tokens must be tokens of 2 coordinates, got a sequence of another shape"),
        ([[[1, 2]], [[1, 2, 3]]], r"tokens\[1\] must be tokens of 2 coordinates"),
        ([[np.nan, 1]], r"tokens\[0\] must be finite"),
        (np.ma.array([[1.0, 2.0]], mask=[[False, True]]), r"tokens must not be masked, got a masked value at index"),
        (None, "tokens must be a list, got None"),
        ("ab", "tokens must be a list, got 'ab'"),
    ],
)
def test_what_is_no_sequence(tokens: object, message: str) -> None:
    with pytest.raises(hm.InputError, match=message):
        NET(tokens)


@pytest.mark.parametrize("construction", ["leaders", "fewest", "witness", "conditioned", "paper"])
def test_predictions_do_not_suffer_from_floats(construction: str) -> None:
    inputs = [[[0, 0]], [["1e-17", 0]], [[1, 0]]]
    net = hm.classify_exactly(inputs, ["a", "b", "a"], construction=construction)
    assert net.predict(inputs) == ["a", "b", "a"]
    assert net.predict([]) == []


@pytest.mark.parametrize("construction", ["leaders", "fewest", "witness", "conditioned", "paper"])
def test_data_that_span_all_of_float64(construction: str) -> None:
    inputs, outputs = [[[1e300, 0]], [[-1e-300, 1]]], [[[1, 1]], [[2, 2]]]
    net = hm.interpolate(inputs, outputs, construction=construction)  # type: ignore[arg-type]
    assert net.certify().proved
    np.testing.assert_array_equal(net(inputs), outputs)


def test_labels_of_pandas_and_labels_that_are_none() -> None:
    net = hm.classify_exactly([pandas.DataFrame(x) for x in INPUTS], pandas.Series(["x", "y", "x"]))
    assert net.predict(INPUTS) == ["x", "y", "x"]
    with pytest.raises(hm.InputError, match=r"labels\[0\] must be one label, got \[1\]: pass strings or numbers"):
        hm.classify_exactly(INPUTS, [[1], [2], [1]])  # type: ignore[list-item]
    with pytest.raises(hm.InputError, match=r"labels must be a list, got 'aba': pass one label per sequence"):
        hm.classify_exactly(INPUTS, "aba")


def test_the_torch_module_refuses_lists_of_numbers() -> None:
    module = NET.to_torch()
    with pytest.raises(hm.InputError, match=r"tokens\[0\] must be a tensor of shape \(token, 2\), got a list"):
        module(INPUTS)
    with pytest.raises(hm.InputError, match=r"tokens\[0\] must be a tensor .*, got shape \(2,\)"):
        module([torch.zeros(2)])
    assert module([]) == []
