r"""The wake of a cylinder between two walls: vortices are shed in turn from above and below.

Lengths are in diameters, velocities in mean speeds of the inflow, so a Reynolds number :math:`\mathrm{Re} = U D/\nu`
says all. With the default channel (4.1 diameters high, the cylinder 0.05 below its middle) this is the benchmark 2D-2
of Schäfer and Turek (1996): at Re = 100 a Strouhal number :math:`f D/U` of 0.295–0.305, a largest drag coefficient of
3.22–3.24 and a largest lift coefficient of 0.99–1.01. The walls are near, so these are not those of the open flow.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..errors import InputError
from ..progress import Ticker
from .lattice_boltzmann import ChannelFlow
from .series import Series

_OPENING = 5.0
"""How long the inflow takes to open: slowly, so that it makes no sound."""
_FASTEST = 0.1
"""The mean speed in lattice units is at most this: the error of compressibility is its square."""
_CHECKED_EVERY = 200


@dataclass(frozen=True, eq=False)
class Wake:
    """Snapshots of the velocity ``(samples, 2, x, y)``, in mean speeds of the inflow, with their coordinates."""

    velocity: np.ndarray
    times: np.ndarray
    x: np.ndarray
    """In diameters, from the inflow."""
    y: np.ndarray
    """In diameters, from the lower wall."""
    solid: np.ndarray
    """Which nodes lie in the cylinder, ``(x, y)``."""
    forces: Series
    """The coefficients of drag and lift at the same times."""

    def vorticity(self, velocity: np.ndarray | None = None) -> np.ndarray:
        """``dv/dx - du/dy`` of these snapshots, or of others on the same nodes; zero in the cylinder."""
        field = self.velocity if velocity is None else np.asarray(velocity)
        spin = np.gradient(field[..., 1, :, :], self.x, axis=-2) - np.gradient(field[..., 0, :, :], self.y, axis=-1)
        return np.where(self.solid, 0.0, spin)

    def strouhal(self) -> float:
        """Cycles of the lift in the time that the flow takes for a diameter; NaN where it has not turned twice."""
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
    from ..inputs import as_count, as_positive

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
    told = Series(forces, times.copy(), ("drag", "lift"), f"a confined cylinder at Re = {reynolds:g}", 0.0)
    return Wake(velocity, times, (np.arange(nodes) + 0.5) / cells, y / cells, flow.solid, told)


def _require_finite(flow: ChannelFlow, reynolds: float, cells: int) -> None:
    if not np.isfinite(flow.force).all():
        problem = f"makes the flow blow up with {cells} cells to a diameter"
        raise InputError("reynolds", reynolds, problem, f"pass more cells, for example cells={2 * cells}")
