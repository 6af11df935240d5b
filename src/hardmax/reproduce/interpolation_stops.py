"""A stop of the tour: a data set compiled into a transformer, with its proof."""

from __future__ import annotations

from typing import cast

from matplotlib.figure import Figure

from ..figures import figure_bytes
from ..figures.interpolation import draw_construction
from ..interpolation import interpolate
from .report import Section

_INPUTS = [
    [[-2, 0], [-1, 2], [1, 1]],
    [[-1, 2], [1, 1], [2, -1]],
    [[0, -2], [1, 1], [-2, 0], [2, 2]],
]
_OUTPUTS = [[[-1, -1], [0, 2]], [[2, 2]], [[1, -2], [-2, 1], [2, 0]]]


def show_compilation(section: Section) -> None:
    """Three sequences sent to their targets, exactly."""
    network = interpolate(_INPUTS, _OUTPUTS)
    certificate = network.certify()
    section.text(
        "Three sequences of tokens that overlap, and a set of targets for each. The transformer below was not trained: "
        "it was compiled from the data, its weights are rational numbers, and exact arithmetic proves that every "
        f"sequence lands on its targets. It has {len(network.blocks)} blocks where the published bound for such data "
        f"(arXiv 2502.02270) is {network.counts.published}."
    ).picture(
        figure_bytes(cast(Figure, draw_construction(network)), dpi=130),
        "Five moments on the way, one colour per sequence; rings are the targets.",
    ).code(str(certificate)).code(
        "net = hm.interpolate(inputs, outputs)\nnet.certify()\nnet.to_torch(); net.save('net')"
    )
