"""The growing index gives the results of plain loops and of `attended`, for every order and size of appended blocks."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import hardmax as hm
from hardmax.attention import attended, best_keys, index
from hardmax.attention.choice import default_tolerance
from hardmax.attention.search import auto
from hardmax.errors import InputError

TOLERANCE = default_tolerance(torch.float64)


def deciding_scores(query: np.ndarray, keys: np.ndarray) -> list[float]:
    """Scores summed in the order of the coordinates, in plain loops."""
    scores = []
    for key in keys.tolist():
        total = query[0] * key[0]
        for a, b in zip(query[1:].tolist(), key[1:], strict=True):
            total += a * b
        scores.append(float(total))
    return scores


def exact_scores(query: np.ndarray, keys: np.ndarray) -> list[Fraction]:
    q = [Fraction(a) for a in query.tolist()]
    return [sum(a * Fraction(b) for a, b in zip(q, key, strict=True)) for key in keys.tolist()]


def in_a_loop(scores: list, k: int, slack: float) -> tuple[list[int], float]:
    """The best k positions and those that tie with the k-th, by decreasing score, and the margin: a sort of all."""
    order = sorted(range(len(scores)), key=lambda j: (-scores[j], j))
    kth = scores[order[k - 1]]
    inside = [j for j in order if scores[j] >= kth - slack]
    outside = [scores[j] for j in order if scores[j] < kth - slack]
    if not outside:
        return inside, math.inf
    try:
        return inside, float(kth - outside[0])
    except OverflowError:  # of fractions
        return inside, math.inf


def slack_of(query: np.ndarray, keys: np.ndarray, tolerance: float) -> float:
    longest = max(math.sqrt(deciding_scores(key, key[None])[0]) for key in keys)
    return tolerance * math.sqrt(deciding_scores(query, query[None])[0]) * longest


def check(keys: np.ndarray, queries: np.ndarray, tolerance: float = TOLERANCE, ks: tuple[int, ...] = (1, 2, 5)) -> None:
    """Every answer of an index of these keys, one query at a time and in a block, against loops over all keys."""
    built = hm.LeaderIndex(keys.shape[1], tolerance)
    built.append(keys)
    block = built.best(queries)
    for i, query in enumerate(queries):
        scores = deciding_scores(query, keys)
        slack = slack_of(query, keys, tolerance)
        wanted, margin = in_a_loop(scores, 1, slack)
        found = built.best(query)
        assert found.ties.tolist() == sorted(wanted)
        assert (found.first, found.score, found.margin) == (min(wanted), max(scores), margin)
        assert block.ties[i].tolist() == sorted(wanted)
        assert (block.first[i], block.score[i], block.margin[i]) == (min(wanted), max(scores), margin)
        for k in ks:
            if k <= len(keys):
                positions, margin = in_a_loop(scores, k, slack)
                top = built.best_k(query, k)
                assert top.positions.tolist() == positions
                assert top.scores.tolist() == [scores[j] for j in positions]
                assert top.margin == margin


def check_exact(keys: np.ndarray, queries: np.ndarray, ks: tuple[int, ...] = (1, 3)) -> None:
    built = hm.LeaderIndex(keys.shape[1], "exact")
    built.append(keys)
    for query in queries:
        scores = exact_scores(query, keys)
        for k in ks:
            if k <= len(keys):
                positions, margin = in_a_loop(scores, k, 0)
                top = built.best_k(query, k)
                assert top.positions.tolist() == positions
                assert top.scores.tolist() == [float(scores[j]) for j in positions]
                assert top.margin == margin
        wanted, margin = in_a_loop(scores, 1, 0)
        found = built.best(query)
        assert found.ties.tolist() == sorted(wanted)
        assert (found.first, found.score, found.margin) == (min(wanted), float(max(scores)), margin)


def check_as_attended(keys: np.ndarray, queries: np.ndarray, tolerance: float = TOLERANCE) -> None:
    """Answers of an index that was filled key by key, to the last bit those of `attended` for each query alone."""
    built = hm.LeaderIndex(keys.shape[1], tolerance)
    for key in keys:
        built.append(key)
    block = built.best(queries)
    for i, query in enumerate(queries):
        choice = attended(torch.from_numpy(query[None].copy()), torch.from_numpy(keys), tolerance=tolerance)
        everyone = bool(choice.everyone[0])
        members = list(range(len(keys))) if everyone else choice[0].tolist()
        for found in (
            built.best(query),
            hm.attention.BestKeys(block.first[i], block.score[i], block.ties[i], block.margin[i]),
        ):
            assert found.first == int(choice.first[0])
            assert found.ties.tolist() == members
            assert float(found.score) == float(choice.best[0])


def gaussian(n: int, d: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, d))


def circle(n: int) -> np.ndarray:
    angles = np.arange(n) * 2 * np.pi / n
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def spiral(n: int) -> np.ndarray:
    angles = np.arange(n) * 2.4
    return np.stack([np.cos(angles), np.sin(angles)], axis=1) * (1 + np.arange(n) / n)[:, None]


def grid(n: int, d: int, side: int = 3) -> np.ndarray:
    return np.random.default_rng(n + d).integers(-side, side + 1, size=(n, d)).astype(float)


def collinear(n: int) -> np.ndarray:
    return np.linspace(-1, 1, n)[:, None] * np.array([0.3, 0.1]) + np.array([0.7, 0.2])


def shallow_arc(n: int) -> np.ndarray:
    """Keys on an arc that is nearly straight, in random order."""
    steps = np.random.default_rng(n).permutation(n) / n
    return np.stack([steps, steps - 1e-8 * steps**2], axis=1)


def ulps(keys: np.ndarray, seed: int = 0) -> np.ndarray:
    """The same keys, each coordinate moved by up to two units in its last place."""
    steps = np.random.default_rng(seed).integers(-2, 3, size=keys.shape)
    return keys + steps * np.spacing(keys)


CLOUDS: dict[str, Callable[[], np.ndarray]] = {
    "gaussian": lambda: gaussian(300, 2),
    "circle": lambda: circle(200),
    "spiral": lambda: spiral(300),
    "grid": lambda: grid(300, 2),
    "collinear": lambda: collinear(130),
    "near-collinear": lambda: ulps(collinear(130)),
    "shallow arc": lambda: shallow_arc(300),
    "vertical": lambda: np.stack([np.full(90, 0.1), np.arange(90) * 0.7], axis=1),
    "repeated": lambda: np.repeat(gaussian(9, 2), 20, axis=0),
    "near-repeated": lambda: ulps(np.repeat(gaussian(5, 2), 50, axis=0)),
    "zero": lambda: np.zeros((70, 2)),
    "zero and few": lambda: np.concatenate([np.zeros((40, 2)), grid(40, 2, 1)]),
    "one key": lambda: np.array([[0.25, -3.0]]),
    "one coordinate": lambda: grid(150, 1, 40) / 7,
    "space": lambda: gaussian(600, 3),
    "space grid": lambda: grid(600, 3, 2),
    "near-repeated in space": lambda: ulps(np.repeat(gaussian(3, 5), 200, axis=0)),
    "many coordinates": lambda: gaussian(400, 32),
    "sphere": lambda: gaussian(300, 8) / np.linalg.norm(gaussian(300, 8), axis=1)[:, None],
}


def queries_for(keys: np.ndarray, count: int = 5) -> np.ndarray:
    """Random queries, axes, queries orthogonal to differences of keys (which tie or nearly tie), and keys."""
    rng = np.random.default_rng(5)
    d = keys.shape[1]
    some = [rng.normal(size=(count, d)), np.eye(d)[:3], -np.eye(d)[:3], keys[rng.integers(len(keys), size=3)]]
    if d == 2:
        i, j = rng.integers(len(keys), size=(2, count))
        difference = keys[i] - keys[j]
        some.append(np.stack([-difference[:, 1], difference[:, 0]], axis=1))
        some.append(grid(count, 2, 2))
    found = np.concatenate(some)
    return found[np.abs(found).max(axis=1) > 0]


@pytest.mark.parametrize("cloud", CLOUDS)
@pytest.mark.parametrize("tolerance", [TOLERANCE, 0.0, 0.02])
def test_answers_are_those_of_loops_over_all_keys(cloud: str, tolerance: float) -> None:
    keys = CLOUDS[cloud]()
    check(keys, queries_for(keys), tolerance)


@pytest.mark.parametrize("cloud", CLOUDS)
def test_answers_are_those_of_attended_to_the_last_bit(cloud: str) -> None:
    keys = CLOUDS[cloud]()
    check_as_attended(keys, np.concatenate([queries_for(keys, 3), np.zeros((1, keys.shape[1]))]))


@pytest.mark.parametrize("cloud", [name for name in CLOUDS if name != "many coordinates"])
def test_exact_answers_are_those_of_fractions(cloud: str) -> None:
    keys = CLOUDS[cloud]()[:70]
    check_exact(keys, queries_for(keys, 2)[::2])


@pytest.mark.parametrize(("d", "n"), [(2, 1200), (3, 1200)])
def test_structures_of_many_levels_answer_like_loops(d: int, n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(best_keys, "_BLOCK", 16)
    for keys in (gaussian(n, d), grid(n, d, 40)):
        check(keys, queries_for(keys, 1), ks=(1, 7))


coordinate = st.one_of(
    st.integers(-2, 2).map(float),
    st.sampled_from([0.1, 0.1 + 2**-56, 1 / 3, -1 / 3, 1e-17]),
    st.floats(-4, 4, width=16),
)


@settings(max_examples=40, deadline=None)
@given(st.data(), st.sampled_from([1, 2, 3]))
def test_loops_agree_on_tie_rich_keys(data: st.DataObject, d: int) -> None:
    rows = st.lists(st.tuples(*[coordinate] * d), min_size=1, max_size=70)
    keys = np.array(data.draw(rows))
    queries = np.array(data.draw(st.lists(st.tuples(*[coordinate] * d), min_size=1, max_size=3)))
    queries = queries[np.abs(queries).max(axis=1) > 0]
    if len(queries):
        check(keys, queries, data.draw(st.sampled_from([0.0, TOLERANCE, 0.05])))
        check_exact(keys[:25], queries[:1])


def same(one: object, other: object) -> bool:
    """Whether two results are equal to the last bit."""
    fields = one.__slots__  # type: ignore[attr-defined]
    pairs = [(np.asarray(getattr(one, field)), np.asarray(getattr(other, field))) for field in fields]
    return all(a.dtype == b.dtype and a.tobytes() == b.tobytes() for a, b in pairs)


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from(["gaussian", "grid", "near-repeated", "near-collinear", "circle", "space", "many coordinates"]),
    st.lists(st.integers(0, 60), max_size=12),
    st.lists(st.integers(0, 60), max_size=12),
    st.integers(0, 2**32),
)
def test_answers_do_not_depend_on_the_blocks_in_which_keys_arrive(
    cloud: str, sizes: list[int], others: list[int], seed: int
) -> None:
    keys = CLOUDS[cloud]()
    query = queries_for(keys)[seed % 8]
    found = []
    for parts in (sizes, others):
        built = hm.LeaderIndex(keys.shape[1])
        for size in parts:
            rest = keys[len(built) :]
            if size == 1 and len(rest):
                built.append(rest[0])
            elif size:
                built.append(rest[:size])
            if len(built):
                built.best(query)  # asking changes nothing
        built.append(keys[len(built) :])
        assert len(built) == len(keys)
        assert np.array_equal(built.keys, keys)
        found.append((built.best(query), built.best_k(query, 3)))
    assert same(found[0][0], found[1][0])
    assert same(found[0][1], found[1][1])


def near_ties(n: int, d: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Keys whose scores for the query differ by some units in the last place, in every order of magnitude of ties."""
    query = rng.normal(size=d)
    keys = rng.normal(size=(n, d))
    keys[:, -1] = (3.0 - keys[:, :-1] @ query[:-1]) / query[-1]  # all score 3, up to rounding
    return query, keys + rng.integers(-3, 4, size=(n, d)) * np.spacing(keys)


def order_dependent(rounds: int, n: int, d: int, tolerance: float, seed: int) -> int:
    """Decisions on near-ties that change with the order of rebuilding, or differ from a loop over all keys."""
    rng, wrong = np.random.default_rng(seed), 0
    for _ in range(rounds):
        query, keys = near_ties(n, d, rng)
        one, other = hm.LeaderIndex(d, tolerance), hm.LeaderIndex(d, tolerance)
        one.append(keys)
        cut = int(rng.integers(1, n))
        other.append(keys[:cut])
        other.append(keys[cut])
        other.append(keys[cut + 1 :])
        wrong += not same(one.best(query), other.best(query))
        scores = np.array(deciding_scores(query, keys))
        wanted = np.flatnonzero(scores >= scores.max() - slack_of(query, keys, tolerance))
        wrong += not np.array_equal(one.best(query).ties, wanted)
    return wrong


@pytest.mark.parametrize("d", [2, 3, 8])
@pytest.mark.parametrize("tolerance", [0.0, 4e-16, TOLERANCE])
def test_near_ties_are_decided_the_same_way_in_any_order(d: int, tolerance: float) -> None:
    assert order_dependent(8, 90, d, tolerance, seed=d) == 0


@pytest.mark.slow
@pytest.mark.parametrize("d", [2, 3, 8])
def test_many_near_ties_are_decided_the_same_way_in_any_order(d: int) -> None:
    assert order_dependent(1500, 1000, d, 0.0, seed=d) == 0
    assert order_dependent(1500, 1000, d, 4e-16, seed=10 + d) == 0


@pytest.mark.parametrize("size", [1e-300, 1e-140, 1.0, 1e140, 1e300])
@pytest.mark.parametrize("of_query", [1e-300, 1.0, 1e300])
@pytest.mark.parametrize("d", [2, 3])
def test_any_size_of_numbers_is_decided_as_attended_does(size: float, of_query: float, d: int) -> None:
    keys = np.concatenate([grid(60, d), gaussian(60, d), ulps(np.repeat(gaussian(4, d), 9, axis=0))]) * size
    queries = np.concatenate([grid(4, d, 2), gaussian(3, d, 4)]) * of_query
    with np.errstate(over="ignore"):
        check_as_attended(keys, queries)
    exact = hm.LeaderIndex(d, "exact")
    exact.append(keys)
    for query in queries[:3]:
        wanted = in_a_loop(exact_scores(query, keys), 1, 0)[0]  # all keys, where the query is zero
        assert exact.best(query).ties.tolist() == sorted(wanted)


def test_keys_that_grow_from_tiny_to_huge_are_decided_as_attended_does() -> None:
    for d in (2, 3):
        keys = gaussian(250, d)
        for sizes in (np.logspace(-300, -20, 250), np.logspace(-100, 180, 250), np.logspace(20, 300, 250)):
            check_as_attended(keys * sizes[:, None], gaussian(4, d, 9))


def test_exact_answers_at_sizes_that_range_over_everything() -> None:
    keys = gaussian(40, 2) * np.logspace(-320, 300, 40)[:, None]
    check_exact(keys, np.concatenate([gaussian(3, 2, 4), gaussian(2, 2, 5) * 1e-310, np.array([[5e-324, 1e300]])])[:5])


def test_the_exact_index_sees_what_rounding_hides() -> None:
    keys = np.array([[1.0, 1e-30], [1.0, 0.0], [1.0, 2e-30]])
    exact, rounded = hm.LeaderIndex(2, "exact"), hm.LeaderIndex(2)
    exact.append(keys)
    rounded.append(keys)
    assert rounded.best([1.0, 1.0]).ties.tolist() == [0, 1, 2]
    found = exact.best([1.0, 1.0])
    assert (found.first, found.margin) == (2, 1e-30)


def test_the_exact_margin_is_that_to_the_best_of_near_ties() -> None:
    rng = np.random.default_rng(3)
    for d in [2, 4] * 5:
        query, keys = near_ties(40, d, rng)
        best = query * (3.0 + 1e-7) / (query @ query)
        check_exact(np.concatenate([keys, best[None]]), query[None], ks=(1, 2))


def test_the_tolerance_ends_at_the_same_bit_for_all_ways_in() -> None:
    keys = np.array([[1.0, 0.0], [0.95, 0.0], [np.nextafter(0.95, 0), 0.0]])
    for parts in ([keys], list(keys)):
        built = hm.LeaderIndex(2, 0.05)
        for part in parts:
            built.append(part)
        for query in (np.array([1.0, 0.0]), np.array([[1.0, 0.0]]).repeat(2, axis=0)):
            found = built.best(query)
            assert np.array_equal(np.atleast_2d(np.asarray(found.ties))[-1], [0, 1])
            assert np.all(found.margin == 1.0 - keys[2, 0])
    check_as_attended(keys, np.array([[1.0, 0.0]]), 0.05)


def test_a_zero_query_ties_with_every_key() -> None:
    for tolerance in (None, "exact"):
        built = hm.LeaderIndex(2, tolerance)
        built.append(gaussian(40, 2))
        found = built.best([0.0, 0.0])
        assert (found.first, found.score, found.margin) == (0, 0.0, math.inf)
        assert found.ties.tolist() == list(range(40))
        top = built.best_k(np.zeros((2, 2)), 3)
        assert [len(positions) for positions in top.positions] == [40, 40]
        block = built.best(np.zeros((2, 2)))
        assert block.ties[1].tolist() == list(range(40))


@pytest.mark.parametrize(
    "convert",
    [
        lambda a: a.tolist(),
        lambda a: a,
        lambda a: a.astype(np.float32),
        lambda a: a.astype(np.int64),
        lambda a: torch.from_numpy(a),
        lambda a: torch.from_numpy(a).float(),
        lambda a: torch.from_numpy(a).int(),
        lambda a: torch.from_numpy(a).requires_grad_(),
        lambda a: a[::-1][::-1],
        lambda a: (
            [[Fraction(x) for x in row] for row in a.tolist()] if a.ndim == 2 else [Fraction(x) for x in a.tolist()]
        ),
    ],
)
def test_any_kind_of_real_numbers(convert: Callable[[np.ndarray], object]) -> None:
    keys, queries = grid(50, 2), grid(6, 2, 2)
    wanted = hm.LeaderIndex(2)
    wanted.append(keys)
    found = hm.LeaderIndex(2)
    assert found.append(convert(keys[:30])) == 30
    assert found.append(convert(keys[30])) == 31
    assert found.append(convert(keys[31:])) == 50
    assert np.array_equal(found.keys, keys)
    tensor = isinstance(convert(keys), torch.Tensor)
    block = found.best(convert(queries))
    assert isinstance(block.first, torch.Tensor) == tensor
    for i, query in enumerate(queries):
        one = found.best(convert(query))
        assert isinstance(one.ties, torch.Tensor) == tensor
        assert (type(one.first), type(one.score), type(one.margin)) == (int, float, float)
        right = wanted.best(query)
        assert one.ties.tolist() == block.ties[i].tolist() == right.ties.tolist()
        assert (one.first, one.score, one.margin) == (right.first, right.score, right.margin)
        top = found.best_k(convert(query), 4)
        assert isinstance(top.positions, torch.Tensor) == tensor
        assert top.positions.tolist() == wanted.best_k(query, 4).positions.tolist()


def test_empty_blocks_are_allowed() -> None:
    built = hm.LeaderIndex(2)
    assert built.append(np.empty((0, 2))) == 0
    assert built.append([1.0, 2.0]) == 1
    assert built.append(np.empty((0, 2))) == 1
    assert built.best(np.empty((0, 2))).first.shape == (0,)
    assert len(built.best_k(np.empty((0, 2)), 1).positions) == 0


def test_keys_are_read_only_and_stay_as_they_were() -> None:
    built = hm.LeaderIndex(3)
    built.append(gaussian(5, 3))
    keys = built.keys
    before = keys.copy()
    built.append(gaussian(500, 3, 1))
    assert np.array_equal(keys, before)
    with pytest.raises(ValueError):
        keys[0, 0] = 1.0
    assert built.keys.shape == (505, 3)
    mine = gaussian(40, 2)
    other = hm.LeaderIndex(2)
    other.append(mine)
    wanted = mine.copy()
    mine[:] = 7.0  # the caller's array is not the index's
    assert np.array_equal(other.keys, wanted)
    assert repr(other) == f"LeaderIndex(d=2, tolerance={TOLERANCE}): 40 keys"


def test_a_search_passes_over_all_keys_where_many_tie(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(best_keys, "_MANY_LEAVES", 2)
    monkeypatch.setattr(best_keys, "_MANY_KEYS", 30)
    for d in (2, 3):
        for keys in (grid(500, d, 1), gaussian(500, d) * 1e200, grid(500, d, 1) * 1e200):
            queries = np.concatenate([grid(4, d, 1), gaussian(1, d)])
            check_as_attended(keys, queries)
            if keys.max() < 10:
                check(keys, queries[np.abs(queries).max(axis=1) > 0], ks=(1, 40))
                check_exact(keys[:200], queries[-2:], ks=(2,))


@pytest.mark.parametrize("d", [2, 3])
def test_blocks_of_queries_go_either_way(d: int, monkeypatch: pytest.MonkeyPatch) -> None:
    keys, queries = grid(700, d, 30), np.concatenate([gaussian(20, d), grid(20, d, 2)])
    built = hm.LeaderIndex(d)
    built.append(keys)
    dense = built.best(queries)
    for name in ("_FEW_PAIRS", "_FEW_KEYS"):
        monkeypatch.setattr(index, name, 0)
    monkeypatch.setattr(index, "_SMALL_SHARE", 2.0)
    assert not built._dense_pays(queries)
    single = built.best(queries)
    monkeypatch.setattr(best_keys, "_SCORES_AT_ONCE", 1500)
    monkeypatch.setattr(index, "_FEW_PAIRS", 1 << 20)
    for other in (single, built.best(queries)):
        assert np.array_equal(dense.first, other.first)
        assert np.array_equal(dense.score, other.score)
        assert np.array_equal(dense.margin, other.margin)
        assert all(map(np.array_equal, dense.ties, other.ties))


def test_a_query_in_the_plane_sees_few_keys() -> None:
    built = hm.LeaderIndex(2)
    built.append(gaussian(5_000, 2))
    shortlist = best_keys.Shortlist(1, 0.0, 0.0)
    assert 0 < built._structure.collect([0.6, 0.8], shortlist, 5.0) < 200


def test_sizes_that_are_scaled_are_those_that_attended_scales() -> None:
    assert (auto._SMALLEST, auto._LARGEST) == (2.0**-index._ORDINARY, 2.0**index._ORDINARY)


def test_bad_input_is_named() -> None:
    built = hm.LeaderIndex(2)
    for ask in (built.best, lambda q: built.best_k(q, 1)):
        for query in ([1.0, 0.0], np.ones((2, 2))):
            with pytest.raises(InputError, match="must hold at least one key, got no keys: append keys first"):
                ask(query)
    built.append([[1.0, 0.0], [0.0, 1.0]])
    for call in (built.append, built.best, lambda q: built.best_k(q, 1)):
        with pytest.raises(InputError, match=r"must have shape \(2,\) or \(\w+, 2\), got shape \(3,\)"):
            call([1.0, 0.0, 0.0])
        with pytest.raises(InputError, match=r"got shape \(1, 1, 2\)"):
            call(np.ones((1, 1, 2)))
        with pytest.raises(InputError, match=r"must be finite, got nan at index \(1,\)"):
            call([1.0, math.nan])
        with pytest.raises(InputError, match=r"must be finite, got inf at index \(0, 1\)"):
            call(np.array([[1.0, math.inf]]))
        with pytest.raises(InputError, match="real numbers"):
            call([1j, 0.0])
    for k, problem in ((0, "whole number, at least 1"), (3, "at most the 2 keys"), (1.5, "whole number")):
        with pytest.raises(InputError, match=problem):
            built.best_k([1.0, 0.0], k)
    for d in (0, 2.5, "2"):
        with pytest.raises(InputError, match="d must be a whole number"):
            hm.LeaderIndex(d)
    for tolerance in (-1e-9, 0.5, "almost", math.nan):
        with pytest.raises(InputError, match="tolerance must"):
            hm.LeaderIndex(2, tolerance)
    assert len(built) == 2


def test_keys_of_sizes_too_far_apart_are_refused_and_not_appended() -> None:
    for more in ([1e300, 1e300], [[1e300, 1e300], [1.0, 1.0]]):
        built = hm.LeaderIndex(2)
        built.append([1e-200, 1.0])
        with pytest.raises(InputError, match="must not range over more than 288 orders of magnitude"):
            built.append(more)
        assert len(built) == 1
        assert built.best([1.0, 1.0]).score == 1.0
    wide = hm.LeaderIndex(2)
    wide.append([[1e-300, 0.0], [1.0, 1.0]])
    with pytest.raises(InputError, match="288 orders"):
        wide.best([1e-300, 0.0])


@pytest.mark.parametrize("size", [1e-5, 1.0, 3e7])
def test_exact_answers_to_queries_of_any_length_where_scores_nearly_tie(size: float) -> None:
    rng = np.random.default_rng(7)
    for d in (2, 3, 5):
        query, keys = near_ties(60, d, rng)
        check_exact(keys, size * query[None], ks=(1, 2))


def test_near_ties_of_huge_and_tiny_keys_where_so_many_tie_that_all_are_scored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(best_keys, "_MANY_LEAVES", 2)
    monkeypatch.setattr(best_keys, "_MANY_KEYS", 30)
    rng = np.random.default_rng(2)
    for d in (2, 3):
        query, keys = near_ties(300, d, rng)
        for scale in (2.0**-700, 2.0**600):
            check_as_attended(scale * keys, query[None])


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_hulls_of_keys_that_lie_nearly_on_a_line(sign: float) -> None:
    # The keys lie above or below the line through the ends by less than slopes in float64 show.
    x = np.linspace(0.0, 1.0, 300)
    y = x / 3 + sign * 2.0**-50 * x * (1 - x)
    slopes = -(1 / 3) * (1 + np.array([-1e-15, -2e-16, 0.0, 3e-16, 2e-15]))
    check_exact(
        np.column_stack([x, y]),
        np.concatenate([np.column_stack([s, 0 * s + t]) for s, t in ((slopes, 1.0), (-slopes, -1.0))]),
    )
