"""Folds, scores, the boundedness check and the selection."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hardmax.forecasting.data.delay_windows import lags
from hardmax.forecasting.features.candidates import (
    Embeddings,
    lag_polynomial_groups,
    linear_groups,
    principal_polynomial_groups,
    truncated_groups,
)
from hardmax.forecasting.features.feature_map import FeatureMap
from hardmax.forecasting.rollout import Fade, Member, roll
from hardmax.forecasting.search.model_search import fit_family, plan_for
from hardmax.forecasting.search.readout_search import BY_MODES, RIDGES, Candidate, Learner, Search, score_together
from hardmax.forecasting.search.refit import fade_limits, stays_bounded
from hardmax.forecasting.search.selection import Finalist, Ranking, rank, select
from hardmax.forecasting.search.time_budget import TimeBudget
from hardmax.forecasting.search.validation import Fold, make_folds, outside_validation
from hardmax.forecasting.settings import Settings

_SETTINGS = Settings(None, None, 1, None, 1.0, 0, False)


def _logistic(samples: int = 500) -> np.ndarray:
    z = [0.4]
    for _ in range(samples - 1):
        z.append(3.9 * z[-1] * (1 - z[-1]))
    path = np.array(z)[:, None]
    return (path - path.mean()) / path.std()


@given(st.lists(st.integers(30, 200), min_size=1, max_size=7), st.integers(1, 9), st.integers(2, 50))
@settings(deadline=None, max_examples=40)
def test_folds_hold_out_what_they_forecast(lengths: list[int], context: int, horizon: int) -> None:
    marks, data = 0, []
    for length in lengths:
        data.append(np.arange(marks, marks + length, dtype=float)[:, None])
        marks += length
    for fold in make_folds(data, 1, context, horizon):
        learned = set(np.concatenate(fold.training)[:, 0].tolist())
        assert not learned & set(fold.truth.reshape(-1).tolist())
        assert fold.windows.shape[1:] == (context, 1)
        # Every truth goes on where its window ends.
        np.testing.assert_array_equal(fold.truth[:, 0], fold.windows[:, -1] + 1)
        inner = set(np.concatenate(outside_validation(data))[:, 0].tolist())
        if len(lengths) >= 3:
            assert not inner & set(fold.truth.reshape(-1).tolist())


def test_a_search_learns_from_pieces_of_a_long_record() -> None:
    data = [np.arange(start, start + length, dtype=float)[:, None] for start, length in ((0, 90_000), (10**6, 30_000))]
    for pieces in (*(fold.training for fold in make_folds(data, 1, 20, 100)), outside_validation(data)):
        assert 16_000 <= sum(map(len, pieces)) <= 24_000
        assert all((np.diff(piece[:, 0]) == 1).all() for piece in pieces)  # samples that lie together stay so
        starts = np.array([piece[0, 0] for piece in pieces])
        assert (np.diff(np.sort(starts)) >= 2000).all()  # none twice
        assert (starts < 10**6).sum() == pytest.approx(3 * (starts >= 10**6).sum(), abs=3)
    short = [np.zeros((20_000, 1))]
    assert make_folds(short, 1, 20, 100)[0].training[0].shape == (16_000, 1)


def test_the_score_is_that_of_its_formula() -> None:
    rng = np.random.default_rng(0)
    truth = rng.standard_normal((3, 7, 2))
    paths = truth + 10.0 ** rng.uniform(-15, 1, (2, 3, 7, 1)) * rng.standard_normal((2, 3, 7, 2))
    fold = Fold([], np.zeros((3, 1, 2)), truth, None)
    found = fold.score(paths)
    for copy in range(2):
        total = 0.0
        for start in range(3):
            worst = 0.0
            for step in range(7):
                worst = max(worst, float(np.sqrt(((paths[copy, start, step] - truth[start, step]) ** 2).mean())))
                total += np.log10(min(max(worst, 0.03), 1)) + 0.1 * np.log10(min(max(worst, 1e-13), 1))
        assert found[copy] == pytest.approx(total / 21, rel=1e-9)


def test_scoring_together_is_scoring_one_by_one() -> None:
    z = _logistic()
    fold = make_folds([z], 1, 5, 20)[0]
    features = FeatureMap(1, polynomial=lags(1, 1), degree=3)
    readouts = Learner(fold.training, 1, 0).readouts([features], 0.0, RIDGES[:3])[0]
    members = [Member(features, readout[None]) for readout in readouts]
    alone = [float(fold.score(roll([m], fold.windows, fold.horizon))[0]) for m in members]
    np.testing.assert_allclose(score_together(fold, members), alone, rtol=1e-9)


def test_the_boundedness_check_refuses_what_leaves_the_range() -> None:
    quiet = Member(FeatureMap(1, lags(1, 1)), np.array([[[0.0], [-0.1]]]))
    loud = Member(FeatureMap(1, lags(1, 1)), np.array([[[0.0], [0.01]]]))
    windows = np.ones((4, 1, 1)) * 0.9
    fade = Fade(np.zeros(1), np.ones(1))
    assert stays_bounded([quiet], windows, fade)
    assert not stays_bounded([loud], windows, fade)
    # Held at the edge by the fading, it is still refused: it spends its time outside.
    assert not stays_bounded([loud], windows, Fade(np.zeros(1), np.ones(1), loud))


@pytest.mark.parametrize(("peak", "allowed"), [(1.6, True), (1.7, False), (20.0, False)])
def test_the_boundedness_check_allows_no_single_step_far_outside(peak: float, allowed: bool) -> None:
    # A jump to ``peak`` half-ranges and back at once: one step of many, so only its height can be refused.
    constant = Member(FeatureMap(1, lags(1, 1)), np.array([[[0.0], [-1.0]]]))
    windows = np.zeros((12, 1, 1))
    windows[0] = 0.5
    jump = Member(FeatureMap(2, lags(2, 1)), np.array([[[0.0], [-1.0], [1.0]]]))
    future = np.zeros((12, 400, 1))
    future[3, 17] = peak
    with_inputs = np.concatenate([windows, np.zeros_like(windows)], axis=2)
    fade = Fade(np.zeros(1), np.ones(1))
    assert stays_bounded([constant], windows, fade)
    assert stays_bounded([jump], with_inputs, fade, future=future) is allowed


@pytest.mark.parametrize(("share", "allowed"), [(0.008, True), (0.02, False)])
def test_the_boundedness_check_allows_one_step_of_a_hundred_a_little_outside(share: float, allowed: bool) -> None:
    jump = Member(FeatureMap(2, lags(2, 1)), np.array([[[0.0], [-1.0], [1.0]]]))
    future = np.zeros((12, 1000, 1))
    future[:, 400 : 400 + int(1000 * share)] = 1.3
    assert stays_bounded([jump], np.zeros((12, 1, 2)), Fade(np.zeros(1), np.ones(1)), future=future) is allowed


def _linear(score: float) -> Finalist:
    features = FeatureMap(1, lags(1, 1))
    return Finalist((Candidate("linear", "TD-DMD", features, 0.0, 0.0, np.zeros((2, 1)), score),), score)


def _trained(score: float) -> Finalist:
    """A finalist of another family than polynomials."""
    return Finalist((replace(_candidate(score, -0.5), family="attention"),), score)


def _as_ranked(finalist: Finalist) -> float:
    """Scores of rollouts that stay in the range are the same with a fade."""
    return finalist.score


def test_when_the_time_is_over_only_the_cheap_models_are_still_asked() -> None:
    linear, cheap, better = _linear(0.1), Finalist((_candidate(0.05, -0.5),), 0.05), _trained(0.04)
    asked: list[Finalist] = []

    def is_bounded(finalist: Finalist) -> bool:
        asked.append(finalist)
        return True

    def linear_only(finalist: Finalist) -> bool:
        return is_bounded(finalist) and finalist is linear

    for check, expected, chosen in ((is_bounded, [cheap], cheap), (linear_only, [cheap, linear], linear)):
        asked.clear()
        near = _trained(0.09) if chosen is linear else better
        cheaper = replace(cheap, score=0.095) if chosen is linear else cheap
        found = select(Ranking((near, cheaper, linear), ()), check, _as_ranked, lambda: False)
        assert [f.score for f in asked] == [cheaper.score if f is cheap else f.score for f in expected]
        assert found.chosen is (cheaper if chosen is cheap else linear)
        assert found.bounded
        assert not found.all_checked
    clearly = _trained(-1.0)
    found = select(Ranking((clearly, cheap, linear), ()), is_bounded, _as_ranked, lambda: False)
    assert found.chosen is clearly
    assert not found.bounded


def test_a_cheap_model_that_was_refused_is_not_asked_again_when_the_time_is_over() -> None:
    linear, cheap = _linear(0.06), Finalist((_candidate(0.05, -0.5),), 0.05)
    left = iter((True, False))
    asked: list[Finalist] = []

    def is_bounded(finalist: Finalist) -> bool:
        asked.append(finalist)
        return finalist is linear

    select(Ranking((cheap, _trained(0.055), linear), ()), is_bounded, _as_ranked, lambda: next(left))
    assert [id(f) for f in asked] == [id(cheap), id(linear)]


def test_td_dmd_and_ng_rc_are_ranked_however_little_time_there_is() -> None:
    z = _logistic()
    folds = make_folds([z], 1, 20, 20)
    search = Search(folds[0], 1, 0, TimeBudget())
    search.screen(linear_groups(1, 8), (0.0,))
    search.screen(lag_polynomial_groups(1, 1, 8), (0.0,))
    search.evaluate_best(30)
    # Better ones that would fill all places.
    other = Search(folds[0], 1, 0, TimeBudget())
    other.screen(principal_polynomial_groups(1, 2, 8, Embeddings(folds[0].training)), (0.0, 1e-3))
    crowd = [replace(c, score=-9.0) for c in other.evaluate_best(60)]
    assert len(crowd) > 40
    full = rank([*crowd, *search.candidates], folds, 1, 0, 20)
    short = rank([*crowd, *search.candidates], folds, 1, 0, 20, lambda: False)
    for ranking in (full, short):
        ranked = [f.sources[0] for f in ranking.best if len(f.sources) == 1]
        linear = min(c.score for c in search.candidates if c.features.is_linear)
        assert min(c.score for c in ranked if c.features.is_linear) == linear
        simple = min(c.score for c in search.candidates if c.family == "polynomial")
        assert min(c.score for c in ranked if c.features.is_polynomial_of_lags) == simple
    assert not any(f.sources[0].score == -9.0 for f in short.best)
    assert len(short.best) + len(short.rest) == len(crowd) + len(search.candidates)


def test_a_screening_out_of_time_tries_the_smallest_features_of_a_group() -> None:
    fold = make_folds([_logistic()], 1, 20, 20)[0]
    over = Search(fold, 1, 0, TimeBudget(1e-9))
    group = next(iter(lag_polynomial_groups(1, 1, 8)))
    over.screen([group], (0.0,), at_least_one=True)
    assert {c.features.size for c in over.screened} == {group.nested[0].size}
    assert over.evaluate_best(8)


def test_a_record_that_grows_beyond_its_range_widens_the_fade() -> None:
    t = np.arange(3000)
    still = np.sin(0.1 * t)[:, None]
    assert fade_limits([still], 1) == pytest.approx((1.15, 1.6), rel=1e-3)
    # The last fifth is 1.4 times as large as all before.
    grown = np.where(t < 2400, 1.0, 1.4)[:, None] * still
    assert fade_limits([grown], 1) == pytest.approx((1.4 * 1.15, 1.4 * 1.6), rel=1e-3)
    assert fade_limits([np.where(t < 2400, 1.0, 9.0)[:, None] * still], 1) == pytest.approx((2.0125, 2.8))
    # Of few samples the growth would be chance.
    assert fade_limits([grown[2000:2900]], 1) == (1.15, 1.6)


def _candidate(score: float, growth: float) -> Candidate:
    features = FeatureMap(1, lags(1, 1), lags(1, 1), 2)
    return Candidate("polynomial", f"{score}", features, 0.0, 1e-9, np.array([[0.0], [growth], [0.0], [0.0]]), score)


def test_the_whole_list_is_searched_for_a_bounded_model_that_is_nearly_as_good() -> None:
    linear = Candidate("linear", "TD-DMD", FeatureMap(1, lags(1, 1)), 0.0, 1e-9, np.zeros((2, 1)), 0.1)
    best = tuple(Finalist((_candidate(-0.1 + 0.0001 * i, 1.0),), -0.1 + 0.0001 * i) for i in range(60))
    rest = tuple(Finalist((_candidate(-0.2 + 0.01 * i, 1.0 if i < 9 else -0.5),), -0.08) for i in range(12))
    ranking = Ranking((*best, Finalist((linear,), 0.1)), rest)
    chosen = select(ranking, lambda f: f is not ranking.linear and float(f.sources[0].readout[1, 0]) < 0, _as_ranked)
    # TD-DMD is out of question: its score is worse than that of the best by more than a tenth. So it ends the walk.
    assert chosen.chosen is best[0]
    assert not chosen.bounded
    near = Ranking((*best, Finalist((linear,), -0.09)), rest)
    chosen = select(near, lambda f: f is not near.linear and float(f.sources[0].readout[1, 0]) < 0, _as_ranked)
    assert chosen.chosen is rest[9]
    assert chosen.rejected == 70
    assert chosen.bounded


@pytest.mark.parametrize(
    ("score", "tame", "gives_up"),
    [(-1.0, -0.7, True), (-1.0, -0.85, True), (-1.0, -0.92, False), (-0.13, -0.02, True), (-0.05, -0.04, False)],
)
def test_boundedness_is_given_up_for_a_tenth_of_the_score(score: float, tame: float, gives_up: bool) -> None:
    linear, wild, quiet = _linear(0.1), _trained(score), Finalist((_candidate(tame, -0.5),), tame)
    asked: list[Finalist] = []

    def is_bounded(finalist: Finalist) -> bool:
        asked.append(finalist)
        return finalist is quiet

    found = select(Ranking((wild, quiet, linear), ()), is_bounded, _as_ranked)
    assert found.chosen is (wild if gives_up else quiet)
    assert found.bounded is not gives_up
    # What could not be selected is not checked.
    assert (len(asked) == 1) is gives_up


def test_what_the_fade_spoils_is_not_worth_its_boundedness() -> None:
    linear, wild, quiet = _linear(0.1), _trained(-1.0), Finalist((_candidate(-0.7, -0.5),), -0.7)

    def as_used(finalist: Finalist) -> float:
        return -0.3 if finalist is wild else finalist.score

    found = select(Ranking((wild, quiet, linear), ()), lambda f: f is quiet, as_used)
    assert found.chosen is quiet
    assert found.bounded
    found = select(Ranking((wild, linear), ()), lambda f: False, lambda f: 0.2 if f is wild else f.score)
    assert found.chosen is linear  # which extrapolates a record that grows
    assert not found.bounded


def test_td_dmd_is_selected_when_nothing_is_bounded_and_nothing_better() -> None:
    linear, wild = _linear(-0.5), Finalist((_candidate(-0.52, -1.0),), -0.52)
    found = select(Ranking((wild, linear), ()), lambda f: False, _as_ranked)
    assert found.chosen is linear
    assert not found.bounded


def test_the_choice_is_never_worse_than_td_dmd_on_validation_data() -> None:
    for z in (_logistic(), np.random.default_rng(0).standard_normal((300, 1)), np.sin(0.3 * np.arange(300))[:, None]):
        found = fit_family([z], 1, _SETTINGS)
        assert found.selection.chosen.score <= found.selection.linear.score + 1e-12


def test_ranking_includes_means_of_the_best() -> None:
    z = _logistic()
    plan = plan_for([z], _SETTINGS)
    folds = make_folds([z], 1, plan.longest, plan.horizon)
    search = Search(folds[0], 1, 0, TimeBudget())
    search.screen(linear_groups(1, 8), (0.0, 1e-3))
    search.screen(lag_polynomial_groups(1, 1, 8), (0.0, 1e-3))
    search.evaluate_best(30)
    ranking = rank(search.candidates, folds, 1, 0)
    assert {len(f.sources) for f in ranking.best} == {1, 3, 6}
    assert [f.score for f in ranking.best] == sorted(f.score for f in ranking.best)


def test_windows_evolved_through_their_modes_forecast_noisy_waves() -> None:
    rng = np.random.default_rng(1)
    t = np.arange(900)
    clean = (np.sin(0.31 * t) + 0.6 * np.sin(0.83 * t))[:, None]
    noisy = clean + 0.1 * rng.standard_normal(clean.shape)
    group = next(iter(truncated_groups(1, 400, Embeddings([noisy[:700]]))))
    features = next(part for part in group.nested if part.size == 1 + 1 + 4)
    modes, plain = Learner([noisy[:700]], 1, 0).readouts([features], 0.0, np.array([BY_MODES, 1e-12]))[0]
    errors = [
        np.sqrt(((roll([Member(features, b[None])], noisy[None, :700], 150)[0, 0] - clean[700:850]) ** 2).mean())
        for b in (modes, plain)
    ]
    assert errors[0] < 0.08
    assert errors[0] < errors[1] + 0.02


def test_noise_on_windows_is_drawn_once_and_targets_stay_clean() -> None:
    z = _logistic(60)
    learner = Learner([z], 1, 3)
    features = FeatureMap(1, lags(1, 2))
    rows, targets = learner.design(features, 0.1)
    again, _ = Learner([z], 1, 3).design(features, 0.1)
    np.testing.assert_array_equal(rows, again)
    copies = len(rows) // 58
    assert copies == 4
    np.testing.assert_allclose(rows[:, 2:3] + targets, np.tile(z[2:], (copies, 1)))
    assert np.std(rows[:58, 2] - z[1:-1, 0]) == pytest.approx(0.1, rel=0.3)
