"""Layers that differ along depth, custom layers, labels and seeds: one trajectory, saved and loaded again."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch

import hardmax as hm
from hardmax.storage.layer_recipes import StoredLayer

TOKENS = np.random.default_rng(3).normal(size=(30, 2))
MATRICES = [[[2.0, 1.0], [1.0, 1.0]], [[1.0, 0.0], [0.0, 3.0]]]

PARTS: list[hm.AbstractLayer] = [
    hm.HardmaxLayer(alpha=0.5, causal=True),
    hm.HardmaxLayer(alpha=hm.PowerSteps(1.0, power=0.5), heads=MATRICES, shares=(0.25, 0.75)),
    hm.HardmaxLayer(alpha=hm.GeometricSteps(0.5, ratio=0.9), A=MATRICES[0], causal=True, window=4),
    hm.SoftmaxLayer(beta=2.0, heads=MATRICES, causal=True),
    hm.SoftmaxLayer(beta=2.0, A=MATRICES[0], window=3),
    hm.HardmaxLayer(heads=[hm.Head(Q=[[1.0, 2.0]], K=[[0.5, 1.0]], V=MATRICES[1], query_bias=[0.1], key_bias=[0.2])]),
    hm.HardmaxLayer(heads=[hm.Head(bias=hm.LinearBias(0.2)), hm.Head(bias=np.eye(30), value_bias=[1.0, 2.0])]),
    hm.AttentionLayer(weighting=hm.TopK(3, beta=2.0), move=hm.ResidualStep(0.1), causal=True, pre_norm=hm.LayerNorm()),
    hm.AttentionLayer(weighting=hm.Sigmoid(2.0), move=hm.SphereStep(0.5, tangent=True), update_norm=hm.UnitNorm()),
    hm.AttentionLayer(MATRICES, weighting=hm.Linear(0.1), move=hm.ResidualStep(0.1), shares=(1.0, -0.5)),
    hm.AttentionLayer(weighting=hm.DoublyStochastic(2.0), post_norm=hm.RmsNorm([1.0, 2.0]), update_bias=[0.1, 0.2]),
    hm.AttentionLayer(weighting=hm.Hardmax(1e-10), move=hm.ImplicitStep(MATRICES[0])),
    hm.AttentionLayer(memory=TOKENS[:4], pre_norm=hm.LayerNorm([1.0, 2.0], [0.5, 0.1], epsilon=1e-3)),
    hm.FeedForwardLayer(MATRICES[0], [0.1, 0.2], MATRICES[1], c=[1.0, 0.0], activation="silu", gate=MATRICES[0]),
    hm.Block(hm.HardmaxLayer(causal=True), hm.FeedForwardLayer(MATRICES[0], [0.0, 0.0], MATRICES[1], 0.5)),
]


@pytest.mark.parametrize("layer", PARTS, ids=str)
def test_every_part_of_a_layer_is_saved_and_loaded(layer: hm.AbstractLayer, tmp_path: Path) -> None:
    run = hm.simulate(TOKENS, layer, depth=2)
    hm.save(run, tmp_path / "run.zip")
    again = hm.load(tmp_path / "run.zip")
    assert isinstance(again, hm.Trajectory)
    assert str(again.layer) == str(layer)
    assert np.array_equal(hm.simulate(TOKENS, again.layer, depth=2).tokens, run.tokens)


def test_a_list_of_layers_is_one_run(tmp_path: Path) -> None:
    layers = [PARTS[0], PARTS[3], PARTS[0], PARTS[13]]
    run = hm.simulate(TOKENS, layers)
    expected = TOKENS
    for layer in layers:
        expected = layer(expected)
    assert np.array_equal(run.final, expected)
    hm.save(run, tmp_path / "run.nc")
    again = hm.load(tmp_path / "run.nc")
    assert isinstance(again.layer, hm.LayerSequence)
    assert again.layer.layers[0] is again.layer.layers[2]  # stored once
    assert np.array_equal(hm.simulate(TOKENS, again.layer).tokens, run.tokens)
    assert len(hm.simulate(TOKENS, layers, depth=2)) == 3
    with pytest.raises(hm.InputError, match=r"depth is more than the 4 layers of the list, got 5"):
        hm.simulate(TOKENS, layers, depth=5)
    with pytest.raises(hm.InputError, match=r"layer must be a list of layers, got an empty list"):
        hm.simulate(TOKENS, [])
    with pytest.raises(hm.InputError, match=r"layer must be a list of layers, got 3"):
        hm.simulate(TOKENS, [PARTS[0], 3])  # type: ignore[list-item]


def test_a_rule_gives_each_layer_by_its_number() -> None:
    run = hm.simulate(TOKENS, lambda t: hm.SoftmaxLayer(alpha=1.0 / (t + 1), beta=t), depth=4)
    expected = TOKENS
    for t in range(4):
        expected = hm.SoftmaxLayer(alpha=1.0 / (t + 1), beta=t)(expected)
    assert np.array_equal(run.final, expected)
    with pytest.raises(hm.InputError, match=r"layer must give a layer for every number, got 7 for layer 0"):
        hm.simulate(TOKENS, lambda t: 7, depth=2)  # type: ignore[arg-type, return-value]


@dataclass(frozen=True)
class Labelled(hm.AbstractLayer):
    """Tokens of one label attract each other; noise in the even layers."""

    noise: float

    @property
    def stochastic(self) -> bool:
        return True

    def step(self, tokens: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        raise NotImplementedError

    def step_at(
        self, tokens: torch.Tensor, weights: torch.Tensor, context: hm.Context, rows: slice = slice(None)
    ) -> torch.Tensor:
        assert context.labels is not None
        assert context.generator is not None
        same = (context.labels[:, None] == context.labels[None, :]).to(tokens.dtype)
        moved = (tokens + same @ tokens / same.sum(dim=1, keepdim=True)) / 2
        if context.index % 2 == 0:
            moved = moved + self.noise * torch.randn(tokens.shape, generator=context.generator, dtype=tokens.dtype)
        return moved[rows]


def test_labels_index_and_generator_reach_a_layer_of_ones_own(tmp_path: Path) -> None:
    labels = np.arange(30) % 3
    one = hm.simulate(TOKENS, Labelled(0.1), depth=3, labels=labels, random_state=5)
    assert one.seed == 5
    assert np.array_equal(hm.simulate(TOKENS, Labelled(0.1), depth=3, labels=labels, random_state=5).tokens, one.tokens)
    assert not np.array_equal(
        hm.simulate(TOKENS, Labelled(0.1), depth=3, labels=labels, random_state=6).tokens, one.tokens
    )
    drawn = hm.simulate(TOKENS, Labelled(0.1), depth=3, labels=labels)
    again = hm.simulate(TOKENS, Labelled(0.1), depth=3, labels=labels, random_state=drawn.seed)
    assert np.array_equal(again.tokens, drawn.tokens)
    still = hm.simulate(TOKENS, Labelled(0.0), depth=200, labels=labels, keep="last").final
    for label in range(3):
        assert np.ptp(still[labels == label], axis=0).max() < 1e-12
    with pytest.raises(hm.InputError, match=r"labels must have one label per token, 30"):
        hm.simulate(TOKENS, Labelled(0.1), depth=1, labels=labels[:4])
    with pytest.raises(hm.InputError, match=r"layer draws random numbers"):
        Labelled(0.1)(TOKENS)
    hm.save(one, tmp_path / "run.zip")
    assert hm.load(tmp_path / "run.zip").seed == 5
    assert hm.simulate(TOKENS, hm.HardmaxLayer(), depth=1, random_state=3).seed is None


@dataclass(frozen=True)
class Farthest(hm.AbstractLayer):
    """A layer of one's own that chooses: the token of the largest scalar product, with its own step."""

    rate: float

    def choose(self, tokens: torch.Tensor, queries: slice = slice(None)) -> hm.Choice:
        scores = tokens[queries] @ tokens.T
        return hm.Choice.of(scores >= scores.amax(dim=1, keepdim=True) - 1e-12)

    def step(self, tokens: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        return tokens + self.rate * (tokens[self.choose(tokens).first] - tokens)


def test_a_layer_with_choose_gets_leaders_clusters_figures_and_files(tmp_path: Path) -> None:
    """With the step 1/3 it is the hardmax layer with alpha = 1/2."""
    run = hm.simulate(TOKENS, Farthest(1 / 3), depth=40)
    known = hm.equilibrium(TOKENS, hm.HardmaxLayer(alpha=0.5))
    found = hm.leaders(run)
    assert np.array_equal(found.index, known.leaders)
    assert np.array_equal(found.emerged_at, known.emerged_at)
    assert np.array_equal(found.followers, hm.leaders(known).followers)
    clusters = hm.clusters(run)
    assert np.array_equal(clusters.cluster_of, hm.clusters(known).cluster_of)
    assert np.isnan(clusters.theory)
    # Rates are measured from layer 0, where one token still changes sides.
    assert np.nanmax(np.abs(clusters.rates - 2 / 3)) < 0.02
    assert np.array_equal(hm.attention_at(run, 0).follows, hm.choose(TOKENS, hm.HardmaxLayer()).first.numpy())
    assert hm.draw_tokens(run, layer=5).figure is not None
    hm.save(run, tmp_path / "run.zip")
    again = hm.load(tmp_path / "run.zip", layers=[Farthest])
    assert again.layer == Farthest(1 / 3)
    assert np.array_equal(hm.leaders(again).index, found.index)
    words = hm.load(tmp_path / "run.zip")
    assert isinstance(words.layer, StoredLayer)
    with pytest.raises(hm.InputError, match=r"load the file with hm\.load\(path, layers=\[Farthest\]\)"):
        hm.leaders(words)
    with pytest.raises(hm.InputError, match=r"cannot be run"):
        hm.simulate(TOKENS, words.layer, depth=1)


def test_what_a_layer_cannot_do_is_refused_by_name() -> None:
    soft = hm.simulate(TOKENS, hm.SoftmaxLayer(causal=True), depth=2)
    with pytest.raises(hm.InputError, match=r"must come from a layer that chooses: this one attends to every token"):
        hm.leaders(soft)
    with pytest.raises(hm.InputError, match=r"must come from a layer that chooses"):
        hm.attention_at(soft, 0)
    heads = hm.simulate(TOKENS, hm.HardmaxLayer(heads=MATRICES), depth=2)
    assert hm.attention_at(heads, 0, head=1).follows.shape == (30,)
    silent = np.array([[3.0, 0.0], [0.0, 0.0], [0.0, 2.0], [1.0, 1.0]])
    found = hm.attention_at(
        hm.simulate(silent, hm.HardmaxLayer(heads=[np.eye(2), np.diag([1.0, 2.0])]), depth=1), 0, head=0
    )
    assert found.leads.tolist() == [True, False, True, False]  # the zero token attends to all tokens
    with pytest.raises(hm.InputError, match=r"head must be one of 0 … 1"):
        hm.attention_at(heads, 0, head=2)
    with pytest.raises(hm.InputError, match=r"must have one head, see all tokens and have one step size"):
        hm.check_theorem(heads)
    with pytest.raises(hm.InputError, match=r"must have one head, see all tokens and have one step size"):
        hm.check_assumptions(TOKENS, hm.HardmaxLayer(causal=True))
    with pytest.raises(hm.InputError, match=r"must be a HardmaxLayer with one head"):
        hm.draw_attention_geometry(TOKENS, hm.HardmaxLayer(heads=MATRICES))
    turned = hm.simulate(TOKENS, hm.HardmaxLayer(V=[[0.0, -1.0], [1.0, 0.0]]), depth=2)
    with pytest.raises(hm.InputError, match=r"must have V = identity to have leaders"):
        hm.leaders(turned)


def test_choices_from_indices_and_booleans() -> None:
    made = hm.Choice.of(torch.tensor([[True, False, True], [False, True, False]]))
    assert made[0].tolist() == [0, 2]
    assert made[1].tolist() == [1]
    assert hm.Choice.of(torch.tensor([2, 0])).first.tolist() == [2, 0]
    for wrong in (torch.tensor([[False, False]]), torch.tensor([0.5]), torch.tensor([[1, 2]])):
        with pytest.raises(hm.InputError, match=r"selected must be one index per query"):
            hm.Choice.of(wrong)


@pytest.mark.parametrize("kind", ["noisy", "momentum", "noisy momentum", "own"])
def test_flows_are_saved_and_loaded(kind: str, tmp_path: Path) -> None:
    start = TOKENS / np.linalg.norm(TOKENS, axis=1, keepdims=True)
    inside = hm.SphereFlow(np.eye(2), MATRICES[0], beta=4.0, few_tokens="ignore")
    flow: hm.AbstractFlow = {
        "noisy": hm.NoisyFlow(inside, 0.3),
        "momentum": hm.MomentumFlow(inside, 0.5, 2.0),
        "noisy momentum": hm.NoisyFlow(hm.MomentumFlow(inside), 0.1),
        "own": hm.CallableFlow(lambda tokens, weights: -tokens),
    }[kind]
    run = hm.simulate(start, flow, time=0.2, random_state=1)
    hm.save(run, tmp_path / "run.zip")
    again = hm.load(tmp_path / "run.zip")
    assert str(again.layer) == str(run.layer)
    assert again.seed == run.seed
    if kind == "own":
        assert isinstance(again.layer, StoredLayer)
    else:
        assert np.array_equal(hm.simulate(start, again.layer.flow, time=0.2, random_state=1).tokens, run.tokens)


def test_clusters_of_steps_with_a_finite_sum_end_short_of_the_leaders() -> None:
    layer = hm.HardmaxLayer(alpha=hm.GeometricSteps(0.5, ratio=0.5))
    limit = hm.equilibrium(TOKENS, layer)
    for found in (hm.clusters(limit), hm.clusters(hm.simulate(TOKENS, layer, depth=60))):
        assert found.kinds.count("vertex") == len(limit.leaders)
        assert found.kinds.count("short") == len(TOKENS) - len(limit.leaders)
        np.testing.assert_allclose(found.centres[found.cluster_of], limit.positions, atol=1e-12)
    long = hm.clusters(hm.equilibrium(TOKENS, hm.HardmaxLayer(alpha=hm.PowerSteps(0.5, power=1.0))))
    assert set(long.kinds) == {"vertex"}


@pytest.mark.parametrize("causal", [False, True])
def test_clusters_of_several_heads_lie_between_their_leaders(causal: bool) -> None:
    tokens = hm.make_tokens("gaussian", 200, 2, random_state=0)
    layer = hm.HardmaxLayer(heads=[np.diag([1.0, 3.0]), np.diag([3.0, 1.0])], causal=causal)
    limit = hm.equilibrium(tokens, layer, max_layers=12)
    found = hm.clusters(limit)
    decided = limit.decided_at >= 0
    np.testing.assert_allclose(found.centres[found.cluster_of][decided], limit.positions[decided], atol=1e-12)
    assert "face" in found.kinds
    for cluster in found:
        if cluster.kind == "face":
            assert cluster.leaders.tolist() == sorted(set(limit.choices[:, cluster.members[0]].tolist()))
    again = hm.clusters(hm.simulate(tokens, layer, depth=int(limit.layers)))
    assert np.array_equal(again.cluster_of[decided][:, None] == again.cluster_of[decided],
                          found.cluster_of[decided][:, None] == found.cluster_of[decided])  # fmt: skip
    pairs = {(int(leader), token) for head in limit.choices for token, leader in enumerate(head) if leader >= 0}
    counted = [sum(leader == one and token != one for leader, token in pairs) for one in limit.leaders.tolist()]
    assert hm.leaders(limit).followers.tolist() == counted
