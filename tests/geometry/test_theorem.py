"""Theorem 1.1 checked on runs: it holds under its assumptions, and violations are detected."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import hardmax as hm
from hardmax.dynamics.leadership import Leadership
from hardmax.geometry import theorem
from hardmax.geometry.theorem import check_assumptions, check_theorem
from helpers import SHEARED, examples, spd

NAMES = [
    "leaders exist",
    "vertices",
    "convergence",
    "support",
    "nested hulls",
    "A-norms",
    "largest A-norm",
    "leaders stop",
    "invariance",
    "loyal followers",
    "map",
]
FACE = np.array([[2.0, 2.0], [-2.0, 2.0], [0.0, 1.0], [0.5, -0.1], [0.0, -3.0]])


@settings(deadline=None, max_examples=examples(40))
@given(st.integers(0, 2**31), st.integers(1, 40), st.integers(1, 6), st.floats(0.05, 3.0))
def test_random_systems_obey(seed: int, n: int, d: int, alpha: float) -> None:
    rng = np.random.default_rng(seed)
    report = check_theorem(rng.normal(size=(n, d)), hm.HardmaxLayer(alpha, spd(rng, d)), require_assumptions=True)
    assert report.holds, str(report)
    assert [finding.name for finding in report.findings] == NAMES
    assert report.assumptions.hold


@settings(deadline=None, max_examples=examples(40))
@given(st.lists(st.lists(st.integers(-2, 2), min_size=2, max_size=2), min_size=1, max_size=10), st.booleans())
def test_tie_rich_systems_obey_also_beyond_the_assumptions(rows: list[list[int]], exact: bool) -> None:
    layer = hm.HardmaxLayer(0.5, SHEARED, tolerance="exact" if exact else None)
    report = check_theorem((np.array(rows, dtype=float), layer))
    assert report.holds, str(report)


@pytest.mark.parametrize("size", [1e-300, 1e300])
def test_any_size_obeys(size: float) -> None:
    assert check_theorem(FACE * size, hm.HardmaxLayer(A=SHEARED)).holds


def test_single_precision_and_tensors_obey() -> None:
    tokens = torch.randn(50, 3, generator=torch.Generator().manual_seed(0))
    report = check_theorem(tokens, hm.HardmaxLayer())
    assert report.holds, str(report)
    assert report["map"].tolerance < 1e-12  # the states are looked at before they were rounded to float32
    late = check_theorem(hm.simulate(tokens, hm.HardmaxLayer(), depth=3, keep=[2, 3]))
    assert late.holds, str(late)
    assert late["map"].tolerance > 1e-5


def test_a_token_on_a_face_is_found_on_it() -> None:
    report = check_theorem(FACE, hm.HardmaxLayer(0.5))
    assert report["support"].sentence.endswith("1 of them on faces")
    assert report["vertices"].sentence == "K is a polygon with 3 vertices in 2 coordinates; 3 leaders"
    assert str(report).startswith("Theorem 1.1 applies")


def test_a_limit_answers_for_the_limit_alone() -> None:
    report = check_theorem(hm.equilibrium(FACE))
    assert report.holds
    assert report["facts 1 to 6"].holds is None
    assert report["support"].holds is True
    with pytest.raises(KeyError, match="no finding is called 'map'"):
        _ = report["map"]


def test_two_equally_long_tokens_leave_fact_three_open() -> None:
    assert check_theorem([[1.0, 0.0], [-1.0, 0.0]], hm.HardmaxLayer())["largest A-norm"].holds is None


def test_an_undecided_run_says_so() -> None:
    tokens = np.random.default_rng(56).normal(size=(30, 3))
    report = check_theorem(hm.simulate(tokens, hm.HardmaxLayer(0.5), depth=0))
    assert report["convergence"].holds is None
    assert "undecided: run more layers" in report["convergence"].sentence
    assert report["nested hulls"].holds is None
    assert report["map"].holds is None


def _run(depth: int = 6) -> hm.Trajectory:
    tokens = np.random.default_rng(3).normal(size=(25, 2))
    return hm.simulate(tokens, hm.HardmaxLayer(0.5), depth=depth)


def _broken(run: hm.Trajectory) -> list[str]:
    return [finding.name for finding in check_theorem(run).violations]


def test_a_token_that_leaves_the_hull_is_found_out() -> None:
    run = _run()
    tokens = run.tokens.copy()
    tokens[3, 0] = 100.0
    assert {"nested hulls", "map", "A-norms"} <= set(_broken(replace(run, tokens=tokens)))


def test_a_leader_that_moves_is_found_out() -> None:
    run = _run()
    tokens = run.tokens.copy()
    leader = run.leadership.leaders[0]
    tokens[4:, leader] *= 0.9
    assert {"leaders stop", "A-norms", "map"} <= set(_broken(replace(run, tokens=tokens)))


def test_a_wrong_leader_is_found_out() -> None:
    run = _run()
    found = run.leadership
    follower = next(i for i in range(25) if i not in found.leaders)
    wrong = found.follows.copy()
    wrong[follower] = next(j for j in found.leaders if j != wrong[follower])
    assert _broken(replace(run, leadership=replace(found, follows=wrong))) == ["loyal followers"]


def test_a_leader_inside_of_the_hull_is_found_out() -> None:
    run = _run()
    found = run.leadership
    follower = next(i for i in range(25) if i not in found.leaders)
    leaders = np.append(found.leaders, follower)
    order = np.argsort(leaders)
    wrong = replace(
        found,
        leaders=leaders[order],
        emerged_at=np.append(found.emerged_at, 0)[order],
        follows=np.where(np.arange(25) == follower, follower, found.follows),
    )
    assert "leaders stop" in _broken(replace(run, leadership=wrong))


def test_a_hidden_leader_is_found_out() -> None:
    run = _run()
    found = run.leadership
    longest = int(np.argmax((run.tokens[0] ** 2).sum(axis=1)))
    keep = found.leaders != longest
    wrong: Leadership = replace(found, leaders=found.leaders[keep], emerged_at=found.emerged_at[keep])
    assert "largest A-norm" in _broken(replace(run, leadership=wrong))


def test_assumptions_that_fail_are_said_and_required_on_demand() -> None:
    layer = hm.HardmaxLayer(A=[[1.0, 0.0], [0.0, -1.0]])
    assumptions = check_assumptions(FACE, layer)
    assert not assumptions.positive_definite
    assert assumptions.symmetric
    report = check_theorem(FACE, layer)
    assert not report.assumptions.hold
    assert "A is not positive definite" in str(report)
    with pytest.raises(hm.InputError, match=r"A must be positive definite.*numpy.eye\(d\)"):
        check_theorem(FACE, layer, require_assumptions=True)


@pytest.mark.parametrize(
    ("tokens", "options", "message"),
    [
        (FACE, {"A": [[1.0, 0.5], [0.0, 1.0]]}, "A must be symmetric"),
        ([[0.0, 0.0], [1.0, 1.0]], {}, "tokens must not be zero"),
        ([[1.0, 0.0], [1.0, 0.0]], {}, "tokens must be distinct"),
    ],
)
def test_required_assumptions_name_what_is_wrong(tokens: object, options: dict[str, object], message: str) -> None:
    with pytest.raises(hm.InputError, match=message):
        check_theorem(tokens, hm.HardmaxLayer(**options), require_assumptions=True)


def test_bad_input_is_refused() -> None:
    with pytest.raises(hm.InputError, match="layer must be a HardmaxLayer"):
        check_theorem(FACE, hm.SoftmaxLayer())
    with pytest.raises(hm.InputError, match="layer must be a HardmaxLayer"):
        check_theorem(FACE)
    with pytest.raises(hm.InputError, match="layer must be a HardmaxLayer"):
        check_assumptions(FACE, None)
    with pytest.raises(hm.InputError, match="run must come from a layer that chooses"):
        check_theorem(hm.simulate(FACE, hm.SoftmaxLayer(), depth=1))
    with pytest.raises(hm.InputError, match="run must have V = identity"):
        check_theorem(FACE, hm.HardmaxLayer(V=np.eye(2) / 2))


@pytest.mark.parametrize(
    ("tokens", "matrix"), [(FACE, np.zeros((2, 2))), (np.zeros((3, 2)), np.eye(2))], ids=["zero matrix", "zero tokens"]
)
def test_facts_about_the_layers_are_not_known_where_all_scores_are_zero(tokens: np.ndarray, matrix: np.ndarray) -> None:
    report = check_theorem(hm.simulate(tokens, hm.HardmaxLayer(0.5, A=matrix), depth=3))
    assert "not known facts 1 to 6: all scores are zero" in str(report)


def test_findings_say_what_was_looked_at_and_never_less_than_nothing() -> None:
    report = check_theorem(hm.simulate(FACE, hm.HardmaxLayer(0.5), depth=4))
    leaders = hm.equilibrium(FACE, hm.HardmaxLayer(0.5))
    assert leaders.emerged_at.tolist() == [0] * len(leaders.leaders)
    assert f", {5 * len(leaders.leaders)} looks" in report["leaders stop"].sentence
    for name in ("A-norms", "leaders stop", "nested hulls"):
        assert 0 <= report[name].worst <= report[name].tolerance
    # Here <A z, z> grows for all tokens, so there is no decrease.
    shrinking = hm.simulate([[1.0, 0.0], [-1.0, 0.0]], hm.HardmaxLayer(0.5, A=-np.eye(2)), depth=4)
    assert check_theorem(shrinking)["A-norms"].worst == 0


def test_runs_of_a_check_show_no_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def run(*given: object, **options: object) -> hm.Trajectory:
        asked.append(options["progress"])
        return hm.simulate(*given, **options)  # type: ignore[call-overload, no-any-return]

    monkeypatch.setattr(theorem, "simulate", run)
    assert check_theorem(FACE, hm.HardmaxLayer(0.5)).holds
    assert asked == [False, False]
