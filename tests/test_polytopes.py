"""Polytopes against closed forms, Qhull and linear programming, in ordinary and degenerate position."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.spatial import ConvexHull

from hardmax.errors import HardmaxError, InputError
from hardmax.polytopes import Polytope

CUBE = np.array(np.meshgrid([0.0, 1.0], [0.0, 1.0], [0.0, 1.0])).reshape(3, -1).T


def is_vertex(points: np.ndarray, i: int) -> bool:
    """By linear programming: no convex combination of the others gives this point."""
    others = np.delete(points, i, axis=0)
    system = np.vstack([others.T, np.ones(len(others))])
    answer = linprog(np.zeros(len(others)), A_eq=system, b_eq=np.append(points[i], 1.0), bounds=(0, None))
    return answer.status == 2


def test_a_cube_has_eight_vertices_twelve_triangles_and_volume_one() -> None:
    inner = np.array([[0.5, 0.5, 0.5], [0.5, 0.5, 0.0], [0.5, 0.0, 0.0]])
    cube = Polytope.of(np.concatenate([inner, CUBE]))
    assert cube.vertex_indices.tolist() == list(range(3, 11))
    assert cube.dimension == 3
    assert cube.faces.shape == (12, 3)
    assert cube.volume == pytest.approx(1.0, rel=1e-15)
    assert str(cube) == "a 3-dimensional polytope with 8 vertices in 3 coordinates"


def test_triangles_of_a_solid_turn_outwards() -> None:
    cube = Polytope.of(CUBE)
    a, b, c = (cube.vertices[cube.faces[:, k]] for k in range(3))
    turned = np.cross(b - a, c - a)
    assert ((turned * cube.normals).sum(axis=1) > 0).all()
    assert ((a - 0.5) * cube.normals).sum(axis=1).min() > 0


def test_equations_bound_the_inside() -> None:
    points = np.random.default_rng(0).normal(size=(50, 3))
    solid = Polytope.of(points)
    values = points @ solid.equations[:, :-1].T + solid.equations[:, -1]
    assert values.max() < 1e-14
    on_face = np.abs(values[solid.vertex_indices]).min(axis=1)
    assert on_face.max() < 1e-14


@pytest.mark.parametrize("size", [1e-300, 1e-30, 1.0, 1e300])
def test_any_size_gives_the_same_polygon(size: float) -> None:
    points = np.array([[0.0, 0], [2, 0], [1, 1], [2, 2], [0, 2], [1, 0]]) * size
    square = Polytope.of(points)
    assert square.vertex_indices.tolist() == [0, 1, 3, 4]
    assert square.log_volume == pytest.approx(math.log(4.0) + 2 * math.log(size), rel=1e-14)
    assert square.contains(np.array([[1.0, 2.0], [1.0, 2.1]]) * size).tolist() == [True, False]
    assert square.support(np.array([[1.0, 1.0]])) == pytest.approx(4 * size)
    assert square.outline.tolist() == [0, 1, 2, 3]


def test_a_volume_that_is_no_float_says_so() -> None:
    with pytest.raises(HardmaxError, match="is no float64: use log_volume"):
        _ = Polytope.of(CUBE * 1e200).volume
    with pytest.raises(HardmaxError, match="is no float64"):
        _ = Polytope.of(CUBE * 1e-200).volume


def test_far_points_are_outside_whatever_their_size() -> None:
    assert not Polytope.of(CUBE * 1e-300).contains(np.array([[1e308, -1e308, 0.0]]))[0]


@pytest.mark.parametrize("points", [[[3.0, 4.0, 5.0]], [[0.0, 0.0]], [[1.0, 2.0]] * 5])
def test_a_point_is_a_polytope(points: list[list[float]]) -> None:
    point = Polytope.of(points)
    assert (point.dimension, point.vertex_indices.tolist(), point.volume) == (0, [0], 1.0)
    assert point.faces.shape[0] == point.normals.shape[0] == 0
    assert point.outline.tolist() == [0]
    assert point.contains(points).all()
    assert not point.contains(np.array(points[:1]) + 0.1).any()
    assert str(point).startswith("a point in")


def test_a_segment_in_space() -> None:
    along = np.array([1.0, -2.0, 2.0])
    points = np.array([1.0, 1.0, 1.0]) + np.outer([0.5, 0.0, 1.0, 1 / 3, 0.0], along)
    segment = Polytope.of(points)
    assert segment.dimension == 1
    assert segment.vertex_indices.tolist() == [1, 2]
    assert segment.volume == pytest.approx(3.0)
    assert segment.faces.shape == (2, 1)
    assert np.allclose(np.sort(segment.normals @ along), [-3.0, 3.0])
    assert segment.contains(points).all()
    assert not segment.contains(points[1:3] + np.array([1e-6, 0, 0])).any()
    assert not segment.contains([[3.0, -3.0, 5.0]])[0]


def test_points_on_a_line_are_a_segment() -> None:
    line = Polytope.of([[3.0], [-1.0], [0.5]])
    assert (line.vertex_indices.tolist(), line.volume) == ([0, 1], 4.0)


def test_a_polygon_flat_in_five_dimensions() -> None:
    rng = np.random.default_rng(1)
    plane = rng.normal(size=(40, 2))
    frame = np.linalg.qr(rng.normal(size=(5, 2)))[0]
    flat = Polytope.of(plane @ frame.T + rng.normal(size=5))
    truth = ConvexHull(plane)
    assert flat.dimension == 2
    assert flat.vertex_indices.tolist() == sorted(truth.vertices.tolist())
    assert flat.volume == pytest.approx(truth.volume, rel=1e-12)
    assert set(flat.outline.tolist()) == set(range(len(flat.vertices)))
    assert np.abs(np.linalg.norm(flat.normals, axis=1) - 1).max() < 1e-12


def test_thin_polytopes_keep_their_corners() -> None:
    square = np.array([[0.0, 0], [1, 0], [1, 1], [0, 1], [0.5, 0.5]])
    turn = np.array([[np.cos(0.3), -np.sin(0.3)], [np.sin(0.3), np.cos(0.3)]])
    thin = Polytope.of((square * [1.0, 1e-9]) @ turn.T)
    assert thin.vertex_indices.tolist() == [0, 1, 2, 3]
    assert thin.volume == pytest.approx(1e-9, rel=1e-5)


def test_rounding_does_not_make_a_flat_set_solid() -> None:
    rng = np.random.default_rng(2)
    points = rng.normal(size=(300, 3)) @ np.linalg.qr(rng.normal(size=(6, 3)))[0].T + 100 * rng.normal(size=6)
    assert Polytope.of(points).dimension == 3


def test_the_lowest_of_repeated_points_is_the_vertex() -> None:
    points = np.array([[1.0, 1.0], [0.0, 0.0], [2.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
    assert Polytope.of(points).vertex_indices.tolist() == [0, 1, 2]


@settings(deadline=None, max_examples=60)
@given(
    st.integers(5, 7).flatmap(
        lambda d: st.lists(st.lists(st.integers(-1, 1), min_size=d, max_size=d), min_size=3, max_size=25)
    )
)
def test_vertices_without_facets_match_linear_programming(rows: list[list[int]]) -> None:
    points = np.unique(np.array(rows, dtype=float), axis=0)
    found = set(Polytope.of(points).vertex_indices.tolist())
    truth = {i for i in range(len(points)) if len(points) == 1 or is_vertex(points, i)}
    assert found == truth


def test_vertices_without_facets_match_qhull() -> None:
    points = np.random.default_rng(3).normal(size=(80, 6)) * [1, 1, 1, 1, 1e-3, 1e3]
    solid, truth = Polytope.of(points), ConvexHull(points / [1, 1, 1, 1, 1e-3, 1e3])
    assert solid.vertex_indices.tolist() == sorted(truth.vertices.tolist())
    assert solid.volume == pytest.approx(truth.volume, rel=1e-9)
    assert len(solid.faces) == len(truth.simplices)


def test_high_dimensions_have_vertices_but_no_facets() -> None:
    rng = np.random.default_rng(4)
    corners = rng.normal(size=(200, 16))
    inner = rng.dirichlet(np.ones(200), size=30) @ corners
    solid = Polytope.of(np.concatenate([inner, corners]))
    assert solid.vertex_indices.tolist() == list(range(30, 230))
    assert solid.contains(inner).all()
    assert not solid.contains(2.0 * corners[:5]).any()
    for name in ("faces", "normals", "equations", "volume"):
        with pytest.raises(HardmaxError, match="facets, more than can be listed"):
            getattr(solid, name)


@settings(deadline=None, max_examples=50)
@given(st.integers(1, 4), st.integers(1, 30), st.integers(0, 2**32 - 1), st.booleans())
def test_hulls_contain_their_points_and_mixtures(d: int, n: int, seed: int, on_grid: bool) -> None:
    rng = np.random.default_rng(seed)
    points = rng.integers(-2, 3, size=(n, d)).astype(float) if on_grid else rng.normal(size=(n, d))
    hull = Polytope.of(points)
    mixed = rng.dirichlet(np.ones(n), size=10) @ points
    assert hull.contains(points).all()
    assert hull.contains(mixed).all()
    directions = rng.normal(size=(10, d))
    assert np.allclose(hull.support(directions), (points @ directions.T).max(axis=0), rtol=1e-13, atol=1e-13)
    away = hull.vertices[0] + 10 * (hull.vertices[0] - points.mean(axis=0)) + 1e-3
    assert not hull.contains(away[None, :])[0]


def test_tensors_are_taken_too() -> None:
    assert Polytope.of(torch.tensor([[0.0, 1.0], [1.0, 0.0]])).dimension == 1


def test_excess_says_how_far_a_point_sticks_out() -> None:
    cube = Polytope.of(2 * CUBE)
    assert cube.excess([[1.0, 1, 1], [1, 1, 3], [0, 0, 2]]) == pytest.approx([0.0, 0.5, 0.0])


@pytest.mark.parametrize(
    ("points", "message"),
    [
        ([], "points must have shape"),
        ([1.0, 2.0], r"points must have shape \(point, coordinate\).*got shape \(2,\)"),
        ([[1.0, float("nan")]], "points must be finite"),
        ([["a", "b"]], "points must be an array of real numbers"),
    ],
)
def test_bad_points_are_refused(points: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Polytope.of(points)


def test_bad_questions_are_refused() -> None:
    cube = Polytope.of(CUBE)
    with pytest.raises(InputError, match=r"points must have shape \(point, 3\)"):
        cube.contains([[1.0, 2.0]])
    with pytest.raises(InputError, match=r"tolerance must lie in \[0, 1\)"):
        cube.contains(CUBE, tolerance=-1.0)
    with pytest.raises(InputError, match="directions must keep"):
        Polytope.of(CUBE * 1e300).support([[1e300, 0, 0]])
    with pytest.raises(HardmaxError, match="only a polygon has an outline"):
        _ = cube.outline
