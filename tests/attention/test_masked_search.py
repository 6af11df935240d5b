"""Under a mask every search method gives the answer of the dense oracle, to the last bit, for every query."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from random import Random

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hardmax.attention import attended, attended_in
from hardmax.attention.choice import Choice, default_tolerance
from hardmax.attention.masks import Mask
from hardmax.attention.search import auto, intervals, masked, pool, prefixes
from hardmax.attention.search.intervals import IntervalBallot, decide_by_dense_blocks, largest_in
from hardmax.attention.search.masked import decide_by_halves, decide_by_prefixes
from hardmax.errors import InputError

TOLERANCE = default_tolerance(torch.float64)
FIELDS = ["first", "best", "everyone", "tied", "offsets", "members"]
Ends = tuple[torch.Tensor, torch.Tensor]


def assert_same(found: Choice, wanted: Choice) -> None:
    for field in FIELDS:
        assert torch.equal(getattr(found, field), getattr(wanted, field)), field


def tensor(array: object) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(np.asarray(array, dtype=np.float64)))


def of(mask: Mask, n: int) -> Ends:
    return mask.interval(torch.arange(n), n)


def random_intervals(n: int, count: int, seed: int = 0) -> Ends:
    ends = np.sort(np.random.default_rng(seed).integers(0, n + 1, (count, 2)), axis=1)
    start = np.minimum(ends[:, 0], n - 1)
    return torch.from_numpy(start), torch.from_numpy(np.maximum(ends[:, 1], start + 1))


def oracle(
    queries: torch.Tensor,
    points: torch.Tensor,
    start: torch.Tensor,
    stop: torch.Tensor,
    tolerance: float = TOLERANCE,
    bias: Callable[[torch.Tensor, torch.Tensor], torch.Tensor] | None = None,
) -> Choice:
    """Every pair scored in the order of the coordinates, after bringing each query and its interval near one."""
    q, z = queries.numpy(), points.numpy()
    place = np.arange(len(z))
    seen = (place >= start.numpy()[:, None]) & (place < stop.numpy()[:, None])
    of_queries = np.frexp(np.abs(q).max(axis=1))[1]
    of_points = np.frexp(np.where(seen, np.abs(z).max(axis=1), 0.0).max(axis=1))[1]
    q = np.ldexp(q, -of_queries[:, None])
    values, squares, size = np.zeros((3, len(q), len(z)))
    for k in range(z.shape[1]):
        scaled = np.ldexp(np.where(seen, z[:, k], 0.0), -of_points[:, None])
        values, squares, size = values + q[:, k, None] * scaled, squares + scaled * scaled, size + q[:, k, None] ** 2
    if bias is not None:
        row, column = (part.ravel() for part in np.indices(seen.shape))
        added = bias(torch.from_numpy(row), torch.from_numpy(column)).numpy().reshape(seen.shape)
        values = values + np.ldexp(added, -(of_queries + of_points)[:, None])
    values = np.where(seen, values, -np.inf)
    best = values.max(axis=1)
    chosen = seen & (values >= (best - tolerance * np.sqrt(size[:, 0]) * np.sqrt(squares.max(axis=1)))[:, None])
    everyone = ~q.any(axis=1) if bias is None else np.zeros(len(q), dtype=bool)
    row, column = (chosen & (chosen.sum(axis=1) > 1)[:, None] & ~everyone[:, None]).nonzero()
    tied, sizes = np.unique(row, return_counts=True)
    return Choice(
        torch.from_numpy(np.where(everyone, start.numpy(), chosen.argmax(axis=1))),
        torch.from_numpy(np.ldexp(np.where(everyone, 0.0, best), of_queries + of_points)),
        torch.from_numpy(everyone),
        torch.from_numpy(tied),
        torch.from_numpy(np.concatenate([[0], np.cumsum(sizes)])),
        torch.from_numpy(column),
    )


def gaussian(n: int, d: int) -> np.ndarray:
    return np.random.default_rng(n + 1000 * d).normal(size=(n, d))


def grid(n: int, d: int, size: int = 2) -> np.ndarray:
    return np.random.default_rng(n + d).integers(-size, size + 1, (n, d)).astype(float)


def spiral(n: int) -> np.ndarray:
    """Points on a growing spiral: every one is a vertex of the hull of its prefix."""
    k = np.arange(n)
    angle = k * math.pi * (3 - math.sqrt(5))
    return (1 + k / n)[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)


CLOUDS = {
    "one token": np.array([[0.3, -2.0]]),
    "two equal tokens": np.array([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]]),
    "only zeros": np.zeros((5, 3)),
    "zeros first": np.concatenate([np.zeros((7, 2)), gaussian(90, 2)]),
    "all equal": np.tile([[0.1, 0.7]], (60, 1)),
    "gaussian 1": gaussian(150, 1),
    "gaussian 2": gaussian(180, 2),
    "gaussian 3": gaussian(150, 3),
    "gaussian 4": gaussian(130, 4),
    "gaussian 7": gaussian(150, 7),
    "gaussian 20": gaussian(130, 20),
    "grid 1": grid(100, 1, 5),
    "grid 2": grid(150, 2),
    "grid 3": grid(150, 3),
    "grid 6": grid(130, 6, 1),
    "circle": spiral(150) / np.linalg.norm(spiral(150), axis=1)[:, None],
    "spiral": spiral(180),
    "spiral inwards": spiral(180)[::-1],
    "collinear": np.outer(np.arange(120), [1.0, 2.0, -1.0]) / 7 + [1.0, 1.0, 1.0],
    "collinear through zero": np.outer(np.arange(-60, 60), [3.0, -1.0]),
    "repeated": np.repeat(gaussian(40, 2), 4, axis=0),
    "repeated later": np.tile(gaussian(40, 3), (4, 1)),
    "1e-14 apart": np.concatenate([gaussian(80, 2), gaussian(80, 2) + 1e-14]),
    "growing": gaussian(120, 2) * 10.0 ** np.linspace(-100, 100, 120)[:, None],
    "growing beyond squares": gaussian(120, 2) * 10.0 ** np.linspace(-250, 0, 120)[:, None],
    "shrinking": gaussian(120, 3) * 10.0 ** -np.linspace(0, 200, 120)[:, None],
    "far away": gaussian(150, 2) + 1e6,
    "a long token late": np.concatenate([gaussian(70, 2), [[1e9, 1.0]], gaussian(70, 2)]),
}
MASKS = {
    "causal": Mask(after=0),
    "later": Mask(before=0),
    "window": Mask(before=33, after=17),
    "itself": Mask(before=0, after=0),
}
METHODS = {"dense": decide_by_dense_blocks, "halves": decide_by_halves, "prefixes": decide_by_prefixes}


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every limit below which a method leaves its work to dense blocks, lowered."""
    monkeypatch.setattr(masked, "_SHORT", 24)
    monkeypatch.setattr(masked, "_FEW_PAIRS", 1000)
    monkeypatch.setattr(masked, "_LEAF", 24)
    monkeypatch.setattr(pool, "_FIRST", 8)
    monkeypatch.setattr(prefixes, "_ENTRIES_AT_ONCE", 500)
    monkeypatch.setattr(prefixes, "_PAIRS_AT_ONCE", 60)
    monkeypatch.setattr(intervals, "_ROWS", 50)
    monkeypatch.setattr(intervals, "_COLUMNS", 40)
    monkeypatch.setattr(intervals, "_PAIRS_PER_QUERY", 1)


def by(method: str, queries: torch.Tensor, points: torch.Tensor, ends: Ends, tolerance: float) -> Choice:
    ballot = IntervalBallot(queries, points, *ends, tolerance, zero_attends_to_all=True)
    rows = queries.any(dim=1).nonzero()[:, 0]
    METHODS[method](ballot, rows, ends[0][rows], ends[1][rows])
    return ballot.choice()


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("name", CLOUDS)
def test_every_method_agrees_with_the_oracle(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auto, "_FEW_PAIRS", 400)
    monkeypatch.setattr(auto, "_FEW_QUERIES", 2)
    monkeypatch.setattr(auto, "_FEW_POINTS", 2)
    points = tensor(CLOUDS[name])
    n, d = points.shape
    queries = points @ tensor(np.random.default_rng(d).normal(size=(d, d)))
    seen = {mask: of(MASKS[mask], n) for mask in MASKS} | {"random": random_intervals(n, min(n, 30))}
    ordinary = float(points.abs().amax(dim=1).min()) > 1e-120 or not name.endswith(("squares", "shrinking"))
    for mask, ends in seen.items():
        if (mask == "itself" and d > 1) or (mask == "later" and d != 2):
            continue
        asked, tolerance = (queries[: len(ends[0])], 0.0) if mask == "random" else (points, TOLERANCE)
        wanted = oracle(asked, points, *ends, tolerance)
        assert_same(attended_in(asked, points, *ends, tolerance=tolerance), wanted)
        if ordinary:
            for method in METHODS if d <= 4 else ("dense", "halves"):
                assert_same(by(method, asked, points, ends, tolerance), wanted)


@pytest.mark.parametrize("kind", ["gaussian", "spiral", "circle", "grid", "grid 3"])
def test_large_parts_agree_with_dense_blocks(kind: str) -> None:
    n = 2500
    clouds = {"gaussian": gaussian(n, 3), "spiral": spiral(n), "grid": grid(n, 2, 400), "grid 3": grid(n, 3, 30)}
    clouds["circle"] = clouds["spiral"] / np.linalg.norm(clouds["spiral"], axis=1)[:, None]
    points = tensor(clouds[kind])
    for mask in (Mask(after=0), Mask(before=2100, after=0)):
        ends = of(mask, n)
        wanted = by("dense", points, points, ends, TOLERANCE)
        assert_same(by("prefixes", points, points, ends, TOLERANCE), wanted)
        assert_same(by("halves", points, points, ends, TOLERANCE), wanted)


@pytest.mark.usefixtures("small_parts")
def test_cells_give_up_where_too_many_points_can_win(monkeypatch: pytest.MonkeyPatch) -> None:
    points, ends = tensor(spiral(300)), of(Mask(after=0), 300)
    wanted = by("dense", points, points, ends, TOLERANCE)
    taken = []

    def halves(*given: object) -> None:
        taken.append(len(given))
        decide_by_halves(*given)

    monkeypatch.setattr(prefixes, "_MOST_ENTRIES", 1000)
    monkeypatch.setattr(masked, "decide_by_halves", halves)
    assert_same(by("prefixes", points, points, ends, TOLERANCE), wanted)
    assert taken


@settings(deadline=None, max_examples=60)
@given(
    st.integers(1, 4).flatmap(
        lambda d: st.lists(st.lists(st.integers(-3, 3), min_size=d, max_size=d), min_size=1, max_size=14)
    ),
    st.randoms(use_true_random=False),
)
def test_small_integers_against_plain_loops_in_fractions(rows: list[list[int]], random: Random) -> None:
    points, n = tensor(rows), len(rows)
    starts = [random.randrange(n) for _ in rows]
    stops = [random.randrange(start + 1, n + 1) for start in starts]
    found = attended_in(points, points, torch.tensor(starts), torch.tensor(stops), tolerance=TOLERANCE)
    for i, (start, stop) in enumerate(zip(starts, stops, strict=True)):
        scores = [
            sum((Fraction(a) * Fraction(b) for a, b in zip(rows[i], rows[k], strict=True)), Fraction(0))
            for k in range(start, stop)
        ]
        if not any(rows[i]):
            assert bool(found.everyone[i])
            assert int(found.first[i]) == start
        else:
            assert found[i].tolist() == [start + k for k, value in enumerate(scores) if value == max(scores)]
            assert float(found.best[i]) == max(scores)


def first_rows(choice: Choice, count: int) -> Choice:
    return choice.among(torch.arange(count))


@pytest.mark.parametrize("name", ["gaussian 2", "grid 3", "1e-14 apart", "gaussian 7", "a long token late", "growing"])
def test_the_prefix_of_a_causal_search_is_the_search_of_the_prefix(name: str) -> None:
    points = tensor(CLOUDS[name])[:60] if name != "a long token late" else tensor(CLOUDS[name])[40:100]
    whole = attended_in(points, points, *of(Mask(after=0), len(points)), tolerance=TOLERANCE)
    for m in range(1, len(points) + 1):
        alone = attended_in(points[:m], points[:m], *of(Mask(after=0), m), tolerance=TOLERANCE)
        assert_same(alone, first_rows(whole, m))


@pytest.mark.parametrize("d", [2, 3, 6])
def test_the_prefix_of_a_long_causal_search(d: int) -> None:
    n = 20_000
    points = tensor(np.round(gaussian(n, d), 2))
    points[n // 2] *= 1e3
    whole = attended_in(points, points, *of(Mask(after=0), n), tolerance=TOLERANCE)
    assert d > 2 or len(whole.tied) > 0
    for m in (2049, n // 2, n // 2 + 1):
        alone = attended_in(points[:m], points[:m], *of(Mask(after=0), m), tolerance=TOLERANCE)
        assert_same(alone, first_rows(whole, m))


def test_all_points_for_everybody_is_the_search_without_a_mask() -> None:
    points = tensor(grid(300, 2, 5))
    assert_same(
        attended_in(points, points, *of(Mask(), 300), tolerance=TOLERANCE),
        attended(points, points, tolerance=TOLERANCE),
    )
    for method in METHODS:
        assert_same(
            by(method, points, points, of(Mask(), 300), TOLERANCE), attended(points, points, tolerance=TOLERANCE)
        )


@pytest.mark.parametrize(
    ("of_queries", "of_points"), [(-500, -500), (-500, 500), (500, -900), (-960, -960), (900, 0), (-996, 996)]
)
def test_sizes_whose_squares_leave_the_range_of_float64(of_queries: int, of_points: int) -> None:
    points, ends = tensor(grid(60, 2) + 1 / 3), of(Mask(before=20, after=3), 60)
    plain = attended_in(points, points, *ends, tolerance=TOLERANCE)
    found = attended_in(points * 2.0**of_queries, points * 2.0**of_points, *ends, tolerance=TOLERANCE)
    for field in ("first", "everyone", "tied", "offsets", "members"):
        assert torch.equal(getattr(found, field), getattr(plain, field)), field
    exact = [Fraction(best) * Fraction(2) ** (of_queries + of_points) for best in plain.best.tolist()]
    assert found.best.tolist() == [float(best) for best in exact]


def test_each_query_has_a_size_of_its_own() -> None:
    points, ends = tensor(grid(80, 3) + 0.5), of(Mask(after=0), 80)
    sizes = 2.0 ** torch.arange(-900, 900, 1800 // 80 + 1, dtype=torch.float64)[:80, None]
    plain = attended_in(points, points, *ends, tolerance=TOLERANCE)
    found = attended_in(points[: len(sizes)] * sizes, points, *(end[: len(sizes)] for end in ends), tolerance=TOLERANCE)
    for i in range(len(sizes)):
        assert found[i].tolist() == plain[i].tolist()


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("name", ["grid 2", "gaussian 7", "zeros first", "growing"])
def test_bias(name: str) -> None:
    points = tensor(CLOUDS[name])
    n = len(points)

    def bias(rows: torch.Tensor, columns: torch.Tensor) -> torch.Tensor:
        # Integers, so that many sums tie; very unlike for neighbours, and never seen beyond 40 places.
        added = ((rows * 7 + columns * 3) % 5).double() - 2.0
        return torch.where((rows - columns).abs() > 40, -torch.inf, added)

    for ends in (of(Mask(after=0), n), of(Mask(), n), random_intervals(n, n)):
        found = attended_in(points, points, *ends, tolerance=TOLERANCE, bias=bias)
        assert_same(found, oracle(points, points, *ends, TOLERANCE, bias))
        assert not found.everyone.any()


@pytest.mark.parametrize(("of_queries", "of_points"), [(-500, -480), (500, 450), (-960, 900), (0, -700)])
def test_bias_with_sizes_whose_squares_leave_the_range_of_float64(of_queries: int, of_points: int) -> None:
    points, ends = tensor(grid(60, 2)), of(Mask(before=20, after=3), 60)

    def bias(rows: torch.Tensor, columns: torch.Tensor) -> torch.Tensor:
        return ((rows + columns) % 3).double()

    def scaled(rows: torch.Tensor, columns: torch.Tensor) -> torch.Tensor:
        return bias(rows, columns) * 2.0 ** (of_queries + of_points)

    plain = attended_in(points, points, *ends, tolerance=TOLERANCE, bias=bias)
    huge, tiny = points * 2.0**of_queries, points * 2.0**of_points
    found = attended_in(huge, tiny, *ends, tolerance=TOLERANCE, bias=scaled)
    for field in ("first", "tied", "offsets", "members"):
        assert torch.equal(getattr(found, field), getattr(plain, field)), field


def test_bias_of_zero_lists_what_ties() -> None:
    points = tensor(grid(70, 2))
    ends = of(Mask(after=0), 70)
    plain = attended_in(points, points, *ends, tolerance=TOLERANCE)
    found = attended_in(
        points, points, *ends, tolerance=TOLERANCE, bias=lambda rows, _: torch.zeros(len(rows)).double()
    )
    for i in range(70):
        wanted = torch.arange(i + 1) if plain.everyone[i] else plain[i]
        assert torch.equal(found[i], wanted)


@pytest.mark.parametrize("d", [2, 8])
def test_a_hint_changes_nothing(d: int) -> None:
    points, ends = tensor(gaussian(2500, d)), of(Mask(after=0), 2500)
    wanted = attended_in(points, points, *ends, tolerance=TOLERANCE)
    for hint in (wanted.first, torch.zeros(2500, dtype=torch.int64), torch.arange(2500).flip(0)):
        assert_same(attended_in(points, points, *ends, tolerance=TOLERANCE, hint=hint), wanted)


def test_queries_in_any_order() -> None:
    points = tensor(np.round(gaussian(2600, 2), 1))
    order = torch.randperm(2600, generator=torch.Generator().manual_seed(0))
    start, stop = of(Mask(after=0), 2600)
    wanted = attended_in(points, points, start, stop, tolerance=TOLERANCE)
    found = attended_in(points[order], points, start[order], stop[order], tolerance=TOLERANCE)
    assert torch.equal(found.first, wanted.first[order])
    assert torch.equal(found.best, wanted.best[order])
    for k in range(0, 2600, 50):
        if not bool(found.everyone[k]):
            assert torch.equal(found[k], wanted[int(order[k])])


def test_no_queries() -> None:
    none = torch.zeros(0, dtype=torch.int64)
    assert len(attended_in(torch.zeros(0, 3).double(), tensor(gaussian(5, 3)), none, none, tolerance=TOLERANCE)) == 0


def test_largest_in_intervals() -> None:
    values = torch.from_numpy(np.random.default_rng(0).normal(size=137))
    for start, stop in (random_intervals(137, 300), of(Mask(after=0), 137), of(Mask(before=0), 137)):
        wanted = [float(values[a:b].max()) for a, b in zip(start.tolist(), stop.tolist(), strict=True)]
        assert largest_in(values, start, stop).tolist() == wanted


@pytest.mark.parametrize(
    ("start", "stop", "message"),
    [
        ([0, 0], [1, 2], "one for each query"),
        ([0, 0, 2], [1, 2, 2], r"range\(2, 2\) for query 2"),
        ([0, -1, 0], [1, 2, 2], r"range\(-1, 2\) for query 1"),
        ([0, 0, 0], [1, 2, 4], "interval of the 3 points"),
    ],
)
def test_intervals_that_are_refused(start: list[int], stop: list[int], message: str) -> None:
    points = tensor(gaussian(3, 2))
    with pytest.raises(InputError, match=message):
        attended_in(points, points, torch.tensor(start), torch.tensor(stop), tolerance=TOLERANCE)
