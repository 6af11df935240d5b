"""The kernels of the GPU on small inputs, against the plain search on the CPU.

Where there is no GPU they run by Triton's interpreter. It multiplies halves exactly and adds in float32, so what is
checked then is the logic and the bounds of rounding; larger inputs are checked by ``python -m benchmarks.gpu``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest
import torch

from hardmax.attention import kernels, softmax_rows
from hardmax.attention.choice import Ballot, Choice, default_tolerance, score
from hardmax.attention.kernels import pair_scores, usable
from hardmax.attention.masks import Mask
from hardmax.attention.search import attended, attended_in, auto, masked, maxima, outliers
from hardmax.attention.search.accelerated import (
    best_points,
    best_points_in,
    choice_by_kernels,
    decide_by_kernels,
)
from hardmax.attention.search.arrangement import Intervals
from hardmax.attention.search.decision import Screen
from hardmax.attention.search.intervals import IntervalBallot
from hardmax.attention.search.margins import tie_margin
from hardmax.attention.search.maxima import Tiles
from hardmax.errors import InputError
from hardmax.meanfield import evaluation

pytest.importorskip("triton")

TOLERANCE = default_tolerance(torch.float64)
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
SMALL = Tiles(rows=16, block=16, warps=4, stages=2)


def tokens_of(kind: str, n: int, d: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    gaussian = torch.randn(n, d, generator=generator, dtype=torch.float64)
    if kind == "sphere":
        gaussian = torch.nn.functional.normalize(gaussian, dim=1)
    if kind == "lattice":
        gaussian = torch.randint(-2, 3, (n, d), generator=generator).double()
    if kind == "far":
        gaussian = gaussian * torch.logspace(-3, 3, n, dtype=torch.float64)[:, None] + 5.0
    return gaussian.to(DEVICE)


def assert_same_choice(queries: torch.Tensor, points: torch.Tensor, **options: object) -> None:
    ballot = Ballot(queries, points, TOLERANCE)
    margin = tie_margin(TOLERANCE, points.shape[1])
    found = best_points(queries, points, margin, TOLERANCE, tiles=SMALL, **options)
    ballot.record(found.rows, found.first, found.best, found.tied, found.members)
    assert_same(ballot.choice(), attended(queries.cpu(), points.cpu(), tolerance=TOLERANCE, method="dense"))


def assert_same(ours: Choice, plain: Choice) -> None:
    for field in ("first", "best", "everyone", "tied", "offsets", "members"):
        assert torch.equal(getattr(ours, field).cpu(), getattr(plain, field)), field


@pytest.mark.parametrize("prune", [False, True])
@pytest.mark.parametrize(("kind", "d"), [("gaussian", 1), ("sphere", 2), ("lattice", 2), ("gaussian", 3), ("far", 7)])
def test_same_choice_as_the_plain_search(kind: str, d: int, prune: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maxima, "_FIRST_BLOCKS", 1)
    monkeypatch.setattr(maxima, "_FURTHER", 2)
    points = tokens_of(kind, 70, d)
    assert_same_choice(points[:19], points, prune=prune)  # two tiles of rows, one of them not full


def odd_clouds() -> dict[str, torch.Tensor]:
    plain = tokens_of("gaussian", 50, 6)
    long = plain.clone()
    long[7] *= 1e5
    both = plain + 1e6
    both[3] += 1e9
    lattice = tokens_of("lattice", 50, 6)
    lattice[0] *= 2.0**20
    return {"one long point": long, "an offset": plain + 1e6, "both": both, "a lattice with a long point": lattice}


@pytest.mark.parametrize("name", odd_clouds())
def test_clouds_with_outliers_or_an_offset(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outliers, "_RARE", 25)
    points = odd_clouds()[name]
    assert (outliers.outliers_of(points) is not None) == (name != "an offset")
    for queries in (points[:8], torch.cat([points[:1] * 0, -points[3:10]])):
        ballot = Ballot(queries, points, TOLERANCE)
        decide_by_kernels(ballot, queries, points, tie_margin(TOLERANCE, 6), TOLERANCE)
        assert_same(ballot.choice(), attended(queries.cpu(), points.cpu(), tolerance=TOLERANCE, method="dense"))


def test_an_outlier_that_ties_with_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    # Both parts of the points hold members of the same choice, and some of one part fall out by the other.
    monkeypatch.setattr(outliers, "_RARE", 20)
    points = tokens_of("lattice", 60, 2)
    points[:, 0] = torch.where(points[:, 0] > 1, 1.0, points[:, 0])
    points[4] = torch.tensor([1.0, 1e6], dtype=torch.float64)
    queries = torch.tensor([[1.0, 0.0], [1.0, 1e-9], [1.0, -1e-5], [-1.0, 0.0]], dtype=torch.float64, device=DEVICE)
    ballot = Ballot(queries, points, TOLERANCE)
    decide_by_kernels(ballot, queries, points, tie_margin(TOLERANCE, 2), TOLERANCE)
    choice = ballot.choice()
    assert 4 in choice[0]
    assert len(choice[0]) > 1
    assert_same(choice, attended(queries.cpu(), points.cpu(), tolerance=TOLERANCE, method="dense"))


def test_only_clouds_that_need_it_are_cut_or_centred() -> None:
    points = tokens_of("gaussian", 4000, 3)
    assert outliers.outliers_of(points) is None
    assert outliers.cloud_of(points) == outliers.Cloud(False, False)
    assert outliers.cloud_of(points + 10) == outliers.Cloud(False, False)
    assert outliers.cloud_of(points + 1e3) == outliers.Cloud(False, True)
    assert outliers.cloud_of(points[:1].repeat(40, 1)) == outliers.Cloud(False, False)
    points[[1, 5]] = torch.tensor([[200.0, 0.0, 0.0], [0.0, -200.0, 0.0]], dtype=torch.float64, device=DEVICE)
    assert outliers.cloud_of(points) == outliers.Cloud(True, False)
    assert outliers.cloud_of(points[:100]) == outliers.Cloud(False, False)
    found = outliers.outliers_of(points)
    assert found is not None
    assert found.nonzero()[:, 0].tolist() == [1, 5]


def test_zero_queries_and_repeated_points() -> None:
    points = torch.cat([tokens_of("gaussian", 20, 3)] * 2 + [torch.zeros(2, 3, dtype=torch.float64, device=DEVICE)])
    queries = points[[0, 7, 20, 27, 40, 41]]  # two points, their copies and the two zeros
    assert_same_choice(queries, points, prune=False)
    assert_same_choice(queries, points, prune=True)


def test_rows_with_too_many_blocks_are_screened_again_finer() -> None:
    # Points on a small arc in 6 dimensions: half precision cannot tell them apart.
    angle = torch.linspace(0, 1e-3, 60, dtype=torch.float64)
    flat = torch.stack([angle.cos(), angle.sin()], dim=1)
    shuffled = flat[torch.randperm(60, generator=torch.Generator().manual_seed(0))].to(DEVICE)
    points = shuffled @ tokens_of("gaussian", 2, 6)
    assert_same_choice(points[:20], points, prune=False, most_visits=1)


@pytest.mark.parametrize("prune", [False, True])
def test_portions_give_the_same_choice(prune: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    # With pruning, the first portion tells for how many blocks largest scores are kept; the last rows need more.
    monkeypatch.setattr(maxima, "_FIRST_BLOCKS", 1)
    points = tokens_of("gaussian", 60, 3)
    flatten = torch.diag(torch.tensor([1.0, 1e-3, 1.0], dtype=torch.float64, device=DEVICE))
    queries = torch.cat([points[:16] * 100, points[16:26] @ flatten])
    assert_same_choice(queries, points, prune=prune, maxima_at_once=64)


def test_too_little_memory_says_how_much_would_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_memory(*_: object) -> None:
        raise torch.OutOfMemoryError

    monkeypatch.setattr(Screen, "decide", no_memory)
    points = tokens_of("gaussian", 40, 3)
    with pytest.raises(InputError, match=r"do not fit into the memory of the device.*GiB"):
        best_points(points, points, 1e-14, TOLERANCE, tiles=SMALL)


def test_less_memory_is_tried_before_giving_up(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    real = Screen.decide

    def decide(self: Screen, some: slice) -> object:
        asked.append(some.stop - some.start)
        if asked[-1] > 16:
            raise torch.OutOfMemoryError
        return real(self, some)

    monkeypatch.setattr(Screen, "decide", decide)
    points = tokens_of("gaussian", 40, 3)
    assert_same_choice(points, points, prune=False)
    assert asked[0] == 40
    assert max(asked[-3:]) <= 16


def test_pair_scores_have_the_same_bits() -> None:
    left, right = tokens_of("far", 50, 9), tokens_of("gaussian", 50, 9, seed=1)
    assert torch.equal(pair_scores(left, right).cpu(), score(left.cpu(), right.cpu()))


@pytest.fixture
def overflow_is_meant() -> Iterator[None]:
    """Weights that overflow tell the kernel to look again; on a GPU they do so silently."""
    with np.errstate(over="ignore", invalid="ignore"):
        yield


def assert_means(queries: torch.Tensor, points: torch.Tensor, mass: torch.Tensor | None, atol: float) -> None:
    logits = queries.double() @ points.double().T + (0.0 if mass is None else mass.log())
    expected = torch.softmax(logits, dim=1) @ points.double()
    found = softmax_rows.softmax_means(queries, points, mass)
    np.testing.assert_allclose(found.cpu().numpy(), expected.cpu().numpy(), rtol=0, atol=atol)


@pytest.mark.usefixtures("overflow_is_meant")
@pytest.mark.parametrize("d", [1, 2, 3, 8, 16])
@pytest.mark.parametrize("beta", [1.0, 300.0])
def test_softmax_means(d: int, beta: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(softmax_rows, "_CHUNK", 64)
    points = tokens_of("sphere", 70, d).float()
    weights = torch.rand(70, generator=torch.Generator().manual_seed(3), dtype=torch.float64).to(DEVICE) + 0.1
    for mass in (None, weights):
        assert_means(beta * points[:20], points, mass, atol=2e-6 * max(1.0, beta / 10))


@pytest.mark.usefixtures("overflow_is_meant")
def test_weights_that_overflow_are_taken_again(monkeypatch: pytest.MonkeyPatch) -> None:
    # Each chunk has scores that are larger by more than halves hold; a weight of zero comes first.
    monkeypatch.setattr(softmax_rows, "_CHUNK", 64)
    points = tokens_of("sphere", 192, 3).float() * torch.arange(1, 193, device=DEVICE)[:, None] / 192
    assert_means(200 * points[::10], points, None, atol=1e-4)
    weights = torch.ones(192, dtype=torch.float64, device=DEVICE)
    weights[:64] = 0.0
    assert_means(200 * points[::10], points, weights, atol=1e-4)


@pytest.mark.parametrize("flat", [False, True])
def test_flat_scores_give_the_same_means(flat: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(softmax_rows, "_FLAT", 15.9 if flat else 0.0)
    monkeypatch.setattr(softmax_rows, "_CHUNK", 64)
    points = tokens_of("sphere", 64, 5).float()
    assert softmax_rows._Spread.of(10 * points, points).is_flat is flat
    assert_means(10 * points[:20], points, None, atol=2e-6)


@pytest.mark.usefixtures("overflow_is_meant")
@pytest.mark.parametrize(("query", "point"), [(1e6, 0.0), (0.0, 1.0), (1e25, 1e-25), (1e-20, 1e15)])
def test_sizes_that_halves_do_not_hold(query: float, point: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(softmax_rows, "_CHUNK", 64)
    points = tokens_of("sphere", 64, 3).float()
    assert_means(query * points[:5], point * points, None, atol=2e-6 * point)


@pytest.mark.parametrize("d", [1, 3, 16])
def test_spread_is_measured_by_many_programs(d: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(softmax_rows, "_MEASURING", 3)
    monkeypatch.setattr(softmax_rows, "_NUMBERS_AT_ONCE", 64)
    points, queries = 0.3 * tokens_of("gaussian", 250, d).float() + 0.1, tokens_of("gaussian", 37, d).float()
    lengths, query = points.norm(dim=1), queries.norm(dim=1).max() / math.log(2)
    spread = softmax_rows._Spread.of(queries, points)
    assert spread.largest == pytest.approx(float(query * lengths.max()), rel=1e-5)
    assert spread.of_the_mean == pytest.approx(float(query * points.mean(dim=0).norm()), rel=1e-5)
    assert spread.unevenness == pytest.approx(float(lengths.max() / lengths.mean()), rel=1e-5)
    assert spread.coordinate == float(points.abs().max())


@pytest.mark.parametrize("largest", [0.0, 1e-40, 1e-37, 0.75, 1.0, 3e38])
def test_the_unit_of_points(largest: float) -> None:
    spread = softmax_rows._Spread(1.0, 0.0, 1.0, largest)
    for flat, room in ((True, 2.0), (False, 2.0**15)):
        unit = spread.unit(flat=flat)
        assert math.frexp(unit)[0] == 0.5
        assert float(np.float32(unit)) == unit >= 2.0**-126
        assert largest / unit < room


def test_what_counts_as_flat() -> None:
    points = tokens_of("sphere", 400, 4).float()
    assert softmax_rows._Spread.of(points, points).is_flat
    assert not softmax_rows._Spread.of(12 * points, points).is_flat  # weights beyond 2^16
    assert not softmax_rows._Spread.of(5 * points, points - points[:1]).is_flat  # all weights may be small
    uneven = torch.cat([points, 40 * points[:1]])
    assert not softmax_rows._Spread.of(0.05 * points, uneven).is_flat


def test_the_search_takes_the_kernels_where_they_can_run(monkeypatch: pytest.MonkeyPatch) -> None:
    points = tokens_of("lattice", 24, 3)
    plain = attended(points.cpu(), points.cpu(), tolerance=TOLERANCE)
    taken = []

    def decide(*given: object) -> None:
        taken.append(len(given))
        decide_by_kernels(*given)

    monkeypatch.setattr(kernels, "usable", lambda device: True)
    monkeypatch.setattr(auto, "decide_by_kernels", decide)
    found = attended(points, points, tolerance=TOLERANCE)
    assert taken
    assert_same(found, plain)


@pytest.mark.usefixtures("overflow_is_meant")
def test_attention_on_the_sphere_takes_the_kernels_where_they_can_run(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = tokens_of("sphere", 40, 3)
    mass = torch.linspace(0.5, 1.0, 40, dtype=torch.float64, device=DEVICE)
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
    np.testing.assert_allclose(found.cpu().numpy(), plain.cpu().numpy(), rtol=0, atol=2e-6)


def test_kernels_are_for_gpus_only() -> None:
    assert not usable(torch.device("cpu"))


def test_rows_of_several_portions_are_screened_again_finer() -> None:
    points = tokens_of("lattice", 60, maxima.NARROWEST // 3 + 1)
    assert_same_choice(points[:33], points, prune=False, most_visits=0, maxima_at_once=16)


def assert_same_in_intervals(
    queries: torch.Tensor, points: torch.Tensor, start: torch.Tensor, stop: torch.Tensor, **options: object
) -> None:
    plain = attended_in(queries.cpu(), points.cpu(), start.cpu(), stop.cpu(), tolerance=TOLERANCE)
    ballot = IntervalBallot(queries, points, start, stop, TOLERANCE, zero_attends_to_all=True)
    margin = tie_margin(TOLERANCE, points.shape[1])
    seen = Intervals(start, stop, ballot.longest)
    found = best_points_in(queries, points, margin, TOLERANCE, seen, tiles=SMALL, **options)
    alone = ~torch.isin(found.rows, found.tied)
    ballot.record(found.rows[alone], found.first[alone], found.best[alone])
    ballot.propose(found.tied, found.members)
    assert_same(ballot.choice(), plain)


@pytest.mark.parametrize(
    ("kind", "d", "mask"),
    [
        ("gaussian", 1, Mask(before=0)),
        ("sphere", 2, Mask(after=0)),
        ("lattice", 2, Mask(before=20, after=5)),
        ("far", 3, Mask(after=0)),
        ("lattice", 7, Mask(before=3, after=0)),
    ],
)
def test_intervals_give_the_choice_of_the_plain_search(kind: str, d: int, mask: Mask) -> None:
    points = tokens_of(kind, 37, d)
    start, stop = (ends.to(DEVICE) for ends in mask.interval(torch.arange(37), 37))
    assert_same_in_intervals(points, points, start, stop)


def test_intervals_in_portions_and_screened_again_finer() -> None:
    points = tokens_of("lattice", 50, maxima.NARROWEST // 3 + 1)
    generator = torch.Generator().manual_seed(5)
    ends = torch.randint(0, 51, (20, 2), generator=generator).sort(dim=1).values
    start = ends[:, 0].clamp_max(49)
    stop = torch.maximum(ends[:, 1], start + 1)
    queries = points[torch.randperm(50, generator=generator)[:20]]
    queries[::7] = 0
    assert_same_in_intervals(queries, points, start.to(DEVICE), stop.to(DEVICE), most_visits=0, maxima_at_once=16)


def test_the_masked_search_takes_the_kernels_where_they_can_run(monkeypatch: pytest.MonkeyPatch) -> None:
    points = tokens_of("lattice", 40, 3)
    points[3] = 0
    order = torch.randperm(40, generator=torch.Generator().manual_seed(1))
    start, stop = Mask(before=12, after=2).interval(order, 40)
    queries = points.cpu()[order]
    plain = attended_in(queries, points.cpu(), start, stop, tolerance=TOLERANCE)
    taken = []

    def choice(*given: object) -> Choice:
        taken.append(len(given))
        return choice_by_kernels(*given)

    monkeypatch.setattr(kernels, "usable", lambda device: True)
    monkeypatch.setattr(masked, "choice_by_kernels", choice)
    found = attended_in(queries.to(DEVICE), points, start.to(DEVICE), stop.to(DEVICE), tolerance=TOLERANCE)
    assert taken
    assert_same(found, plain)


def test_intervals_of_more_rows_than_a_tile_holds() -> None:
    points = tokens_of("lattice", 3 * SMALL.rows + 5, 2)
    positions = torch.arange(len(points))
    start, stop = (ends.to(DEVICE) for ends in Mask(before=7, after=0).interval(positions, len(points)))
    assert_same_in_intervals(points, points, start, stop)


@pytest.mark.parametrize("count", [1, 16, 37])
def test_blocks_that_a_tile_of_rows_sees(count: int) -> None:
    generator = torch.Generator().manual_seed(count)
    start = torch.randint(0, 60, (count,), generator=generator)
    stop = start + torch.randint(0, 60, (count,), generator=generator)
    padded = -(-count // SMALL.rows) * SMALL.rows
    seen = maxima.sight_of(start.to(DEVICE), stop.to(DEVICE), padded, SMALL)
    rows = [min(row, count - 1) for row in range(padded)]
    assert seen.low.tolist() == start[rows].tolist()
    assert seen.high.tolist() == stop[rows].tolist()
    for tile in range(padded // SMALL.rows):
        part = rows[tile * SMALL.rows : (tile + 1) * SMALL.rows]
        begin, inner, outer = seen.tiles[tile].tolist()
        # Whole blocks that some row, and that every row sees.
        some = {p // SMALL.block for row in part for p in range(int(start[row]), int(stop[row]))}
        every = [
            block
            for block in range(120 // SMALL.block)
            if all(start[r] <= block * SMALL.block and (block + 1) * SMALL.block <= stop[r] for r in part)
        ]
        assert some <= set(range(begin, int(seen.ends[tile])))
        assert list(range(inner, outer)) == every
