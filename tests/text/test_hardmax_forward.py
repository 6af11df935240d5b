"""Hardmax layers on many documents at once, against the simulator on each document."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import hardmax as hm
from hardmax.text.model import hardmax_forward
from hardmax.text.model.hardmax_forward import attention_path, final_positions, positions_by_layer
from helpers import examples


def _documents(seed: int, d: int, most: int = 12) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, most, size=6)
    return rng.normal(size=(int(sizes.sum()), d)), np.concatenate([[0], np.cumsum(sizes)])


@settings(deadline=None, max_examples=examples(60))
@given(st.integers(0, 10_000), st.integers(1, 4), st.sampled_from([0.1, 0.5, 1.0, 3.0]), st.integers(1, 9))
def test_agrees_with_the_simulator(seed: int, d: int, alpha: float, depth: int) -> None:
    points, starts = _documents(seed, d)
    path = attention_path(points, starts, alpha=alpha, depth=depth)
    final = final_positions(torch.from_numpy(points), path, alpha, depth).numpy()
    every = positions_by_layer(points, path, alpha, depth)
    np.testing.assert_allclose(every[-1], final, atol=1e-12)
    for begin, end in itertools.pairwise(starts):
        if begin == end:
            continue
        run = hm.simulate(points[begin:end], hm.HardmaxLayer(alpha=alpha), depth=depth)
        np.testing.assert_allclose(every[:, begin:end], run.tokens, atol=1e-12)
        decided = path.decided_at[begin:end]
        leading = path.leaders[begin:end]
        limit = hm.equilibrium(points[begin:end], hm.HardmaxLayer(alpha=alpha))
        assert set(np.flatnonzero(leading)) <= set(np.asarray(limit.leaders).tolist())
        np.testing.assert_array_equal(path.follows[begin:end][decided >= 0] - begin, limit.follows[decided >= 0])


def test_the_search_in_large_documents_agrees(monkeypatch: pytest.MonkeyPatch) -> None:
    points, starts = _documents(3, 3, most=60)
    usual = attention_path(points, starts, alpha=0.3, depth=8)
    monkeypatch.setattr(hardmax_forward, "_LARGE", 5)
    other = attention_path(points, starts, alpha=0.3, depth=8)
    np.testing.assert_array_equal(usual.follows, other.follows)


@settings(deadline=None, max_examples=examples(20))
@given(st.integers(0, 10_000), st.integers(1, 3))
def test_gradients_of_final_positions(seed: int, d: int) -> None:
    points, starts = _documents(seed, d)
    path = attention_path(points, starts, alpha=0.4, depth=5)
    start = torch.tensor(points, requires_grad=True)
    alpha = torch.tensor(0.4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda z, a: final_positions(z, path, a, 5), (start, alpha))


@settings(deadline=None, max_examples=examples(40))
@given(st.integers(0, 10_000), st.integers(2, 4), st.sampled_from([0.5, 1.0]))
def test_on_axes_agrees_with_the_simulator(seed: int, d: int, alpha: float) -> None:
    points, starts = _documents(seed, d, most=20)
    axis = np.random.default_rng(seed).integers(0, d, size=len(points))
    points *= np.arange(d) == axis[:, None]
    path = attention_path(points, starts, alpha=alpha, depth=6)
    assert len(path.stages) == 1  # settled without a search
    every = positions_by_layer(points, path, alpha, 6)
    for begin, end in itertools.pairwise(starts):
        if begin < end:
            run = hm.simulate(points[begin:end], hm.HardmaxLayer(alpha=alpha), depth=6)
            np.testing.assert_allclose(every[:, begin:end], run.tokens, atol=1e-12)


def test_documents_without_words() -> None:
    for d in (1, 2, 3):
        path = attention_path(np.empty((0, d)), np.array([0, 0, 0]), alpha=1.0, depth=3)
        assert len(path.follows) == 0


@settings(deadline=None, max_examples=examples(60))
@given(st.integers(0, 10_000), st.floats(0.0, 1.0), st.booleans())
def test_certain_choices_in_the_plane_are_right(seed: int, spread: float, double: bool) -> None:
    points, starts = _documents(seed, 2, most=30)
    points[:, 1] *= spread
    if not double:
        points = points.astype(np.float32)
    choice, certain = hardmax_forward._attended_in_plane(points, starts)
    for begin, end in itertools.pairwise(starts):
        if begin == end:
            continue
        exact = points[begin:end].astype(np.float64)
        scores = exact @ exact.T
        best = scores.max(axis=1)
        chosen = scores[np.arange(end - begin), choice[begin:end] - begin]
        room = (1e-12 if double else 1e-5) * np.abs(scores).max()
        assert (chosen >= best - room)[certain[begin:end]].all()
    if spread < 0.01 and len(points):
        assert certain.mean() > 0.8
