"""Figures of tokens show the run: stars lead, colours follow, tied tokens have several colours."""

import matplotlib as mpl
import numpy as np
import pytest
import torch
from matplotlib.figure import Figure

import hardmax as hm
from drawn import artists, colour_at, places, words
from hardmax.datasets import four_configurations, make_tokens, paper_configurations
from hardmax.errors import InputError
from hardmax.figures import draw, draw_panels, draw_tokens, figure_bytes
from hardmax.figures._stage import density
from hardmax.geometry.leaders import attention_at

CONFIGURATIONS = {c.name: c for c in four_configurations()}


def _run(name, depth=40):
    return hm.simulate(CONFIGURATIONS[name].tokens, hm.HardmaxLayer(0.5), depth=depth)


def _rows(points):
    return {tuple(np.round(point, 9)) for point in np.asarray(points)}


@pytest.mark.parametrize("name", CONFIGURATIONS)
@pytest.mark.parametrize("layer", [0, 1, 3])
def test_every_token_is_drawn_once_and_stars_are_those_who_listen_to_themselves_alone(name, layer):
    run = _run(name)
    ax = draw_tokens(run, layer=layer)
    attention = attention_at(run, layer)
    assert _rows(places(ax, "leaders")) == _rows(run.tokens[layer][attention.leads])
    tied = np.array(sorted(attention.ties), dtype=int)
    plain = ~attention.leads
    plain[tied] = False
    assert len(places(ax, "followers")) == plain.sum()
    assert _rows(places(ax, "followers")) == _rows(run.tokens[layer][plain])
    assert len(places(ax, "ties")) == sum(len(members) for members in attention.ties.values())
    assert _rows(places(ax, "ties")) == _rows(run.tokens[layer][tied])


def test_number_of_stars_is_the_number_of_leaders_in_the_limit():
    for configuration in CONFIGURATIONS.values():
        limit = hm.equilibrium(configuration.tokens)
        assert len(places(draw_tokens(limit), "leaders")) == len(limit.leaders)


def test_a_follower_has_the_colour_of_its_leader():
    run = _run("cloud")
    ax = draw_tokens(run, layer=1)
    for token, leader in enumerate(run.leadership.follows):
        own = colour_at(ax, "leaders", run.tokens[1][leader])
        assert len(own) == 1
        if token != leader:
            assert colour_at(ax, "followers", run.tokens[1][token]) == own
    colours = {colour_at(ax, "leaders", run.tokens[1][leader])[0] for leader in run.leadership.leaders}
    assert len(colours) == len(run.leadership.leaders)


def test_the_edge_of_a_token_has_the_colour_of_those_who_listen_to_it():
    triangle, emerging = paper_configurations()[:2]
    for tokens, heard, by in ((triangle.tokens, 5, 8), (emerging.tokens, 3, 1)):
        run = hm.simulate(tokens, hm.HardmaxLayer(0.5), depth=2)
        ax = draw_tokens(run, layer=0)
        (dots,) = artists(ax, "followers")
        places_of = {tuple(place): k for k, place in enumerate(np.asarray(dots.get_offsets()).tolist())}
        edges, faces, widths = dots.get_edgecolors(), dots.get_facecolors(), dots.get_linewidths()
        k, listener = places_of[tuple(tokens[heard])], places_of[tuple(tokens[by])]
        assert np.allclose(edges[k], faces[listener])
        assert not np.allclose(edges[k], faces[k])
        # All others have a thin, dark edge of the colour that fills them.
        others = [place for place in places_of.values() if place != k]
        assert np.allclose(edges[others, :3], 0.55 * faces[others, :3])
        assert widths[k] > max(widths[place] for place in others)


def test_a_token_that_listens_to_two_has_both_colours_the_left_one_left():
    run = _run("equals")
    ax = draw_tokens(run, layer=1)
    for token, members in run.leadership.ties.items():
        left, right = sorted(members, key=lambda leader: run.tokens[1][leader][0])
        expected = [colour_at(ax, "leaders", run.tokens[1][leader])[0] for leader in (left, right)]
        assert colour_at(ax, "ties", run.tokens[1][token]) == expected
    first, second = artists(ax, "ties")[:2]
    assert first.get_paths()[0].vertices[:, 0].max() < 1e-9  # the left half of a disc
    assert second.get_paths()[0].vertices[:, 0].min() > -1e-9


def test_colours_stay_with_their_leaders_from_panel_to_panel():
    run = _run("late-leader")
    figure = draw_panels(run, [0, 1, 3, 40])
    for leader in run.leadership.leaders[run.leadership.emerged_at == 0]:
        seen = {colour_at(ax, "leaders", run.tokens[0][leader])[0] for ax in figure.axes}
        assert len(seen) == 1


def test_a_late_leader_is_a_star_only_once_it_has_emerged():
    figure = draw_panels(_run("late-leader"), [0, 1, 3, 40])
    assert [len(places(ax, "leaders")) for ax in figure.axes] == [3, 3, 4, 4]


def test_hull_is_shaded_in_the_last_panel_only_and_has_the_leaders_as_corners():
    run = _run("cloud")
    figure = draw_panels(run, [0, 1, 40])
    assert [len(artists(ax, "hull")) for ax in figure.axes] == [0, 0, 1]
    corners = artists(figure.axes[-1], "hull")[0].get_xy()
    assert _rows(corners) == _rows(run.final[run.leadership.leaders])
    assert len(artists(draw_tokens(run, hull=False), "hull")) == 0
    assert len(artists(draw_tokens(run, layer=1, hull=True), "hull")) == 1


def test_panels_share_limits_and_say_which_layer_they_show():
    figure = draw_panels(_run("cloud"), [0, 3])
    assert [ax.get_title(loc="left") for ax in figure.axes] == ["layer 0", "layer 3"]
    assert len({(ax.get_xlim(), ax.get_ylim()) for ax in figure.axes}) == 1
    assert "star: listens to itself alone" in words(figure)


def test_panels_of_its_own_choice_begin_with_the_first_and_end_with_the_last_layer():
    titles = [ax.get_title(loc="left") for ax in draw_panels(_run("cloud", depth=9)).axes]
    assert titles[0] == "layer 0"
    assert titles[-1] == "layer 9"


def test_trails_lead_from_the_start_to_the_token():
    run = _run("cloud")
    segments = artists(draw_tokens(run, layer=3), "trails")[0].get_segments()
    assert len(segments) == len(run.tokens[0])
    assert np.allclose([segment[0] for segment in segments], run.tokens[0])
    assert np.allclose([segment[-1] for segment in segments], run.tokens[3])
    assert artists(draw_tokens(run, layer=3, trails=False), "trails") == []
    assert artists(draw_tokens(run, layer=0), "trails") == []


def test_limit_says_how_many_tokens_end_where():
    limit = hm.equilibrium(CONFIGURATIONS["equals"].tokens)
    text = words(draw(limit)).split(" | ")
    sizes = np.bincount(limit.limit_point_of)
    assert sorted(t for t in text if t.isdigit()) == sorted(map(str, sizes))
    ax = draw_tokens(limit)
    assert len(places(ax, "ties")) == 2 * limit.on_faces.sum()


def test_limit_with_its_start_shows_tokens_where_they_began_and_stars_where_they_end():
    tokens = CONFIGURATIONS["late-leader"].tokens
    limit = hm.equilibrium(tokens)
    ax = draw_tokens(limit, start=tokens)
    assert _rows(places(ax, "leaders")) == _rows(limit.positions[limit.leaders])
    assert _rows(places(ax, "followers")) == _rows(tokens)


def test_crowd_becomes_an_image_and_says_so():
    tokens = make_tokens("gaussian", 30_000, 2, 0)
    limit = hm.equilibrium(tokens)
    ax = draw_tokens(limit, start=tokens)
    image = artists(ax, "crowd")
    assert len(image) == 1
    assert len(places(ax, "followers")) == 0
    assert len(places(ax, "leaders")) == len(limit.leaders)
    assert "30,000 tokens as a density image" in words(ax.figure)


def test_density_mixes_colours_and_is_stronger_where_there_are_more():
    placed = np.array([[0.1, 0.1]] * 3 + [[0.9, 0.9]])
    colours = np.array([[1.0, 0, 0], [1.0, 0, 0], [0, 0, 1.0], [0, 1.0, 0]])
    picture = density(placed, colours, (0.0, 1.0, 0.0, 1.0))
    crowded, lonely = picture[42, 42], picture[378, 378]
    assert np.allclose(crowded[:3], [2 / 3, 0, 1 / 3])
    assert np.allclose(lonely[:3], [0, 1, 0])
    assert crowded[3] == 1.0
    assert 0 < lonely[3] < crowded[3]


def test_space_is_thinned_aloud():
    tokens = make_tokens("gaussian", 25_000, 3, 0)
    limit = hm.equilibrium(tokens)
    ax = draw_tokens(limit, start=tokens)
    assert ax.name == "3d"
    assert "20,000 of 25,000 tokens drawn" in words(ax.figure)
    drawn = sum(len(artist.get_offsets()) for artist in artists(ax, "followers"))
    assert drawn == 20_000


def test_three_coordinates_in_space_or_projected_on_flat_axes():
    run = hm.simulate(make_tokens("gaussian", 30, 3, 0), hm.HardmaxLayer(0.5), depth=5)
    assert draw_tokens(run).name == "3d"
    flat = Figure().add_subplot()
    draw_tokens(run, ax=flat)
    assert "principal direction 1" in flat.get_xlabel()
    assert len(artists(draw_tokens(run), "hull")) == 2  # faces and edges


def test_projection_is_onto_principal_directions_and_states_the_variance():
    rng = np.random.default_rng(0)
    tokens = rng.standard_normal((200, 5)) * [0.1, 5.0, 0.1, 2.0, 0.1]
    run = hm.simulate(tokens, hm.HardmaxLayer(0.5), depth=0)
    ax = draw_tokens(run)
    centred = tokens - tokens.mean(axis=0)
    values, vectors = np.linalg.eigh(centred.T @ centred)
    share = 100 * values[::-1] / values.sum()
    assert f"({share[0]:.0f} % of the variance)" in ax.get_xlabel()
    assert f"({share[1]:.0f} % of the variance)" in ax.get_ylabel()
    drawn = np.concatenate([places(ax, "followers"), places(ax, "leaders")])
    expected = centred @ vectors[:, ::-1][:, :2]
    assert np.allclose(np.sort(np.abs(drawn), axis=0), np.sort(np.abs(expected), axis=0))


def test_one_coordinate_is_a_strip():
    run = hm.simulate(make_tokens("gaussian", 40, 1, 0), hm.HardmaxLayer(0.5), depth=3)
    ax = draw_tokens(run, layer=1)
    drawn = np.concatenate([places(ax, "followers"), places(ax, "leaders")])
    assert np.allclose(np.sort(drawn[:, 0]), np.sort(run.tokens[1][:, 0]))
    assert np.abs(drawn[:, 1]).max() <= 0.5
    assert len(ax.get_yticks()) == 0


@pytest.mark.parametrize(
    "tokens",
    [
        [[1.0, 2.0]],
        [[0.0, 0.0]],
        [[0.0, 0.0], [1.0, 1.0]],
        [[1.0, 1.0]] * 3,
        [[1.0, 0.0], [-1.0, 0.0], [0.0, 0.0]],
        [[2.0], [1.0]],
        [[1e300, 2e300], [-1e300, 1e300], [5e299, -1e300]],
        [[1e-300, 2e-300], [-1e-300, 1e-300]],
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.5, 0.5, 0.0]],
        [[1.0, 0.0, 0.0]],
        [[1.0, 2.0, 3.0, 4.0]],
    ],
    ids=str,
)
def test_strange_tokens_are_drawn_not_refused(tokens):
    points = np.array(tokens)
    run = hm.simulate(points, hm.HardmaxLayer(0.5), depth=3)
    limit = hm.equilibrium(points)
    for figure in (draw(run), draw(limit), draw_tokens(limit, start=points).figure, draw_panels(run, [0, 3])):
        assert figure_bytes(figure, dpi=40).startswith(b"\x89PNG")
    if np.abs(points).max() > 1e100 or 0 < np.abs(points).max() < 1e-100:
        assert "in units of" in words(draw(run))


def test_tensors_and_single_precision_are_drawn_like_arrays():
    tokens = CONFIGURATIONS["cloud"].tokens
    expected = places(draw_tokens(_run("cloud"), layer=1), "leaders")
    run = hm.simulate(torch.from_numpy(tokens.copy()), hm.HardmaxLayer(0.5), depth=2)
    assert np.array_equal(places(draw_tokens(run, layer=1), "leaders"), expected)
    single = hm.simulate(tokens.astype(np.float32), hm.HardmaxLayer(0.5), depth=2)
    assert np.allclose(places(draw_tokens(single, layer=1), "leaders"), expected, atol=1e-6)


def test_softmax_has_no_leaders_and_one_colour():
    run = hm.simulate(CONFIGURATIONS["cloud"].tokens, hm.SoftmaxLayer(0.5, beta=2.0), depth=2)
    ax = draw_tokens(run)
    assert artists(ax, "leaders") == []
    assert artists(ax, "hull") == []
    assert len(places(ax, "followers")) == 24


def test_draws_on_given_axes_and_leaves_settings_alone():
    before = dict(mpl.rcParams)
    figure = Figure()
    ax = figure.add_subplot()
    assert draw_tokens(_run("cloud"), ax=ax) is ax
    assert draw(_run("cloud"), ax=ax) is figure
    assert dict(mpl.rcParams) == before


def test_drawing_starts_no_window_system():
    import subprocess
    import sys

    code = "import sys, hardmax.figures; sys.exit('matplotlib.pyplot' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_figure_shows_itself_in_a_notebook():
    assert draw(_run("cloud"))._repr_png_().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: draw_tokens(_run("cloud"), layer=99), "layer was not stored in this run, got 99: choose among 0, 1"),
        (lambda: draw_tokens(hm.equilibrium([[1.0, 2.0]]), layer=1), "layer has no meaning in a limit, got 1"),
        (lambda: draw_tokens(np.zeros((3, 2))), "run_or_limit must be a Trajectory or an Equilibrium, got ndarray"),
        (lambda: draw_tokens(_run("cloud"), start=np.zeros((3, 2))), "start is only for limits"),
        (lambda: draw_tokens(hm.equilibrium([[1.0, 2.0]]), start=np.zeros((3, 2))), r"must have shape \(1, 2\)"),
        (lambda: draw_panels(_run("cloud"), []), "layers must name at least one layer"),
        (lambda: draw_panels(_run("cloud"), [0, 1], axes=[Figure().add_subplot()]), "axes must be 2, one per layer"),
        (
            lambda: draw_tokens(_run("cloud"), ax=Figure().add_subplot(projection="3d")),
            "ax cannot show tokens of 2 coordinates, got three-dimensional axes",
        ),
    ],
)
def test_mistakes_are_named(call, message):
    with pytest.raises(InputError, match=message):
        call()


@pytest.mark.slow
def test_a_million_tokens_are_all_in_the_picture(tmp_path):
    from hardmax.figures import save_figure

    tokens = make_tokens("gaussian", 1_000_000, 2, 0)
    limit = hm.equilibrium(tokens)
    ax = draw_tokens(limit, start=tokens)
    assert len(places(ax, "leaders")) == len(limit.leaders)
    picture = np.asarray(artists(ax, "crowd")[0].get_array())
    left, right, bottom, top = artists(ax, "crowd")[0].get_extent()
    height, width = picture.shape[:2]
    column = ((tokens[:, 0] - left) / (right - left) * width).astype(int)
    row = ((tokens[:, 1] - bottom) / (top - bottom) * height).astype(int)
    assert (picture[row, column, 3] > 0).all()
    assert save_figure(ax.figure, tmp_path / "million.png").stat().st_size > 10_000


@pytest.mark.parametrize("tokens", [[[1.0, 2.0]], [[0.0, 1.0], [1.0, 1.0], [-2.0, 1.0]], [[0.0, 1.0], [0.0, -3.0]]])
def test_tokens_on_a_line_get_a_frame_without_complaint(
    tokens: list[list[float]], caplog: pytest.LogCaptureFixture
) -> None:
    figure = draw(hm.simulate(tokens, hm.HardmaxLayer(), depth=1))
    figure.canvas.draw()
    assert not caplog.records
    (left, right), (low, high) = figure.axes[0].get_xlim(), figure.axes[0].get_ylim()
    assert min(right - left, high - low) > 0.3 * max(right - left, high - low)
