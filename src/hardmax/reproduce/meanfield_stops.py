"""Stops of the tour: tokens on the sphere at low temperature."""

from __future__ import annotations

import numpy as np

from ..dynamics.simulate import simulate
from ..figures import draw_angles, draw_distances, figure_bytes, new_figure
from ..meanfield.flow import SphereFlow
from ..meanfield.measures import circle_quantiles
from ..meanfield.phases import phases
from .report import Section
from .tables import Table

_B, _V = np.diag([4.0, 1.0]), np.diag([1.0, 2.0])
_BETAS = (10.0, 30.0, 100.0)


def show_three_phases(section: Section) -> None:
    """Concentration, metastability and the terminal phase on the circle."""
    tokens = circle_quantiles(600, lambda angle: 1 + np.sin(angle) / 2).points
    runs = [simulate(tokens, SphereFlow(_B, _V, beta), time=14.0, step=0.1) for beta in _BETAS]
    found = [phases(run) for run in runs]
    last = found[-1]
    figure = new_figure(11.4, 4.2)
    left, right = figure.subplots(1, 2)
    draw_distances(found, ax=left)
    marks = {"closest approach": last.approach_time, **({"escape": last.escape_time} if last.escape_time else {})}
    draw_angles(runs[-1], ax=right, marks=marks)
    rows = [(name, value, error, expected) for name, value, error, expected in last.rows()]
    section.text(
        "With softmax instead of argmax, and layer normalisation, tokens move on a sphere. When there are many and the "
        "temperature is low they first gather where a linear map sends them, here at the angles 0 and pi; they rest "
        "there for a time that grows like log beta; then each cluster hears only itself and leaves for the leading "
        "direction of V. After Alcalde, Bungert, Riedl and Roith (arXiv 2605.10931)."
    ).picture(
        figure_bytes(figure, dpi=130),
        "Left: the distance to the limit law through time. Right: the angle of every token at beta = 100.",
    ).table(
        Table(
            "Found in the run at beta = 100",
            ("", "found", "standard error", "theory"),
            rows,
            "The theory's times hold to leading order in log beta; their slopes are what runs can be held against.",
        )
    ).code(
        "run = hm.simulate(tokens, hm.SphereFlow(B, V, beta=100.0), time=14.0)\n"
        "print(hm.phases(run))\n\nhardmax meanfield --beta 10,30,100 --figure phases.png"
    )
