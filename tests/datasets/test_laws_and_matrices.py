"""Laws and matrices are what their sentences say, and the same seed gives the same numbers."""

import numpy as np
import pytest

from hardmax.datasets import LAWS, MATRICES, make_matrix, make_tokens
from hardmax.dynamics.assumptions import is_positive_definite, is_symmetric
from hardmax.errors import InputError


@pytest.mark.parametrize("law", LAWS)
def test_every_law_is_seeded_finite_and_of_the_right_shape(law):
    first, again, other = (make_tokens(law, 50, 2, random_state=seed) for seed in (1, 1, 2))
    assert first.shape == (50, 2)
    assert first.dtype == np.float64
    assert np.isfinite(first).all()
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    assert make_tokens(law, 1, 2, random_state=0).shape == (1, 2)


@pytest.mark.parametrize("law", [law for law in LAWS if law != "circle"])
@pytest.mark.parametrize("d", [1, 5, 64])
def test_every_other_law_takes_any_dimension(law, d):
    assert make_tokens(law, 20, d, random_state=0).shape == (20, d)


def test_a_generator_is_used_where_it_stands():
    rng = np.random.default_rng(0)
    first = make_tokens("gaussian", 3, 2, rng)
    assert not np.array_equal(first, make_tokens("gaussian", 3, 2, rng))


def test_supports():
    assert np.abs(make_tokens("uniform-cube", 500, 3, 0)).max() <= 1
    radii = np.linalg.norm(make_tokens("ball", 4000, 3, 0), axis=1)
    assert radii.max() <= 1
    assert abs((radii < 0.5).mean() - 1 / 8) < 0.02  # uniform in volume
    for law in ("sphere", "circle"):
        assert np.allclose(np.linalg.norm(make_tokens(law, 100, 2, 0), axis=1), 1.0, rtol=0, atol=1e-15)


def test_circle_is_evenly_spaced():
    points = make_tokens("circle", 7, 2, 0)
    gaps = np.linalg.norm(points - np.roll(points, 1, axis=0), axis=1)
    assert np.allclose(gaps, 2 * np.sin(np.pi / 7))


@pytest.mark.parametrize(("n", "d"), [(1, 1), (2, 1), (9, 1), (100, 2), (300, 3), (50, 40)])
def test_grid_points_are_distinct_nonzero_integers(n, d):
    points = make_tokens("grid", n, d, 0)
    assert np.array_equal(points, np.round(points))
    assert points.any(axis=1).all()
    assert len(np.unique(points, axis=0)) == n


def test_clusters_lie_in_tight_clouds_and_heavy_tails_reach_far():
    points = make_tokens("clusters", 400, 2, 0)
    distance = np.linalg.norm(points[:, None] - points[None], axis=2)
    np.fill_diagonal(distance, np.inf)
    assert np.median(np.sort(distance, axis=1)[:, 20]) < 0.2
    tails = np.linalg.norm(make_tokens("heavy-tails", 4000, 2, 0), axis=1)
    assert tails.max() > 3 * np.linalg.norm(make_tokens("gaussian", 4000, 2, 0), axis=1).max()


@pytest.mark.parametrize("name", MATRICES)
def test_matrices_are_square_and_seeded(name):
    first = make_matrix(name, 2, 3)
    assert first.shape == (2, 2)
    assert np.array_equal(first, make_matrix(name, 2, 3))


@pytest.mark.parametrize("name", ["identity", "random-spd", "anisotropic"])
@pytest.mark.parametrize("d", [1, 3, 16])
def test_matrices_of_the_theorem_are_symmetric_positive_definite(name, d):
    import torch

    A = torch.from_numpy(make_matrix(name, d, 0))
    assert is_symmetric(A)
    assert is_positive_definite(A)


def test_rotation_is_a_quarter_turn():
    A = make_matrix("rotation", 4, 0)
    assert np.array_equal(A @ A, -np.eye(4))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: make_tokens("normal", 3, 2, 0), r"law is not a known law, got 'normal': choose among gaussian"),
        (lambda: make_tokens("gaussian", 0, 2, 0), "n must be a whole number, at least 1, got 0"),
        (lambda: make_tokens("gaussian", 3, 0, 0), "d must be a whole number, at least 1, got 0"),
        (lambda: make_tokens("circle", 3, 3, 0), "d must be 2 for the circle, got 3"),
        (lambda: make_tokens("gaussian", 3, 2, -1), "random_state"),
        (lambda: make_matrix("hilbert", 2, 0), "name is not a known matrix, got 'hilbert'"),
        (lambda: make_matrix("paper", 3, 0), "d must be 2 for the paper's matrix, got 3"),
        (lambda: make_matrix("rotation", 3, 0), "d must be even"),
    ],
)
def test_mistakes_are_named(call, words):
    with pytest.raises(InputError, match=words):
        call()


def test_names_for_help_texts_come_without_torch():
    import subprocess
    import sys

    code = "import sys; import hardmax.datasets.random_tokens; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
