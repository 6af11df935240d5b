"""Bokeh's documents: whether one is locked, and messages to a browser in the order in which they were made.

A message about models that the browser has not seen carries their definitions, and later messages only name them, so
messages must be written in the order in which they were made. Bokeh writes the changes of a callback when it has ended;
Panel writes those of its widgets and layouts at once, or later where another message is just being written. A change
that names a plot could so arrive before the plot, or after it was removed: "reference p1234 isn't known", and the rest
of the message is lost. Here both write through one queue per connection.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Sequence
from typing import Any

from panel.io.document import extra_socket_handlers


def unlocked(document: Any) -> bool:
    """Whether a document is part of a visit and not locked, so that it must not be changed now."""
    context = getattr(document, "session_context", None)
    visit = getattr(context, "session", None)
    # Bokeh has no public attribute for it; it checks this one before it refuses a change.
    return visit is not None and getattr(visit, "_pending_writes", ()) is None


class OrderedSocket:
    """What a connection of Bokeh writes to: a queue in front of its socket."""

    def __init__(self, socket: Any) -> None:
        self._socket = socket
        self._waiting: deque[Any] = deque()
        self._writing: asyncio.Task[None] | None = None

    def send_message(self, message: Any) -> Awaitable[None]:
        """Put a message at the end of the queue; the result waits until it is written."""
        self._waiting.append(message)
        if self._writing is None or self._writing.done():
            self._writing = asyncio.ensure_future(self._write())
        # A callback that is cancelled while it waits does not stop the messages of others.
        return asyncio.shield(self._writing)

    async def _write(self) -> None:
        while self._waiting:
            await self._socket.send_message(self._waiting.popleft())

    def ping(self, data: bytes) -> None:
        """Ask the browser whether it is still there."""
        self._socket.ping(data)


def _send(connection: Any, events: Sequence[Any] = (), msg: Any = None) -> list[Awaitable[None]]:
    """Write changes that Panel has collected; it calls this for sockets of the type above."""
    if msg is None:
        if not events:
            return []
        msg = connection.protocol.create("PATCH-DOC", list(events))
    return [connection._socket.send_message(msg)]


extra_socket_handlers[OrderedSocket] = _send


def keep_messages_in_order(tornado: Any) -> None:
    """Put a queue in front of the socket of every new connection of a server (its ``BokehTornado``)."""
    usual = tornado.new_connection

    def new_connection(protocol: Any, socket: Any, *rest: Any) -> Any:
        return usual(protocol, OrderedSocket(socket), *rest)

    tornado.new_connection = new_connection
