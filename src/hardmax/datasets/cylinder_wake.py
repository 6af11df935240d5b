r"""The wake of a cylinder between two walls, by the lattice Boltzmann method.

Nine populations :math:`f_i` travel along the lattice directions :math:`c_i`. In every step each node sets them anew
from their moments (regularised collision of Latt and Chopard, with the incompressible equilibrium of He and Luo):

.. math::

   f_i = w_i\,\bigl[\rho + 3\,c_i u + \tfrac92\,(c_i c_i - \tfrac13) : S\bigr], \qquad
   S = \omega\,u u + (1-\omega)\,\Bigl(\sum_i f_i\,c_i c_i - \tfrac{\rho}{3}\Bigr), \qquad
   \omega = \frac{1}{3\nu + \frac12}.

Walls reflect halfway between nodes, the cylinder at its true surface (Bouzidi, Firdaouss and Lallemand); plane waves
leave through the outflow. The force on the cylinder is the momentum that its surface reflects.

Lengths are in diameters, velocities in mean speeds of the inflow, so the flow depends on the Reynolds number
:math:`\mathrm{Re} = U D/\nu` alone. With the default channel (4.1 diameters high, the cylinder 0.05 below its middle)
this is the benchmark 2D-2 of Schäfer and Turek (1996): at Re = 100 a Strouhal number :math:`f D/U` of 0.295–0.305, a
largest drag coefficient of 3.22–3.24 and a largest lift coefficient of 0.99–1.01. The walls are near, so these are not
those of the open flow.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from ..errors import InputError
from ..progress import Ticker
from ..scalars import as_count, as_positive
from .series import Series

# The first of each opposite pair, then their opposites in the same order, after the one at rest.
_HALF = np.array([[1, 0], [0, 1], [1, 1], [1, -1]])
DIRECTIONS = np.concatenate([[[0, 0]], _HALF, -_HALF])
WEIGHTS = np.array([4 / 9, 1 / 9, 1 / 9, 1 / 36, 1 / 36, 1 / 9, 1 / 9, 1 / 36, 1 / 36])
OPPOSITE = np.array([0, 5, 6, 7, 8, 1, 2, 3, 4])
_UP, _DOWN, _IN, _BACK = (2, 3, 8), (6, 7, 4), (1, 3, 4), (5, 7, 8)


@dataclass(frozen=True)
class Links:
    """Lattice links that cross the cylinder: from a fluid node along a direction, after ``share`` of the length."""

    direction: np.ndarray
    x: np.ndarray
    y: np.ndarray
    share: np.ndarray


class ChannelFlow:
    """Populations on ``(length, height)`` nodes between walls, in lattice units; node (i, j) is at (i + ½, j + ½).

    ``inflow`` is the speed at each height; ``centre`` and ``radius`` place the cylinder (none for radius 0). The flow
    starts at rest; :attr:`opening` is the share of the inflow that is let in.
    """

    def __init__(
        self, length: int, inflow: np.ndarray, viscosity: float, centre: tuple[float, float], radius: float
    ) -> None:
        height = len(inflow)
        self._inflow = inflow
        self._rate = 1 / (3 * viscosity + 0.5)
        x, y = np.arange(length) + 0.5, np.arange(height) + 0.5
        self.solid = (x[:, None] - centre[0]) ** 2 + (y - centre[1]) ** 2 < radius**2
        self.links = _crossings(self.solid, centre, radius)
        self._inside = np.nonzero(self.solid)
        self._f = np.empty((9, length, height))
        self._f[...] = WEIGHTS[:, None, None]
        self._sent = np.zeros((9, length + 2, height + 2))
        """Populations on their way, with a border of nodes outside the channel."""
        self.opening = 1.0
        self.force = np.zeros(2)
        """Force on the cylinder in the last step."""

    @property
    def populations(self) -> np.ndarray:
        """Shape (9, length, height)."""
        return self._f

    def density(self) -> np.ndarray:
        """One plus three times the pressure."""
        return np.asarray(self._f.sum(axis=0))

    def velocity(self) -> np.ndarray:
        """Shape (2, length, height); zero inside the cylinder."""
        f = self._f
        slanted, crossed = f[3] - f[7], f[4] - f[8]
        found = np.stack([f[1] - f[5] + slanted + crossed, f[2] - f[6] + slanted - crossed])
        found[:, self._inside[0], self._inside[1]] = 0.0
        return found

    def step(self) -> None:
        """Advance the flow by one unit of lattice time: collision, reflection, streaming."""
        f, sent = self._f, self._sent
        density, (ux, uy) = self.density(), self.velocity()
        self._collide(density, ux, uy)
        self._reflect_at_walls()
        self._open_ends(density, ux, uy)
        self._reflect_at_cylinder()
        length, height = ux.shape
        for i, (dx, dy) in enumerate(DIRECTIONS):
            f[i] = sent[i, 1 - dx : 1 - dx + length, 1 - dy : 1 - dy + height]
        f[:, self._inside[0], self._inside[1]] = WEIGHTS[:, None]

    def _collide(self, density: np.ndarray, ux: np.ndarray, uy: np.ndarray) -> None:
        f, rate, left = self._f, self._rate, 1 - self._rate
        diagonals, third = f[3] + f[4] + f[7] + f[8], density / 3
        xx = rate * ux * ux + left * (f[1] + f[5] + diagonals - third)
        yy = rate * uy * uy + left * (f[2] + f[6] + diagonals - third)
        xy = 9 * (rate * ux * uy + left * (f[3] - f[4] + f[7] - f[8]))
        rest = density - 1.5 * (xx + yy)
        slanted = rest + 4.5 * (xx + yy)
        now = self._sent[:, 1:-1, 1:-1]
        now[0] = WEIGHTS[0] * rest
        for i, even, odd in (
            (1, rest + 4.5 * xx, 3 * ux),
            (2, rest + 4.5 * yy, 3 * uy),
            (3, slanted + xy, 3 * (ux + uy)),
            (4, slanted - xy, 3 * (ux - uy)),
        ):
            now[i] = WEIGHTS[i] * (even + odd)
            now[i + 4] = WEIGHTS[i] * (even - odd)

    def _reflect_at_walls(self) -> None:
        sent = self._sent
        for directions, outside, edge in ((_UP, 0, 1), (_DOWN, -1, -2)):
            for i in directions:
                dx = DIRECTIONS[i, 0]
                sent[i, 1 - dx : sent.shape[1] - 1 - dx, outside] = sent[OPPOSITE[i], 1:-1, edge]

    def _open_ends(self, density: np.ndarray, ux: np.ndarray, uy: np.ndarray) -> None:
        sent, height, inflow = self._sent, len(self._inflow), self.opening * self._inflow
        for i in _IN:
            # The nodes before the first have its density, the speed that is asked for, and are in equilibrium.
            sent[i, 0, 1:-1] = WEIGHTS[i] * (density[0] + 3 * inflow + 3 * inflow**2)
        out_x, out_y = ux[-1], uy[-1]
        # A plane wave that leaves has density 1 + u / c: with this condition it is not reflected into the channel.
        outside = 1 + sqrt(3) * (out_x.mean() - inflow.mean())
        for i in _BACK:
            dx, dy = DIRECTIONS[i]
            along = dx * out_x + dy * out_y
            kept = 2 * WEIGHTS[i] * (outside + 4.5 * along**2 - 1.5 * (out_x**2 + out_y**2))
            sent[i, -1, 1 - dy : 1 - dy + height] = kept - sent[OPPOSITE[i], -2, 1:-1]

    def _reflect_at_cylinder(self) -> None:
        sent, links = self._sent, self.links
        i, x, y, share = links.direction, links.x + 1, links.y + 1, links.share
        dx, dy = DIRECTIONS[i].T
        leaving = sent[i, x, y]
        near = 2 * share * leaving + (1 - 2 * share) * sent[i, x - dx, y - dy]
        far = (leaving + (2 * share - 1) * sent[OPPOSITE[i], x, y]) / (2 * share)
        back = np.where(share < 0.5, near, far)
        sent[OPPOSITE[i], x + dx, y + dy] = back
        self.force = (leaving + back) @ DIRECTIONS[i]


def _crossings(solid: np.ndarray, centre: tuple[float, float], radius: float) -> Links:
    """Every link from a fluid node into the cylinder, with the share of its length that lies outside."""
    inside = np.argwhere(solid)
    if len(inside) and (inside.min() < 2 or (inside.max(axis=0) > np.array(solid.shape) - 3).any()):
        raise InputError(
            "centre", centre, f"must keep a cylinder of radius {radius:g} clear of the walls and ends", "move it"
        )
    found = []
    for i, step in enumerate(DIRECTIONS[1:], start=1):
        before = inside - step
        nodes = before[~solid[before[:, 0], before[:, 1]]]
        offset = nodes + 0.5 - np.asarray(centre)
        # |offset + s step| = radius: the first crossing.
        a, b, c = float(step @ step), offset @ step, (offset**2).sum(axis=1) - radius**2
        share = (-b - np.sqrt(np.maximum(b * b - a * c, 0.0))) / a
        found.append((np.full(len(nodes), i), nodes[:, 0], nodes[:, 1], np.clip(share, 1e-6, 1.0)))
    return Links(*(np.concatenate(parts) for parts in zip(*found, strict=True)))


_OPENING = 5.0
"""Time over which the inflow opens, in diameters over the mean speed: slowly, so that no sound waves arise."""
_FASTEST = 0.1
"""The mean speed in lattice units is at most this: the error of compressibility is its square."""
_CHECKED_EVERY = 200
"""Lattice steps between checks that the flow is finite: their cost is then negligible."""


@dataclass(frozen=True, eq=False)
class Wake:
    """Snapshots of the velocity of a flow past a cylinder, with their coordinates.

    Attributes
    ----------
    velocity
        Snapshots in mean speeds of the inflow, shape (samples, 2, x, y).
    times
        Times of the snapshots, shape (samples,).
    x
        Coordinates of the nodes from the inflow, in diameters, shape (x,).
    y
        Coordinates of the nodes from the lower wall, in diameters, shape (y,).
    solid
        Which nodes lie in the cylinder, shape (x, y).
    forces
        The coefficients of drag and lift at the same times.
    """

    velocity: np.ndarray
    times: np.ndarray
    x: np.ndarray
    y: np.ndarray
    solid: np.ndarray
    forces: Series

    def vorticity(self, velocity: np.ndarray | None = None) -> np.ndarray:
        """Vorticity ``dv/dx - du/dy``, shape (samples, x, y); zero in the cylinder.

        Parameters
        ----------
        velocity
            Snapshots on the same nodes, shape (..., 2, x, y); by default those of the wake.

        Returns
        -------
        numpy.ndarray
            The vorticity, shape (..., x, y).
        """
        field = self.velocity if velocity is None else np.asarray(velocity)
        spin = np.gradient(field[..., 1, :, :], self.x, axis=-2) - np.gradient(field[..., 0, :, :], self.y, axis=-1)
        return np.where(self.solid, 0.0, spin)

    def strouhal(self) -> float:
        """Cycles of the lift in the time that the flow takes for a diameter.

        Returns
        -------
        float
            The Strouhal number; NaN where the lift has completed no cycle.
        """
        lift = self.forces.values[:, 1] - self.forces.values[:, 1].mean()
        before = np.flatnonzero((lift[:-1] < 0) & (lift[1:] >= 0))
        if len(before) < 2:
            return float("nan")
        turns = self.times[before] - lift[before] / (lift[before + 1] - lift[before]) * self.forces.dt
        return float((len(turns) - 1) / (turns[-1] - turns[0]))


def cylinder_wake(
    samples: int = 200,
    dt: float = 0.1,
    *,
    reynolds: float = 100.0,
    cells: int = 10,
    height: float = 4.1,
    length: float = 22.0,
    upstream: float = 2.0,
    offset: float = 0.05,
    warm_up: float = 60.0,
    progress: bool | None = None,
) -> Wake:
    """Snapshots ``dt`` apart of the flow past a cylinder in a channel with a parabolic inflow, after ``warm_up``.

    ``cells`` nodes span a diameter. The channel is ``height`` by ``length`` diameters; the cylinder stands ``upstream``
    diameters behind the inflow and ``offset`` below the middle (none: a symmetric flow, which sheds no vortices).

    At Re = 100 the Strouhal number, the largest drag and the largest lift are 0.287, 3.40 and 0.93 with 10 cells (5 s
    of one core) and 0.294, 3.26 and 1.05 with 20 (a minute), beside the benchmark's 0.295–0.305, 3.22–3.24 and
    0.99–1.01.

    >>> wake = cylinder_wake(3, cells=6, length=5, warm_up=0.5)
    >>> wake.velocity.shape, wake.forces.names
    ((3, 2, 30, 25), ('drag', 'lift'))
    """
    samples, cells = as_count("samples", samples, least=2), as_count("cells", cells, least=4)
    dt, reynolds = as_positive("dt", dt), as_positive("reynolds", reynolds)
    nodes, rows = round(as_positive("length", length) * cells), round(as_positive("height", height) * cells)
    between = int(np.ceil(dt * cells / _FASTEST))
    speed = dt * cells / between
    y = np.arange(rows) + 0.5
    centre = (as_positive("upstream", upstream) * cells, rows / 2 - offset * cells)
    flow = ChannelFlow(nodes, 6 * speed * y * (rows - y) / rows**2, speed * cells / reynolds, centre, cells / 2)
    waited = max(0, round(warm_up / dt)) * between
    velocity = np.empty((samples, 2, nodes, rows))
    forces = np.empty((samples, 2))
    steps = waited + (samples - 1) * between + 1
    with Ticker("steps", steps, progress=progress) as ticker, np.errstate(all="ignore"):
        for k in range(steps):
            flow.opening = 0.5 - 0.5 * np.cos(np.pi * min(1.0, k * speed / cells / _OPENING))
            flow.step()
            if k % _CHECKED_EVERY == 0 or k == steps - 1:
                _require_finite(flow, reynolds, cells)
            shot, rest = divmod(k - waited, between)
            if shot >= 0 and rest == 0:
                velocity[shot] = flow.velocity() / speed
                forces[shot] = flow.force * 2 / (speed**2 * cells)
            ticker.advance()
    times = dt * np.arange(samples)
    coefficients = Series(forces, times.copy(), ("drag", "lift"), f"a confined cylinder at Re = {reynolds:g}", 0.0)
    return Wake(velocity, times, (np.arange(nodes) + 0.5) / cells, y / cells, flow.solid, coefficients)


def _require_finite(flow: ChannelFlow, reynolds: float, cells: int) -> None:
    if not np.isfinite(flow.force).all():
        problem = f"makes the flow blow up with {cells} cells to a diameter"
        raise InputError("reynolds", reynolds, problem, f"pass more cells, for example cells={2 * cells}")
