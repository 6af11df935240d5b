"""A real browser on a running explorer. Without Chromium these tests are skipped, and the report says how to get it.

Every page that a test opens is watched: an error on its console, or a request to anywhere but this machine, fails the
test. Screenshots go to out/browser/, to be looked at.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from explorers import ROOT, Explorer

SHOTS = ROOT / "out" / "browser"
ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
_HOW = "no Chromium was found: apt-get install chromium (or another package that brings the command chromium)"


def find_chromium() -> str | None:
    """The browser to test with."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return next((found for found in map(shutil.which, names) if found), None)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Explorer]:
    """An explorer that runs on a free port."""
    if find_chromium() is None:
        pytest.skip(_HOW)
    running = Explorer(tmp_path_factory.mktemp("explorer") / "log.txt")
    try:
        yield running
    finally:
        running.stop()
    assert running.errors == []


@pytest.fixture(scope="session")
def explorer(server: Explorer) -> str:
    """The address of the explorer, without a slash at the end."""
    return server.address


@pytest.fixture(scope="session")
def visitor() -> Iterator[Any]:
    """A running browser with one visitor, as wide as a laptop; its cache is shared by all tests."""
    path = find_chromium()
    if path is None:
        pytest.skip(_HOW)
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=ARGUMENTS)
        context = browser.new_context(viewport={"width": 1280, "height": 900}, accept_downloads=True)
        context.set_default_timeout(30_000)
        playwright.expect.set_options(timeout=30_000)  # patience for busy machines; nothing here is timed
        yield context
        browser.close()


@pytest.fixture
def page(visitor: Any, explorer: str) -> Iterator[Any]:
    """A watched page."""
    opened = visitor.new_page()
    trouble: list[str] = []
    opened.on("console", lambda message: trouble.append(message.text) if message.type == "error" else None)
    opened.on("pageerror", lambda error: trouble.append(str(error)))
    inside = (explorer, explorer.replace("http:", "ws:"), "data:", "blob:")
    opened.on("request", lambda request: None if request.url.startswith(inside) else trouble.append(request.url))
    opened.on("websocket", lambda socket: None if socket.url.startswith(inside) else trouble.append(socket.url))
    yield opened
    opened.close()
    assert trouble == []


@pytest.fixture(scope="session")
def shoot() -> Callable[..., Path]:
    """Take a picture of the whole page, ``shoot(page, "name")``, kept as out/browser/name.png.

    With ``whole=False``, of what is on the screen.
    """
    SHOTS.mkdir(parents=True, exist_ok=True)

    def take(page: Any, name: str, whole: bool = True) -> Path:
        path = SHOTS / f"{name}.png"
        page.screenshot(path=str(path), full_page=whole)
        return path

    return take
