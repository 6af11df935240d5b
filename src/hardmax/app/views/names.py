"""Which names can be read: in order of importance, those that do not lie on others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

_LETTER, _HEIGHT, _GAP = 6.6, 14.0, 9.0
"""Sizes in pixels of the names that pictures show."""


def readable(
    places: np.ndarray, names: Sequence[str], low: np.ndarray, high: np.ndarray, pixels: tuple[float, float]
) -> list[int]:
    """The numbers of the names to show beside their points, the first ones first.

    ``low`` and ``high`` are the corners of a view that is drawn on so many ``pixels``.
    """
    with np.errstate(all="ignore"):
        spots = (places - low) / (high - low) * np.array(pixels)
    boxes: list[tuple[float, float, float, float]] = []
    shown = []
    for k, (x, y) in enumerate(spots.tolist()):
        box = (x, y - _HEIGHT / 2, x + _GAP + _LETTER * len(names[k]), y + _HEIGHT / 2)
        if not np.isfinite(box).all():
            continue
        if all(box[0] > b[2] or b[0] > box[2] or box[1] > b[3] or b[1] > box[3] for b in boxes):
            boxes.append(box)
            shown.append(k)
    return shown
