"""The server dies while pages are open, and comes back."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from explorers import Explorer
from hardmax.app.early import BOUNDARY

# When the banner is first shown, by the clock of the page, which a test that waits for its turn does not delay.
_WATCH = """document.addEventListener("DOMContentLoaded", () => {
  const banner = document.getElementById("connection");
  new MutationObserver(() => {
    if (!banner.hidden && window.told === undefined) { window.told = performance.now(); }
  }).observe(banner, { attributes: true });
});"""
_SECONDS_UNTIL_TOLD = 3.0


@pytest.fixture
def pages(visitor: Any) -> Iterator[tuple[Page, Page]]:
    """Two pages whose consoles may complain: that a server cannot be reached is an error there."""
    opened = visitor.new_page(), visitor.new_page()
    yield opened
    for page in opened:
        page.close()


def test_a_server_that_dies_while_it_builds_a_page(pages: tuple[Page, Page], explorer: str) -> None:
    page, _ = pages
    first_part = page.request.get(f"{explorer}/models").text().partition(BOUNDARY)[0]
    answers = iter([first_part])
    page.route("**/models", lambda route: route.fulfill(body=next(answers), content_type="text/html"))
    page.goto(f"{explorer}/models")
    expect(page.locator("h1")).to_have_text("Models")
    expect(page.locator("#connection")).to_contain_text("The explorer does not answer")
    expect(page.get_by_text("Building the page")).to_be_hidden()


def test_a_dead_server_is_noticed_and_pages_come_back_with_their_state(
    pages: tuple[Page, Page], tmp_path: Path, shoot: Callable[..., Any]
) -> None:
    text, networks = pages
    for page in pages:
        page.add_init_script(_WATCH)
    first = Explorer(tmp_path / "first.txt")
    try:
        text.goto(f"{first.address}/text?text=a+wonderful+film&layer=2")
        expect(text.locator(".verdict")).to_contain_text("positive")
        networks.goto(f"{first.address}/networks?example=swap&construction=fewest")
        expect(networks.get_by_text("✓ Proved")).to_be_visible()
        for page in pages:
            expect(page.locator("#connection")).to_be_hidden()
        before = time.monotonic()
        stamps = [page.evaluate("performance.now()") for page in pages]
    finally:
        first.kill()
    until_killed = time.monotonic() - before  # at most so much of the time since the stamps was before the kill
    for page, stamp in zip(pages, stamps, strict=True):
        expect(page.locator("#connection")).to_contain_text("The explorer does not answer")
        seconds = (page.evaluate("window.told") - stamp) / 1000
        assert 0 < seconds < until_killed + _SECONDS_UNTIL_TOLD
        expect(page.locator("main")).to_have_css("opacity", "0.45")
        page.set_viewport_size({"width": 390, "height": 844})
        for place in (0, 1_000, 100_000):  # wherever one has scrolled to
            page.evaluate("place => window.scrollTo(0, place)", place)
            expect(page.locator("#connection")).to_be_in_viewport(ratio=1)
    shoot(text, "connection-lost")
    text.get_by_role("button", name="Controls").click()
    text.get_by_label("Your text").fill("a terrible film, typed while nobody listened")
    again = Explorer(tmp_path / "again.txt", first.port)
    try:
        for page in pages:
            expect(page.locator("#connection")).to_contain_text("is back", timeout=120_000)  # two pages load
            expect(page.locator("main")).to_have_css("opacity", "1")
        expect(text.get_by_label("Your text")).to_have_value("a terrible film, typed while nobody listened")
        expect(text.locator(".verdict")).to_contain_text("negative")
        expect(text).to_have_url(re.compile(r"text=a\+terrible\+film.*&layer=2"))
        expect(networks.get_by_text("✓ Proved")).to_be_visible()
        expect(networks.get_by_label("Construction", exact=True)).to_have_value("fewest")
        expect(networks.get_by_label("One sequence per line")).to_have_value("(-1, 0) -> (1, 0)\n(1, 0) -> (-1, 0)")
        shoot(text, "connection-back")
        text.locator("#connection").get_by_role("button", name="Close").click()
        expect(text.locator("#connection")).to_be_hidden()
    finally:
        again.stop()
    assert again.errors == []


def test_leaving_a_page_is_no_loss(page: Any, explorer: str) -> None:
    page.goto(f"{explorer}/networks?example=swap")
    expect(page.get_by_text("✓ Proved")).to_be_visible()
    page.goto(f"{explorer}/text")
    expect(page.locator(".verdict")).to_be_visible()
    page.go_back()
    expect(page.get_by_text("✓ Proved")).to_be_visible()
    expect(page.locator("#connection")).to_be_hidden()


def test_a_change_that_cannot_be_shown_reloads_the_page_at_its_address(visitor: Any, explorer: str) -> None:
    page = visitor.new_page()  # not watched: the failed change is an error on its console
    page.goto(f"{explorer}/networks?example=swap&construction=fewest")
    expect(page.get_by_text("✓ Proved")).to_be_visible()
    lost = {"kind": "ModelChanged", "model": {"id": "p99999999"}, "attr": "text", "new": "about a plot that never came"}
    fail = "(event) => { try { Bokeh.documents[0].apply_json_patch({events: [event]}); } catch (e) { return `${e}`; } }"
    banner = page.locator("#connection")
    page.evaluate("window.before = true")
    assert "isn't known" in page.evaluate(fail, lost)
    expect(banner).to_contain_text("was loaded again")
    assert page.evaluate("window.before") is None  # another page than before
    expect(page.get_by_label("Construction", exact=True)).to_have_value("fewest")
    expect(page.get_by_text("✓ Proved")).to_be_visible()
    # A fault that returns at once does not load the page for ever; a busy machine may have taken longer to come here.
    page.evaluate("sessionStorage.setItem('hardmax-renewed ' + location.pathname, Date.now())")
    page.evaluate("window.before = true")
    page.evaluate(fail, lost)
    expect(banner).to_contain_text("Load it once more")
    assert page.evaluate("window.before") is True
    page.close()
