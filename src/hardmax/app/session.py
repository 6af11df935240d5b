"""A visit to a page: messages, jobs, plots in the current theme, and a temporary folder."""

from __future__ import annotations

import asyncio
import contextlib
import html
import logging
import tempfile
import threading
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar, cast

import panel as pn
from param.parameterized import Event

from ..errors import HardmaxError
from .documents import unlocked
from .jobs import Job, JobPool, Jobs
from .look import Lighting

T = TypeVar("T")
_log = logging.getLogger(__name__)
_UNEXPECTED = "An unexpected error occurred; the details are in the terminal. The page can still be used."
_LONGEST_MESSAGE = 600
"""Characters; longer messages would push the page out of view."""
_QUIET_MILLISECONDS = 250
"""The address is updated at most four times per second while a slider moves."""


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _outdated(event: object) -> bool:
    """Whether an event of a widget is about a value that the widget no longer has."""
    if not isinstance(event, Event):
        return False
    now = getattr(event.obj, event.name)
    return now is not event.new and bool(now != event.new)


class Session:
    """One visit to one page; without a ``document``, outside of a server, callbacks run immediately."""

    def __init__(self, pool: JobPool, document: Any = None) -> None:
        self._document = document
        self._closed = False
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._on_change: Callable[[], None] | None = None
        self._change_waits = False
        self._lock = threading.Lock()
        self._thread = threading.get_ident()
        self._loop = _running_loop()
        self.lighting = Lighting()
        self.jobs = Jobs(pool, self.later, self._show_job)
        self.messages = pn.pane.HTML("", css_classes=["messages"], sizing_mode="stretch_width", visible=False)
        self._bar = pn.pane.HTML("", sizing_mode="stretch_width", margin=0)
        self._cancel = pn.widgets.Button(label="Cancel", width=90, color="light", margin=0)
        self._cancel.on_click(self.guarded(lambda _: self.jobs.cancel()))
        self.progress = pn.Row(
            self._bar, self._cancel, css_classes=["job"], visible=False, sizing_mode="stretch_width", margin=0
        )

    # Plots

    def figure(self, **options: Any) -> Any:
        """A Bokeh figure in the style of the explorer that follows the theme."""
        return self.lighting.figure(**options)

    # Messages

    def show_message(self, text: str, kind: str = "note") -> None:
        """Show a message above the page, as text; ``kind`` is note, good or error."""
        shown = text if len(text) <= _LONGEST_MESSAGE else text[: _LONGEST_MESSAGE - 1] + "…"
        role = "alert" if kind == "error" else "status"
        self.messages.object = f'<div class="message {html.escape(kind)}" role="{role}">{html.escape(shown)}</div>'
        self.messages.visible = True

    def clear_message(self) -> None:
        """Remove the message."""
        self.messages.visible = False
        self.messages.object = ""

    def fail(self, error: BaseException) -> None:
        """Show an error of the library as its message; any other goes to the log with its traceback."""
        if isinstance(error, HardmaxError):
            self.show_message(str(error), "error")
        elif isinstance(error, MemoryError):
            self.show_message("There is not enough memory for this: reduce the size.", "error")
        else:
            _log.error("unexpected error on a page", exc_info=error)
            self.show_message(_UNEXPECTED, "error")

    def guarded(self, callback: Callable[..., T]) -> Callable[..., T | None]:
        """The callback with its errors shown as messages.

        An event (a call with arguments) that arrives while the document is not locked is postponed until it is: of two
        simultaneous events, such as leaving a field by pressing a button, one may arrive unlocked. The button may then
        have changed the field, as Undo does: an event about a value that is no longer there is dropped.
        """

        @wraps(callback)
        def call(*args: Any, **kwargs: Any) -> T | None:
            if args and unlocked(self._document):
                self.later(lambda: None if _outdated(args[0]) else cast("None", call(*args, **kwargs)))
                return None
            try:
                return callback(*args, **kwargs)
            except Exception as error:
                self.fail(error)
                return None

        return call

    # Jobs

    def start(self, name: str, work: Callable[[Job], T], then: Callable[[T], None]) -> None:
        """Run ``work(job)`` in the background with a progress bar and a Cancel button, then ``then(result)``.

        ``then`` runs on the event loop. Errors of both are shown as messages. A running job is cancelled.
        """
        self.clear_message()
        try:
            self.jobs.start(name, work, self.guarded(then), self.fail)
        except HardmaxError as error:
            self.fail(error)

    def _show_job(self, job: Job | None) -> None:
        self.progress.visible = job is not None
        if job is None:
            return
        # A progress bar without a value moves; one at zero looks broken.
        share = f' value="{job.fraction:.3f}"' if job.fraction else ""
        name, note = html.escape(job.name), html.escape(job.note)
        self._bar.object = (
            f'<div class="bar"><progress max="1" aria-label="{name}"{share}></progress>'
            f"<span>{name}{' · ' + note if note else ''}</span></div>"
        )

    def later(self, callback: Callable[[], None]) -> None:
        """Run a callback soon on the event loop; may be called from any thread."""
        if self._loop is not None and threading.get_ident() != self._thread:
            # A document is not safe to use from another thread: while it collects changes, a callback that another
            # thread adds can be lost.
            with contextlib.suppress(RuntimeError):  # the server has stopped
                self._loop.call_soon_threadsafe(self.later, callback)
        elif self._closed:
            return
        elif self._document is None:
            callback()
        else:
            self._document.add_next_tick_callback(callback)

    def when_ready(self, callback: Callable[[], None]) -> None:
        """Run a callback once the browser shows the page; changes made before that may be lost."""
        if self._document is None:
            callback()
        else:
            self._document.on_event("document_ready", lambda _: callback())

    # The address and the code

    def on_change(self, callback: Callable[[], None]) -> None:
        """Set the callback of :meth:`changed`; used by the shell."""
        self._on_change = callback

    def changed(self) -> None:
        """Report that the view has changed; the address and the code are updated after a short delay."""
        if self._on_change is None or self._closed:
            return
        if self._document is None:
            self._on_change()
            return
        with self._lock:
            if self._change_waits:
                return
            self._change_waits = True
        self._document.add_timeout_callback(self._publish, _QUIET_MILLISECONDS)

    def _publish(self) -> None:
        with self._lock:
            self._change_waits = False
        if self._on_change is not None and not self._closed:
            self.guarded(self._on_change)()

    # The end

    @property
    def folder(self) -> Path:
        """A temporary folder of this visit, removed at its end."""
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="hardmax-")
        return Path(self._folder.name)

    def close(self) -> None:
        """End the visit: its job is cancelled and its folder removed."""
        self._closed = True
        self.jobs.cancel()
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None
