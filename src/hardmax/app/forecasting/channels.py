"""The control for the channel that is drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import panel as pn

_LETTER, _AROUND, _ROOM = 7.6, 26, 330
"""Sizes in pixels of a letter and of the border of a button, and the width of a card on a phone."""
_LONGEST = 40
"""Characters of a name in the list."""


class ChannelPicker:
    """Buttons for a few channels of short names, and a list for others, which would be wider than a phone."""

    def __init__(self, chosen: Callable[[Any], Any]) -> None:
        self._buttons = pn.widgets.RadioButtonGroup(label="Channel", options={"x": 0}, value=0, margin=0)
        self._list = pn.widgets.Select(label="Channel", options={"x": 0}, value=0, width=220, margin=0, visible=False)
        self.widgets = (self._buttons, self._list)
        for widget in self.widgets:
            widget.param.watch(chosen, "value")

    def show(self, names: Sequence[str], channel: int) -> None:
        """Offer the channels of another series, of which one is drawn; a single one needs no control."""
        few = sum(_LETTER * len(name) + _AROUND for name in names) <= _ROOM
        # Shortened names could be equal, and would then be one option.
        options = {
            name if len(name) <= _LONGEST else f"{name[: _LONGEST - 5]}… {k + 1}": k for k, name in enumerate(names)
        }
        shown, hidden = (self._buttons, self._list) if few else (self._list, self._buttons)
        hidden.visible, shown.visible = False, len(names) > 1
        shown.param.update(options=options, value=channel)
