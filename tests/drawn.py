"""Functions that find artists in a figure by their names."""

import numpy as np


def artists(ax, name):
    """The artists of this name."""
    return [artist for artist in ax.get_children() if artist.get_gid() == name]


def places(ax, name):
    """The positions of all markers of this name, one row each."""
    found = [np.asarray(artist.get_offsets()) for artist in artists(ax, name)]
    return np.concatenate(found) if found else np.empty((0, 2))


def colour_at(ax, name, point):
    """The fill colours of the markers of this name at ``point``."""
    colours = []
    for artist in artists(ax, name):
        at = np.flatnonzero(np.abs(np.asarray(artist.get_offsets()) - point).max(axis=1) < 1e-9)
        faces = artist.get_facecolors()
        colours += [tuple(np.round(faces[k if len(faces) > 1 else 0][:3], 6)) for k in at]
    return colours


def words(figure):
    """All text in a figure."""
    from matplotlib.text import Text

    return " | ".join(t.get_text() for t in figure.findobj(Text) if t.get_text())
