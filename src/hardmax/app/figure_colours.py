"""Figures of the library in the colours of the page on which they are saved."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from matplotlib.artist import Artist
from matplotlib.collections import Collection
from matplotlib.colors import to_hex, to_rgba
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.text import Text

from ..drawing.style import GRID, INK, LINE, NOBODY, SHADE, SOFT
from ..drawing.words import dark
from .look import DAY, NIGHT, Light, hexadecimal, leader_colours

F = TypeVar("F", bound=Figure)


def in_light(figure: F, light: Light) -> F:
    """The figure, which was drawn in the light colours of the library, with the colours of the page."""
    if light != DAY:
        table = _table(light)
        for ax in figure.axes:
            # Ticks are made when the figure is drawn.
            ax.tick_params(which="both", color=light.line, labelcolor=light.soft)
        for artist in figure.findobj():
            _repaint(artist, table)
    return figure


def _table(light: Light) -> dict[str, str]:
    """The colour on the page of each colour of the library, in hexadecimal notation."""
    leaders = dict(zip(leader_colours(DAY), leader_colours(NIGHT), strict=True))
    greys = {
        INK: light.ink,
        SOFT: light.soft,
        hexadecimal(dark(SOFT)): light.soft,
        LINE: light.line,
        SHADE: light.shade,
        GRID: light.shade,
        NOBODY: light.grey,
        "#ffffff": light.card,
        "#000000": light.ink,
    }
    return {key.lower(): value for key, value in {**leaders, **greys}.items()}


def _recoloured(colour: Any, table: dict[str, str]) -> Any:
    """The colour in its place, as transparent as before."""
    red, green, blue, alpha = to_rgba(colour)
    found = table.get(to_hex((red, green, blue)))
    return (red, green, blue, alpha) if found is None else to_rgba(found, alpha)


def _repaint(artist: Artist, table: dict[str, str]) -> None:
    if isinstance(artist, Text):
        artist.set_color(_recoloured(artist.get_color(), table))
        box = artist.get_bbox_patch()
        if box is not None:
            _repaint(box, table)
    elif isinstance(artist, Line2D):
        artist.set_color(_recoloured(artist.get_color(), table))
        artist.set_markerfacecolor(_recoloured(artist.get_markerfacecolor(), table))
        artist.set_markeredgecolor(_recoloured(artist.get_markeredgecolor(), table))
    elif isinstance(artist, Patch):
        # An edge that cannot be seen would be seen if it were set again: the transparency of the whole patch counts.
        for colour, put in (
            (artist.get_facecolor(), artist.set_facecolor),
            (artist.get_edgecolor(), artist.set_edgecolor),
        ):
            if to_rgba(colour)[3] > 0:
                put(_recoloured(colour, table))
    elif isinstance(artist, Collection) and artist.get_array() is None:
        faces, edges = (np.atleast_2d(one) for one in (artist.get_facecolor(), artist.get_edgecolor()))
        if faces.size:
            artist.set_facecolor([_recoloured(colour, table) for colour in faces])
        if edges.size:
            artist.set_edgecolor([_recoloured(colour, table) for colour in edges])
