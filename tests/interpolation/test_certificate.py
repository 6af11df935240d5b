"""A certificate fails whenever something is wrong: every kind of target, every way to miss it, every way to ask."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from flint import arb, ctx, fmpq

from hardmax.interpolation import Block, DataSet, ExactTransformer, Neuron, OuterProduct, interpolate, verify
from hardmax.interpolation.arithmetic.exact_evaluation import Margins, UndecidedError
from hardmax.interpolation.evaluation import certificate as module
from hardmax.interpolation.evaluation.certificate import Certificate, certify, float64_error, prove

ZERO, ONE = fmpq(0), fmpq(1)
E1, E2 = (ONE, ZERO), (ZERO, ONE)
INPUTS = [[[0, 0], [1, 0], [2, 0]], [[0, 0], [0, 1]], [[3, 1]]]
OUTPUTS = [[[1, 1], [2, 1], [3, "1/3"]], [[2, 2], [5, 5]], [[7, 0]]]
IMAGES = [[[1, 1], [2, 1], [1, 1]], [[4, 4], [4, 5]], [[0, 0]]]
HARD = ("leaders", "fewest", "witness", "conditioned", "paper")


def vector(*numbers: object) -> tuple[fmpq, ...]:
    return tuple(fmpq(str(c)) for c in numbers)


def with_outputs(net: ExactTransformer, j: int, points: list) -> ExactTransformer:
    """The same weights, asked to send sequence j elsewhere."""
    outputs = list(net.data.outputs)
    outputs[j] = tuple(vector(*p) for p in points)
    return replace(net, data=replace(net.data, outputs=tuple(outputs)))


def failures(net: ExactTransformer) -> list[str]:
    certificate = net.certify()
    assert certificate.proved is (not certificate.failures)
    assert bool(certificate) is certificate.proved
    return [str(failure) for failure in certificate.failures]


@pytest.fixture(scope="module", params=[*HARD, "softmax leaders", "softmax fewest"])
def net(request: pytest.FixtureRequest) -> ExactTransformer:
    soft = request.param.startswith("softmax")
    name = request.param.split()[-1]
    return interpolate(INPUTS, OUTPUTS, construction=name, attention="softmax" if soft else "hardmax")


def test_what_is_right_is_proved(net: ExactTransformer) -> None:
    assert failures(net) == []


def test_a_target_that_is_missed(net: ExactTransformer) -> None:
    """Everything reached is a target, and one target more is wanted: the case that sets alone can show."""
    more = [*OUTPUTS[1], ["1/7", 9]]
    wanted = with_outputs(net, 1, more)
    assert failures(wanted) == ["sequence 1: the target (1/7, 9) is not reached"]


def test_a_point_that_is_no_target(net: ExactTransformer) -> None:
    assert failures(with_outputs(net, 0, OUTPUTS[0][:2])) == ["sequence 0: (3, 1/3) is reached and is not a target"]
    assert failures(with_outputs(net, 2, [[7, "1/1000000000000000000000000"]])) == [
        "sequence 2: (7, 0) is reached and is not a target"
    ]


def test_every_sequence_that_fails_is_named(net: ExactTransformer) -> None:
    broken = with_outputs(with_outputs(net, 2, [[8, 8]]), 0, [[0, 0]])
    found = failures(broken)
    assert [text.split(":")[0] for text in found] == ["sequence 0", "sequence 2"]
    assert str(broken.certify()).startswith("NOT PROVED: 2 of 3 sequences fail, 0 claims are wrong")


@pytest.mark.parametrize("construction", HARD[:4])
def test_token_level_targets_belong_to_their_tokens(construction: str) -> None:
    net = interpolate(INPUTS, IMAGES, construction=construction, token_level=True)
    assert failures(net) == []
    swapped = with_outputs(net, 1, [[4, 5], [4, 4]])  # the same set, but of the other tokens
    assert failures(swapped) == ["sequence 1: token 0 goes to (4, 4) instead of (4, 5)"]
    last = with_outputs(net, 0, [[1, 1], [2, 1], [1, 2]])
    assert failures(last) == ["sequence 0: token 2 goes to (1, 1) instead of (1, 2)"]
    as_sets = replace(swapped, data=replace(swapped.data, token_level=False))
    assert failures(as_sets) == []


def test_a_broken_weight_of_any_block(net: ExactTransformer) -> None:
    for k, block in enumerate(net.blocks):
        if not block.neurons:
            continue
        first = block.neurons[0]
        moved = replace(first, bias=first.bias + fmpq(1, 3), writing=tuple(w + fmpq(1, 5) for w in first.writing))
        blocks = (*net.blocks[:k], replace(block, neurons=(moved, *block.neurons[1:])), *net.blocks[k + 1 :])
        assert not replace(net, blocks=blocks).certify().proved


def test_a_ball_is_no_proof() -> None:
    """Softmax leaves the plane of rationals; being close to the target is not enough."""
    block = Block(ONE, (), B=(OuterProduct(E1, E1),), V=(OuterProduct(E2, E1),))
    data = DataSet((((ONE, ZERO), (fmpq(2), ZERO)),), ((vector(1, 2), vector(2, 2)),))
    proof = prove([block], data, fmpq(1, 10**6))
    assert len(proof.failures) == 1
    assert "token 0 is known only up to a ball around [1.0, 2.0]" in str(proof.failures[0])
    assert proof.precision == 64
    hard = prove([block], data, None)
    assert (hard.failures, hard.precision) == ((), 0)


def test_an_undecided_sequence_is_named_and_not_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kink exactly at an irrational point: no precision decides its sign."""
    monkeypatch.setattr(module, "_PRECISIONS", (64, 128))
    attends = Block(ONE, (), B=(OuterProduct(E1, E1),), V=(OuterProduct(E2, E1),))
    double = Block(ONE, (), V=(OuterProduct(E1, E2), OuterProduct((-ONE, ZERO), E2)))
    bend = Block(ONE, (Neuron((ZERO, ZERO), ZERO, E1), Neuron((ONE, ZERO), -ONE, E1)))
    inputs = (((ONE, ZERO), (fmpq(2), ZERO)), ((fmpq(5), ZERO),))
    data = DataSet(inputs, ((vector(1, 2),), (vector(9, 5),)))
    # After `double` the first coordinate is x_1 plus a ball around zero, so token (1, 0) sits on the kink at one.
    proof = prove([attends, double, bend], data, ONE)
    assert [f.sequence for f in proof.failures] == [0]
    assert str(proof.failures[0]) == "sequence 0: undecided with balls of 128 bits"
    assert proof.precision == 128
    missed = DataSet(inputs, ((vector(1, 2),), (vector(9, 6),)))
    assert [f.sequence for f in prove([attends, double, bend], missed, ONE).failures] == [0, 1]


def test_precision_is_raised_until_signs_are_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    attends = Block(ONE, (), B=(OuterProduct(E1, E1),), V=(OuterProduct(E2, E1),))
    # exp(-200) is 2^-289: whether the second coordinate of the second token is below 11 needs about that many bits.
    bend = Block(ONE, (Neuron(E2, fmpq(-11), E1),))
    data = DataSet((((ONE, ZERO), (fmpq(11), ZERO)),), ((vector(1, 2),),))
    proof = prove([attends, bend], data, fmpq(11 * 10, 200))
    assert proof.precision == 512
    assert len(proof.failures) == 1


def test_problems_of_a_file_are_no_proof(net: ExactTransformer) -> None:
    certificate = certify(net, problems=("a claim is wrong",))
    assert not certificate.proved
    assert certificate.failures == ()
    assert str(certificate).startswith("NOT PROVED: 0 of 3 sequences fail, 1 claims are wrong")
    assert str(certificate).endswith("  a claim is wrong")


@pytest.mark.parametrize("workers", [2, 3])
def test_shares_of_several_processes_keep_their_numbers(
    net: ExactTransformer, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sharing itself, in this process: the processes are tested with the networks."""

    class Pool:
        def __init__(self, *_: object, **__: object) -> None: ...

        def __enter__(self) -> Pool:
            return self

        def __exit__(self, *_: object) -> None: ...

        def submit(self, function, *arguments):
            value = function(*arguments)
            asked.append(len(arguments[1]))

            class Done:
                @staticmethod
                def result():
                    return value

            return Done

    asked: list[int] = []
    monkeypatch.setattr(module, "ProcessPoolExecutor", Pool)
    inputs = [[[k, 0], [k, 1]] for k in range(7)]
    outputs = [[[k, k]] for k in range(7)]
    seven = interpolate(inputs, outputs, construction=net.construction, attention=net.attention)
    together, alone = certify(seven, workers=workers), certify(seven)
    assert sum(asked) == 7
    assert max(asked) - min(asked) <= 1
    assert together.proved
    for name in ("activation_margin", "score_margin", "arithmetic", "float64_error"):
        assert getattr(together, name) == getattr(alone, name)
    broken = with_outputs(with_outputs(seven, 5, [[0, 9]]), 2, [[9, 9]])
    assert [f.sequence for f in certify(broken, workers=workers).failures] == [2, 5]
    asked.clear()
    assert certify(seven, workers=4).proved
    assert asked == []  # seven sequences are too few for four processes


def test_a_long_list_of_failures_is_cut() -> None:
    inputs = [[[k, 0]] for k in range(30)]
    net = interpolate(inputs, [[[0, k]] for k in range(30)])
    outputs = tuple((vector(1, 1),) for _ in range(30))
    text = str(replace(net, data=replace(net.data, outputs=outputs)).certify())
    assert text.count("is reached and is not a target") == 20
    assert text.endswith("and 10 more")
    cut = tuple((vector(1, 1),) if k < 20 else y for k, y in enumerate(net.data.outputs))
    twenty = str(replace(net, data=replace(net.data, outputs=cut)).certify())
    assert twenty.count("is reached and is not a target") == 20
    assert "more" not in twenty


def test_long_points_are_shown_as_floats() -> None:
    net = interpolate([[[0, 0]]], [[["1/3", 2]]])
    far = with_outputs(net, 0, [["1/3", fmpq(10**40 + 1, 3 * 10**40)]])
    assert failures(far) == ["sequence 0: (1/3, 2) is reached and is not a target"]
    long = interpolate([[[0, 0]]], [[[fmpq(10**40 + 1, 3 * 10**40), 2]]])
    assert failures(with_outputs(long, 0, [[0, 0]])) == ["sequence 0: (0.333333, 2) is reached and is not a target"]


def test_margins_are_those_of_the_decisions() -> None:
    """One neuron at distance 1/4 from its kink, and scores 0, 3 and 8: the smallest lead is five times one."""
    bend = Neuron(E1, fmpq(-5, 4), (ZERO, ZERO))
    block = Block(ONE, (bend,), B=(OuterProduct(E2, E1),), V=(OuterProduct((ZERO, ZERO), E1),))
    tokens = (vector(1, 0), vector(2, 3), vector(3, 8))
    data = DataSet((tokens,), (tokens,))
    proof = prove([block], data, None)
    assert proof.failures == ()
    assert proof.margins == Margins(activation=0.25, score=5.0)
    # Through the general path of the filter: two reading vectors, of which one is always on.
    other = Neuron((ONE, ONE), fmpq(50), (ZERO, ZERO))
    assert prove([replace(block, neurons=(bend, other))], data, None).margins == Margins(activation=0.25, score=5.0)
    # The same with a negative factor, with two kinks, and where the layer forgets its input.
    for neurons, margin in (
        ((Neuron((fmpq(-2), ZERO), fmpq(3), (ZERO, ZERO)),), 1.0),
        ((Neuron((fmpq(2), ZERO), fmpq(-7), (ZERO, ZERO)),), 1.0),
        ((bend, Neuron(E1, fmpq(-23, 8), (ZERO, ZERO))), 0.125),
        ((Neuron(E1, fmpq(-3), (ZERO, ZERO)),), 1.0),
    ):
        assert prove([replace(block, neurons=neurons)], data, None).margins.activation == margin
        forgets = prove([replace(block, neurons=neurons, eta=ZERO)], data, None)
        assert forgets.margins.activation == margin
    net = replace(
        interpolate([[list(map(str, x)) for x in tokens]], [[list(map(str, x)) for x in tokens]]), blocks=(block,)
    )
    certificate = certify(net)
    assert (certificate.activation_margin, certificate.score_margin) == (0.25, 5.0)
    assert "smallest pre-activation 0.25, smallest lead of a best score 5," in str(certificate)


def test_the_float_error_is_a_hausdorff_distance(net: ExactTransformer) -> None:
    assert float64_error(net) < 1e-6
    assert float64_error(with_outputs(net, 2, [[7, -3]])) == pytest.approx(3, abs=1e-6)
    assert float64_error(with_outputs(net, 2, [[7, 0], [11, 1]])) == pytest.approx(
        4, abs=1e-6
    )  # a target that is missed
    assert float64_error(with_outputs(net, 1, [[2, 2]])) == pytest.approx(3, abs=1e-6)  # a point that is no target
    level = interpolate(INPUTS, IMAGES, construction="fewest", token_level=True)
    assert float64_error(with_outputs(level, 1, [[4, 5], [4, 4]])) == pytest.approx(1, abs=1e-6)
    assert float64_error(net, torch.float32) < 0.1 or net.construction == "paper"
    huge = with_outputs(replace(net, blocks=(Block(fmpq(10**400), ()),)), 0, [[1, 1]])
    assert float64_error(huge) == np.inf


def test_counts_and_words(net: ExactTransformer) -> None:
    certificate = net.certify()
    assert isinstance(certificate, Certificate)
    assert (certificate.sequences, certificate.tokens) == (3, 6)
    assert certificate.parameters == sum(block.parameters() for block in net.blocks)
    soft = net.attention == "softmax"
    assert certificate.attention == ("softmax at temperature 1" if soft else "hardmax, ties by equality of rationals")
    balls = soft and net.construction == "leaders"
    assert certificate.arithmetic == ("exact rationals and balls of 64 bits" if balls else "exact rationals")
    assert certificate.seconds > 0
    record = json.loads(json.dumps(certificate.to_dict()))
    assert record["failures"] == []
    broken = with_outputs(net, 2, [[8, 8]]).certify().to_dict()
    assert broken["failures"] == ["sequence 2: (7, 0) is reached and is not a target"]
    assert repr(certificate) == str(certificate)


def test_verify_finds_a_missed_target_in_a_file(tmp_path, net: ExactTransformer) -> None:
    one = interpolate([[[0, 0], [1, 0], [2, 0]]], [[[1, 1], [2, 2]]], construction=net.construction)
    with_outputs(one, 0, [[1, 1], [2, 2], [3, 3]]).save(tmp_path / "one")
    certificate = verify(tmp_path / "one")
    assert not certificate.proved
    assert [str(f) for f in certificate.failures] == ["sequence 0: the target (3, 3) is not reached"]


def test_ball_comparisons_never_guess() -> None:
    with ctx.workprec(64):
        ball = arb(1).exp() - arb(1).exp()
    state_block = Block(ONE, (Neuron(E1, ZERO, E1),))
    from hardmax.interpolation.arithmetic.exact_evaluation import State, feed_forward

    state = State([[(ONE, ZERO)]])
    state.rows[0][0] = ball
    state.refresh(0, [0])
    with pytest.raises(UndecidedError):
        feed_forward(state, state_block)


def test_what_no_precision_decides_is_a_failure_of_its_own_sequence(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sequences behind it are still proved or refuted, with the largest precision."""
    real, precisions = module.evaluate, []

    def evaluate(blocks: object, inputs: object, *others: object) -> object:
        precisions.append(ctx.prec)
        if any(len(x) == 2 for x in inputs):  # type: ignore[attr-defined]
            raise UndecidedError("the sign of something")
        return real(blocks, inputs, *others)

    monkeypatch.setattr(module, "evaluate", evaluate)
    data = interpolate(INPUTS, OUTPUTS).data
    block = Block(ONE, (), B=(OuterProduct(E1, E1),), V=())
    proof = prove((block,), data, ONE)
    assert [failure.sequence for failure in proof.failures] == [0, 1, 2]
    assert "undecided with balls of 16384 bits" in proof.failures[1].reason
    assert "undecided" not in proof.failures[0].reason + proof.failures[2].reason
    assert precisions == [*module._PRECISIONS, *[module._PRECISIONS[-1]] * 3]
    assert proof.precision == module._PRECISIONS[-1] == 16384
