"""Figures of the mean field show the numbers of the runs."""

import math

import numpy as np
import pytest

import hardmax as hm
from drawn import artists, words
from hardmax.errors import InputError
from hardmax.figures import (
    draw_angles,
    draw_distances,
    draw_durations,
    draw_least_distances,
    draw_phase_diagram,
    draw_scaling,
    draw_sphere,
)

B, V = np.diag([4.0, 1.0]), np.diag([1.0, 2.0])


@pytest.fixture(scope="module")
def runs() -> list[hm.Trajectory]:
    tokens = hm.circle_quantiles(300, lambda angle: 1 + np.sin(angle) / 2).points
    return [hm.simulate(tokens, hm.SphereFlow(B, V, beta), time=10.0, step=0.2) for beta in (5.0, 20.0)]


@pytest.fixture(scope="module")
def found(runs: list[hm.Trajectory]) -> list[hm.Phases]:
    return [hm.phases(run) for run in runs]


def test_a_curve_for_each_beta(found: list[hm.Phases]) -> None:
    ax = draw_distances(found[::-1])
    curves = artists(ax, "measured")
    assert [curve.get_label() for curve in curves] == [r"$\beta = 5$", r"$\beta = 20$"]
    for curve, one in zip(curves, found, strict=True):
        assert np.array_equal(curve.get_ydata(), one.distances)
    assert len(artists(ax, "approach")) == 2
    decay = artists(ax, "theory")[0]
    slope = np.polyfit(decay.get_xdata(), np.log(decay.get_ydata()), 1)[0]
    assert slope == pytest.approx(-0.5)
    assert not artists(draw_distances(found, shape=False), "theory")
    trimmed = artists(draw_distances(found[0], trimmed=True), "measured")[0]
    assert np.array_equal(trimmed.get_ydata(), found[0].trimmed)


def test_zero_temperature_is_called_by_its_sign() -> None:
    tokens = hm.circle_quantiles(100).points
    cold = hm.phases(hm.simulate(tokens, hm.SphereFlow(B, V, math.inf), time=3.0))
    assert r"\infty" in words(draw_distances(cold).figure)


def test_durations_name_both_slopes(found: list[hm.Phases]) -> None:
    ax = draw_durations(found)
    assert "theory 1.5" in words(ax.figure)
    approach = artists(ax, "measured")[1]
    assert approach.get_ydata() == pytest.approx([one.approach_time for one in found])
    with pytest.raises(InputError, match="two betas above 1"):
        draw_durations(found[:1])


def test_least_distances_of_density_and_tokens(found: list[hm.Phases]) -> None:
    ax = draw_least_distances(found, tokens={100: [0.4, 0.3], 50: [0.5, 0.4]})
    least = [one.approach_distance for one in found]
    assert artists(ax, "approach")[0].get_ydata() == pytest.approx(least)
    slope = math.log(least[1] / least[0]) / math.log(4)
    assert f"slope {slope:.2f}" in words(ax.figure)
    assert [line.get_label() for line in artists(ax, "measured")] == ["50 tokens", "100 tokens"]
    with pytest.raises(InputError, match="must hold positive distances at two betas"):
        draw_least_distances(found[:1])
    with pytest.raises(InputError, match="must have 2 values for each number of tokens"):
        draw_least_distances(found, tokens={100: [0.4]})


def test_scaling_says_its_slope() -> None:
    assert "slope -1.00" in words(draw_scaling([10.0, 100.0], [0.1, 0.01], 1.0).figure)
    with pytest.raises(InputError, match="must be positive"):
        draw_scaling([10.0, 100.0], [0.1, 0.0], 1.0)


def test_phase_diagram_marks_both_times(found: list[hm.Phases]) -> None:
    ax = draw_phase_diagram(found)
    assert len(artists(ax, "approach")) == 2
    assert "closest approach" in words(ax.figure)
    with pytest.raises(InputError, match="two betas or more"):
        draw_phase_diagram(found[:1])
    with pytest.raises(InputError, match="at least one run"):
        draw_distances([])


def test_angles_of_tokens(runs: list[hm.Trajectory]) -> None:
    ax = draw_angles(runs[1], marks={"here": 3.0})
    lines = artists(ax, "trails")[0].get_segments()
    assert len(lines) >= 250
    ends = {round(float(line[-1, 1]) % (2 * math.pi), 1) for line in lines}
    assert round(math.pi / 2, 1) in ends
    assert "here" in words(ax.figure)


def test_snapshots_on_circle_and_sphere(runs: list[hm.Trajectory]) -> None:
    figure = draw_sphere(runs[0], [0.0, 4.0])
    assert [ax.get_title() for ax in figure.axes] == ["t = 0", "t = 4"]
    dots = artists(figure.axes[0], "tokens")[0].get_offsets()
    assert np.abs(np.asarray(dots) - runs[0].tokens[0]).max() < 1e-12
    space = hm.simulate(hm.fibonacci_sphere(300).points, hm.SphereFlow(beta=4.0), time=1.0)
    shown = artists(draw_sphere(space, colours=np.linspace(0, 1, 300)).axes[0], "tokens")[0].get_offsets()
    assert 100 < len(shown) < 200  # those in front
    with pytest.raises(InputError, match="times"):
        draw_sphere(runs[0], [11.0])
    with pytest.raises(InputError, match="must be on the circle"):
        draw_angles(space)
    with pytest.raises(InputError, match="must have times"):
        draw_sphere(hm.simulate(np.eye(2), hm.HardmaxLayer(), depth=1))
