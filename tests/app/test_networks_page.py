"""The page of exact networks without a browser: lines, board, proofs and files."""

import json
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.colors import to_hex

import hardmax as hm
from hardmax.app.archives import pack, unpack
from hardmax.app.look import DAY, NIGHT, rank_colours
from hardmax.app.networks.board import on_grid
from hardmax.app.networks.page import NetworksPage
from hardmax.app.networks.state import EXAMPLES, read_lines, write_lines
from hardmax.app.networks.view import count_rows
from hardmax.app.uploads import Upload
from hardmax.interpolation.data import Problem
from visits import Visit, contrast, run_code

_NUMBER = st.one_of(
    st.integers(-99, 99).map(str),
    st.fractions(max_denominator=99).map(str),
    st.decimals(-9, 9, places=3).map(str),
)
_POINT = st.lists(_NUMBER, min_size=2, max_size=3)


@pytest.fixture
def visit():
    """A visit to the page, with its first example compiled."""
    opened = Visit(NetworksPage())
    yield opened
    opened.close()


class Tapped:
    """What a tap on the board says."""

    def __init__(self, x: float, y: float) -> None:
        self.x, self.y = x, y


@settings(deadline=None, max_examples=30)
@given(
    st.lists(st.tuples(st.lists(_POINT, min_size=1, max_size=4), st.lists(_POINT, min_size=1, max_size=3)), min_size=1)
)
def test_lines_are_read_as_they_are_written(pairs):
    problem = Problem([list(tokens) for tokens, _ in pairs], [list(targets) for _, targets in pairs], None)
    assert read_lines(write_lines(problem)) == problem


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("", "must describe a sequence"),
        ("(0, 0)", "line 1 must have one arrow"),
        ("(0, 0) ->", "line 1 must name a target"),
        ("\n(0, 0) (1 -> (1, 2)", "line 2 must be points in brackets"),
        ("(0, ) -> (1, 2)", "line 1 must be points"),
        ("(0, 0) -> (1, 2)\n(1, 1) -> cat", "line 2 must be like the lines before"),
        ("(0, 0) -> (1, 2) -> (2, 2)", "one arrow"),
        ("x" * 300_000, "too many to type"),
    ],
)
def test_lines_that_cannot_be_read_are_named(lines, words):
    with pytest.raises(hm.InputError, match=words):
        read_lines(lines)


def test_drawn_points_lie_on_quarters():
    assert [on_grid(x) for x in (0.13, -0.13, 1.01, -2.3, 0.6, 0.0)] == ["0.25", "-0.25", "1", "-2.25", "0.5", "0"]


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_example_is_proved(example):
    opened = Visit(NetworksPage(), {"example": example})
    assert opened.page._done.compiled.certificate.proved
    assert "✓ Proved" in opened.page._results._proof.object
    assert opened.page._done.compiled.certificate.data_hash in opened.page._results._proof.object
    rows = {name: blocks for name, blocks, _ in count_rows(opened.page._done.compiled.network.counts, softmax=False)}
    data = opened.page._done.compiled.network.data
    assert rows["published: 2M + 2N + 1"] == 2 * data.targets + 2 * len(data) + 1
    opened.close()


def test_the_player_ends_at_the_targets(visit):
    page = visit.page
    page._results._steps.player.value = page._results._plane.last
    tokens = page._results._plane._tokens.data
    reached = {(round(x, 9), round(y, 9)) for x, y in zip(tokens["x"], tokens["y"], strict=True)}
    targets = page._results._plane._targets.data
    assert reached == {(x, y) for x, y in zip(targets["x"].tolist(), targets["y"].tolist(), strict=True)}
    titles = page._results._steps.player.titles
    assert titles[-1].startswith(f"block {len(page._done.compiled.network.blocks)} of")
    assert len(titles) == page._results._plane.last + 1
    assert page.state()["moment"] == str(page._results._plane.last)


def test_the_saved_figure_has_the_colours_of_the_page(visit):
    for dark, light in ((True, NIGHT), (False, DAY)):
        visit.session.lighting.switch(dark)
        figure = visit.page.figure()
        assert to_hex(figure.get_facecolor()) == light.card
        assert {to_hex(ax.title.get_color()) for ax in figure.axes} <= {light.ink}
        assert {to_hex(ax.xaxis.label.get_color()) for ax in figure.axes} <= {light.soft}


def test_the_board_adds_moves_and_erases(visit):
    page, board = visit.page, visit.page._board
    page._area.value_input = "(0, 0) -> (1, 1)"
    board._tapped(Tapped(0.52, -1.02))
    assert page._choices.lines == "(0, 0) (0.5, -1) -> (1, 1)"
    board.sequence = 1
    board._tapped(Tapped(2, 2))
    assert "must name a target" in page._hint.object
    board.mode = "target"
    board._tapped(Tapped(-1, 2))
    assert page._choices.lines == "(0, 0) (0.5, -1) -> (1, 1)\n(2, 2) -> (-1, 2)"
    moved = {**board._tokens.data, "x": [0.0, 1.52, 2.0]}
    board._tokens.data = moved
    assert page._choices.lines == "(0, 0) (1.5, -1) -> (1, 1)\n(2, 2) -> (-1, 2)"
    board.mode = "erase"
    for place in ((2, 2), (-1, 2), (9, 9)):
        board._tapped(Tapped(*place))
    assert page._choices.lines == "(0, 0) (1.5, -1) -> (1, 1)"
    assert page._area.value == page._choices.lines


def _change_line(page):
    page._area.value_input = page._choices.lines + "\n(5, 5) -> (1, 1)"


@pytest.mark.parametrize(
    "change",
    [
        lambda page: page._board._tapped(Tapped(0.5, 0.5)),
        _change_line,
        lambda page: setattr(page._area, "value_input", "(0, 0"),
        lambda page: setattr(page._area, "value_input", ""),
        lambda page: setattr(page._pick, "value", "swap"),
        lambda page: setattr(page._how, "value", "fewest"),
        lambda page: setattr(page._wide, "value", 7),
        lambda page: setattr(page._heat, "value", "1/10"),
    ],
)
def test_a_proof_does_not_outlive_what_it_proved(visit, change):
    page = visit.page
    before = page._choices
    assert not page._download.disabled
    change(page)
    assert "✓ Proved" not in page._results._proof.object
    assert "stale" in page._results._status.object
    assert "dimmed" in page._results.blocks.css_classes
    assert page._download.disabled
    for blocked in (page._archive, page.figure):
        with pytest.raises(hm.HardmaxError, match="Press Compile"):
            blocked()
    if page._problem is not None:
        page._compile()
        visit.settle()
        assert "✓ Proved" in page._results._proof.object
        assert "stale" not in page._results._status.object
        assert "dimmed" not in page._results.blocks.css_classes
        assert not page._download.disabled
        assert page._archive().getvalue().startswith(b"PK")
    assert page._choices != before


def test_what_is_changed_back_is_proved_again(visit):
    page, lines = visit.page, visit.page._choices.lines
    _change_line(page)
    assert "✓ Proved" not in page._results._proof.object
    page._area.value_input = lines
    assert "✓ Proved" in page._results._proof.object
    assert not page._download.disabled


def test_a_change_while_the_network_is_compiled_makes_it_stale(visit):
    visit.page._compile()
    _change_line(visit.page)
    visit.settle()
    assert "✓ Proved" not in visit.page._results._proof.object
    assert visit.page._download.disabled


def test_the_board_shows_the_data_of_a_network_from_a_file(visit):
    page = visit.page
    page._area.value_input = EXAMPLES["classes"][1]
    page._compile()
    visit.settle()
    data = page._archive().getvalue()
    page._area.value_input = "(0, 0) -> (1, 1)"
    page._check(Upload("network.zip", data))
    visit.settle()
    assert page._choices.lines == page._area.value == EXAMPLES["classes"][1]
    assert page._board.names[1] == "sequence 2 (square)"
    assert "token of sequence 2 (square)" in page._board._tokens.data["name"]
    assert "sequence 2 (square)" in page._which.options
    assert "✓ Proved" in page._results._proof.object
    assert not page._download.disabled


def test_sequences_are_counted_from_one_and_one_is_no_plural(visit):
    page = visit.page
    files = unpack(Upload("network.zip", page._archive().getvalue()), (".json", ".safetensors"))
    record = json.loads(files["network.json"])
    record["data"]["outputs"][1][0][0] = "17/5"  # the target of the second sequence
    page._check(Upload("forged.zip", pack({**files, "network.json": json.dumps(record).encode()})))
    visit.settle()
    assert "✗ Not proved" in page._results._proof.object
    assert "sequence 2: " in page._results._proof.object
    assert "(17/5, 2)" in page._choices.lines.splitlines()[1]
    page._area.value_input = "(0, 0) -> (1, 1)"
    assert "1 sequence, 1 token, 1 target" in page._hint.object
    page._compile()
    visit.settle()
    assert "N = 1 sequence, M = 1 target: " in page._results._count_words.object
    assert "1 with 1 token<" in page._results._proof.object


def test_exact_numbers_stay_exact_when_other_points_are_moved(visit):
    page, board = visit.page, visit.page._board
    page._area.value_input = "(1/3, 0) (1, 1) -> (2/7, 1)"
    board._tokens.data = {**board._tokens.data, "y": [0.0, 2.0]}
    assert page._choices.lines == "(1/3, 0) (1, 2) -> (2/7, 1)"


@pytest.mark.parametrize("dark_first", [True, False])
def test_every_sequence_can_be_seen_at_night(dark_first):
    """With more sequences than the palette has colours, the darker shades follow the light on board and blocks."""
    lines = "\n".join(f"({k}, 0) ({k}, 1) -> ({k}, 2)" for k in range(22))
    opened = Visit(NetworksPage(), {"lines": lines})
    if dark_first:
        opened.session.lighting.switch(dark=True)
    opened.page._area.value_input = lines
    opened.page._compile()
    opened.settle()
    board, plane = opened.page._board, opened.page._results._plane
    places = [list(source.data["x"]) for source in (board._tokens, board._targets, plane._tokens, plane._targets)]
    if not dark_first:
        opened.session.lighting.switch(dark=True)
    night = rank_colours(np.arange(22), NIGHT)
    assert night != rank_colours(np.arange(22))
    for source in (board._tokens, plane._tokens):
        assert list(source.data["colour"]) == [colour for colour in night for _ in range(2)]
    for source in (board._targets, plane._targets):
        assert list(source.data["colour"]) == night
    assert all(contrast(colour, NIGHT.card) >= 3 for colour in night)
    assert places == [
        list(source.data["x"]) for source in (board._tokens, board._targets, plane._tokens, plane._targets)
    ]
    assert "✓ Proved" in opened.page._results._proof.object  # colours are no change of the data
    opened.session.lighting.switch(dark=False)
    assert list(board._targets.data["colour"]) == list(plane._targets.data["colour"]) == rank_colours(np.arange(22))
    opened.close()


def test_the_download_is_proved_again_and_a_forgery_is_found(visit):
    data = visit.page._archive().getvalue()
    files = unpack(Upload("network.zip", data), (".json", ".safetensors"))
    assert set(files) == {"network.json", "network.safetensors", "certificate.json"}
    assert json.loads(files["certificate.json"])["proved"] is True
    visit.page._check(Upload("network.zip", data))
    visit.settle()
    assert visit.message.startswith("PROVED")
    record = json.loads(files["network.json"])
    record["blocks"][-1]["b"][0] = "7/3"
    visit.page._check(Upload("forged.zip", pack({**files, "network.json": json.dumps(record).encode()})))
    visit.settle()
    assert visit.message.startswith("NOT PROVED")


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("data.json", b"{", "data.json: is not JSON"),
        ("data.json", b"[" * 100_000, "data.json: is not JSON"),
        ("data.json", b'{"inputs": [[[NaN, 0]]], "outputs": [[[0, 0]]]}', "must be a finite number"),
        ("data.json", b'{"inputs": 3, "labels": []}', "field inputs must be a list"),
        ("data.csv", b"a,b\n1,2\n", "has no column sequence"),
        ("data.csv", b"sequence,token,x,label\n1,1,=1+1,cat\n", "must be a finite number"),
        ("data.csv", ",".join(map(str, range(10**6))).encode(), "1,000,000 columns"),
        ("data.csv", b"PK\x03\x04" + b"\0" * 99, "is a ZIP archive"),
    ],
)
def test_hostile_data_give_a_message_and_the_page_lives_on(visit, name, data, words):
    visit.session.guarded(visit.page._take_file)(Upload(name, data))
    if "finite" in words:  # a number is read when it is compiled
        visit.session.guarded(visit.page._compile)()
        visit.settle()
    assert words in visit.message
    visit.page._area.value_input = "(0, 0) -> (1, 1)"
    visit.page._compile()
    visit.settle()
    assert visit.page._done.compiled.certificate.proved
    assert len(visit.page._done.compiled.network.data) == 1


def test_uploaded_labels_become_lines(visit):
    rows = "sequence,token,x,y,label\nA,1,0,0,cat\nA,2,1,1/2,cat\nB,1,0,1,dog\n"
    visit.page._take_file(Upload("data.csv", rows.encode()))
    assert visit.page._choices.lines == "(0, 0) (1, 1/2) -> cat\n(0, 1) -> dog"
    visit.page._compile()
    visit.settle()
    assert visit.page._done.compiled.network.predict([[[0, 1]]]) == ["dog"]


def test_impossible_wishes_are_refused_in_the_words_of_the_library(visit):
    for lines, words in [
        ("(0, 0) -> (1, 1) (2, 2)", "must not have more points than its input has tokens"),
        ("(0, 0) -> (1, 1)\n(0, 0) -> (2, 2)", "must be pairwise different as sets"),
        ("(0) -> (1)", "must have at least two coordinates"),
        ("(0, nan) -> (1, 1)", "must be a finite number"),
    ]:
        visit.page._area.value_input = lines
        visit.session.guarded(visit.page._compile)()
        visit.settle()
        assert words in visit.message


def test_choices_reach_the_network_and_the_code_compiles_it_again(visit, tmp_path):
    visit.page._how.value, visit.page._wide.value, visit.page._heat.value = "conditioned", 6, "1/10"
    visit.page._compile()
    visit.settle()
    assert "width=6" in visit.page.code()
    printed = run_code(visit.page.code(), tmp_path)
    assert visit.page._done.compiled.certificate.data_hash in printed
    assert "softmax at temperature 1/10" in printed
    assert (tmp_path / "net" / "network.json").is_file()
    assert visit.page.state()["temperature"] == "1/10"


@pytest.mark.parametrize(
    "state", [{"lines": "((((" * 900}, {"width": "99999999999"}, {"construction": "x"}, {"moment": "9" * 99}]
)
def test_an_address_that_makes_no_sense_does_no_harm(state):
    opened = Visit(NetworksPage(), state)
    opened.page._area.value_input = "(0, 0) -> (1, 1)"
    opened.page._compile()
    opened.settle()
    assert opened.page._done.compiled.certificate.proved
    opened.close()


def test_two_constructions_stand_side_by_side(visit, tmp_path):
    page = visit.page
    assert not page._results.rival.visible
    page._how.value, page._beside.value = "leaders", "fewest"
    page._compile()
    visit.settle()
    assert page._results.rival.visible
    problem = page._problem
    both = [hm.interpolate(problem.inputs, problem.outputs, construction=name) for name in ("leaders", "fewest")]
    table = re.sub(r"</?b>", "", page._results._rivals.object)
    for net in both:
        assert f"<td>{net.counts.blocks:,}</td>" in table
        assert f"<td>{net.counts.parameters:,}</td>" in table
    assert table.count("✓ proved") == 2
    page._results._show_moment(page._results._plane.last)
    assert page._results._other_words.object.count(f"block {len(both[1].blocks)} of {len(both[1].blocks)}") == 1
    assert page.state()["beside"] == "fewest"
    printed = run_code(page.code(), tmp_path)
    assert printed.count("PROVED") == 2
    page._beside.value = ""
    page._compile()
    visit.settle()
    assert not page._results.rival.visible
    assert "beside" not in page.state()


@pytest.mark.parametrize("label", ["cat (big)", "dog -> x", "a ⟶ b"])
def test_a_label_that_lines_cannot_hold_is_named_with_its_file(visit, label):
    rows = f"sequence,token,x,y,label\n0,0,0,0,{label}\n1,0,1,0,dog\n"
    visit.session.guarded(visit.page._take_file)(Upload("pets.csv", rows.encode()))
    assert visit.message.startswith(f"pets.csv: has the label &#x27;{label.replace('>', '&gt;')}&#x27;")
    assert "rename it in the file" in visit.message


def test_the_window_stays_while_points_are_drawn(visit):
    """Each point moved the board under the pointer: of an empty one, the first point went to its middle."""
    page = visit.page
    page._area.value_input = ""
    plot = page._board.plot

    def window():
        return plot.x_range.start, plot.x_range.end, plot.y_range.start, plot.y_range.end

    assert window() == (-3, 3, -3, 3)
    for x, y in ((-2.5, 2.0), (1.0, 2.5), (2.75, -1.0)):
        page._board._tapped(Tapped(x, y))
    assert [len(tokens) for tokens in page._board.problem.inputs] == [3]
    assert window() == (-3, 3, -3, 3)
    page._board._tapped(Tapped(9.0, 0.0))  # as by a drag beyond the edge
    assert window()[1] > 9
    page._area.value_input = "(0, 0) -> (1, 1)"  # other lines have a window of their own
    assert window()[1] < 3
