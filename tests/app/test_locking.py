"""Events that come while the document is not locked wait; downloads, which change nothing, do not."""

import asyncio
import threading
from collections.abc import Callable

import panel as pn

from hardmax.app.jobs import JobPool
from hardmax.app.session import Session
from visits import Loop


class Locked:
    """What Bokeh keeps for a visit: a list of writes while the document is locked, else None."""

    def __init__(self) -> None:
        self._pending_writes: list[object] | None = None


class Document(Loop):
    """A document with a lock."""

    def __init__(self) -> None:
        super().__init__()
        self.session = Locked()
        self.session_context = self


def test_an_event_waits_for_the_lock():
    document = Document()
    pool = JobPool(workers=1)
    session = Session(pool, document)
    happened = []
    session.guarded(happened.append)("early")
    assert happened == []
    document.session._pending_writes = []
    document.waiting.get(timeout=5)()
    assert happened == ["early"]
    session.guarded(happened.append)("in time")
    assert happened == ["early", "in time"]
    pool.close()


def test_an_event_about_a_value_that_is_gone_is_dropped():
    document = Document()
    pool = JobPool(workers=1)
    session = Session(pool, document)
    happened = []
    box = pn.widgets.TextAreaInput()
    box.param.watch(session.guarded(lambda event: happened.append(event.new)), "value")
    box.value = "typed"  # left by pressing Undo: this event waits, the button is first
    document.session._pending_writes = []
    box.value = "undone"
    assert happened == ["undone"]
    while not document.waiting.empty():
        document.waiting.get()()
    assert happened == ["undone"]
    document.session._pending_writes = None
    box.value = "typed again"
    document.session._pending_writes = []
    document.waiting.get(timeout=5)()
    assert happened == ["undone", "typed again"]
    pool.close()


def test_a_download_is_answered_at_once():
    pool = JobPool(workers=1)
    assert Session(pool, Document()).guarded(lambda: b"file")() == b"file"
    pool.close()


def test_a_result_of_a_thread_reaches_the_document_from_the_thread_of_the_visit():
    async def visit() -> tuple[list[int], list[str]]:
        threads: list[int] = []
        done: list[str] = []
        over = asyncio.Event()

        class Watched(Loop):
            def add_next_tick_callback(self, callback: Callable[[], None]) -> None:
                threads.append(threading.get_ident())
                callback()

        pool = JobPool(workers=1)
        session = Session(pool, Watched())

        def then(result: str) -> None:
            done.append(result)
            over.set()

        session.start("work", lambda _: "result", then)
        await asyncio.wait_for(over.wait(), 10)
        session.close()
        pool.close()
        return threads, done

    threads, done = asyncio.run(visit())
    assert set(threads) == {threading.get_ident()}
    assert done == ["result"]
