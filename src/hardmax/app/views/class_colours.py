"""One colour per class, the same in every part of the text page and in both lights."""

from __future__ import annotations

import html
from collections.abc import Sequence

import numpy as np

from ...text.explanation import Explanation
from ..look import PALETTE, leader_colours

OTHERS = "#8a96a0"
"""What lowers the logit of one class among several speaks for no class in particular."""


def class_colours(count: int) -> tuple[str, ...]:
    """The colours of ``count`` classes in their order; two are vermilion and blue, the most different pair."""
    if count == 2:
        return PALETTE[4], PALETTE[0]
    known = leader_colours()
    return tuple(known[k % len(known)] for k in range(count))


def raising_and_lowering(explanation: Explanation) -> tuple[str, str]:
    """The colours of what raises and of what lowers the logit that is explained."""
    colours = class_colours(len(explanation.classes))
    return (colours[1], colours[0]) if len(colours) == 2 else (colours[explanation.output], OTHERS)


def colours_of_contributions(explanation: Explanation, contributions: Sequence[float] | np.ndarray) -> list[str]:
    """One colour per contribution to the logit that is explained."""
    raising, lowering = raising_and_lowering(explanation)
    return [raising if value > 0 else lowering for value in contributions]


def translucent(colour: str, alpha: float) -> str:
    """A colour for backgrounds of text, as CSS writes it."""
    red, green, blue = (int(colour[k : k + 2], 16) for k in (1, 3, 5))
    return f"rgba({red},{green},{blue},{alpha:.2f})"


def key_to_directions(explanation: Explanation) -> str:
    """The two directions of the logit that is explained, each with its colour behind it, as HTML."""
    names = (explanation.classes[1], explanation.classes[0])
    if len(explanation.classes) > 2:
        names = (explanation.prediction, "other classes")
    swatch = "<span class='swatch' style='background:{};border-radius:4px;padding:1px 7px'>towards {}</span>"
    return " ".join(
        swatch.format(translucent(colour, 0.45), html.escape(str(name)))
        for name, colour in zip(names, raising_and_lowering(explanation), strict=True)
    )


def key_to_classes(classes: Sequence[object] | np.ndarray) -> str:
    """All classes, each with its colour behind it, as HTML."""
    swatch = "<span class='swatch' style='background:{};border-radius:4px;padding:1px 7px'>{}</span>"
    return " ".join(
        swatch.format(translucent(colour, 0.45), html.escape(str(label)))
        for label, colour in zip(classes, class_colours(len(classes)), strict=True)
    )
