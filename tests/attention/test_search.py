"""Every search method gives the answer of the dense oracle, to the last bit, for every query."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hardmax.attention import choice as choice_module
from hardmax.attention.choice import Ballot, Choice, apply, default_tolerance
from hardmax.attention.reference import dense_choice
from hardmax.attention.search import attended, blocks, cells, frames, pool, screens, tree
from hardmax.errors import InputError
from helpers import examples, spd

METHODS = ["auto", "cells", "tree", "pruned", "dense"]
TOLERANCE = default_tolerance(torch.float64)
FIELDS = ["first", "best", "everyone", "tied", "offsets", "members"]


def assert_same(found: Choice, wanted: Choice) -> None:
    for field in FIELDS:
        assert torch.equal(getattr(found, field), getattr(wanted, field)), field


def tensor(array: object) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(np.asarray(array, dtype=np.float64)))


def generator(name: str) -> np.random.Generator:
    return np.random.default_rng(sum(map(ord, name)))


def gaussian(n: int, d: int) -> np.ndarray:
    return generator(f"gaussian {n} {d}").normal(size=(n, d))


def sphere(n: int, d: int) -> np.ndarray:
    points = gaussian(n, d)
    return points / np.linalg.norm(points, axis=1)[:, None]


def grid(side: int, d: int) -> np.ndarray:
    return np.stack(np.meshgrid(*[np.arange(side) - side // 2] * d), axis=-1).reshape(-1, d).astype(float)


def contracted(n: int, d: int, layers: int) -> np.ndarray:
    """A cloud after some layers: tight clusters around the vertices of the hull."""
    points = tensor(gaussian(n, d))
    for _ in range(layers):
        points = (points + points[dense_choice(points, points, TOLERANCE).first]) / 2
    return points.numpy()


def twins(n: int, d: int, gap: float) -> np.ndarray:
    points = gaussian(n, d)
    return np.concatenate([points, points + gap * gaussian(n, d)])


CLOUDS = {
    "one token": np.array([[0.3, -2.0]]),
    "one coordinate, one token": np.array([[-3.0]]),
    "two tokens": np.array([[1.0, 2.0], [-0.5, 1.0]]),
    "two equal tokens": np.array([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]]),
    "a zero token": np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]),
    "only zeros": np.zeros((5, 3)),
    "all equal": np.tile([[0.1, 0.7]], (60, 1)),
    "all equal in 3-D": np.tile([[0.1, 0.7, -0.2]], (60, 1)),
    "gaussian 1": gaussian(1500, 1),
    "gaussian 2": gaussian(3000, 2),
    "gaussian 3": gaussian(3000, 3),
    "gaussian 4": gaussian(2500, 4),
    "gaussian 5": gaussian(2000, 5),
    "gaussian 8": gaussian(2000, 8),
    "gaussian 16": gaussian(1500, 16),
    "gaussian 33": gaussian(700, 33),
    "gaussian 64": gaussian(500, 64),
    "gaussian 100": gaussian(300, 100),
    "cube 2": generator("cube").uniform(-1, 1, (2500, 2)),
    "cube 3": generator("cube").uniform(-1, 1, (2500, 3)),
    "heavy tails": generator("tails").standard_cauchy((2000, 3)),
    "needle": gaussian(2000, 3) * [1.0, 1e-4, 1e-9],
    "circle": sphere(3000, 2),
    "sphere": sphere(3000, 3),
    "sphere 6": sphere(1500, 6),
    "half a circle": sphere(3000, 2) * [1.0, 1.0] * np.sign(sphere(3000, 2)[:, :1]),
    "circle far away": sphere(2000, 2) + np.array([300.0, -40.0]),
    "sphere far away": sphere(2000, 3) + np.array([0.0, -40.0, 1e4]),
    "cloud far away": gaussian(2000, 2) + 1e6,
    "cloud far away, 8 coordinates": gaussian(1500, 8) + 1e3,
    "outside the hull": np.abs(gaussian(2000, 3)) + 0.1,
    "grid 2": grid(31, 2),
    "grid 3": grid(9, 3),
    "grid 4": grid(5, 4),
    "grid 6": grid(3, 6),
    "a side of a grid": grid(31, 2) + np.array([15.0, 0.0]),
    "collinear through zero": np.outer(np.arange(-200, 200), [3.0, -1.0]),
    "collinear": np.outer(np.arange(400), [1.0, 2.0, -1.0]) / 7 + [1.0, 1.0, 1.0],
    "collinear, 10 coordinates": np.outer(gaussian(400, 1)[:, 0], np.arange(10.0)) + 1.0,
    "flat in 3-D": gaussian(1500, 2) @ gaussian(2, 3),
    "flat grid in 3-D": grid(20, 2) @ np.array([[1.0, 0.0, 2.0], [0.0, 1.0, -1.0]]) + [0.0, 0.0, 5.0],
    "1e-9 apart": twins(1000, 2, 1e-9),
    "1e-9 apart in 3-D": twins(1000, 3, 1e-9),
    "1e-14 apart": twins(1000, 2, 1e-14),
    "1e-15 apart, 12 coordinates": twins(600, 12, 1e-15),
    "repeated": np.repeat(gaussian(200, 2), 7, axis=0),
    "one far token": np.concatenate([1e-6 * gaussian(1500, 3), [[1.0, 1.0, 1.0]]]),
    "sizes from 1e-250 to 1": gaussian(400, 2) * 10.0 ** -np.linspace(0, 250, 400)[:, None],
    "after 6 layers": contracted(1500, 2, 6),
    "after 25 layers": contracted(1500, 3, 25),
}


@pytest.mark.parametrize("name", CLOUDS)
def test_every_method_agrees_with_the_oracle(name: str) -> None:
    points = tensor(CLOUDS[name])
    d = points.shape[1]
    rng = generator(name)
    matrices = {"identity": np.eye(d), "positive definite": spd(rng, d), "general": rng.normal(size=(d, d))}
    for kind, A in matrices.items():
        queries = apply(tensor(A), points)
        for tolerance in (TOLERANCE, 0.0) if kind == "identity" else (TOLERANCE,):
            wanted = dense_choice(queries, points, tolerance)
            for method in METHODS:
                assert_same(attended(queries, points, tolerance=tolerance, method=method), wanted)


def test_unit_circle_with_neighbours_a_billionth_apart() -> None:
    angles = np.random.default_rng(3).uniform(0, 2 * math.pi, 7_900)
    angles = np.concatenate([angles, angles[:100] + 1e-9])
    points = tensor(np.stack([np.cos(angles), np.sin(angles)], axis=1))
    queries = apply(tensor([[2.0, 1.0], [1.0, 1.0]]), points)
    wanted = dense_choice(queries, points, TOLERANCE)
    assert len(wanted.tied) > 0
    for method in METHODS:
        assert_same(attended(queries, points, tolerance=TOLERANCE, method=method), wanted)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("m", "n", "d"), [(7, 50_000, 3), (3000, 9, 3), (3000, 3, 12), (1, 1, 4), (300, 20_000, 2)])
def test_few_queries_or_few_points(m: int, n: int, d: int, method: str) -> None:
    queries, points = tensor(gaussian(m, d)), tensor(gaussian(n, d) + 0.2)
    assert_same(attended(queries, points, tolerance=TOLERANCE, method=method), dense_choice(queries, points, TOLERANCE))


@pytest.mark.parametrize("method", METHODS)
def test_no_queries(method: str) -> None:
    found = attended(torch.zeros(0, 3).double(), tensor(gaussian(2000, 3)), tolerance=TOLERANCE, method=method)
    assert len(found) == 0
    assert found.offsets.tolist() == [0]


@pytest.mark.parametrize("method", METHODS)
def test_zero_queries_listen_to_everybody(method: str) -> None:
    points = tensor(gaussian(1200, 3))
    queries = points.clone()
    queries[::3] = 0
    found = attended(queries, points, tolerance=TOLERANCE, method=method)
    assert_same(found, dense_choice(queries, points, TOLERANCE))
    assert found.everyone.tolist() == [i % 3 == 0 for i in range(1200)]
    assert not found.best[::3].any()
    with pytest.raises(LookupError, match="attends to every token"):
        found[0]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("scale", [2.0**-420, 2.0**410])
def test_queries_of_extreme_size(method: str, scale: float) -> None:
    points = tensor(grid(9, 2))
    queries = points.clone()
    queries[::5] *= scale
    assert_same(attended(queries, points, tolerance=TOLERANCE, method=method), dense_choice(queries, points, TOLERANCE))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("of_queries", "of_points"), [(-500, -500), (-500, 500), (500, -900), (-1000, -1000), (900, 0)]
)
def test_sizes_whose_squares_leave_the_range_of_float64(method: str, of_queries: int, of_points: int) -> None:
    points = tensor(grid(7, 2) + 1 / 3)
    plain = dense_choice(points, points, TOLERANCE)
    found = attended(points * 2.0**of_queries, points * 2.0**of_points, tolerance=TOLERANCE, method=method)
    for field in ("first", "everyone", "tied", "offsets", "members"):
        assert torch.equal(getattr(found, field), getattr(plain, field)), field
    exact = [Fraction(best) * Fraction(2) ** (of_queries + of_points) for best in plain.best.tolist()]
    assert found.best.tolist() == [float(best) for best in exact]


def test_points_too_far_apart_are_refused() -> None:
    with pytest.raises(InputError, match="288 orders of magnitude"):
        attended(tensor([[1.0, 1.0]]), tensor([[-1e200, 0.0], [1e-200, 3e-200]]), tolerance=0.0)


@pytest.mark.parametrize("size", [0.0, 1e-200, 1e200])
def test_points_that_are_all_zero(size: float) -> None:
    found = attended(tensor([[size, 1.0]]), tensor(np.zeros((3, 2))), tolerance=TOLERANCE)
    assert found[0].tolist() == [0, 1, 2]


@pytest.mark.parametrize("d", [2, 8])
def test_a_hint_changes_nothing(d: int) -> None:
    points = tensor(gaussian(3000, d))
    wanted = dense_choice(points, points, TOLERANCE)
    for hint in (wanted.first, torch.zeros(3000, dtype=torch.int64), torch.arange(3000)):
        assert_same(attended(points, points, tolerance=TOLERANCE, method="pruned", hint=hint), wanted)


@settings(deadline=None, max_examples=examples(120))
@given(
    st.integers(1, 4).flatmap(
        lambda d: st.lists(st.lists(st.integers(-3, 3), min_size=d, max_size=d), min_size=1, max_size=40)
    ),
    st.sampled_from(METHODS),
    st.sampled_from([0.0, TOLERANCE]),
)
def test_small_integers(rows: list[list[int]], method: str, tolerance: float) -> None:
    points = tensor(rows)
    assert_same(attended(points, points, tolerance=tolerance, method=method), dense_choice(points, points, tolerance))


@settings(deadline=None, max_examples=examples(80))
@given(st.integers(0, 10**9), st.integers(2, 3), st.sampled_from(METHODS))
def test_small_floats_with_near_ties(seed: int, d: int, method: str) -> None:
    rng = np.random.default_rng(seed)
    corners = rng.integers(-2, 3, (6, d)).astype(float)
    gaps = 10.0 ** rng.uniform(-17, -6, (300, 1))
    points = tensor(corners[rng.integers(0, 6, 300)] + gaps * rng.normal(size=(300, d)))
    queries = tensor(np.concatenate([points.numpy(), rng.integers(-2, 3, (60, d))]))
    assert_same(attended(queries, points, tolerance=TOLERANCE, method=method), dense_choice(queries, points, TOLERANCE))


@pytest.mark.parametrize(
    ("module", "names"),
    [
        (blocks, ["_REVISITS_AT_ONCE", "_ROWS_PER_REVISIT"]),
        (frames, ["_SAMPLE"]),
        (cells, ["_QUERIES_AT_ONCE", "_ENTRIES_AT_ONCE", "_PAIRS_AT_ONCE"]),
        (cells, ["_MOST_ENTRIES", "_FEWEST_ENTRIES"]),
        (tree, ["_PAIRS_AT_ONCE"]),
        (pool, ["_SAMPLE", "_OUTERMOST", "_CHUNK"]),
        (choice_module, ["_IN_CACHE"]),
    ],
)
@pytest.mark.parametrize("d", [2, 3, 6])
def test_no_block_size_changes_the_answer(
    module: object, names: list[str], d: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    points = tensor(np.concatenate([gaussian(1500, d), grid(3, d)]))
    wanted = dense_choice(points, points, TOLERANCE)
    for name in names:
        monkeypatch.setattr(module, name, 128)
    for method in METHODS:
        assert_same(attended(points, points, tolerance=TOLERANCE, method=method), wanted)


@pytest.mark.parametrize(
    "name", ["gaussian 16", "gaussian 64", "sphere 6", "one far token", "1e-15 apart, 12 coordinates"]
)
def test_screening_in_integers_changes_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "_INTEGERS_PAY_FROM", 1)
    monkeypatch.setattr(blocks, "_PAIRS_FOR_INTEGERS", 1)
    points = tensor(CLOUDS[name])
    found = attended(points, points, tolerance=TOLERANCE, method="pruned")
    assert_same(found, dense_choice(points, points, TOLERANCE))


@pytest.mark.parametrize("screen", [screens.ProductScreen, screens.IntegerScreen])
@pytest.mark.parametrize(("n", "d"), [(1, 1), (127, 3), (600, 20), (1300, 70)])
def test_screens_err_by_no_more_than_they_say(screen: type[screens.AbstractScreen], n: int, d: int) -> None:
    frame = frames.round_frame(tensor(gaussian(50, d)), tensor(gaussian(n, d)), 0.0, torch.float32)
    made = screen(frame)
    rows = torch.arange(len(frame.rows))
    found = made.maxima(rows, 0, n)
    scores = frame.queries.double() @ frame.points.double().T
    wanted = torch.stack([block.amax(dim=1) for block in torch.split(scores, screens.BLOCK, dim=1)], dim=1)
    assert found.shape == wanted.shape
    assert bool(((found - wanted).abs() <= made.error[:, None]).all())


@pytest.mark.parametrize("method", METHODS)
def test_no_number_of_threads_changes_the_answer(method: str) -> None:
    points = tensor(np.concatenate([gaussian(2500, 3), sphere(500, 3)]))
    before = torch.get_num_threads()
    answers = []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            answers.append(attended(points, points, tolerance=TOLERANCE, method=method))
    finally:
        torch.set_num_threads(before)
    assert_same(answers[1], answers[0])
    assert_same(answers[2], answers[0])


def test_reduced_float32_precision_is_not_relied_on() -> None:
    points = tensor(gaussian(2500, 24))
    before = torch.get_float32_matmul_precision()
    try:
        torch.set_float32_matmul_precision("medium")
        found = attended(points, points, tolerance=TOLERANCE, method="dense")
    finally:
        torch.set_float32_matmul_precision(before)
    assert_same(found, dense_choice(points, points, TOLERANCE))


def test_ties_that_do_not_fit_in_memory_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice_module, "_MOST_MEMBERS", 1000)
    points = tensor(np.tile([[1.0, 2.0]], (100, 1)))
    for method in METHODS:
        with pytest.raises(InputError, match="must not tie so often"):
            attended(points, points, tolerance=TOLERANCE, method=method)


def test_an_unknown_method_is_refused() -> None:
    points = tensor(gaussian(5, 2))
    with pytest.raises(InputError, match="method is not a search method, got 'fast': pass one of auto"):
        attended(points, points, tolerance=TOLERANCE, method="fast")


@pytest.mark.parametrize("d", [2, 3])
def test_inner_points_are_dropped_only_where_they_cannot_win(d: int) -> None:
    points = gaussian(30_000, d) @ spd(generator("shear"), d) + 3.0
    kept = pool.outer_points(points, 1e-12)
    assert len(kept) < 6000
    chosen = dense_choice(tensor(gaussian(500, d)), tensor(points), TOLERANCE).first
    assert np.isin(chosen.numpy(), kept).all()


def test_candidates_may_come_in_any_order() -> None:
    points = tensor(grid(7, 2))
    n = len(points)
    wanted = dense_choice(points, points, TOLERANCE)
    order = torch.from_numpy(generator("order").permutation(n * n))
    rows, columns = torch.arange(n).repeat_interleave(n)[order], torch.arange(n).repeat(n)[order]
    ballot = Ballot(points, points, TOLERANCE)
    ballot.decide(rows, columns)
    assert_same(ballot.choice(), wanted)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "d"), [(20_000, 2), (20_000, 3), (20_000, 4), (15_000, 8), (8_000, 64)])
def test_larger_clouds(n: int, d: int) -> None:
    points = tensor(gaussian(n, d))
    wanted = dense_choice(points, points, TOLERANCE)
    for method in METHODS:
        assert_same(attended(points, points, tolerance=TOLERANCE, method=method), wanted)
