"""The Tokens page without a browser: states, addresses, code, and that it only shows what the library says."""

from __future__ import annotations

import base64
from pathlib import Path

import numpy as np
import pytest
import torch
from bokeh.core.serialization import Serializable, Serializer
from hypothesis import given, settings
from hypothesis import strategies as st

import hardmax as hm
from hardmax.app.tokens.page import TokensPage
from hardmax.app.tokens.picture import MOST_SHOWN, ColourBook, Computed, paint
from hardmax.app.tokens.state import MOST_IN_ADDRESS, STARTS, TokensState, code_of
from hardmax.dynamics import process_setup
from hardmax.dynamics.equilibrium import equilibrium_and_layers
from visits import Visit, run_code


@pytest.mark.parametrize("start", STARTS.values())
@pytest.mark.parametrize("query", [{}, {"alpha": "2", "a": "2", "angle": "30"}, {"limit": "1"}, {"layer": "3"}])
def test_the_picture_is_what_the_library_says(start: str, query: dict[str, str]) -> None:
    state = TokensState.from_query({"start": start, "n": "80", **query})
    picture = paint(Computed.of(state), state, ColourBook())
    layer = hm.HardmaxLayer(state.settings.alpha, state.matrix)
    limit = hm.equilibrium(state.tokens, layer)
    if state.settings.limit:
        assert np.array_equal(picture.positions, limit.positions)
        assert np.flatnonzero(picture.leads).tolist() == limit.leaders.tolist()
    else:
        run = hm.simulate(state.tokens, layer, depth=state.settings.layer)
        assert np.array_equal(picture.positions, run.final)
        seen = hm.attention_at(run, -1).leads
        assert np.flatnonzero(picture.leads).tolist() == np.flatnonzero(seen).tolist()
    # Tokens share a colour exactly if they end with the same leader.
    same = picture.rank[:, None] == picture.rank
    assert np.array_equal(same, limit.follows[:, None] == limit.follows)


@pytest.mark.parametrize("query", [{"sight": "causal"}, {"heads": "2", "a": "1.5"}, {"sight": "causal", "heads": "3"}])
@pytest.mark.parametrize("depth", [{"limit": "1"}, {"layer": "3"}, {"attention": "softmax", "layer": "2"}])
def test_masks_and_heads_are_what_the_library_says(query: dict[str, str], depth: dict[str, str]) -> None:
    state = TokensState.from_query({"start": "gaussian", "n": "60", "selected": "5", **query, **depth})
    assert TokensState.from_query(state.to_query()).settings == state.settings
    picture = paint(Computed.of(state), state, ColourBook())
    layer = state.layer
    assert layer.mask.causal == (query.get("sight") == "causal")
    assert len(layer.heads) == int(query.get("heads", "1"))
    if state.settings.limit:
        assert isinstance(layer, hm.HardmaxLayer)
        expected = hm.equilibrium(state.tokens, layer).positions
    else:
        expected = hm.simulate(state.tokens, layer, depth=state.settings.layer).final
    assert np.array_equal(picture.positions, expected)


def test_code_of_masks_and_heads(tmp_path: Path) -> None:
    query = {"start": "gaussian", "n": "20", "sight": "causal", "heads": "3", "a": "1.5", "limit": "1"}
    state = TokensState.from_query(query)
    assert str(hm.equilibrium(state.tokens, state.hardmax)) in run_code(code_of(state), tmp_path)


def test_the_matrix_has_the_ellipse_that_is_drawn() -> None:
    state = TokensState.from_query({"a": "2", "b": "0.5", "angle": "30"})
    A = state.matrix
    assert A is not None
    turn = np.radians(30)
    for length, direction in ((2.0, [np.cos(turn), np.sin(turn)]), (0.5, [-np.sin(turn), np.cos(turn)])):
        end = length * np.array(direction)
        assert end @ A @ end == pytest.approx(1.0)


def test_half_space_names_those_who_are_listened_to() -> None:
    assert TokensState.from_query({"selected": "24"}).settings.selected == -1  # of 24 tokens
    state = TokensState.from_query({"selected": "23"})
    half = paint(Computed.of(state), state, ColourBook()).half_space
    assert half is not None
    assert half.names.tolist() == hm.choose(state.tokens, state.hardmax)[23].tolist()
    assert half.normal.tolist() == state.tokens[23].tolist()


@pytest.mark.parametrize(
    "query", [{}, {"sight": "causal"}, {"heads": "3"}, {"start": "grid"}, {"a": "2.5", "n": "700"}]
)
def test_half_space_of_one_token_is_that_of_a_search_for_all(query: dict[str, str]) -> None:
    """Only the selected token is searched for: the other searches would take a fifth of a drag."""
    state = TokensState.from_query({"start": "gaussian", "n": "90"} | query)
    computed = Computed.of(state)
    whole = state.hardmax.choose_heads(torch.from_numpy(np.ascontiguousarray(computed.tokens[0])))[0]
    for token in range(0, len(state.tokens), 23):
        half = paint(computed, state.with_settings(selected=token), ColourBook()).half_space
        assert half is not None
        everyone = np.arange(len(state.tokens))
        assert half.names.tolist() == (everyone if whole.everyone[token] else whole[token].numpy()).tolist()


def test_columns_of_strings_are_sent_as_bokeh_sends_lists() -> None:
    opened = Visit(TokensPage(), {"start": "gaussian", "n": "70"})
    tokens, frames = opened.page._plane.tokens.data, opened.page._plane.frames.data
    for column in (tokens["fill"], tokens["line"], tokens["shape"], frames["fill"][0], frames["rim"][0]):
        assert isinstance(column, Serializable)
        assert Serializer().encode(column) == Serializer().encode(list(column))
    opened.close()


@settings(deadline=None, max_examples=50)
@given(
    st.dictionaries(
        st.sampled_from([*TokensState().settings.__dict__, "tokens", "theme"]),
        st.one_of(st.text(max_size=12), st.floats().map(str), st.integers(-5, 500).map(str)),
    )
)
def test_any_address_gives_a_state_that_comes_back(query: dict[str, str]) -> None:
    state = TokensState.from_query(query)
    again = TokensState.from_query(state.to_query())
    assert again.settings == state.settings
    assert np.array_equal(again.tokens, state.tokens)


def test_tokens_moved_by_hand_come_back_from_the_address() -> None:
    state = TokensState().moved(3, 1.23456, -2.0).added(0.5, 0.25).without(0)
    again = TokensState.from_query(state.to_query())
    assert again.tokens.tolist() == state.tokens.tolist()
    assert [1.235, -2.0] in again.tokens.tolist()
    many = TokensState.from_query({"start": "gaussian", "n": "5000"}).moved(0, 1.0, 1.0)
    assert len(many.tokens) > MOST_IN_ADDRESS
    assert "tokens" not in many.to_query()


def test_nonsense_moves_nothing() -> None:
    state = TokensState()
    assert state.moved(999, 0.0, 0.0) is state
    assert state.moved(0, float("nan"), 0.0) is state
    assert state.without(-1) is state
    assert abs(state.moved(0, 1e300, 0.0).tokens).max() <= 1000
    one = TokensState.from_query({"tokens": "1,2"})
    assert one.without(0) is one


def test_colours_stay_with_leaders() -> None:
    book = ColourBook()
    assert book.ranks(np.array([4, 7, 9])) == {4: 0, 7: 1, 9: 2}
    assert book.ranks(np.array([7, 8, 9])) == {7: 1, 8: 0, 9: 2}


def test_many_tokens_are_thinned_aloud_and_no_leader_is_lost() -> None:
    visit = Visit(TokensPage(), {"start": "gaussian", "n": "30000"})
    page = visit.page
    state = page._state
    picture = paint(page._computed, state, ColourBook())
    assert MOST_SHOWN <= len(picture.index) < MOST_SHOWN + 100
    assert set(page._computed.limit.leaders.tolist()) <= set(picture.index.tolist())
    assert "of 30,000 tokens are drawn" in page._words.object
    visit.close()


def test_a_drag_is_live_and_settles_at_the_drop() -> None:
    visit = Visit(TokensPage())
    page = visit.page
    table = page._table.object
    page._plane.wire.data = {"kind": ["move"], "what": [23], "x": [3.4], "y": [2.4], "serial": [1]}
    assert page._plane.tokens.data["shape"][23] == "star"
    assert page._plane._answer.data == {"serial": [1]}
    assert page._table.object == table
    page._plane.wire.data = {"kind": ["drop"], "what": [23], "x": [3.4], "y": [2.4], "serial": [2]}
    assert "<td>23</td>" in page._table.object
    assert page._selected.value == 23
    page._plane.wire.data = {"kind": ["move"], "what": [-1], "x": [0.0], "y": [2.0], "serial": [3]}
    assert (page._state.settings.a, abs(page._state.settings.angle)) == (2.0, 90.0)
    visit.close()


def test_a_drag_runs_the_hardmax_process_once(monkeypatch: pytest.MonkeyPatch) -> None:
    visit = Visit(TokensPage())
    page, runs = visit.page, []

    class Counted(process_setup.HardmaxProcess):
        def __init__(self, *args: object, **options: object) -> None:
            runs.append(1)
            super().__init__(*args, **options)

    monkeypatch.setattr(process_setup, "HardmaxProcess", Counted)
    for serial, (kind, x) in enumerate((("move", 3.0), ("move", 3.4), ("drop", 3.4)), start=1):
        page._plane.wire.data = {"kind": [kind], "what": [23], "x": [x], "y": [2.4], "serial": [serial]}
    assert len(runs) == 2  # one for each place of the token, none for the drop
    page._player.value = 5
    page._to_limit.value = True
    assert len(runs) == 2
    visit.close()


@pytest.mark.parametrize("most", [1, 50])
@pytest.mark.parametrize("start", ["cloud", "late-leader", "broken-ties", "grid", "gaussian"])
def test_layers_and_limit_of_one_run_are_those_of_two(start: str, most: int) -> None:
    state = TokensState.from_query({"start": start, "n": "60", "alpha": "0.1"})
    limit, tokens = equilibrium_and_layers(state.tokens, state.hardmax, range(21), max_layers=most)
    alone = hm.equilibrium(state.tokens, state.hardmax, max_layers=most)
    assert np.array_equal(tokens, hm.simulate(state.tokens, state.hardmax, depth=20).tokens)
    assert np.array_equal(limit.positions, alone.positions)
    assert np.array_equal(limit.decided_at, alone.decided_at)
    assert np.array_equal(limit.follows, alone.follows)
    assert (str(limit.outcome), limit.ties) == (str(alone.outcome), alone.ties)


def test_softmax_and_its_bounds_are_messages() -> None:
    visit = Visit(TokensPage(), {"start": "gaussian", "n": "3000"})
    visit.page._attention.value = "softmax"
    visit.settle()
    assert "must be at most 2,000 for softmax" in visit.message
    visit.page._n.value = 50
    visit.settle()
    assert "Softmax has no leaders" in visit.page._words.object
    run = hm.simulate(visit.page._state.tokens, hm.SoftmaxLayer(0.5, beta=5.0), depth=2)
    visit.page._player.value = 2
    assert np.array_equal(visit.page._plane.tokens.data["x"], run.final[:, 0])
    visit.close()


def test_the_code_runs(tmp_path: Path) -> None:
    queries: list[dict[str, str]] = [
        {"selected": "2", "a": "2"},
        {"start": "grid", "n": "40", "limit": "1"},
        {"start": "ball", "space": "1", "n": "60", "attention": "softmax", "c": "2"},
        {"tokens": "1,2_-1,0.5_0.5,0.25", "layer": "2"},
    ]
    code = "".join(code_of(TokensState.from_query(query)) for query in queries)
    assert run_code(code, tmp_path).count("tokens in") == len(queries)
    assert (tmp_path / "tokens.png").stat().st_size > 1000


def test_code_of_many_tokens_names_the_moved_or_a_file(tmp_path: Path) -> None:
    many = TokensState.from_query({"start": "ball", "n": "400"}).moved(7, 1.5, 0.5)
    assert "tokens[7] = [1.5, 0.5]" in code_of(many)
    assert "np.array" not in code_of(many)
    own = many.uploaded(np.random.default_rng(0).normal(size=(500, 2)))
    assert 'read_tokens("points.csv")' in code_of(own)


def test_uploads_become_tokens_or_a_message() -> None:
    visit = Visit(TokensPage(), {"layer": "3"})
    page = visit.page

    def send(data: bytes) -> str:
        page._file.filename = "points.csv"
        page._file.contents = base64.b64encode(data).decode()
        return visit.message

    assert send(b"x,y\n1,2\n-1,0.5\n3,3\n") == "points.csv: 3 tokens."
    assert page._state.tokens.tolist() == [[1, 2], [-1, 0.5], [3, 3]]
    assert page._state.settings.layer == 0
    assert "line 2, column 2 is nan" in send(b"x,y\n1,nan\n")
    assert "must have two or three columns" in send(b"1,2,3,4\n4,5,6,7\n")
    assert "must be at most 100,000 here" in send(b"1,2\n" * 100_001)
    assert "not a number" in send(b"1,2\n=A1,3\n")
    assert len(page._state.tokens) == 3  # the last that could be used
    assert send(b"1,2,3\n4,5,6.125\n") == "points.csv: 2 tokens."
    assert (page._view.value, page._state.tokens.tolist()) == (1, [[1, 2, 3], [4, 5, 6.125]])
    again = TokensPage()
    again.restore(page.state())
    assert again._state.tokens.tolist() == [[1, 2, 3], [4, 5, 6.125]]
    visit.close()


def test_links_keep_many_uploaded_tokens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    visit = Visit(TokensPage())
    page = visit.page
    points = np.random.default_rng(0).normal(size=(2_000, 2))
    page._file.filename = "points.csv"
    page._file.contents = base64.b64encode("\n".join(f"{x!r},{y!r}" for x, y in points.tolist()).encode()).decode()
    visit.settle()
    assert "The link keeps your tokens: they are stored on this machine for 30 days" in page._stored_note.object
    link = page.state()
    assert "tokens" not in link
    again = Visit(TokensPage(), link)
    assert np.array_equal(again.page._state.tokens, points)
    again.close()
    for path in tmp_path.rglob("*.upload"):
        path.unlink()
    gone = Visit(TokensPage(), link)
    assert "not stored on this machine, or no longer" in gone.message
    assert len(gone.page._state.tokens) == 24
    gone.close()
    visit.close()


def test_undo_redo_reset_and_a_preset_chosen_again() -> None:
    visit = Visit(TokensPage())
    page, history = visit.page, visit.page.history
    begun = page._state.tokens.tolist()
    assert (history.undo.disabled, history.redo.disabled) == (True, True)
    for serial, kind in enumerate(("move", "move", "drop"), start=1):
        page._plane.wire.data = {"kind": [kind], "what": [23], "x": [3.0 + serial], "y": [2.4], "serial": [serial]}
    assert (page._start.value, page._plane.figure.y_range.end < 4) == ("yours", True)
    history.step(-1)
    assert page._state.tokens.tolist() == begun
    assert page._start.value == "cloud"
    history.step(1)
    assert page._state.tokens[23].tolist() == [6.0, 2.4]
    page._start.value = "cloud"  # the start that was edited
    assert page._state.tokens.tolist() == begun
    page._alpha.value = 1.0
    page._alpha.value = 2.0  # one move of one slider
    history.step(-1)
    assert (page._alpha.value, page._state.settings.alpha) == (0.5, 0.5)
    page._start.value = "gaussian"
    assert page._plane.figure.y_range.end == pytest.approx(1.15 * np.abs(page._state.tokens).max())
    page._player.value = 4
    history._start_again()
    assert (page._state.settings, page._player.value) == (TokensState().settings, 0)
    visit.close()


@pytest.mark.parametrize("compare", ["softmax", "causal", "matrix"])
@pytest.mark.parametrize("query", [{}, {"attention": "softmax", "sight": "causal"}, {"space": "1"}, {"limit": "1"}])
def test_two_layers_side_by_side(compare: str, query: dict[str, str]) -> None:
    visit = Visit(TokensPage(), {"start": "gaussian", "n": "40", "layer": "2", "compare": compare, **query})
    page = visit.page
    first, second = (state for state, _ in page._pictures())
    assert len(page._board) == 2
    assert first.name != second.name or compare == "matrix"
    for state, picture in page._pictures():
        frames = hm.simulate(state.tokens, state.layer, depth=20).tokens
        assert np.array_equal(picture.frames[:21], frames)
        assert np.array_equal(picture.at(picture.moment), picture.positions)
        soft = state.settings.attention == "softmax"
        assert picture.badge.holds == (not soft and hm.equilibrium(state.tokens, state.hardmax).assumptions.hold)
        assert "applies" not in " ".join(picture.words) or not soft
    visit.close()


def test_the_view_is_saved_as_it_is_seen(tmp_path: Path) -> None:
    visit = Visit(TokensPage(), {"start": "late-leader", "compare": "softmax", "selected": "1"})
    page = visit.page
    figure = page.figure()
    assert len(figure.axes) == 2
    for ax, (_, picture) in zip(figure.axes, page._pictures(), strict=True):
        dots = {tuple(point) for one in ax.collections[1:3] for point in one.get_offsets().tolist()}
        assert dots == {tuple(point) for point in picture.positions.tolist()}
        assert any(np.array_equal(patch.get_xy()[:-1], picture.hull) for patch in ax.patches)
        assert picture.badge.words in {text.get_text() for text in ax.texts}
    saved = page.page()
    assert "hardmaxPlayer.attach" in saved
    assert "http" not in saved.partition("</script>")[2].partition("Bokeh")[0]
    scene = page._scene()
    assert scene._times()[-1] == scene.end
    assert page.film(tmp_path / "film.gif", False).read_bytes()[:6] == b"GIF89a"
    visit.close()


def test_trails_lead_ahead_at_rest_and_behind_in_motion() -> None:
    state = TokensState.from_query({"start": "cloud"})
    picture = paint(Computed.of(state), state, ColourBook())
    assert np.array_equal(picture.trails(0.0)[:, -1], picture.frames[12])
    assert picture.trails(0.0, moving=True).shape[1] == 2
    between = picture.trails(1.5, moving=True)
    assert np.array_equal(between[:, :2].transpose(1, 0, 2), picture.frames[:2])
    assert np.array_equal(between[:, -1], 0.5 * picture.frames[1] + 0.5 * picture.frames[2])


def test_views_in_space_and_files() -> None:
    visit = Visit(TokensPage(), {"space": "1", "n": "60"})
    page = visit.page
    data = page._space.frames.data
    assert data["shape"] == [[22, 60, 3]]
    assert len(data["hull"][0]) == 3 * len(page._computed.limit.polytope.vertices)
    assert page._plane.frames.data["shape"] == []
    assert page.figure() is not None
    visit.session.lighting.switch(True)
    page._view.value = 0
    assert page._space.frames.data["shape"] == []
    assert page.figure() is not None
    visit.close()
