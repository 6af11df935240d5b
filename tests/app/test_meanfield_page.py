"""The Mean field page without a browser."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hardmax as hm
from hardmax.app.meanfield.page import MeanFieldPage
from hardmax.app.meanfield.state import MOST_TOKENS, STEP, Followed, MeanFieldState, follow
from visits import Visit, run_code

SMALL = {"n": "60", "time": "6", "beta": "20"}


@pytest.mark.parametrize("more", [{}, {"turn": "20"}, {"d": "3", "b1": "2.5"}])
def test_pieces_are_one_run(more: dict[str, str]) -> None:
    state = MeanFieldState.from_query(SMALL | more)
    pieces: list[Followed] = []
    seen = follow(state, show=pieces.append)
    law = state.law
    run = hm.simulate(law.points, state.flow, time=6.0, step=STEP, weights=law.weights)
    assert np.allclose(seen.run.tokens, run.tokens, atol=1e-12)
    assert np.allclose(seen.run.times, run.times)
    found = hm.phases(run)
    assert seen.found is not None
    assert seen.found.approach_time == pytest.approx(found.approach_time, abs=1e-6)
    assert len(pieces) == 5
    assert seen.finished
    assert not any(piece.finished for piece in pieces)


def test_a_limit_that_is_a_circle_waits_for_the_end() -> None:
    pieces: list[Followed] = []
    seen = follow(MeanFieldState.from_query({"d": "3", "b1": "2", "n": "40", "time": "2"}), show=pieces.append)
    assert seen.limit.dimension == 2
    assert [piece.found for piece in pieces] == [None]
    assert seen.found is not None
    assert "computed at the end" in " ".join(pieces[0].words())


def test_the_page_follows_and_marks() -> None:
    visit = Visit(MeanFieldPage(), SMALL)
    page = visit.page
    assert page._seen.finished
    assert "closest approach" in page._table.object
    assert "least W₂" in page._table.object  # as in the plot
    assert "W2" not in page._table.object
    shown = page._distances.curve.data
    assert np.array_equal(shown["w"], page._seen.found.distances)
    assert page._player.value == int(np.abs(page._seen.run.times - page._seen.found.approach_time).argmin())
    early = page._seen.found.escape_time
    page._changed("beta", 100.0)
    visit.settle()
    assert page._seen.state.beta == 100.0
    later = page._seen.found.escape_time
    assert later is None or early is None or later > early
    assert page.figure() is not None
    visit.close()


def test_a_heavy_run_on_the_sphere_is_cancelled_and_frees_its_thread() -> None:
    visit = Visit(MeanFieldPage(), SMALL)
    page = visit.page
    page._changed("d", 3)  # on the sphere, with as many tokens and as long as the page allows: minutes of work
    page._state = page._state.changed(n=MOST_TOKENS, time=40.0)
    page._run()
    heavy = visit.session.jobs.current
    while heavy.fraction is None and not heavy.note:  # until it works, and not only waits
        visit.loop.waiting.get(timeout=60)()
    visit.session.jobs.cancel()
    assert heavy.cancelled
    # There is one thread: a small run can only end when the heavy one is gone.
    page._state = MeanFieldState.from_query(SMALL)
    page._arrange()
    page._run()
    visit.settle()
    assert page._seen.finished
    assert page._seen.state == page._state
    visit.close()


def test_a_token_between_the_two_limits_has_a_limit_of_its_own() -> None:
    visit = Visit(MeanFieldPage(), {"n": "10", "tilt": "0"})
    assert visit.message == ""
    assert visit.page._seen.finished
    visit.close()


def test_what_has_no_limit_is_a_message(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as changed:
        # B and V of the page have real eigenvalues; a V that turns has not.
        changed.setattr(MeanFieldState, "value", np.array([[1.0, -1.0], [1.0, 1.0]]))
        visit = Visit(MeanFieldPage(), {"n": "10", "b1": "1"})
        assert "no low-temperature limit, a leading complex pair" in visit.message
    visit.page._changed("tilt", 0.25)
    visit.settle()
    assert visit.page._seen.finished
    assert visit.message == ""
    visit.close()


@settings(deadline=None, max_examples=40)
@given(
    st.dictionaries(
        st.sampled_from([*MeanFieldState().__dict__]),
        st.one_of(st.text(max_size=8), st.floats().map(str), st.integers(-5, 5000).map(str)),
    )
)
def test_any_address_gives_a_state_that_comes_back(query: dict[str, str]) -> None:
    state = MeanFieldState.from_query(query)
    again = MeanFieldState.from_query(state.to_query())
    assert np.allclose(list(again.__dict__.values()), list(state.__dict__.values()), rtol=1e-9)


def test_the_code_runs(tmp_path: Path) -> None:
    code = "".join(MeanFieldState.from_query(SMALL | more).code() for more in ({}, {"d": "3"}))
    assert run_code(code, tmp_path).count("closest approach") == 2
    assert (tmp_path / "phases.png").exists()
