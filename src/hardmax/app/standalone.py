"""Pages of their own, for saved views that play without a server."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from typing import Any

from bokeh.embed import components
from bokeh.layouts import layout
from bokeh.resources import Resources

from .look import static

_MARGINS = "html, body { background: var(--hm-card); } body { padding: 14px; }"
_START = """
const timer = setInterval(() => {
  const made = window.Bokeh && Bokeh.documents.length ? Bokeh.documents[0] : null;
  if (!made || !made.is_idle) { return; }
  clearInterval(timer);
  for (const name of %(names)s) { made.get_model_by_name(name).properties.data.change.emit(); }
  hardmaxPlayer.attach(document.getElementById("player"), %(player)s);
}, 50);
"""


def standalone(
    title: str, rows: Sequence[Sequence[Any]], frames: Sequence[str], player: dict[str, Any], *, dark: bool
) -> str:
    """An HTML page with rows of Bokeh figures and a player, which asks nothing of any server.

    ``frames`` are the names of the sources of positions, ``player`` the parameters of :class:`.player.Player`.
    """
    script, plots = components(layout([list(row) for row in rows], sizing_mode="stretch_width"))
    css = static("page.css") + static("widgets.css").replace(":host", ".explorer") + _MARGINS
    library = "\n".join(Resources(mode="inline", components=["bokeh"]).js_raw)
    begin = _START % {
        "names": json.dumps(list(frames)),
        "player": json.dumps({"titles": [], "named": "", **player}),
    }
    head = html.escape(title)
    return (
        f'<!doctype html>\n<html lang="en" data-theme="{"dark" if dark else "light"}"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><title>{head} · hardmax</title>'
        f'<link rel="icon" href="data:,"><style>{css}</style><script>{library}</script>'
        f"<script>{static('motion.js')}{static('stage.js')}{static('player.js')}</script></head>"
        f'<body><h1>{head}</h1>{plots}<div class="player" id="player"></div>{script}<script>{begin}</script>'
        "</body></html>\n"
    )
