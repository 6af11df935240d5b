"""The cylinder in a channel: the fast step against plain loops, closed forms, symmetry, and a published benchmark."""

import numpy as np
import pytest

import hardmax as hm
from hardmax.datasets import Series, Wake, cylinder_wake
from hardmax.datasets.cylinder_wake import DIRECTIONS, OPPOSITE, WEIGHTS, ChannelFlow


def _parabola(rows: int, mean: float) -> np.ndarray:
    y = np.arange(rows) + 0.5
    return 6 * mean * y * (rows - y) / rows**2


def _collided(f: np.ndarray, rate: float) -> np.ndarray:
    """One node from the definition: moments, stress, populations."""
    density, u = f.sum(), sum(f[i] * DIRECTIONS[i] for i in range(9))
    flux = sum(f[i] * np.outer(DIRECTIONS[i], DIRECTIONS[i]) for i in range(9))
    stress = rate * np.outer(u, u) + (1 - rate) * (flux - density / 3 * np.eye(2))
    out = np.empty(9)
    for i, c in enumerate(DIRECTIONS):
        second = np.outer(c, c) - np.eye(2) / 3
        out[i] = WEIGHTS[i] * (density + 3 * c @ u + 4.5 * (second * stress).sum())
    return out


def _slow_step(
    f: np.ndarray, inflow: np.ndarray, viscosity: float, centre: tuple[float, float], radius: float
) -> tuple[np.ndarray, np.ndarray]:
    """One step, node by node and link by link; gives back the populations and the force on the cylinder."""
    _, length, height = f.shape
    rate = 1 / (3 * viscosity + 0.5)
    solid = {
        (x, y)
        for x in range(length)
        for y in range(height)
        if np.hypot(x + 0.5 - centre[0], y + 0.5 - centre[1]) < radius
    }
    fluid = [(x, y) for x in range(length) for y in range(height) if (x, y) not in solid]
    sent = {place: _collided(f[:, place[0], place[1]], rate) for place in fluid}

    def velocity(x: int, y: int) -> np.ndarray:
        return sum(f[i, x, y] * DIRECTIONS[i] for i in range(9))

    out = {y: velocity(length - 1, y) for y in range(height)}
    outside = 1 + np.sqrt(3) * (np.mean([u[0] for u in out.values()]) - inflow.mean())
    after = f.copy()
    force = np.zeros(2)
    for x, y in fluid:
        for i, c in enumerate(DIRECTIONS):
            back = OPPOSITE[i]
            from_x, from_y = x - c[0], y - c[1]
            if 0 <= from_x < length and (from_x, from_y) in sent:
                after[i, x, y] = sent[from_x, from_y][i]
            elif from_x >= length:
                along = c @ out[y]
                kept = 2 * WEIGHTS[i] * (outside + 4.5 * along**2 - 1.5 * out[y] @ out[y])
                after[i, x, y] = kept - sent[x, y][back]
            elif from_y in (-1, height):
                after[i, x, y] = sent[x, y][back]
            elif from_x < 0:
                speed = inflow[from_y]
                after[i, x, y] = WEIGHTS[i] * (f[:, 0, from_y].sum() + 3 * speed + 3 * speed**2)
            else:  # from the cylinder: bisect for the surface along the link that goes the other way
                low, high = 0.0, 1.0
                for _ in range(60):
                    middle = (low + high) / 2
                    at = np.array([x, y]) + 0.5 - middle * c - np.array(centre)
                    low, high = (low, middle) if np.hypot(*at) < radius else (middle, high)
                share, leaving = low, sent[x, y][back]
                if share < 0.5:
                    value = 2 * share * leaving + (1 - 2 * share) * sent[x + c[0], y + c[1]][back]
                else:
                    value = leaving / (2 * share) + (1 - 1 / (2 * share)) * sent[x, y][i]
                after[i, x, y] = value
                force += (leaving + value) * DIRECTIONS[back]
    return after, force


def test_the_step_is_that_of_plain_loops() -> None:
    length, height, centre, radius, viscosity = 16, 13, (6.3, 6.1), 2.4, 0.03
    inflow = _parabola(height, 0.08)
    flow = ChannelFlow(length, inflow, viscosity, centre, radius)
    noise = np.random.default_rng(0).uniform(-1, 1, flow.populations.shape)
    flow.populations[...] *= 1 + 0.03 * np.where(flow.solid, 0.0, noise)
    for _ in range(4):
        expected, force = _slow_step(flow.populations.copy(), inflow, viscosity, centre, radius)
        flow.step()
        fluid = ~flow.solid
        np.testing.assert_allclose(flow.populations[:, fluid], expected[:, fluid], atol=1e-14)
        np.testing.assert_allclose(flow.force, force, atol=1e-13)
    assert (flow.links.share < 0.5).any()
    assert (flow.links.share > 0.5).any()


def test_an_empty_channel_has_the_flow_of_poiseuille() -> None:
    rows, mean, viscosity = 16, 0.03, 0.1
    flow = ChannelFlow(40, _parabola(rows, mean), viscosity, (10.0, 8.0), 0.0)
    for _ in range(3000):
        flow.step()
    u, v = flow.velocity()
    np.testing.assert_allclose(u[20], _parabola(rows, mean), atol=0.01 * mean)
    assert np.abs(v[18:22]).max() < 1e-3 * mean
    np.testing.assert_allclose(u[5:-5].sum(axis=1), u[20].sum(), rtol=1e-3)
    pressure = flow.density()[:, rows // 2] / 3
    assert (pressure[30] - pressure[10]) / 20 == pytest.approx(-12 * viscosity * mean / rows**2, rel=0.02)


@pytest.fixture(scope="module")
def calm() -> Wake:
    """A symmetric flow that has settled."""
    return cylinder_wake(3, 0.5, reynolds=20, cells=8, height=4, length=8, offset=0.0, warm_up=25, progress=False)


def test_a_symmetric_flow_stays_symmetric_and_drags(calm: Wake) -> None:
    u, v = calm.velocity[-1]
    np.testing.assert_allclose(u, u[:, ::-1], atol=1e-10)
    np.testing.assert_allclose(v, -v[:, ::-1], atol=1e-10)
    drag, lift = calm.forces.values.T
    assert (drag > 1).all()
    assert np.abs(lift).max() < 1e-9
    assert np.isnan(calm.strouhal())


def test_what_flows_in_flows_out_and_nothing_slips(calm: Wake) -> None:
    u, v = calm.velocity[-1]
    np.testing.assert_allclose(u.mean(axis=1), 1.0, rtol=0.02)
    assert np.abs(u[calm.solid]).max() == np.abs(v[calm.solid]).max() == 0.0
    assert np.abs(u[:, [0, -1]]).max() < 0.5  # half a cell from the walls, where the inflow has 0.18
    behind = np.argmin(np.abs(calm.x - 2.0))
    middle = u[:, len(calm.y) // 2]
    assert u[behind].max() > 1.7  # squeezed past the cylinder
    assert middle[(calm.x > 2.5) & (calm.x < 3.2)].min() < 0  # and back behind it


def test_vorticity_and_the_strouhal_number_of_known_flows() -> None:
    x, y, times = np.linspace(0, 2, 9), np.linspace(0, 1, 6), 0.1 * np.arange(200)
    spin = np.stack(np.broadcast_arrays(-3 * y, 2 * x[:, None]))[None]
    lift = np.stack([np.ones(200), 0.3 + np.sin(2 * np.pi * 0.31 * times)], axis=1)
    forces = Series(lift, times.copy(), ("drag", "lift"), "made up")
    wake = Wake(np.repeat(spin, 200, axis=0), times, x, y, np.zeros((9, 6), dtype=bool), forces)
    np.testing.assert_allclose(wake.vorticity(), 5.0)
    np.testing.assert_allclose(wake.vorticity(spin[0]), 5.0)
    assert wake.strouhal() == pytest.approx(0.31, rel=1e-3)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"cells": 3}, "cells must be a whole number"),
        ({"dt": 0.0}, "dt must be"),
        ({"upstream": 0.4}, "clear of the walls and ends"),
        ({"offset": 1.8}, "clear of the walls and ends"),
        ({"reynolds": 1e7, "warm_up": 12.0, "length": 6}, "makes the flow blow up with 6 cells.*cells=12"),
    ],
)
def test_flows_that_cannot_be(given: dict[str, float], message: str) -> None:
    settings = {"samples": 2, "cells": 6, "length": 5, "warm_up": 0.5, "progress": False} | given
    with pytest.raises(hm.InputError, match=message):
        cylinder_wake(**settings)  # type: ignore[arg-type]


@pytest.mark.slow
def test_the_steady_benchmark_of_schaefer_and_turek() -> None:
    wake = cylinder_wake(2, 0.5, reynolds=20, cells=20, length=22, warm_up=60, progress=False)
    drag, lift = wake.forces.values[-1]
    assert drag == pytest.approx(5.58, rel=0.02)
    assert lift == pytest.approx(0.0107, abs=0.02)


@pytest.mark.slow
def test_vortices_are_shed_as_in_the_benchmark_of_schaefer_and_turek() -> None:
    wake = cylinder_wake(200, 0.1, cells=20, warm_up=60, progress=False)
    assert 0.29 < wake.strouhal() < 0.31
    drag, lift = wake.forces.values.T
    assert drag.max() == pytest.approx(3.23, rel=0.03)
    assert lift.max() == pytest.approx(1.0, rel=0.06)
    assert lift.min() == pytest.approx(-lift.max(), rel=0.1)
