"""A visit to a page of the explorer without a browser: callbacks wait until the test lets them run."""

from __future__ import annotations

import contextlib
import io
import queue
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hardmax.app.jobs import JobPool
from hardmax.app.page import Page
from hardmax.app.session import Session


class Loop:
    """What the session needs of a document: a place for callbacks, filled from any thread."""

    def __init__(self) -> None:
        self.waiting: queue.Queue[Callable[[], None]] = queue.Queue()

    def add_next_tick_callback(self, callback: Callable[[], None]) -> None:
        self.waiting.put(callback)

    def on_event(self, _name: str, callback: Callable[[object], None]) -> None:
        self.waiting.put(lambda: callback(None))

    def add_timeout_callback(self, callback: Callable[[], None], _milliseconds: int) -> None:
        self.waiting.put(callback)


class Visit:
    """A page that was opened at an address."""

    def __init__(self, page: Page, state: dict[str, str] | None = None) -> None:
        self.page, self.loop = page, Loop()
        self.pool = JobPool(workers=1)
        self.session = Session(self.pool, self.loop)
        page.restore(state or {})
        self.body: Any = page.build(self.session)
        self.settle()

    def settle(self, seconds: float = 60.0) -> None:
        """Run callbacks until no job is left."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                self.loop.waiting.get(timeout=0.05)()
            except queue.Empty:
                if self.session.jobs.current is None:
                    return
        raise TimeoutError("the job never ended")

    @property
    def message(self) -> str:
        """The words that are shown above the page."""
        return re.sub(r"<[^>]+>", "", self.session.messages.object)

    def close(self) -> None:
        """End the visit."""
        self.session.close()
        self.pool.close()


def run_code(code: str, folder: Path) -> str:
    """What the code on a page prints, run in names of its own as a visitor would run it.

    In this process: a new one would import torch and the rest again, which takes longer than most code on the pages.
    """
    printed = io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(printed):
        exec(compile(code, "<code on the page>", "exec"), {"__name__": "__main__"})  # noqa: S102 (made by the page)
    return printed.getvalue()


def run_names(code: str, folder: Path) -> dict[str, Any]:
    """The names that the code on a page defines, run as a visitor would run it."""
    names: dict[str, Any] = {"__name__": "__main__"}
    with contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()):
        exec(compile(code, "<code on the page>", "exec"), names)  # noqa: S102 (made by the page)
    return names


def contrast(one: str, other: str) -> float:
    """Contrast of two colours as WCAG 2.2 defines it, written independently of the explorer."""

    def luminance(colour: str) -> float:
        parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    bright, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)
