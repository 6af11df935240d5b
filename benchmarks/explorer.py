"""The explorer: what the server does while a token is dragged, against an update that changes nothing."""

from __future__ import annotations

import itertools
import math
import statistics
import time
from collections.abc import Callable

import torch
from bokeh.document import Document
from bokeh.models import ColumnDataSource
from bokeh.protocol import Protocol

from hardmax.app.jobs import JobPool
from hardmax.app.session import Session
from hardmax.app.tokens.page import TokensPage

from ._table import Check, Report

_CASES = [
    ("hardmax", "gaussian", 50),
    ("hardmax", "gaussian", 200),
    ("hardmax", "grid", 200),
    ("softmax", "gaussian", 200),
    ("hardmax", "gaussian", 2_000),
    ("hardmax", "gaussian", 20_000),
]
_TARGET_SECONDS = 0.1


def run(quick: bool = False) -> Report:
    """Time drags: from the message of the browser to the bytes of the answer."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return _run(8 if quick else 40)
    finally:
        torch.set_num_threads(threads)


def _run(repeat: int) -> Report:
    report = Report(
        "One update while a token is dragged, on the server (1 thread)",
        ["tokens", "server ms", "empty update ms", "ratio", "wall ms", "kB sent"],
    )
    empty, _, _ = _timed(*_nothing(), repeat)
    for attention, start, n in _CASES:
        server, wall, size = _timed(*_page(attention, start, n), repeat)
        report.rows.append(
            [f"{n:,} {start}, {attention}", 1e3 * server, 1e3 * empty, server / empty, 1e3 * wall, size / 1e3]
        )
        if n == 200:
            what = f"a drag among 200 tokens ({start}, {attention})"
            report.checks.append(Check(what, 1e3 * server, 1e3 * _TARGET_SECONDS, at_least=False, unit="ms"))
    report.notes.append(
        "From the message of the browser to the bytes of the answer: mathematics, picture, serialisation."
    )
    report.notes.append("Server: processor time, the median; wall: what a busy machine makes of it.")
    report.notes.append("The empty update takes a message through the same document and answers it.")
    return report


Sent = list[object]


def _listened(document: Document) -> Sent:
    sent: Sent = []
    document.on_change(sent.append)
    return sent


def _nothing() -> tuple[Callable[[int], None], Sent]:
    document = Document()
    wire, answer = ColumnDataSource({"serial": [0]}), ColumnDataSource({"serial": [0]})
    document.add_root(wire)
    document.add_root(answer)
    wire.on_change("data", lambda _attr, _old, new: setattr(answer, "data", {"serial": [new["serial"][0]]}))
    sent = _listened(document)

    def act(k: int) -> None:
        wire.data = {"serial": [k]}

    return act, sent


def _page(attention: str, start: str, n: int) -> tuple[Callable[[int], None], Sent]:
    document = Document()
    page = TokensPage()
    page.restore({"attention": attention, "start": start, "n": str(n)})
    body = page.build(Session(JobPool(workers=1)))
    document.add_root(body.get_root(document))
    document.add_root(page._plane.wire)
    sent = _listened(document)

    def act(k: int) -> None:
        x, y = 3 * math.cos(0.37 * k), 3 * math.sin(0.37 * k)
        page._plane.wire.data = {"kind": ["move"], "what": [0], "x": [x], "y": [y], "serial": [k]}

    return act, sent


def _timed(act: Callable[[int], None], sent: Sent, repeat: int) -> tuple[float, float, int]:
    """Median processor and wall time of an update, and the bytes of its answer."""
    protocol, busy, waited, size = Protocol(), [], [], 0
    for k in itertools.count():
        sent.clear()
        start, processor = time.perf_counter(), time.process_time()
        act(k + 1)
        message = protocol.create("PATCH-DOC", sent)  # type: ignore[arg-type]
        size = len(message.content_json) + sum(len(buffer.to_bytes()) for buffer in message.buffers)
        waited.append(time.perf_counter() - start)
        busy.append(time.process_time() - processor)
        if k == repeat + 2:
            break
    return statistics.median(busy[3:]), statistics.median(waited[3:]), size
