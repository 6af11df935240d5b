"""A crowd of tokens as an image in which every one of them is counted."""

from __future__ import annotations

import math

import numpy as np

_PIXELS = 420


def density(placed: np.ndarray, colours: np.ndarray, limits: tuple[float, ...]) -> np.ndarray:
    """Every token counted in its pixel: the mean colour of those there, stronger where there are more (RGBA)."""
    left, right, bottom, top = limits
    longest = max(right - left, top - bottom)
    shape = [max(1, round(_PIXELS * span / longest)) for span in (top - bottom, right - left)]
    column = ((placed[:, 0] - left) / (right - left) * shape[1]).astype(np.int64)
    row = ((placed[:, 1] - bottom) / (top - bottom) * shape[0]).astype(np.int64)
    inside = (column >= 0) & (column < shape[1]) & (row >= 0) & (row < shape[0])
    pixel, colours = (row * shape[1] + column)[inside], colours[inside]
    many = np.bincount(pixel, minlength=shape[0] * shape[1])
    picture = np.zeros((len(many), 4))
    for channel in range(3):
        total = np.bincount(pixel, weights=colours[:, channel], minlength=len(many))
        picture[:, channel] = total / np.maximum(many, 1)
    strongest = math.log1p(int(many.max())) if len(pixel) else 1.0
    picture[:, 3] = np.where(many > 0, 0.35 + 0.65 * np.log1p(many) / strongest, 0.0)
    return picture.reshape(*shape, 4)
