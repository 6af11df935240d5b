"""The server of the explorer: the list of pages, addresses, limits, the home page and the help pages."""

from __future__ import annotations

import html
import inspect
import os
import re
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import panel as pn
from panel.io.resources import LOCAL_DIST
from tornado.web import HTTPError, RequestHandler

import hardmax

from ..errors import InputError
from .documents import keep_messages_in_order
from .early import first_part, send_early
from .home.gallery import EXAMPLES, HEADING, TEXT, gallery, picture
from .jobs import JobPool
from .kept import Kept
from .look import static
from .page import Page
from .real_model.shelf import SHELF
from .session import Session
from .shell import frame, frame_variables, framed_page, page_variables, query_of

_NAMES = frozenset(hardmax.__all__) - {"__version__"}
_ROLE = re.compile(r":\w+:`~?([^`<]+?)(?: <[^`]+>)?`")
_LITERAL = re.compile(r"``([^`]+)``")


_PAGES: dict[str, str] = {
    "tokens": "TokensPage",
    "text": "TextPage",
    "networks": "NetworksPage",
    "forecasting": "ForecastingPage",
    "meanfield": "MeanFieldPage",
    "models": "ModelsPage",
    "real_model": "RealModelPage",
}


def slugs() -> tuple[str, ...]:
    """The names of all pages, in the order of the navigation."""
    return tuple(_PAGES)


def load_page(slug: str) -> type[Page]:
    """The class of a page."""
    if slug not in _PAGES:
        raise InputError("--pages", repr(slug), "is not a page", f"choose among {', '.join(_PAGES)}")
    found: type[Page] = getattr(import_module(f".{slug}.page", __package__), _PAGES[slug])
    return found


def help_page(name: str) -> str:
    """An HTML page with the signature and the docstring of a public name."""
    thing: Any = getattr(hardmax, name)
    try:
        signature = str(inspect.signature(thing))
    except (TypeError, ValueError):
        signature = ""
    words = html.escape(inspect.cleandoc(thing.__doc__ or "No documentation."))
    words = _LITERAL.sub(r"<code>\1</code>", _ROLE.sub(r"<code>\1</code>", words))
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{name} · hardmax</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,">'
        f"<style>{static('page.css')}.doc{{white-space:pre-wrap;max-width:90ch}}</style></head><body>"
        f'<header><a class="brand" href="../">hardmax <span>explorer</span></a></header><main><h1>hardmax.{name}</h1>'
        f"<p><code>{html.escape(name + signature)}</code></p>"
        f'<div class="doc">{words}</div></main></body></html>'
    )


class Help(RequestHandler):
    """Handler of ``docs/<name>``."""

    def get(self, name: str) -> None:
        if name not in _NAMES:
            raise HTTPError(404)
        self.set_header("Content-Type", "text/html; charset=utf-8")
        self.finish(help_page(name))


class Picture(RequestHandler):
    """Handler of ``gallery/<name>.png``, the pictures of the home page."""

    def get(self, name: str) -> None:
        if name not in {example.name for example in EXAMPLES}:
            raise HTTPError(404)
        self.set_header("Content-Type", "image/png")
        self.set_header("Cache-Control", "max-age=86400")
        self.finish(picture(name))


def build_home(pages: Sequence[type[Page]]) -> Any:
    """The home page: the gallery of examples."""
    cards = gallery([page.slug for page in pages], [page.title for page in pages])
    return pn.pane.HTML(cards, sizing_mode="stretch_width", margin=0)


LOCAL = ("localhost", "127.0.0.1", "::1")
MOST_MESSAGE_BYTES = 20 * 2**20
"""The largest message from a browser: the largest upload in base64 is 7 MB, the rest is margin."""
_UNUSED_MILLISECONDS = 4_000
"""A visit ends, with its job, this long after the last message of its browser."""


class Alive(RequestHandler):
    """Handler of ``alive``, which pages poll after they have lost their connection (static/connection.js)."""

    def get(self) -> None:
        self.finish("yes")


def _load(*libraries: str) -> None:
    pn.extension(*libraries, design=None, notifications=False, inline=False)


def _entries(pages: Sequence[type[Page]], here: str) -> list[dict[str, object]]:
    return [{"address": f"./{page.slug}", "title": page.title, "here": page.slug == here} for page in pages]


def _visit(pool: JobPool, needs: Sequence[str] = ()) -> Session:
    _load(*needs)  # called within a visit, it applies to that visit alone
    # Panel finds its style sheets on this server only after a page was sent; a job may be faster, and no request may
    # leave the machine.
    pn.state.curdoc.template_variables["dist_url"] = LOCAL_DIST
    session = Session(pool, pn.state.curdoc)
    pn.state.on_session_destroyed(lambda _: session.close())
    return session


def _home_variables(pages: Sequence[type[Page]]) -> dict[str, Any]:
    return frame_variables(_entries(pages, ""), HEADING, TEXT)


def _first_parts(pages: Sequence[type[Page]], resources: Any) -> dict[str, str]:
    """The first part of every page, by its path."""
    variables = {f"/{page.slug}": page_variables(page, _entries(pages, page.slug)) for page in pages}
    return {path: first_part(found, resources) for path, found in ({"": _home_variables(pages)} | variables).items()}


def applications(pages: Sequence[type[Page]], pool: JobPool) -> dict[str, Callable[[], Any]]:
    """The application of each address; every visit builds a page of its own."""

    def home() -> Any:
        session = _visit(pool)
        return frame(build_home(pages), session, _home_variables(pages))

    def answering(kind: type[Page]) -> Callable[[], Any]:
        def visit() -> Any:
            session = _visit(pool, kind.needs)
            page = kind()
            session.guarded(page.restore)(query_of(pn.state.session_args))
            return framed_page(page, session, _entries(pages, kind.slug))

        return visit

    return {"/": home, **{page.slug: answering(page) for page in pages}}


def make_server(
    wanted: Sequence[str] | None = None,
    *,
    port: int = 0,
    address: str = "localhost",
    open_browser: bool = False,
    models: Sequence[str] = (),
    loop: Any = None,
) -> Any:
    """A server that is bound to its ``port`` but not yet running; port 0 takes a free one.

    ``models`` are folders and files of trained models for the page Real model.
    """
    SHELF.offer(models)
    Kept().tidy()  # also where nothing is uploaded any more
    os.environ["BOKEH_RESOURCES"] = "server"
    os.environ.setdefault("BOKEH_VALIDATE_DOC", "false")  # a twelfth of the time that building a page takes
    pages = [load_page(slug) for slug in (wanted or slugs())]
    # The server loads the libraries of all pages; a page is sent only its own.
    _load(*{name for page in pages for name in page.needs})
    pool = JobPool()
    try:
        server = pn.io.server.get_server(
            applications(pages, pool),
            port=port,
            address=address,
            websocket_origin=None if address in LOCAL else "*",
            title="hardmax explorer",
            show=open_browser,
            start=False,
            verbose=False,
            loop=loop,
            extra_patterns=[(r"/docs/(\w+)", Help), (r"/alive", Alive), (r"/gallery/([\w-]+)\.png", Picture)],
            use_index=False,
            redirect_root=False,
            websocket_max_message_size=MOST_MESSAGE_BYTES,
            unused_session_lifetime_milliseconds=_UNUSED_MILLISECONDS,
            check_unused_sessions_milliseconds=_UNUSED_MILLISECONDS,
            stats_log_frequency_milliseconds=10**9,
        )
    except OSError as error:
        raise InputError("--port", port, f"cannot be listened on ({error.strerror})", "choose another port") from error
    server.pool = pool
    _send_less(server)
    keep_messages_in_order(server._tornado)
    send_early(server._tornado, _first_parts(pages, server._tornado.resources()))
    return server


_SCRIPTS = ("bokeh", "bokeh-widgets", "bokeh-tables")
"""Parts of Bokeh that pages use, or that Panel does not start without; left out are WebGL and MathJax, 2 MB."""


def _send_less(server: Any) -> None:
    """Have pages load only the parts of Bokeh that they use."""
    tornado = server._tornado  # Bokeh has no public way to choose the scripts of a server
    usual = tornado.resources

    def resources(absolute_url: Any = None) -> Any:
        found = usual(absolute_url)
        found.components = [name for name in found.components if name in _SCRIPTS]
        return found

    tornado.resources = resources
