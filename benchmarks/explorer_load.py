"""The explorer under load: ten simulated visitors, two on each page, for two minutes.

The server is a process of its own; visitors are Bokeh clients, which speak to it as a browser does. No error may be
logged, and its memory must stay flat.
"""

from __future__ import annotations

import contextlib
import math
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from bokeh.client import pull_session

from hardmax.app.server import load_page, slugs
from hardmax.progress import Ticker

from ._table import Check, Report

_VISITORS = 10
_SECONDS, _QUICK = 120.0, 20.0
_STAY = 6.0
"""How long a visitor stays before coming back as another."""


def run(quick: bool = False) -> Report:
    """Load the explorer and watch it."""
    duration = _QUICK if quick else _SECONDS
    for slug in slugs():
        load_page(slug)  # the models that its pages are made of, so that visitors can read them
    log = Path(tempfile.mkdtemp(prefix="hardmax-load-")) / "log.txt"
    command = [sys.executable, "-m", "hardmax", "explore", "--port", "0", "--no-browser"]
    with log.open("w") as out:
        server = subprocess.Popen(
            command,
            stdout=out,
            stderr=subprocess.STDOUT,
            env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"},
        )
    try:
        address = _address(log)
        clock = _Clock(duration)
        crowd = [_Visitor(address, k, clock) for k in range(_VISITORS)]
        for visitor in crowd:
            visitor.start()
        with contextlib.suppress(threading.BrokenBarrierError):  # then a visitor has an error to tell of
            clock.everybody.wait(timeout=300)
        memory = _watch(server.pid, duration)
        for visitor in crowd:
            visitor.join(timeout=60)
    finally:
        server.terminate()
        server.wait(timeout=30)
    return _report(crowd, memory, log.read_text())


def _address(log: Path) -> str:
    for _ in range(1200):
        found = re.search(r"http://localhost:\d+", log.read_text())
        if found:
            return found.group()
        time.sleep(0.1)
    raise TimeoutError(log.read_text())


def _watch(process: int, duration: float) -> list[float]:
    """The server's memory in megabytes, once a second."""
    memory = []
    with Ticker("seconds", round(duration)) as ticker:
        for _ in range(round(duration)):
            time.sleep(1.0)
            status = Path(f"/proc/{process}/status").read_text()
            memory.append(int(re.findall(r"VmRSS:\s+(\d+)", status)[0]) / 1024)
            ticker.advance(note=f"{memory[-1]:.0f} MB")
    return memory


class _Clock:
    """Starts when all visitors are connected."""

    def __init__(self, duration: float) -> None:
        self.end = math.inf
        self.everybody = threading.Barrier(_VISITORS + 1, action=lambda: self._start(duration))

    def _start(self, duration: float) -> None:
        self.end = time.monotonic() + duration


class _Visitor(threading.Thread):
    """Opens a page, moves what can be moved, leaves, and comes back."""

    def __init__(self, address: str, number: int, clock: _Clock) -> None:
        super().__init__(daemon=True)
        self.slug = slugs()[number % len(slugs())]
        self.actions = self.visits = 0
        self.errors: list[str] = []
        self._address, self._clock = address, clock
        self._random = random.Random(number)  # noqa: S311 - what a visitor does next is no secret

    def run(self) -> None:
        while time.monotonic() < self._clock.end:
            try:
                self._visit()
            except threading.BrokenBarrierError:
                return  # another visitor has an error to tell of
            except Exception as error:
                self.errors.append(f"{self.slug}: {type(error).__name__}: {error}")
                self._clock.everybody.abort()
                return

    def _visit(self) -> None:
        session = pull_session(url=f"{self._address}/{self.slug}")
        self.visits += 1
        if self.visits == 1:
            self._clock.everybody.wait(timeout=300)
        leave = min(self._clock.end, time.monotonic() + _STAY)
        try:
            while time.monotonic() < leave:
                self._act(session.document)
                session.force_roundtrip()
                self.actions += 1
                time.sleep(0.05)
        finally:
            session.close()

    def _act(self, document: Any) -> None:
        hand = document.get_model_by_name("hand")
        if hand is not None and self._random.random() < 0.8:
            x, y = self._random.uniform(-3, 3), self._random.uniform(-3, 3)
            kind = self._random.choice(["move", "move", "move", "drop", "select"])
            hand.data = {"kind": [kind], "what": [self._random.randrange(20)], "x": [x], "y": [y], "serial": [1]}
            return
        models = [
            model for model in document.models if type(model).__name__ in ("Slider", "Toggle") and not model.disabled
        ]
        if not models:
            return
        model = self._random.choice(models)
        if type(model).__name__ == "Toggle":
            model.active = not model.active
        else:
            steps = self._random.randrange(1 + round((model.end - model.start) / model.step))
            model.value = model.start + steps * model.step


def _report(crowd: list[_Visitor], memory: list[float], log: str) -> Report:
    report = Report(
        f"{_VISITORS} visitors at once for {len(memory)} seconds",
        ["page", "visitors", "visits", "actions", "errors"],
    )
    for slug in slugs():
        there = [visitor for visitor in crowd if visitor.slug == slug]
        counts = [sum(visitor.visits for visitor in there), sum(visitor.actions for visitor in there)]
        report.rows.append([slug, len(there), *counts, sum(len(visitor.errors) for visitor in there)])
    errors = [error for visitor in crowd for error in visitor.errors]
    errors += re.findall(r"^(?:ERROR.*|\w*Error: .*)$", log, flags=re.MULTILINE)
    third = max(1, len(memory) // 3)
    middle, late = statistics.mean(memory[third : 2 * third]), statistics.mean(memory[-third:])
    report.notes.append(
        f"Memory of the server: {memory[0]:.0f} MB at first, {middle:.0f} MB in the second third, "
        f"{late:.0f} MB in the last."
    )
    report.notes += [f"error: {error[:160]}" for error in errors[:5]]
    report.checks.append(Check("errors", float(len(errors)), 0.0, at_least=False, unit="errors"))
    report.checks.append(
        Check("memory in the last third against the second", late / middle, 1.1, at_least=False, unit="times")
    )
    return report
