"""Plots whose motion the browser draws by itself, and views of space that a drag turns (static/stage.js)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from bokeh.models import ColumnDataSource, CustomJS

_TURN = """
if (cb_obj.event_name === "panstart") { plot.tags = [cb_obj.sx, cb_obj.sy]; }
if (cb_obj.event_name === "pan" && plot.tags.length === 2) {
  const [x, y] = plot.tags, turned = 0.008;  // radians per pixel: once across a plot is about half a turn
  hardmaxStages.turn(camera, turned * (cb_obj.sx - x), turned * (cb_obj.sy - y), false);
  plot.tags.splice(0, 2, cb_obj.sx, cb_obj.sy);
}
if (cb_obj.event_name === "panend") { hardmaxStages.turn(camera, 0, 0, true); }
"""
AZIMUTH, ELEVATION = 0.6, 0.4
"""Angles of the eye in space, in radians, at first."""


def camera_source() -> ColumnDataSource:
    """The place of the eye in space, shared by plots that are compared."""
    return ColumnDataSource({"azimuth": [AZIMUTH], "elevation": [ELEVATION]})


def turn_by_hand(plot: Any, camera: ColumnDataSource) -> None:
    """Let a drag on a plot turn the view of space."""
    turn = CustomJS(args={"plot": plot, "camera": camera}, code=_TURN)
    for event in ("panstart", "pan", "panend"):
        plot.js_on_event(event, turn)


def register_stage(plot: Any, kind: str, models: dict[str, Any]) -> None:
    """Have static/stage.js draw a plot of a kind whenever its positions, its eye or its size change."""
    code = f"""
    if (frames.data.at.length) {{
      const fresh = cb_obj === frames ? frames.data.at[0] : undefined;
      hardmaxStages.update({{name: "{plot.name}", kind: "{kind}", ...models}}, fresh);
    }}
    """
    callback = CustomJS(args={"models": models, "frames": models["frames"]}, code=code)
    models["frames"].js_on_change("data", callback)
    plot.js_on_change("inner_width", callback)  # also makes the sources part of the document
    if "camera" in models:
        for event in ("data", "change"):
            models["camera"].js_on_change(event, callback)


def stage_of(plot: Any) -> dict[str, Any] | None:
    """The models that were registered for a plot; None where nothing moves in it."""
    callbacks = plot.js_property_callbacks.get("change:inner_width", [])
    return next((dict(one.args["models"]) for one in callbacks if "frames" in one.args), None)


MOST_MOVED = 2_000
"""Tokens of a path that the browser moves; of more, the server draws one moment after the other."""


def empty_frames(name: str) -> ColumnDataSource:
    """The source of the moments of a plot, before there are any."""
    return ColumnDataSource({"at": [], "positions": [], "shape": []}, name=name)


def path_frames(
    path: np.ndarray,
    moment: int,
    *,
    chosen: np.ndarray | None = None,
    tints: Sequence[str] = (),
    times: np.ndarray | None = None,
    windows: np.ndarray | None = None,
    pace: float = 1.0,
    eased: bool = True,
) -> dict[str, list[Any]]:
    """What static/stage.js moves the marks of a plot of the kind ``points`` by.

    ``path`` has shape (moment, token, 2); ``chosen`` tokens have trails in the colours ``tints``. ``windows``, shape
    (moment, 4), are the ranges of the plot where they change, and ``pace`` its moments per moment of the player.
    """
    known = path.shape[1] <= MOST_MOVED and bool(np.isfinite(path).all())
    frames: dict[str, list[Any]] = {
        "at": [moment],
        "positions": [np.ascontiguousarray(path, dtype=np.float64).ravel()] if known else [np.zeros(0)],
        "shape": [list(path.shape)],
        "eased": [int(eased)],
        "playable": [int(known)],
        "chosen": [[] if chosen is None else chosen.tolist()],
        "tints": [list(tints)],
        "windows": [np.zeros(0) if windows is None else np.asarray(windows, dtype=np.float64).ravel()],
        "pace": [pace],
    }
    return frames if times is None else frames | {"times": [np.asarray(times, dtype=np.float64)]}


def eye_axes(azimuth: float, elevation: float) -> np.ndarray:
    """Directions to the right, upwards and towards the eye, as static/stage.js has them, shape (3, 3)."""
    a, e = azimuth, elevation
    return np.array(
        [
            [-math.sin(a), math.cos(a), 0.0],
            [-math.sin(e) * math.cos(a), -math.sin(e) * math.sin(a), math.cos(e)],
            [math.cos(e) * math.cos(a), math.cos(e) * math.sin(a), math.sin(e)],
        ]
    )
