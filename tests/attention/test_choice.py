"""Scores and queries are sums in the order of the coordinates, whatever the size of the input."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import hardmax as hm
from hardmax.attention import attended
from hardmax.attention import choice as choice_module
from hardmax.attention.choice import apply, length, score


def _drawn(*shape: int) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(shape).normal(size=shape))


@pytest.mark.parametrize(("n", "d"), [(1, 1), (9, 3), (700, 5), (40, 64)])
def test_sums_go_by_coordinate(n: int, d: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice_module, "_IN_CACHE", 100)
    A, tokens, others = _drawn(d, d), _drawn(n, d), _drawn(n, d, 1)[:, :, 0]
    queries, scores = apply(A, tokens).tolist(), score(tokens, others).tolist()
    for i in range(n):
        z, y = tokens[i].tolist(), others[i].tolist()
        total = z[0] * y[0]
        for k in range(1, d):
            total = total + z[k] * y[k]
        assert scores[i] == total
        for row in range(d):
            a = A[row].tolist()
            total = a[0] * z[0]
            for k in range(1, d):
                total = total + a[k] * z[k]
            assert queries[i][row] == total
    assert torch.equal(length(tokens), score(tokens, tokens).sqrt())


def test_a_diagonal_matrix_scales_the_coordinates() -> None:
    tokens = _drawn(50, 3)
    diagonal = torch.tensor([1.0, -2.5, 0.0], dtype=torch.float64)
    assert torch.equal(apply(torch.diag(diagonal), tokens), tokens * diagonal)


@pytest.mark.parametrize("size", [5e-324, 1.7e308])
def test_scores_beyond_the_range_of_floats(size: float) -> None:
    """The largest score of the smallest and largest numbers underflows to zero or overflows; it is never NaN."""
    points = torch.tensor([[size, 0.0], [0.0, size]], dtype=torch.float64)
    choice = attended(points, points, tolerance=1e-14)
    assert choice.first.tolist() == [0, 1]
    assert choice.best.tolist() == [size * size] * 2
    across = attended(torch.tensor([[0.0, size]], dtype=torch.float64), points[:1], tolerance=1e-14)
    assert across.best.tolist() == [0.0]
    layer = hm.HardmaxLayer(A=np.eye(2) * 1e300)
    assert layer.choose(1e300 * torch.eye(2, dtype=torch.float64)).best.tolist() == [np.inf, np.inf]
