from __future__ import annotations

import time

import numpy as np
import pytest

import hardmax as hm


@pytest.fixture
def tokens() -> np.ndarray:
    return np.random.default_rng(8).normal(size=(60, 2))


def test_what_is_kept_is_what_was_asked_for(tokens: np.ndarray) -> None:
    layer = hm.HardmaxLayer(0.5)
    everything = hm.simulate(tokens, layer, depth=20)
    assert everything.layers.tolist() == list(range(21))
    for keep, layers in (("last", [20]), (hm.Every(6), [0, 6, 12, 18, 20]), ([3, 0, 11], [0, 3, 11])):
        run = hm.simulate(tokens, layer, depth=20, keep=keep)
        assert run.layers.tolist() == layers
        np.testing.assert_array_equal(run.tokens, everything.tokens[layers])


def test_deep_layers_cost_no_more_than_the_limit(tokens: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> None:
    from hardmax.dynamics import process

    searches = []
    search = process.attended
    monkeypatch.setattr(process, "attended", lambda *a, **k: searches.append(1) or search(*a, **k))
    hm.equilibrium(tokens)
    for_the_limit = len(searches)
    searches.clear()
    hm.simulate(tokens, hm.HardmaxLayer(), depth=100_000, keep=[100_000])
    assert len(searches) == for_the_limit


def test_stop_rules_end_a_run_with_a_sentence(tokens: np.ndarray) -> None:
    run = hm.simulate(tokens, hm.HardmaxLayer(0.5), depth=100, stop=hm.Decided())
    assert run.outcome.ending is hm.Ending.STOPPED
    assert "every token is decided" in run.outcome.sentence
    assert run.layers[-1] == run.leadership.decided_at.max()
    growing = hm.FeedForwardLayer(U=[[0.0, 0.0]], b=[0.0], W=[[0.0], [0.0]], eta=2.0)
    run = hm.simulate(tokens, growing, depth=100, stop=[hm.Decided(), hm.Bound(1e3)])
    assert "passed the bound 1e+03" in run.outcome.sentence
    assert np.abs(run.tokens[-2]).max() <= 1e3 < np.abs(run.final).max()


def test_divergence_keeps_the_layers_before_it(tokens: np.ndarray) -> None:
    growing = hm.FeedForwardLayer(U=[[0.0, 0.0]], b=[0.0], W=[[0.0], [0.0]], eta=1e60)
    for keep in ("all", "last"):
        run = hm.simulate(tokens, growing, depth=100, keep=keep)
        assert run.outcome.ending is hm.Ending.DIVERGED
        assert not run.outcome.ok
        assert "layers up to 5 are returned" in run.outcome.sentence
        assert run.layers[-1] == 5
        assert np.isfinite(run.tokens).all()


def test_a_run_out_of_time_gives_back_what_there_is(tokens: np.ndarray) -> None:
    # The monotonic clock counts from some time before this test, so a budget is a difference of two of its times.
    in_time = hm.simulate(tokens, hm.SoftmaxLayer(), depth=3, seconds=max(60.0, 0.5 * time.monotonic()))
    assert in_time.layers[-1] == 3
    run = hm.simulate(tokens, hm.SoftmaxLayer(), depth=10_000, keep="last", seconds=1e-6)
    assert run.outcome.ending is hm.Ending.OUT_OF_TIME
    assert len(run) == 1
    assert run.layers[0] < 10_000


def test_layer_zero_is_the_input(tokens: np.ndarray) -> None:
    run = hm.simulate(tokens, hm.HardmaxLayer(), depth=0)
    np.testing.assert_array_equal(run.tokens, tokens[None])
    assert run.outcome.ending is hm.Ending.DEPTH_REACHED


def test_the_trajectory_as_a_labelled_dataset(tokens: np.ndarray) -> None:
    weights = np.arange(1.0, 61.0)
    run = hm.simulate(tokens, hm.HardmaxLayer(0.5), depth=4, weights=weights)
    data = run.to_xarray()
    assert dict(data.sizes) == {"layer": 5, "token": 60, "coordinate": 2, "leader": len(run.leadership.leaders)}
    np.testing.assert_array_equal(data.tokens.sel(layer=3), run.tokens[3])
    np.testing.assert_array_equal(data.weights, weights)
    np.testing.assert_array_equal(data.follows, run.leadership.follows)
    assert data.attrs["outcome"] == "depth reached"
    assert "60 tokens in 2 dimensions, 5 states stored" in str(run)


def test_bad_arguments_are_named(tokens: np.ndarray) -> None:
    layer = hm.HardmaxLayer()
    with pytest.raises(hm.InputError, match="layer must be a layer, got 0.5"):
        hm.simulate(tokens, 0.5, depth=3)
    with pytest.raises(hm.InputError, match="depth must be a whole number, at least 0, got -1"):
        hm.simulate(tokens, layer, depth=-1)
    with pytest.raises(hm.InputError, match=r"keep must list layers from 0 to depth = 3, got \[2, 9\]"):
        hm.simulate(tokens, layer, depth=3, keep=[2, 9])
    with pytest.raises(hm.InputError, match="keep is not understood"):
        hm.simulate(tokens, layer, depth=3, keep="some")
    with pytest.raises(hm.InputError, match=r"keep must fit in 8 GB of memory, got .*ToDisk"):
        hm.simulate(tokens, layer, depth=10**9)
    with pytest.raises(hm.InputError, match="step must be a whole number, at least 1"):
        hm.Every(0)
    with pytest.raises(hm.InputError, match="limit must be positive"):
        hm.Bound(-1.0)
    with pytest.raises(hm.InputError, match="seconds must be positive"):
        hm.simulate(tokens, layer, depth=3, seconds=0)
    with pytest.raises(hm.InputError, match="tokens look transposed"):
        hm.simulate(tokens.T[:, :].repeat(2, axis=1), layer, depth=3)


def test_as_many_coordinates_as_are_common_do_not_look_transposed() -> None:
    assert hm.simulate(np.ones((3, 64)), hm.HardmaxLayer(), depth=1).final.shape == (3, 64)
    with pytest.raises(hm.InputError, match="tokens look transposed"):
        hm.simulate(np.ones((3, 65)), hm.HardmaxLayer(), depth=1)
