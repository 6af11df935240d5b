"""Sliders that report a value when they are released, set by the program."""

from __future__ import annotations

from typing import Any

import param


def set_slider(slider: Any, value: Any) -> None:
    """Set a slider as if it had been released at a value.

    Setting ``value`` alone leaves ``value_throttled`` at the previous release, in the browser too: to release the
    slider there once more, as after an undo, would be no change and would not be reported.
    """
    slider.value = value
    with param.edit_constant(slider):
        slider.value_throttled = value
    drawn = getattr(slider, "_slider", slider)  # a slider of given options is drawn by another
    for root, (model, _) in drawn._models.items():
        drawn._changing[root] = ["value_throttled"]  # Panel must not take it for a release in the browser
        try:
            model.set_from_json("value_throttled", model.value)  # read-only for assignments
        finally:
            drawn._changing.pop(root, None)
