"""Tokens split over processes, run as threads: the same results, to the last bit where tokens are decided."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import hardmax as hm
from hardmax.attention.search import attended
from hardmax.distributed import ALONE, Processes
from hardmax.dynamics.distributed import SplitProcess, SplitSearch, start_split
from helpers import PLANE_LAYERS, SHEARED, examples, spd
from threads import with_processes


def assert_same_limit(split: hm.Equilibrium, whole: hm.Equilibrium) -> None:
    for name in ("leaders", "emerged_at", "follows", "decided_at", "positions"):
        np.testing.assert_array_equal(getattr(split, name), getattr(whole, name), err_msg=name)
    assert {t: m.tolist() for t, m in split.ties.items()} == {t: m.tolist() for t, m in whole.ties.items()}
    assert (split.layers, str(split.outcome)) == (whole.layers, str(whole.outcome))
    assert split.assumptions == whole.assumptions


def equilibria(count: int, tokens: np.ndarray, layer: hm.HardmaxLayer, **options: object) -> list[hm.Equilibrium]:
    def work(ranks: Processes) -> hm.Equilibrium:
        return hm.equilibrium(ranks.share(tokens), layer, processes=ranks, max_layers=200, **options)

    return with_processes(count, work)


@pytest.mark.parametrize(
    ("law", "n", "d", "matrix", "count"),
    [
        ("gaussian", 20_000, 2, "identity", 2),
        ("gaussian", 26_000, 3, "random-spd", 3),
        ("ball", 20_000, 2, "random", 2),
        ("clusters", 17_000, 2, "rotation", 2),
        ("heavy-tails", 20_000, 2, "random-spd", 2),
        ("grid", 900, 2, "identity", 4),
        ("sphere", 500, 3, "identity", 2),
        ("gaussian", 2_100, 6, "random", 2),
    ],
)
def test_the_limit_is_the_same(law: str, n: int, d: int, matrix: str, count: int) -> None:
    tokens = hm.make_tokens(law, n, d, random_state=1)
    layer = hm.HardmaxLayer(0.5, hm.make_matrix(matrix, d, random_state=2))
    whole = hm.equilibrium(tokens, layer, max_layers=200)
    for split in equilibria(count, tokens, layer):
        assert_same_limit(split, whole)


@settings(deadline=None, max_examples=examples(12))
@given(
    seed=st.integers(0, 2**20),
    n=st.integers(4, 60),
    d=st.integers(1, 4),
    count=st.sampled_from([2, 4]),
    coarse=st.booleans(),
    definite=st.booleans(),
)
def test_small_and_tie_rich_systems(seed: int, n: int, d: int, count: int, coarse: bool, definite: bool) -> None:
    rng = np.random.default_rng(seed)
    tokens = rng.integers(-2, 3, (n, d)).astype(float) if coarse else rng.normal(size=(n, d))
    A = np.eye(d) if coarse else spd(rng, d) if definite else rng.normal(size=(d, d))
    layer = hm.HardmaxLayer(0.5, A)
    for split in equilibria(count, tokens, layer):
        assert_same_limit(split, hm.equilibrium(tokens, layer, max_layers=200))


def test_repeated_tokens_on_several_processes_are_one_point() -> None:
    tokens = hm.make_tokens("gaussian", 10_000, 2, random_state=3)
    tokens = np.concatenate([tokens, tokens[::-1], tokens[:50]])
    weights = np.random.default_rng(0).uniform(0.5, 2.0, len(tokens))
    layer = hm.HardmaxLayer(0.5)
    whole = hm.equilibrium(tokens, layer, weights=weights)

    def work(ranks: Processes) -> tuple[hm.Equilibrium, bool]:
        own, mine = ranks.share(tokens), ranks.share(weights)
        started = start_split(ranks, torch.from_numpy(own), torch.from_numpy(mine), layer)
        return hm.equilibrium(own, layer, weights=mine, processes=ranks), isinstance(started, SplitProcess)

    for split, has_local_tokens in with_processes(2, work):
        assert has_local_tokens
        assert_same_limit(split, whole)
        np.testing.assert_array_equal(split.weights, weights)


def test_a_token_that_listens_to_everybody() -> None:
    tokens = hm.make_tokens("gaussian", 20_000, 2, random_state=3)
    tokens[7] = 0.0
    for split in equilibria(2, tokens, hm.HardmaxLayer(0.5)):
        assert_same_limit(split, hm.equilibrium(tokens, hm.HardmaxLayer(0.5)))


def test_only_candidates_travel_in_few_dimensions() -> None:
    tokens = hm.make_tokens("gaussian", 60_000, 2, random_state=0)

    def work(ranks: Processes) -> tuple[int, int]:
        own = torch.from_numpy(ranks.share(tokens))
        started = start_split(ranks, own, torch.ones(len(own), dtype=torch.float64), hm.HardmaxLayer(0.5))
        assert isinstance(started, SplitProcess)
        return ranks.received, len(started.local_rows)  # type: ignore[attr-defined]

    for received, local in with_processes(2, work):
        assert received < 8 * len(tokens) + 0.5 * tokens.nbytes  # the test for repeated tokens, and half the rest
        assert local > 0.7 * len(tokens) / 2


def test_a_split_search_is_the_search() -> None:
    rng = np.random.default_rng(0)
    points = torch.from_numpy(rng.integers(-3, 4, (400, 3)).astype(float))
    whole = attended(points, points, tolerance=1e-13)
    for split in with_processes(3, lambda ranks: SplitSearch(ranks, worthwhile=0)(points, points, tolerance=1e-13)):
        for name in ("first", "best", "everyone", "tied", "offsets", "members"):
            assert torch.equal(getattr(split, name), getattr(whole, name)), name


@pytest.mark.parametrize("layer", PLANE_LAYERS, ids=str)
def test_every_layer_runs_split(layer: hm.AbstractLayer) -> None:
    tokens = np.random.default_rng(5).normal(size=(41, 2))
    weights = np.random.default_rng(6).uniform(0.5, 2.0, 41)
    whole = hm.simulate(tokens, layer, depth=6, weights=weights)

    def work(ranks: Processes) -> hm.Trajectory:
        return hm.simulate(ranks.share(tokens), layer, depth=6, weights=ranks.share(weights), processes=ranks)

    for split in with_processes(2, work):
        np.testing.assert_allclose(split.tokens, whole.tokens, rtol=1e-12, atol=1e-12)
        assert str(split.outcome) == str(whole.outcome)
        np.testing.assert_array_equal(split.layers, whole.layers)


@pytest.mark.parametrize("n", [60, 20_000])
def test_layers_of_a_split_hardmax_run(n: int) -> None:
    tokens = hm.make_tokens("gaussian", n, 2, random_state=1)
    layer = hm.HardmaxLayer(0.5)
    whole = hm.simulate(tokens, layer, depth=12, keep=[0, 1, 3, 12], stop=hm.Bound(100.0))

    def work(ranks: Processes) -> hm.Trajectory:
        return hm.simulate(
            ranks.share(tokens), layer, depth=12, keep=[0, 1, 3, 12], stop=hm.Bound(100.0), processes=ranks
        )

    for split in with_processes(2, work):
        np.testing.assert_array_equal(split.tokens, whole.tokens)
        np.testing.assert_array_equal(split.leadership.follows, whole.leadership.follows)


@pytest.mark.parametrize("integrator", ["euler", "residual", "heun", "rk4", "adaptive"])
@pytest.mark.parametrize(
    "flow",
    [
        hm.SphereFlow(B=np.diag([2.0, 1.0, 0.5]), V=np.diag([1.0, 0.5, 2.0]), beta=6.0, few_tokens="ignore"),
        hm.SphereFlow(B=[[1.0, 0.4, 0.0], [-0.2, 1.0, 0.0], [0.0, 0.3, 1.0]], beta=np.inf),
        hm.SphereHardmaxFlow(),
    ],
    ids=str,
)
def test_sphere_flows(flow: hm.AbstractFlow, integrator: str) -> None:
    tokens = hm.fibonacci_sphere(151).points
    options = {"time": 0.5, "step": 0.1, "integrator": integrator}
    whole = hm.simulate(tokens, flow, **options)
    for split in with_processes(2, lambda r: hm.simulate(r.share(tokens), flow, processes=r, **options)):
        np.testing.assert_allclose(split.tokens, whole.tokens, rtol=0, atol=1e-12)
        np.testing.assert_allclose(split.times, whole.times)


def test_the_first_process_writes_to_disk(tmp_path: Path) -> None:
    tokens = np.random.default_rng(5).normal(size=(40, 2))

    def work(ranks: Processes) -> hm.Trajectory:
        keep = hm.ToDisk(tmp_path / "run.zarr", every=2)
        return hm.simulate(ranks.share(tokens), hm.HardmaxLayer(), depth=5, keep=keep, processes=ranks)

    runs = with_processes(2, work)
    assert hm.load(tmp_path / "run.zarr").layers.tolist() == [0, 2, 4, 5]
    for run in runs:
        assert run.layers.tolist() == [5]
        np.testing.assert_array_equal(run.tokens, hm.load(tmp_path / "run.zarr").tokens[-1:])


def test_bad_input_in_one_process_is_an_error_in_all() -> None:
    tokens = np.random.default_rng(5).normal(size=(40, 2))
    tokens[3] = np.nan
    said = []

    def work(ranks: Processes) -> None:
        try:
            hm.equilibrium(ranks.share(tokens), processes=ranks)
        except hm.HardmaxError as error:
            said.append(f"{ranks.rank}: {error}")

    with_processes(2, work)
    first, second = sorted(said)
    assert "tokens must be finite" in first
    assert "process 0 stopped: tokens must be finite" in second


def test_processes_must_be_asked_for_the_same() -> None:
    tokens = np.random.default_rng(5).normal(size=(40, 2))
    with pytest.raises(hm.InputError, match="depth must be the same in every process, got 3 in process 0, 4 in"):
        with_processes(
            2, lambda r: hm.simulate(r.share(tokens), hm.HardmaxLayer(), depth=3 + r.rank, processes=r, keep="last")
        )
    with pytest.raises(hm.InputError, match="coordinates must be the same in every process"):
        with_processes(2, lambda r: hm.equilibrium(tokens[:, : 1 + r.rank], processes=r))


def _block(factor: float) -> hm.Block:
    return hm.Block(hm.SoftmaxLayer(), hm.FeedForwardLayer(U=[[1.0, 0.0]], b=[factor], W=[[0.0], [1.0]]))


@pytest.mark.parametrize(
    "layers",
    [
        [hm.HardmaxLayer(0.5, SHEARED), hm.HardmaxLayer(0.5, np.add(SHEARED, [[0.0, 0.0], [0.0, 1e-15]]))],
        [hm.HardmaxLayer(0.5, tolerance=1e-10), hm.HardmaxLayer(0.5, tolerance=1e-9)],
        [hm.HardmaxLayer(0.5, tolerance=1e-10), hm.HardmaxLayer(0.5)],
        [hm.HardmaxLayer(0.5, V=2 * np.eye(2)), hm.HardmaxLayer(0.5, V=3 * np.eye(2))],
        [hm.SoftmaxLayer(V=2 * np.eye(2)), hm.SoftmaxLayer(V=3 * np.eye(2))],
        [_block(0.0), _block(1e-300)],
    ],
    ids=["A", "tolerance", "default tolerance", "V", "softmax V", "block"],
)
def test_layers_that_differ_in_their_numbers_alone_are_refused(layers: list[hm.AbstractLayer]) -> None:
    tokens = np.random.default_rng(5).normal(size=(40, 2))
    assert str(layers[0]) == str(layers[1])
    words = r"layer must be the same in every process, got .* \(numbers \w{8}\) in process 0, .* in process 1: pass"
    with pytest.raises(hm.InputError, match=words):
        with_processes(2, lambda r: hm.simulate(r.share(tokens), layers[r.rank], depth=2, processes=r, keep="last"))
    for run in with_processes(2, lambda r: hm.simulate(r.share(tokens), layers[0], depth=2, processes=r)):
        assert len(run) == 3


def test_flows_and_limits_that_differ_in_a_matrix_are_refused() -> None:
    circle = np.stack([np.cos(np.arange(20.0)), np.sin(np.arange(20.0))], axis=1)
    flows = [hm.SphereFlow(B=np.diag([b, 1.0]), few_tokens="ignore") for b in (2.0, 2.5)]
    with pytest.raises(hm.InputError, match="layer must be the same in every process"):
        with_processes(2, lambda r: hm.simulate(r.share(circle), flows[r.rank], time=0.1, processes=r))
    with pytest.raises(hm.InputError, match="layer must be the same in every process"):
        with_processes(
            2, lambda r: hm.equilibrium(r.share(circle), hm.HardmaxLayer(A=np.diag([1.0, 1.0 + r.rank])), processes=r)
        )


def test_time_runs_out_in_all_processes_at_once() -> None:
    tokens = np.random.default_rng(5).normal(size=(40, 2))
    layer = hm.SoftmaxLayer()
    runs = with_processes(
        2, lambda r: hm.simulate(r.share(tokens), layer, depth=10**6, keep="last", seconds=0.3, processes=r)
    )
    assert runs[0].outcome == runs[1].outcome
    assert runs[0].outcome.ending is hm.Ending.OUT_OF_TIME


def test_one_process_is_no_special_case() -> None:
    tokens = np.random.default_rng(5).normal(size=(40, 2))
    alone = hm.equilibrium(ALONE.share(tokens), processes=ALONE)
    assert_same_limit(alone, hm.equilibrium(tokens))
    with pytest.raises(hm.InputError, match="must be at least one each, got 1 for 2 processes: start fewer"):
        with_processes(2, lambda r: r.share(tokens[:1]))
