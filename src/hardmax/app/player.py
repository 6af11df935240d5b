"""The player of layers and times, whose motion is drawn by the browser (static/player.js and static/stage.js)."""

from __future__ import annotations

from typing import Any

import param
from panel.reactive import ReactiveHTML

INTERVAL = 700
"""Milliseconds of a layer at the usual speed: long enough to follow a token with the eye."""


class Player(ReactiveHTML):  # type: ignore[misc]
    """A timeline from 0 to ``end`` with play, steps, speed and repetition; ``value`` is set where it stops.

    Where the plots of a page know all moments, the browser draws the motion between them by itself.
    """

    label = param.String(default="Layer")
    value = param.Number(default=0)
    end = param.Integer(default=1)
    last = param.String(default="")
    """Words for the end of the timeline, where it is no number."""
    interval = param.Integer(default=INTERVAL)
    scale = param.Number(default=1.0)
    """Time between two moments; 1 for layers."""
    named = param.String(default="")
    """Name of the slider for assistive technology; the label when left out."""
    titles = param.List(default=[])
    """Words for each moment, where they are not the label and a number."""
    shown = param.Integer(default=0)
    """Number of the thing that is shown; where it changes, a player that plays begins again at 0."""

    _template = '<div id="player" class="player"></div>'
    _scripts = {  # noqa: RUF012 - the name and kind that Panel reads
        # Panel listens to the parameters that a script assigns.
        "render": "window.hardmaxPlayer.attach(player, data, (moment) => { data.value = moment; });",
        **dict.fromkeys(("value", "end", "label", "last", "scale", "titles"), "window.hardmaxPlayer.follow(player);"),
        "shown": "window.hardmaxPlayer.begin(player);",
    }

    def __init__(self, **options: Any) -> None:
        super().__init__(
            **{"sizing_mode": "stretch_width", "css_classes": ["timeline"], "margin": (6, 0, 0, 0), **options}
        )
