"""Messages reach the browser in the order in which they were made, whether Bokeh or Panel writes them."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable
from typing import Any

import panel as pn
from bokeh.models import Div
from bokeh.util.token import generate_jwt_token, generate_session_id
from panel.io.state import set_curdoc
from tornado.httpclient import HTTPRequest
from tornado.ioloop import IOLoop
from tornado.websocket import websocket_connect

from hardmax.app.server import make_server

Told = list[dict[str, Any]]


async def visit(first: Any, changes: Callable[[Any], None], *, busy: bool) -> Told:
    """The changes that a browser is told of, in order, when ``changes(row)`` runs during a visit.

    ``row`` is a layout that holds the pane ``first``; with ``busy``, another message is just being written.
    """
    server = make_server(["tokens"], loop=IOLoop.current())
    server.start()
    try:
        token = generate_jwt_token(generate_session_id())
        address = HTTPRequest(f"ws://localhost:{server.port}/tokens/ws")
        browser = await websocket_connect(address, subprotocols=["bokeh", token])
        for _ in range(3):  # header, metadata and content of the greeting
            await browser.read_message()
        [session] = server.get_sessions("/tokens")
        document, row = session.document, pn.Row(first)
        pn.state._connected[document] = pn.state._loaded[document] = True
        last = Div()

        def begin() -> None:
            with set_curdoc(document):
                document.add_root(row.get_root(document))
                document.add_root(last)

        def change() -> None:
            with set_curdoc(document):
                changes(row)

        await session.with_document_locked(begin)
        [connection] = session._subscribed_connections
        socket = getattr(connection._socket, "_socket", connection._socket)
        with await socket.write_lock.acquire() if busy else contextlib.nullcontext():
            running = asyncio.ensure_future(session.with_document_locked(change))
            await asyncio.sleep(0.05)
        await running
        await session.with_document_locked(lambda: setattr(last, "text", "the end"))
        told: Told = []
        while not told or told[-1].get("new") != "the end":
            fragment = await asyncio.wait_for(browser.read_message(), 10)
            if isinstance(fragment, str) and '"events"' in fragment:
                told += json.loads(fragment)["events"]
        browser.close()
        return told
    finally:
        server.stop()
        server.pool.close()


def place(told: Told, model: Any, attribute: str) -> int:
    """Where the change of an attribute is among what the browser is told."""
    [found] = [k for k, one in enumerate(told) if one.get("model") == {"id": model.id} and one["attr"] == attribute]
    return found


def test_a_new_plot_arrives_before_what_is_said_about_it():
    plot = Div()

    def changes(row: Any) -> None:
        row.append(pn.pane.Bokeh(plot))  # written by Panel, later if another message is being written
        plot.text = "new"  # written by Bokeh

    told = asyncio.run(visit(pn.pane.Bokeh(Div()), changes, busy=True))
    [brought] = [k for k, one in enumerate(told) if one.get("attr") == "children" and plot.id in json.dumps(one)]
    assert brought < place(told, plot, "text")


def test_a_plot_that_is_removed_is_not_spoken_of_afterwards():
    plot = Div()

    def changes(row: Any) -> None:
        plot.text = "last words"  # written by Bokeh when the callback has ended
        row[:] = []  # written by Panel at once

    told = asyncio.run(visit(pn.pane.Bokeh(plot), changes, busy=False))
    [removed] = [k for k, one in enumerate(told) if one.get("attr") == "children" and one["new"] == []]
    assert place(told, plot, "text") < removed
