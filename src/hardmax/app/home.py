"""The first page: what there is to see."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

import panel as pn

from .page import Page

HEADING = "Tokens are points, layers are time"
TEXT = (
    "In every layer each token listens to others and moves towards them. Drag tokens, type a text, upload a table, and "
    "see who leads, who follows and where everything ends. All of it runs on this machine, through the same functions "
    "that `import hardmax` gives you; every page shows the Python code for what is on it."
).replace("`", "")


def build_home(pages: Sequence[type[Page]]) -> Any:
    """A card for each page."""
    cards = [
        f'<a class="door" href="./{page.slug}"><h2>{html.escape(page.title)}</h2><p>{html.escape(page.text)}</p></a>'
        for page in pages
    ]
    style = (
        "<style>.doors{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,340px),1fr));gap:16px}"
        ".door{display:block;background:var(--hm-card);border:1px solid var(--hm-line);border-radius:10px;"
        "padding:14px 18px;color:var(--hm-ink);text-decoration:none}"
        ".door:hover,.door:focus-visible{border-color:var(--hm-accent)}.door p{color:var(--hm-soft)}"
        ".door h2{color:var(--hm-accent)}</style>"
    )
    return pn.pane.HTML(f'{style}<div class="doors">{"".join(cards)}</div>', sizing_mode="stretch_width", margin=0)
