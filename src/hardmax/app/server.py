"""Serving the explorer: addresses, limits, and nothing that leaves the machine."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import panel as pn
from panel.io.resources import LOCAL_DIST
from tornado.web import RequestHandler

from ..errors import InputError
from .help import Help
from .home import HEADING, TEXT, build_home
from .jobs import Workshop
from .page import Page
from .pages import load_page, slugs
from .session import Session
from .shell import dress, frame, query_of

LOCAL = ("localhost", "127.0.0.1", "::1")
MOST_MESSAGE_BYTES = 20 * 2**20
"""The largest message that a browser may send: an upload of the largest size, in base64, and some room."""
_UNUSED_MILLISECONDS = 4_000
"""How long after the last word of its browser a visit ends, and its work with it."""


class Alive(RequestHandler):
    """Answers ``alive``: a page that has lost its connection asks until the server is back (static/connection.js)."""

    def get(self) -> None:
        self.finish("yes")


def _load(*libraries: str) -> None:
    pn.extension(*libraries, design=None, notifications=False, inline=False)


def _entries(pages: Sequence[type[Page]], here: str) -> list[dict[str, object]]:
    return [{"address": f"./{page.slug}", "title": page.title, "here": page.slug == here} for page in pages]


def _visit(workshop: Workshop, needs: Sequence[str] = ()) -> Session:
    _load(*needs)  # said within a visit, it holds for that visit alone
    # Panel looks for its style sheets on this server only once a page was sent; a job may be faster, and must not be
    # answered from a network.
    pn.state.curdoc.template_variables["dist_url"] = LOCAL_DIST
    session = Session(workshop, pn.state.curdoc)
    pn.state.on_session_destroyed(lambda _: session.close())
    return session


def applications(pages: Sequence[type[Page]], workshop: Workshop) -> dict[str, Callable[[], Any]]:
    """What answers each address; every visit builds a page of its own."""

    def home() -> Any:
        session = _visit(workshop)
        return frame(build_home(pages), session, entries=_entries(pages, ""), heading=HEADING, text=TEXT)

    def answering(kind: type[Page]) -> Callable[[], Any]:
        def visit() -> Any:
            session = _visit(workshop, kind.needs)
            page = kind()
            session.guarded(page.restore)(query_of(pn.state.session_args))
            return dress(page, session, _entries(pages, kind.slug))

        return visit

    return {"/": home, **{page.slug: answering(page) for page in pages}}


def make_server(
    wanted: Sequence[str] | None = None,
    *,
    port: int = 0,
    address: str = "localhost",
    open_browser: bool = False,
    loop: Any = None,
) -> Any:
    """A server that is listening but not yet running; its ``port`` says where. Port 0 takes a free one."""
    os.environ["BOKEH_RESOURCES"] = "server"
    pages = [load_page(slug) for slug in (wanted or slugs())]
    # What any page needs is known to the server; a page is sent its own.
    _load(*{name for page in pages for name in page.needs})
    workshop = Workshop()
    try:
        server = pn.io.server.get_server(
            applications(pages, workshop),
            port=port,
            address=address,
            websocket_origin=None if address in LOCAL else "*",
            title="hardmax explorer",
            show=open_browser,
            start=False,
            verbose=False,
            loop=loop,
            extra_patterns=[(r"/docs/(\w+)", Help), (r"/alive", Alive)],
            use_index=False,
            redirect_root=False,
            websocket_max_message_size=MOST_MESSAGE_BYTES,
            unused_session_lifetime_milliseconds=_UNUSED_MILLISECONDS,
            check_unused_sessions_milliseconds=_UNUSED_MILLISECONDS,
            stats_log_frequency_milliseconds=10**9,
        )
    except OSError as error:
        raise InputError("--port", port, f"cannot be listened on ({error.strerror})", "choose another port") from error
    server.workshop = workshop
    return server
