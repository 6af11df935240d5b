"""Saved views as HTML pages that play without a server: plots made for the file, or the cards of a page as they are."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Sequence
from typing import Any

import panel as pn
from bokeh.embed import components
from bokeh.embed.elements import script_for_render_items
from bokeh.embed.util import OutputDocumentFor, standalone_docs_json_and_render_items
from bokeh.models import ColumnDataSource
from bokeh.resources import Resources

from .layout import noted
from .look import static
from .player import Player

_MARGINS = """
html, body { background: var(--hm-card); }
body { padding: 14px; }
.row { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(420px, 100%), 1fr)); gap: 14px; }
.row > * > * { min-width: 0; }
#player { position: sticky; bottom: 0; background: var(--hm-card); padding: 6px 0; }
"""
"""Plots of a row are one below the other in a narrow window, and the player stays in sight."""
_CARDS = """
body { padding: 14px; }
.cards {
  display: grid; grid-template-columns: repeat(auto-fit, minmax(min(420px, 100%), 1fr)); align-items: start; gap: 14px;
}
section {
  background: var(--hm-card); border: 1px solid var(--hm-line); border-radius: 10px; padding: 12px 14px; min-width: 0;
}
section.full { grid-column: 1 / -1; }
[data-word] { cursor: auto; }
.told { display: none; }
"""
"""The last lines take back what invites to strike out words, which needs the server."""
_START = """
const timer = setInterval(() => {
  const made = window.Bokeh && Bokeh.documents.length ? Bokeh.documents[0] : null;
  if (!made || !made.is_idle) { return; }
  clearInterval(timer);
  const player = %(player)s;
  if (player) { hardmaxStages.saved = player.value; }
  for (const name of %(names)s) { made.get_model_by_name(name).properties.data.change.emit(); }
  if (player) { hardmaxPlayer.attach(document.getElementById("player"), player); }
}, 50);
"""
_PLAYED = ("label", "value", "end", "last", "interval", "scale", "named", "titles")
"""The parameters of a player that the browser reads."""
_STYLE_SHEET = re.compile(r'"url":"[^"]*\.css[^"]*"')
"""Style sheets that Panel adds to the plots of a page, from the server, which a file does not have."""


def standalone(
    title: str, rows: Sequence[Sequence[Any]], frames: Sequence[str], player: dict[str, Any], *, dark: bool
) -> str:
    """An HTML page with rows of Bokeh figures and a player, which asks nothing of any server.

    ``frames`` are the names of the sources of positions, ``player`` the parameters of :class:`.player.Player`.
    """
    script, plots = components(tuple(plot for row in rows for plot in row))
    places = iter(plots)
    written = "".join(f'<div class="row">{"".join(next(places) for _ in row)}</div>' for row in rows)
    css = _MARGINS + static("widgets.css").replace(":host", ".explorer")
    body = f'{written}<div class="player" id="player"></div>'
    return _document(title, css, body + script, frames, {"titles": [], "named": "", **player}, dark)


def standalone_cards(title: str, body: Any, *, dark: bool) -> str:
    """An HTML page with the visible cards of a Panel layout, without its controls, which asks nothing of any server.

    Plots, the player and HTML panes are written; cards of the classes ``controls`` and ``editor`` are left out.
    """
    plots: list[Any] = []
    players: list[Player] = []
    sections = "".join(_section(card, plots, players) for card in _cards(body))
    with OutputDocumentFor(plots):
        # The callbacks of the server are not part of the file, and nothing in it needs them.
        documents, items = standalone_docs_json_and_render_items(plots, suppress_callback_warning=True)
    script = _STYLE_SHEET.sub('"url":"data:text/css,"', script_for_render_items(documents, items))
    places = [f'<div id="{place}" style="display: contents"></div>' for place in items[0].roots.to_json().values()]
    written = f'<div class="cards">{sections % tuple(places)}</div><script>{script}</script>'
    player = {name: getattr(players[0], name) for name in _PLAYED} if players else None
    css = static("widgets.css").replace(":host", ".explorer") + _CARDS
    return _document(title, css, written, _frames_of(plots), player, dark)


def _cards(part: Any) -> list[Any]:
    """The visible cards in a layout, in order."""
    if not part.visible:
        return []
    if "card" in part.css_classes:
        return [] if {"controls", "editor"} & set(part.css_classes) else [part]
    return [card for inner in getattr(part, "objects", []) for card in _cards(inner)]


def _section(card: Any, plots: list[Any], players: list[Player]) -> str:
    """A card as HTML, with ``%s`` for each of its plots, which are appended to ``plots``; so are players."""

    def written(part: Any) -> str:
        if not part.visible:
            return ""
        if isinstance(part, Player):
            players.append(part)
            moment = round(part.value)
            now = part.titles[moment] if moment < len(part.titles) else f"{part.label} {moment}"
            saved = f"What the motion does not change belongs to the moment that was saved: {now}."
            return '<div class="player" id="player"></div>' + noted(saved).replace("%", "%%")
        if isinstance(part, pn.pane.Bokeh):
            if not part.object.visible:
                return ""
            plots.append(part.object)
            return "%s"
        if isinstance(part, pn.pane.HTML):
            return f"<div class='{' '.join(part.css_classes)}'>{part.object.replace('%', '%%')}</div>"
        return "".join(map(written, getattr(part, "objects", [])))

    wide = " class='full'" if "full" in card.css_classes else ""
    return f"<section{wide}>{''.join(map(written, card.objects))}</section>"


def _frames_of(plots: Sequence[Any]) -> list[str]:
    """The names of the sources of positions that move in these plots."""
    sources = {model for plot in plots for model in plot.references() if isinstance(model, ColumnDataSource)}
    return sorted(source.name for source in sources if len(source.data.get("positions", ())))


def _document(title: str, css: str, body: str, frames: Sequence[str], player: dict[str, Any] | None, dark: bool) -> str:
    """A whole page around ``body``, which has an element called ``player`` if there is one."""
    library = "\n".join(Resources(mode="inline", components=["bokeh"]).js_raw)
    begin = _START % {"names": json.dumps(list(frames)), "player": _script_data(player)}
    head = html.escape(title)
    return (
        f'<!doctype html>\n<html lang="en" data-theme="{"dark" if dark else "light"}"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><title>{head} · hardmax</title>'
        f'<link rel="icon" href="data:,"><style>{static("page.css")}{css}</style><script>{library}</script>'
        f"<script>{static('motion.js')}{static('stage.js')}{static('player.js')}</script></head>"
        f"<body><h1>{head}</h1>{body}<script>{begin}</script></body></html>\n"
    )


def _script_data(value: object) -> str:
    """JSON that can stand in a script: no text in it ends the script."""
    return json.dumps(value).replace("<", "\\u003c")
