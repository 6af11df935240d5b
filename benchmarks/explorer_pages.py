"""The explorer in a browser: bytes and first paint of every page beside a trivial Panel page, and frames while playing.

It needs Chromium and playwright, as the browser tests do.
"""

from __future__ import annotations

import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hardmax.app.server import slugs
from hardmax.errors import HardmaxError

from ._table import Check, Report

_TRIVIAL = """
import panel as pn
pn.extension(inline=False)
server = pn.serve(lambda: pn.pane.HTML("<h1>trivial</h1>"), port=0, show=False, start=False)
print(f"The explorer is at http://localhost:{server.port}/", flush=True)
server.run_until_shutdown()
"""
_MOST_SLOWER = 1.5
_LEAST_SHARE = 0.9
"""Share of the frames of an empty page in which 200 tokens are drawn; the rest is the noise of a machine in use."""

# Frames of an empty loop, and frames in which the plot was painted while tokens move, in the same time.
_FRAMES = """async (milliseconds) => {
  let painted = false;
  const clear = CanvasRenderingContext2D.prototype.clearRect;
  CanvasRenderingContext2D.prototype.clearRect = function (...box) { painted = true; return clear.apply(this, box); };
  const count = async () => {
    const began = performance.now();
    let frames = 0, drawn = 0;
    while (performance.now() - began < milliseconds) {
      painted = false;
      await new Promise((next) => requestAnimationFrame(next));
      frames += 1;
      drawn += painted ? 1 : 0;
    }
    return [frames, drawn];
  };
  const [empty] = await count();
  hardmaxPlayer.latest.toggle();
  const [, drawn] = await count();
  return [empty, drawn, milliseconds / 1000];
}"""


def run(quick: bool = False) -> Report:
    """Load every page several times in turn with the trivial one, each time with an empty cache."""
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if chromium is None:
        raise HardmaxError("no Chromium was found: apt-get install chromium")
    from playwright.sync_api import sync_playwright

    report = Report(
        "Pages of the explorer in Chromium",
        ["page", "MB", "files", "first paint ms", "trivial ms", "ratio"],
    )
    command = [sys.executable, "-m", "hardmax", "explore", "--port", "0", "--no-browser"]
    with (
        _served(command) as explorer,
        _served([sys.executable, "-c", _TRIVIAL]) as trivial,
        sync_playwright() as driver,
    ):
        flags = ["--headless", "--no-sandbox", "--disable-gpu"]
        browser = driver.chromium.launch(executable_path=chromium, args=flags)
        _visit(browser, trivial)
        for slug in ("", *slugs()):
            visits, plain = [], []
            for _ in range(2 if quick else 5):
                plain.append(_visit(browser, trivial)[2])
                visits.append(_visit(browser, f"{explorer}{slug}"))
            size, files, _ = visits[0]
            paint, other = statistics.median(visit[2] for visit in visits), statistics.median(plain)
            report.rows.append([slug or "home", size / 1e6, files, paint, other, paint / other])
            what = f"first contentful paint of {slug or 'home'} against a trivial page"
            report.checks.append(Check(what, paint / other, _MOST_SLOWER, at_least=False))
        shares = [_frames(browser, f"{explorer}tokens?start=gaussian&n=200", report) for _ in range(1 if quick else 3)]
        what = "frames while 200 tokens move, against an empty loop, median of the runs"
        report.checks.append(Check(what, statistics.median(shares), _LEAST_SHARE))
        browser.close()
    report.notes.append(
        "Each visit has an empty cache; the first contentful paint is counted from the request of the address."
    )
    return report


@contextmanager
def _served(command: list[str]) -> Iterator[str]:
    """The address that a server prints, with a slash at the end; the server is stopped afterwards."""
    log = Path(tempfile.mkdtemp(prefix="hardmax-pages-")) / "log.txt"
    settings = {"OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
    with log.open("w") as out:
        server = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, env=os.environ | settings)
    try:
        for _ in range(1800):
            found = re.search(r"http://localhost:\d+/", log.read_text())
            if found:
                break
            time.sleep(0.1)
        else:
            raise TimeoutError(log.read_text())
        yield found.group()
    finally:
        server.terminate()
        server.wait(timeout=60)


def _visit(browser: Any, address: str) -> tuple[int, int, float]:
    """Bytes, files and milliseconds until the first contentful paint of one visit with an empty cache."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = context.new_page()
    finished: list[Any] = []
    page.on("requestfinished", lambda request: finished.append(request))
    page.goto(address)
    page.wait_for_function("window.Bokeh && Bokeh.documents.length && Bokeh.documents[0].is_idle", timeout=60_000)
    page.wait_for_function("performance.getEntriesByName('first-contentful-paint').length", timeout=60_000)
    paint = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
    sizes = [max(0, request.sizes()["responseBodySize"]) for request in list(finished)]
    context.close()
    return sum(sizes), len(sizes), float(paint)


def _frames(browser: Any, address: str, report: Report) -> float:
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = context.new_page()
    page.goto(address)
    page.wait_for_function("window.hardmaxStages && hardmaxStages.stages.has('plane')", timeout=60_000)
    page.wait_for_timeout(1_000)
    empty, drawn, seconds = page.evaluate(_FRAMES, 4_000)
    context.close()
    report.notes.append(
        f"200 tokens in motion: {drawn / seconds:.0f} frames per second, an empty loop {empty / seconds:.0f}."
    )
    return drawn / empty
