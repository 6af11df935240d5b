"""The kernels of the GPU, run here by Triton's interpreter on small inputs, against the plain search.

The interpreter multiplies halves exactly and adds in float32, so what is checked is the logic and the bounds of
rounding; the tensor cores themselves are checked by ``python -m benchmarks.gpu`` where there is a GPU.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from hardmax.attention import kernels, softmax_rows
from hardmax.attention.choice import Ballot, default_tolerance, score
from hardmax.attention.kernels import pair_scores, usable
from hardmax.attention.search import accelerated, attended, auto
from hardmax.attention.search.accelerated import Tiles, best_points, decide_by_kernels
from hardmax.attention.search.margins import tie_margin
from hardmax.errors import InputError
from hardmax.meanfield import evaluation

pytest.importorskip("triton")

TOLERANCE = default_tolerance(torch.float64)
SMALL = Tiles(rows=16, block=16, warps=4, stages=2)


def tokens_of(kind: str, n: int, d: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    gaussian = torch.randn(n, d, generator=generator, dtype=torch.float64)
    if kind == "sphere":
        return torch.nn.functional.normalize(gaussian, dim=1)
    if kind == "lattice":
        return torch.randint(-2, 3, (n, d), generator=generator).double()
    if kind == "far":
        return gaussian * torch.logspace(-3, 3, n, dtype=torch.float64)[:, None] + 5.0
    return gaussian


def assert_same_choice(queries: torch.Tensor, points: torch.Tensor, **options: object) -> None:
    ballot = Ballot(queries, points, TOLERANCE)
    margin = tie_margin(TOLERANCE, points.shape[1])
    found = best_points(queries, points, margin, TOLERANCE, tiles=SMALL, **options)
    ballot.record(found.rows, found.first, found.best, found.tied, found.members)
    ours, plain = ballot.choice(), attended(queries, points, tolerance=TOLERANCE, method="dense")
    for field in ("first", "best", "everyone", "tied", "offsets", "members"):
        assert torch.equal(getattr(ours, field), getattr(plain, field)), field


@pytest.mark.parametrize("prune", [False, True])
@pytest.mark.parametrize(("kind", "d"), [("gaussian", 1), ("sphere", 2), ("lattice", 2), ("gaussian", 3), ("far", 7)])
def test_same_choice_as_the_plain_search(kind: str, d: int, prune: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accelerated, "_FIRST_BLOCKS", 1)
    monkeypatch.setattr(accelerated, "_FURTHER", 2)
    points = tokens_of(kind, 70, d)
    assert_same_choice(points[:37], points, prune=prune)


def test_zero_queries_and_repeated_points() -> None:
    points = torch.cat([tokens_of("gaussian", 20, 3)] * 2 + [torch.zeros(2, 3, dtype=torch.float64)])
    assert_same_choice(points, points, prune=False)
    assert_same_choice(points, points, prune=True)


def test_rows_with_too_many_blocks_are_screened_again_finer() -> None:
    # Points on a small arc in 6 dimensions: half precision cannot tell them apart.
    angle = torch.linspace(0, 1e-3, 60, dtype=torch.float64)
    flat = torch.stack([angle.cos(), angle.sin()], dim=1)
    points = flat[torch.randperm(60, generator=torch.Generator().manual_seed(0))] @ tokens_of("gaussian", 2, 6)
    assert_same_choice(points, points, prune=False, most_visits=1)


@pytest.mark.parametrize("prune", [False, True])
def test_portions_give_the_same_choice(prune: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    # With pruning, the first portion tells for how many blocks largest scores are kept; the last rows need more.
    monkeypatch.setattr(accelerated, "_FIRST_BLOCKS", 1)
    points = tokens_of("gaussian", 60, 3)
    queries = torch.cat([points[:16] * 100, points[16:50] @ torch.diag(torch.tensor([1.0, 1e-3, 1.0]).double())])
    assert_same_choice(queries, points, prune=prune, maxima_at_once=64)


def test_too_little_memory_says_how_much_would_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_memory(*_: object) -> None:
        raise torch.OutOfMemoryError

    monkeypatch.setattr(accelerated._Screen, "decide", no_memory)
    points = tokens_of("gaussian", 40, 3)
    with pytest.raises(InputError, match=r"do not fit into the memory of the device.*GiB"):
        best_points(points, points, 1e-14, TOLERANCE, tiles=SMALL)


def test_less_memory_is_tried_before_giving_up(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    real = accelerated._Screen.decide

    def decide(self: accelerated._Screen, some: slice) -> object:
        asked.append(some.stop - some.start)
        if asked[-1] > 16:
            raise torch.OutOfMemoryError
        return real(self, some)

    monkeypatch.setattr(accelerated._Screen, "decide", decide)
    points = tokens_of("gaussian", 40, 3)
    assert_same_choice(points, points, prune=False)
    assert asked[0] == 40
    assert max(asked[-3:]) <= 16


def test_pair_scores_have_the_same_bits() -> None:
    left, right = tokens_of("far", 50, 9), tokens_of("gaussian", 50, 9, seed=1)
    assert torch.equal(pair_scores(left, right), score(left, right))


@pytest.mark.parametrize("d", [1, 2, 3, 4, 5, 16])
@pytest.mark.parametrize("beta", [1.0, 300.0])
def test_softmax_means(d: int, beta: float, monkeypatch: pytest.MonkeyPatch) -> None:
    # The interpreter does not know products in bfloat16.
    monkeypatch.setattr(softmax_rows, "_WEIGHT_PIECES", torch.float32)
    monkeypatch.setattr(softmax_rows, "_CHUNK", 64)
    points = tokens_of("sphere", 50, d).float()
    weights = torch.rand(50, generator=torch.Generator().manual_seed(3), dtype=torch.float64) + 0.1
    queries = beta * points[:20]
    for mass in (None, weights):
        logits = queries.double() @ points.double().T + (0.0 if mass is None else mass.log())
        expected = torch.softmax(logits, dim=1) @ points.double()
        found = softmax_rows.softmax_means(queries, points, mass)
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=0, atol=2e-6 * max(1.0, beta / 10))


def test_the_search_takes_the_kernels_where_they_can_run(monkeypatch: pytest.MonkeyPatch) -> None:
    points = tokens_of("lattice", 24, 3)
    plain = attended(points, points, tolerance=TOLERANCE)
    taken = []

    def decide(*given: object) -> None:
        taken.append(len(given))
        decide_by_kernels(*given)

    monkeypatch.setattr(kernels, "usable", lambda device: True)
    monkeypatch.setattr(auto, "decide_by_kernels", decide)
    found = attended(points, points, tolerance=TOLERANCE)
    assert taken
    for field in ("first", "best", "everyone", "tied", "offsets", "members"):
        assert torch.equal(getattr(found, field), getattr(plain, field)), field


def test_attention_on_the_sphere_takes_the_kernels_where_they_can_run(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = tokens_of("sphere", 40, 3)
    mass = torch.linspace(0.5, 1.0, 40, dtype=torch.float64)
    plain = evaluation._in_torch(8.0 * keys, keys, mass, torch.float64)
    taken = []

    def means(*given: object) -> torch.Tensor:
        taken.append(len(given))
        return softmax_means(*given)

    softmax_means = softmax_rows.softmax_means
    monkeypatch.setattr(kernels, "usable", lambda device: True)
    monkeypatch.setattr(softmax_rows, "softmax_means", means)
    found = evaluation._in_torch(8.0 * keys, keys, mass, torch.float32)
    assert taken
    np.testing.assert_allclose(found.numpy(), plain.numpy(), rtol=0, atol=2e-6)


def test_kernels_are_for_gpus_only() -> None:
    assert not usable(torch.device("cpu"))
