"""Optimiser steps: sparse rows against the dense rule, and bounds on word positions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hardmax.text import LeaderClassifier
from hardmax.text.recipes import Recipe
from hardmax.text.training.adam import RowAdam
from hardmax.text.training.optimiser_step import Bounds
from made_up_texts import opinions

TEXTS, LABELS = opinions(300)


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 10_000))
def test_row_adam_agrees_with_the_dense_rule(seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = torch.from_numpy(rng.normal(size=(7, 2)))
    position, square = table.numpy().copy(), np.zeros((7, 2))
    adam = RowAdam(table, RowAdam.zero_moments(table), 0)
    for step in range(1, 9):
        rows = rng.integers(0, 7, size=5)
        gradients = rng.normal(size=(5, 2))
        adam.step(0.1, torch.from_numpy(rows), torch.from_numpy(gradients))
        total = np.zeros((7, 2))
        for row, gradient in zip(rows, gradients, strict=True):
            total[row] += gradient
        square = 0.999 * square + 0.001 * total**2
        position -= 0.1 * total / (np.sqrt(square / (1 - 0.999**step)) + 1e-8)
        np.testing.assert_allclose(table.numpy(), position, rtol=1e-10)


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10_000), st.integers(1, 4), st.floats(0.0, 2.0), st.floats(0.0, 2.0))
def test_projection_changes_only_words_outside_the_bounds(seed: int, d: int, cone: float, tether: float) -> None:
    rng = np.random.default_rng(seed)
    home, points = torch.from_numpy(rng.normal(size=(6, d))), torch.from_numpy(rng.normal(size=(6, d)))
    decoder, rows = torch.from_numpy(rng.normal(size=(1, d))), torch.arange(6)
    axis = decoder[0] / decoder[0].norm()
    roped = Bounds(home, math.inf, tether).project(points, rows, decoder)
    assert ((roped - home).norm(dim=1) <= tether + 1e-9).all()
    near = (points - home).norm(dim=1) < tether - 1e-9
    torch.testing.assert_close(roped[near], points[near])
    coned = Bounds(home, cone, math.inf).project(points, rows, decoder)
    along, across = coned @ axis, coned - (coned @ axis)[:, None] * axis
    assert (across.norm(dim=1) <= cone * along.abs() + 1e-9).all()
    torch.testing.assert_close(along, points @ axis)
    free = Bounds(home, math.inf, math.inf)
    assert not free.active
    torch.testing.assert_close(free.project(points, rows, decoder), points)


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 10_000), st.floats(0.1, 2.0))
def test_separate_words_stay_on_their_coordinates(seed: int, tether: float) -> None:
    rng = np.random.default_rng(seed)
    home = torch.from_numpy(rng.normal(size=(6, 3)) * rng.integers(0, 2, size=(6, 3)))
    points, rows = torch.from_numpy(rng.normal(size=(6, 3))), torch.arange(6)
    kept = Bounds(home, math.inf, math.inf, separate=True).project(points, rows, torch.ones(1, 3))
    torch.testing.assert_close(kept, torch.where(home == 0, 0.0, points))
    roped = Bounds(home, math.inf, tether, separate=True).project(points, rows, torch.ones(1, 3))
    assert (roped[home == 0] == 0).all()
    assert ((roped - home).norm(dim=1) <= tether + 1e-9).all()


@pytest.mark.parametrize("momentum", [False, True])
def test_no_word_follows_the_other_class(momentum: bool) -> None:
    recipe = Recipe(momentum=momentum, dim=3, epochs=20, cone=0.9)
    fitted = LeaderClassifier(random_state=0, recipe=recipe).fit(TEXTS, LABELS)
    points, decoder = fitted.network_.embedding.numpy(), fitted.network_.decoder.numpy()[0]
    along = points @ decoder / np.linalg.norm(decoder)
    across = np.linalg.norm(points - along[:, None] * decoder / np.linalg.norm(decoder), axis=1)
    assert (across <= 0.9 * np.abs(along) + 1e-9).all()
    side = dict(zip(fitted.words(), np.sign(along), strict=True))
    for text in TEXTS[:30]:
        told = fitted.explain(text)
        assert all(side[told.words[k]] == side[told.words[head]] for k, head in enumerate(told.follows))


def test_without_bounds_words_move_farther() -> None:
    def span(**settings: float) -> float:
        fitted = LeaderClassifier(random_state=0, epochs=12, learning_rate=0.1, **settings).fit(TEXTS, LABELS)
        return float(fitted.network_.embedding.norm(dim=1).max())

    assert span(tether=0.1) < span(tether=math.inf)


@pytest.mark.parametrize("settings", [{}, {"momentum": True}, {"temperature": 0.1}, {"device": "cpu"}])
def test_a_bias_that_is_not_learned_is_zero(settings: dict[str, Any]) -> None:
    own = dict(settings)
    where = own.pop("device", None)
    labels = [1] * len(LABELS[:30]) + list(LABELS[30:])  # more of one class, so that a bias would be learned
    free, fixed = (
        LeaderClassifier(random_state=0, device=where, recipe=Recipe(epochs=4, learn_bias=learned, **own)).fit(
            TEXTS, labels
        )
        for learned in (True, False)
    )
    assert float(free.network_.bias.abs().max()) > 0
    assert float(fixed.network_.bias.abs().max()) == 0
