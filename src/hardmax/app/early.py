"""The first part of a page (head, navigation, heading), sent before the page itself is built.

Building a page takes about a second of a server's time, almost all of it in Bokeh and Panel. What is the same at every
visit is therefore rendered once, when the server starts, and sent at once: the browser shows the heading and loads the
scripts while the server builds the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import panel as pn
from bokeh.document import Document
from bokeh.embed.util import RenderItem
from bokeh.models import Div
from panel.io.resources import LOCAL_DIST, Resources, bundle_resources
from panel.io.server import DocHandler, html_page_for_render_items

from .look import static

BOUNDARY = "<!-- What follows is built for each visit. -->"
"""Where the first part ends (static/page.html)."""
_FAILED = '<p id="failed" role="alert">This page could not be built; the terminal says why. Load it again.</p></main>'
_OWN_SESSION = ("bokeh-token", "bokeh-session-id")
"""Arguments of requests for a session that exists; they can be refused, with a status that must be sent first."""


def first_part(variables: Mapping[str, Any], resources: Any) -> str:
    """The part of a page before :data:`BOUNDARY`; ``variables`` are those of its template."""
    document = Document()
    for name in ("light", "tools", "main"):  # stand for the roots, which are embedded after the boundary
        document.add_root(Div(name=name))
    page = html_page_for_render_items(
        bundle_resources(document.roots, Resources.from_bokeh(resources)),
        {},
        [RenderItem(token="", roots=document.roots, use_for_title=False)],
        "",
        template=pn.Template(static("page.html")).template,
        template_variables={**variables, "dist_url": LOCAL_DIST},
    )
    return str(page[: page.index(BOUNDARY)])


class EarlyHandler(DocHandler):  # type: ignore[misc]
    """Handler that sends the first part of a page (``application.first_parts``) before it builds the rest."""

    _sent = False

    async def get(self, *args: Any, **kwargs: Any) -> None:
        """Send the first part, build the page, send the rest."""
        early = self.application.first_parts.get(self.request.path.rstrip("/"))
        plain = "Bokeh-Session-Id" not in self.request.headers and not set(_OWN_SESSION) & set(self.request.arguments)
        if early is None or not plain:
            await super().get(*args, **kwargs)
            return
        self.set_header("Cache-Control", "no-store")  # as Panel does: the page carries the token of one session
        self.set_header("Content-Type", "text/html; charset=utf-8")
        self.write(early)
        await self.flush()
        self._sent = True
        try:
            await super().get(*args, **kwargs)
        except Exception:
            self._sent = False
            self.write(_FAILED)
            raise

    def write(self, chunk: str | bytes | dict[str, Any]) -> None:
        """Write a page without the part that was sent already."""
        if self._sent and isinstance(chunk, str) and BOUNDARY in chunk:
            chunk = chunk[chunk.index(BOUNDARY) :]
        super().write(chunk)


def send_early(tornado: Any, first_parts: Mapping[str, str]) -> None:
    """Have the pages of a server (its ``BokehTornado``) sent in two parts; ``first_parts`` by path, home is ""."""
    tornado.first_parts = dict(first_parts)
    for rule in tornado.wildcard_router.rules:
        if rule.target is DocHandler:  # Bokeh has no public way to choose its handlers
            rule.target = EarlyHandler
