"""What the explorer sends: each page the libraries that it needs, and says what its address does not keep."""

from __future__ import annotations

import asyncio
import os
import re
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from tornado.ioloop import IOLoop

from hardmax.app import early
from hardmax.app.forecasting.page import ForecastingPage
from hardmax.app.kept import MOST_DAYS, UPLOADS, Kept
from hardmax.app.look import static
from hardmax.app.server import make_server, slugs
from hardmax.app.text.page import TextPage
from hardmax.app.uploads import Upload
from visits import Visit


@pytest.fixture
def address() -> Iterator[str]:
    """An explorer on a free port of this machine."""
    found: dict[str, object] = {}
    ready = threading.Event()

    def serve() -> None:
        asyncio.set_event_loop(asyncio.new_event_loop())
        server = make_server(port=0)
        server.start()
        found.update(server=server, loop=IOLoop.current())
        ready.set()
        IOLoop.current().start()
        server.stop()
        server.pool.close()
        IOLoop.current().close(all_fds=True)

    thread = threading.Thread(target=serve)
    thread.start()
    assert ready.wait(60)
    yield f"http://localhost:{found['server'].port}/"  # type: ignore[attr-defined]
    found["loop"].add_callback(found["loop"].stop)  # type: ignore[attr-defined]
    thread.join(60)


@pytest.fixture
def expired(cache: None) -> Path:
    """A stored upload that has expired, before there is a server."""
    name = Kept().keep(Upload("table.csv", b"1,2"))
    (path,) = Path(os.environ["XDG_CACHE_HOME"]).rglob(f"{name}.upload")
    long_ago = time.time() - (MOST_DAYS + 1) * 86_400
    os.utime(path, (long_ago, long_ago))
    return path


def test_a_new_server_removes_uploads_that_have_expired(expired: Path, address: str) -> None:
    assert not expired.exists()


def test_pages_load_little_and_paint_before_their_scripts(address: str) -> None:
    for slug in ("", *slugs()):
        with urllib.request.urlopen(address + slug) as answer:  # noqa: S310 (this machine)
            page = answer.read().decode()
        scripts = re.findall(r'<script[^>]* src="([^"]*)"', page)
        assert any("panel.min.js" in script for script in scripts), slug
        assert not any(name in script for script in scripts for name in ("plotly", "mathjax", "bokeh-gl")), slug
        head, _, body = page.partition("</head>")
        assert "bokeh.min.js" not in head
        assert body.index("<h1>") < body.index("bokeh.min.js")


def test_the_first_part_of_a_page_is_sent_before_the_page_is_built(address: str, monkeypatch) -> None:
    whole: dict[str, str] = {}
    write, get_session = early.EarlyHandler.write, early.EarlyHandler.get_session
    read = threading.Event()

    def keep(self, chunk) -> None:
        if isinstance(chunk, str) and early.BOUNDARY in chunk:
            whole[self.request.path.strip("/")] = chunk
        write(self, chunk)

    async def wait(self) -> object:
        while not read.is_set():
            await asyncio.sleep(0.01)
        return await get_session(self)

    monkeypatch.setattr(early.EarlyHandler, "write", keep)
    monkeypatch.setattr(early.EarlyHandler, "get_session", wait)
    for slug in ("", *slugs()):
        read.clear()
        with urllib.request.urlopen(address + slug, timeout=60) as answer:  # noqa: S310 (this machine)
            begun = b""
            while b"panel.min.js" not in begun:
                begun += answer.read1()
            read.set()  # the page is built only now
            page = (begun + answer.read()).decode()
        assert b"<h1>" in begun
        assert page == whole[slug]  # both parts together are what Panel would have sent at once
        assert f"{page.split('<h1>')[1].split('</h1>')[0]} · hardmax explorer</title>" in page


def test_a_page_that_cannot_be_built_says_so(address: str, monkeypatch, caplog) -> None:
    async def fail(_: object) -> None:
        raise ValueError("no session")

    monkeypatch.setattr(early.EarlyHandler, "get_session", fail)
    with urllib.request.urlopen(address + "tokens") as answer:  # noqa: S310 (this machine)
        page = answer.read().decode()
    assert "<h1>" in page
    assert "This page could not be built" in page
    assert "no session" in caplog.text


def test_pages_can_ask_whether_the_server_is_there(address: str) -> None:
    with urllib.request.urlopen(address + "alive") as answer:  # noqa: S310 (this machine)
        assert answer.status == 200
    for slug in ("", "tokens"):
        with urllib.request.urlopen(address + slug) as answer:  # noqa: S310 (this machine)
            page = answer.read().decode()
        assert static("connection.js") in page  # as it is: nothing in it may be escaped
        assert 'id="connection"' in page


@pytest.mark.parametrize("kind", [ForecastingPage, TextPage])
def test_pages_say_that_links_keep_uploads(kind) -> None:
    visit = Visit(kind())
    assert any(UPLOADS in str(pane.object) for pane in visit.body.select(lambda part: hasattr(part, "object")))
    visit.close()
