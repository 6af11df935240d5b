"""Layers composed of score, mask, weighting, value, move and normalisation, against plain loops and torch."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import hardmax as hm
from hardmax.attention.argmax import choice_of_head
from hardmax.attention.masks import Mask

RNG = np.random.default_rng(0)
MATRICES = [np.array([[2.0, 1.0], [1.0, 1.0]]), np.array([[1.0, -1.0], [0.5, 2.0]]), np.eye(2)]

# Every layer that may be causal, as a function of the mask arguments.
FAMILY: dict[str, Callable[..., hm.AbstractLayer]] = {
    "hardmax": lambda **m: hm.HardmaxLayer(alpha=0.5, **m),
    "hardmax A": lambda **m: hm.HardmaxLayer(alpha=0.5, A=MATRICES[1], **m),
    "hardmax heads": lambda **m: hm.HardmaxLayer(alpha=0.5, heads=MATRICES, **m),
    "hardmax V": lambda **m: hm.HardmaxLayer(heads=[hm.Head(V=MATRICES[1])], **m),
    "hardmax bias": lambda **m: hm.HardmaxLayer(heads=[hm.Head(bias=hm.LinearBias(0.3))], **m),
    "hardmax steps": lambda **m: hm.HardmaxLayer(alpha=hm.PowerSteps(1.0), **m),
    "softmax": lambda **m: hm.SoftmaxLayer(beta=3.0, **m),
    "softmax heads": lambda **m: hm.SoftmaxLayer(beta=3.0, heads=MATRICES, shares=(0.2, 0.3, 0.5), **m),
    "top-k": lambda **m: hm.AttentionLayer(weighting=hm.TopK(3, beta=2.0), **m),
    "sigmoid": lambda **m: hm.AttentionLayer(weighting=hm.Sigmoid(2.0), move=hm.ResidualStep(0.1), **m),
    "linear": lambda **m: hm.AttentionLayer(weighting=hm.Linear(0.5), move=hm.ResidualStep(0.1), **m),
    "sphere": lambda **m: hm.AttentionLayer(move=hm.SphereStep(0.5, tangent=True), **m),
    "implicit": lambda **m: hm.AttentionLayer(move=hm.ImplicitStep([[1.0, 0.5], [0.0, 0.2]]), **m),
    "pre-norm": lambda **m: hm.AttentionLayer(move=hm.ResidualStep(), pre_norm=hm.LayerNorm(), **m),
    "post-norm": lambda **m: hm.AttentionLayer(move=hm.ResidualStep(), post_norm=hm.RmsNorm(), **m),
    "peri-norm": lambda **m: hm.AttentionLayer(
        move=hm.ResidualStep(), pre_norm=hm.LayerNorm(), update_norm=hm.RmsNorm(), **m
    ),
    "block": lambda **m: hm.Block(
        hm.SoftmaxLayer(beta=2.0, **m),
        hm.FeedForwardLayer([[1.0, -1.0], [0.5, 2.0]], [0.1, 0.2], [[1.0, 0.0], [0.3, 1.0]], activation="gelu"),
    ),
}
SIGHTS = {
    "all": {},
    "causal": {"causal": True},
    "causal window": {"causal": True, "window": 3},
    "window": {"window": 2},
}


def _seen(i: int, n: int, sight: dict[str, int | bool]) -> range:
    causal, window = sight.get("causal", False), sight.get("window")
    first = 0 if window is None else max(0, i - window + 1)
    last = i + 1 if causal else n if window is None else min(n, i + window)
    return range(first, last)


def _exact_step(
    Z: list[list[Fraction]],
    heads: list[list[list[Fraction]]],
    shares: list[Fraction],
    sight: dict[str, int | bool],
    alpha: Fraction,
    weights: list[Fraction],
) -> list[list[Fraction]]:
    """One layer in plain loops, line by line from the definition."""
    moved = []
    for i, z in enumerate(Z):
        target = [Fraction(0)] * len(z)
        for A, share in zip(heads, shares, strict=True):
            query = [sum((a * x for a, x in zip(row, z, strict=True)), Fraction(0)) for row in A]
            seen = _seen(i, len(Z), sight)
            scores = {k: sum((q * y for q, y in zip(query, Z[k], strict=True)), Fraction(0)) for k in seen}
            best = max(scores.values())
            chosen = [k for k in seen if scores[k] == best]
            mass = sum(weights[k] for k in chosen)
            for c in range(len(z)):
                target[c] += share * sum((weights[k] * Z[k][c] for k in chosen), Fraction(0)) / mass
        moved.append([(x + alpha * t) / (1 + alpha) for x, t in zip(z, target, strict=True)])
    return moved


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_hardmax_with_masks_and_heads_equals_plain_loops(data: st.DataObject) -> None:
    """O1: every mask, 1 to 3 heads, ties, repeated and zero tokens, weights; exact and in floats."""
    n = data.draw(st.integers(3, 9))
    grid = st.lists(st.integers(-2, 2), min_size=2, max_size=2)
    tokens = data.draw(st.lists(grid, min_size=n, max_size=n))
    count = data.draw(st.integers(1, 3))
    heads = data.draw(st.lists(st.lists(grid, min_size=2, max_size=2), min_size=count, max_size=count))
    weights = data.draw(st.lists(st.integers(1, 3), min_size=n, max_size=n))
    sight = SIGHTS[data.draw(st.sampled_from(sorted(SIGHTS)))]
    exact = data.draw(st.booleans())
    rows = [[Fraction(x) for x in row] for row in tokens]
    matrices = [[[Fraction(x) for x in row] for row in A] for A in heads]
    expected = _exact_step(
        rows, matrices, [Fraction(1, count)] * count, sight, Fraction(1, 2), [*map(Fraction, weights)]
    )
    layer = hm.HardmaxLayer(
        alpha=0.5, heads=[np.array(A, float) for A in heads], tolerance="exact" if exact else None, **sight
    )
    found = layer(np.array(tokens, float), weights=np.array(weights, float))
    np.testing.assert_allclose(found, np.array(expected, float), atol=1e-14)


@pytest.mark.parametrize("name", FAMILY)
@pytest.mark.parametrize("sight", ["causal", "causal window"])
def test_prefix_of_a_causal_layer_is_the_layer_of_the_prefix_to_the_bit(name: str, sight: str) -> None:
    """O3: also across the boundaries of blocks, on random and on tie-rich tokens, and over several layers."""
    layer = FAMILY[name](**SIGHTS[sight])
    for tokens in (RNG.normal(size=(140, 2)), RNG.integers(-2, 3, size=(140, 2)) + 0.0):
        if name == "sphere":
            tokens = tokens / np.maximum(np.linalg.norm(tokens, axis=1, keepdims=True), 1e-300)
        whole = hm.simulate(tokens, hm.LayerSequence([layer] * 2), keep="last").final
        for m in (5, 127, 129):
            part = hm.simulate(tokens[:m], hm.LayerSequence([layer] * 2), keep="last").final
            assert np.array_equal(part, whole[:m]), m


@pytest.mark.parametrize("name", [*FAMILY])
def test_later_tokens_matter_without_a_mask(name: str) -> None:
    layer = FAMILY[name]()
    tokens = RNG.normal(size=(30, 2)) * np.arange(1, 31)[:, None]
    assert not np.array_equal(layer(tokens[:20]), layer(tokens)[:20])


@pytest.mark.parametrize("sight", SIGHTS)
def test_equal_heads_are_one_head_and_order_of_heads_is_irrelevant(sight: str) -> None:
    tokens = RNG.normal(size=(50, 2))
    one = hm.HardmaxLayer(A=MATRICES[1], **SIGHTS[sight])(tokens)
    three = hm.HardmaxLayer(heads=[MATRICES[1]] * 3, **SIGHTS[sight])(tokens)
    np.testing.assert_allclose(three, one, atol=1e-15, rtol=1e-15)
    ways = [hm.HardmaxLayer(heads=[MATRICES[k] for k in order], **SIGHTS[sight])(tokens) for order in ([0, 1], [1, 0])]
    np.testing.assert_allclose(*ways, atol=1e-15, rtol=1e-15)


def test_constant_steps_are_a_constant_alpha() -> None:
    """O6."""
    tokens = RNG.normal(size=(60, 3))
    steps = hm.simulate(tokens, hm.LayerSequence([hm.HardmaxLayer(alpha=hm.PowerSteps(0.5, power=0.0))] * 6)).tokens
    constant = hm.simulate(tokens, hm.LayerSequence([hm.HardmaxLayer(alpha=0.5)] * 6)).tokens
    np.testing.assert_allclose(steps, constant, atol=1e-14)


@pytest.mark.parametrize("sight", SIGHTS)
def test_cold_softmax_tends_to_hardmax_under_the_same_mask(sight: str) -> None:
    """O7."""
    tokens = RNG.normal(size=(40, 2))
    cold = hm.SoftmaxLayer(beta=1e6, heads=MATRICES, **SIGHTS[sight])(tokens)
    np.testing.assert_allclose(cold, hm.HardmaxLayer(heads=MATRICES, **SIGHTS[sight])(tokens), atol=1e-6)


@pytest.mark.parametrize("sight", SIGHTS)
def test_softmax_sigmoid_linear_and_top_k_equal_plain_loops(sight: str) -> None:
    tokens, mass = RNG.normal(size=(11, 2)), RNG.uniform(0.5, 2.0, size=11)
    A = MATRICES[1]

    def loops(rule: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> np.ndarray:
        sums = []
        for i in range(11):
            seen = [*_seen(i, 11, SIGHTS[sight])]
            scores = tokens[seen] @ (A @ tokens[i])
            sums.append(rule(scores, mass[seen]) @ tokens[seen])
        return tokens + np.array(sums)

    def softmax(scores: np.ndarray, mass: np.ndarray) -> np.ndarray:
        weights = mass * np.exp(2.0 * scores)
        return weights / weights.sum()

    def top(scores: np.ndarray, mass: np.ndarray) -> np.ndarray:
        chosen = scores >= np.sort(scores)[-min(3, len(scores))]
        weights = chosen * mass * np.exp(2.0 * scores)
        return weights / weights.sum()

    def sigmoid(scores: np.ndarray, mass: np.ndarray) -> np.ndarray:
        return mass * len(mass) / mass.sum() / (1 + np.exp(-2.0 * scores + np.log(len(mass))))

    rules = {
        hm.Softmax(2.0): softmax,
        hm.TopK(3, beta=2.0): top,
        hm.Sigmoid(2.0): sigmoid,
        hm.Linear(2.0): lambda scores, mass: 2.0 * scores * mass / mass.sum(),
    }
    for weighting, rule in rules.items():
        layer = hm.AttentionLayer([A], weighting=weighting, move=hm.ResidualStep(1.0), **SIGHTS[sight])
        np.testing.assert_allclose(layer(tokens, weights=mass), loops(rule), atol=1e-13, err_msg=str(weighting))


def test_doubly_stochastic_weights_have_rows_and_columns_of_their_masses() -> None:
    mass = torch.tensor(RNG.uniform(0.5, 2.0, size=12))
    scores = torch.tensor(RNG.normal(size=(12, 12)))
    weights = hm.DoublyStochastic(beta=3.0).weights(scores, torch.ones_like(scores, dtype=torch.bool), mass)
    np.testing.assert_allclose(weights.sum(dim=1), 1.0, atol=1e-10)
    np.testing.assert_allclose(mass @ weights, mass, atol=1e-10)
    one = hm.DoublyStochastic(beta=3.0, iterations=1).weights(scores, torch.ones_like(scores, dtype=torch.bool), mass)
    np.testing.assert_allclose(one, torch.softmax(3.0 * scores + mass.log(), dim=1), atol=1e-14)
    with pytest.raises(hm.InputError, match=r"mask must be all tokens for doubly stochastic weights"):
        hm.AttentionLayer(weighting=hm.DoublyStochastic(), causal=True)(np.eye(3))


def test_implicit_step_is_the_convex_step_for_a_multiple_of_the_identity() -> None:
    tokens = RNG.normal(size=(20, 2))
    implicit = hm.AttentionLayer(weighting=hm.Hardmax(), move=hm.ImplicitStep(0.5 * np.eye(2)))(tokens)
    np.testing.assert_allclose(implicit, hm.HardmaxLayer(alpha=0.5)(tokens), atol=1e-15)
    u, v = RNG.normal(size=2), RNG.normal(size=2)
    V = np.outer(u, v)
    rank_one = hm.AttentionLayer(weighting=hm.Hardmax(), move=hm.ImplicitStep(V))(tokens)
    mean = tokens[hm.choose(tokens, hm.HardmaxLayer()).first.numpy()]
    np.testing.assert_allclose(rank_one, np.linalg.solve(np.eye(2) + V, (tokens + mean @ V.T).T).T, atol=1e-12)


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("causal", [False, True])
def test_torch_encoder_layer(norm_first: bool, activation: str, causal: bool) -> None:
    """O9."""
    torch.manual_seed(0)
    module = torch.nn.TransformerEncoderLayer(
        12, nhead=3, dim_feedforward=20, activation=activation, norm_first=norm_first, batch_first=True
    )
    module = module.double().eval()
    for parameter in module.parameters():  # also the biases, which torch starts at zero
        torch.nn.init.normal_(parameter, std=0.4)
    tokens = torch.randn(9, 12, dtype=torch.float64)
    mask = torch.nn.Transformer.generate_square_subsequent_mask(9, dtype=torch.float64) if causal else None
    with torch.no_grad():
        expected = module(tokens[None], src_mask=mask)[0]
    found = hm.from_torch(module, causal=causal)(tokens)
    assert float((found - expected).abs().max()) < 1e-12


@pytest.mark.parametrize("norm_first", [False, True])
def test_torch_decoder_layer(norm_first: bool) -> None:
    torch.manual_seed(1)
    module = torch.nn.TransformerDecoderLayer(8, nhead=2, dim_feedforward=16, norm_first=norm_first, batch_first=True)
    module = module.double().eval()
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    tokens, memory = torch.randn(7, 8, dtype=torch.float64), torch.randn(5, 8, dtype=torch.float64)
    mask = torch.nn.Transformer.generate_square_subsequent_mask(7, dtype=torch.float64)
    with torch.no_grad():
        expected = module(tokens[None], memory[None], tgt_mask=mask)[0]
    found = hm.from_torch(module, memory=memory)(tokens)
    assert float((found - expected).abs().max()) < 1e-12


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: hm.HardmaxLayer(window=9)(np.eye(3)), r"window is wider than the 3 tokens"),
        (lambda: hm.HardmaxLayer(window=0), r"window must be a whole number, at least 1"),
        (lambda: hm.HardmaxLayer(heads=MATRICES, shares=(0.2, 0.2, 0.2)), r"shares sum to 0\.6, not to one"),
        (lambda: hm.HardmaxLayer(heads=MATRICES, shares=(1.0,)), r"shares must be 3 numbers, one per head"),
        (lambda: hm.HardmaxLayer(heads=[np.eye(2), np.eye(3)]), r"heads must all have the same d"),
        (lambda: hm.HardmaxLayer(A=np.eye(2), heads=MATRICES), r"A must not be given together with heads"),
        (lambda: hm.HardmaxLayer(heads=2), r"heads must be a list of heads or of score matrices"),
        (lambda: hm.HardmaxLayer(shares=(1.0,)), r"shares is for several heads"),
        (lambda: hm.HardmaxLayer(heads=MATRICES)(np.eye(3)), r"A must have 3 columns to match the tokens"),
        (lambda: hm.AttentionLayer(weighting=2.0), r"weighting must be a weighting"),
        (lambda: hm.AttentionLayer(move=hm.ImplicitStep(-np.eye(2))), r"V must leave I \+ V invertible"),
        (lambda: hm.TopK(0), r"k must be a whole number, at least 1"),
        (lambda: hm.PowerSteps(1.0, power=-1.0), r"power must not be negative"),
        (lambda: hm.GeometricSteps(1.0, ratio=1.0), r"ratio must lie in \(0, 1\)"),
        (
            lambda: hm.HardmaxLayer(heads=[hm.Head(bias=np.eye(2))])(np.eye(3)),
            r"bias has fewer rows than there are tokens",
        ),
        (lambda: hm.Head(query_bias=[1.0]), r"query_bias needs Q and K"),
        (lambda: hm.choose(np.eye(3), hm.SoftmaxLayer()), r"layer must choose"),
        (lambda: hm.choose(np.eye(2), hm.HardmaxLayer(heads=MATRICES)), r"layer has several heads"),
        (lambda: hm.from_torch(torch.nn.Linear(2, 2)), r"module must be a TransformerEncoderLayer"),
    ],
)
def test_bad_input(make: Callable[[], object], message: str) -> None:
    with pytest.raises(hm.InputError, match=message):
        make()


@pytest.mark.parametrize("scale", [1e-300, 1e-150, 1e150, 1e300])
@pytest.mark.parametrize("sight", ["causal", "causal window", "all"])
def test_choices_do_not_depend_on_the_scale(scale: float, sight: str) -> None:
    tokens = RNG.integers(-3, 4, size=(40, 2)) + 0.0
    layer = hm.HardmaxLayer(heads=MATRICES, **SIGHTS[sight])
    power = 2.0 ** round(np.log2(scale))
    for here, there in zip(
        layer.choose_heads(torch.tensor(tokens)), layer.choose_heads(torch.tensor(tokens * power)), strict=True
    ):
        assert torch.equal(here.first, there.first)
        assert torch.equal(here.members, there.members)


def test_infinite_products_of_steps() -> None:
    assert hm.PowerSteps(2.0, power=1.0).remaining(3) == 0.0
    assert hm.PowerSteps(1.0, power=2.0).remaining(0) == pytest.approx(np.pi / np.sinh(np.pi), rel=1e-13)
    for steps in (hm.PowerSteps(5.0, power=1.5), hm.GeometricSteps(0.7, ratio=0.95)):
        near = steps.shrinkage(2, 40) * steps.remaining(40)
        assert steps.remaining(2) == pytest.approx(near, rel=1e-12)
    brute = np.exp(-sum(np.log1p(0.7 * 0.95**t) for t in range(2000)))
    assert hm.GeometricSteps(0.7, ratio=0.95).remaining(0) == pytest.approx(brute, rel=1e-13)


def test_positions_of_the_sequence_decide_under_a_bias() -> None:
    """A strong bias by distance makes every token attend to itself; its negative to the farthest token in sight."""
    tokens = RNG.normal(size=(20, 2))
    near = hm.HardmaxLayer(heads=[hm.Head(bias=hm.LinearBias(100.0))], causal=True)
    assert torch.equal(near.choose(torch.tensor(tokens)).first, torch.arange(20))
    far = hm.HardmaxLayer(heads=[hm.Head(bias=hm.LinearBias(-100.0))], causal=True)
    assert torch.equal(far.choose(torch.tensor(tokens)).first, torch.zeros(20, dtype=torch.int64))
    exact = hm.HardmaxLayer(heads=[hm.Head(bias=hm.LinearBias(0.25))], tolerance="exact")
    floats = hm.HardmaxLayer(heads=[hm.Head(bias=hm.LinearBias(0.25))])
    assert torch.equal(exact.choose(torch.tensor(tokens)).first, floats.choose(torch.tensor(tokens)).first)


def test_hardmax_weights_share_a_row_by_mass() -> None:
    scores = torch.tensor([[1.0, 3.0, 3.0, 9.0], [2.0, 2.0, 2.0, 9.0], [5.0, 1.0, 4.0, 9.0]], dtype=torch.float64)
    seen = torch.tensor([[True, True, True, False]]).expand(3, 4)
    mass = torch.tensor([1.0, 1.0, 3.0, 7.0], dtype=torch.float64)
    found = hm.Hardmax().weights(scores, seen, mass)
    expected = [[0.0, 0.25, 0.75, 0.0], [0.2, 0.2, 0.6, 0.0], [1.0, 0.0, 0.0, 0.0]]
    torch.testing.assert_close(found, torch.tensor(expected, dtype=torch.float64), rtol=0, atol=1e-15)


def test_topk_takes_a_softmax_at_temperature_one_unless_told_otherwise() -> None:
    scores, seen, mass = torch.tensor([[0.0, 1.0, 3.0]]), torch.ones(1, 3, dtype=torch.bool), torch.ones(3)
    shares = torch.tensor([[0.0, 1.0, np.e**2]]) / (1 + np.e**2)
    torch.testing.assert_close(hm.TopK(2).weights(scores, seen, mass), shares)


@pytest.mark.parametrize(("query", "key"), [(8.0, 0.25), (2.0**300, 2.0**-500), (1e-3, 1e-3)])
def test_best_scores_of_queries_and_keys_of_any_size(query: float, key: float) -> None:
    tokens = torch.tensor([[1.0, 2.0], [-3.0, 1.0], [2.0, 2.0]], dtype=torch.float64)
    head = hm.Head(Q=query * np.eye(2), K=key * np.eye(2))
    best = choice_of_head(head, tokens, Mask(), None).best
    torch.testing.assert_close(best, (tokens @ tokens.T).amax(dim=1) * query * key, rtol=1e-14, atol=0)
