"""What holds on every page: it fits any screen, is explained by a tour, and can be used by everyone.

Each page is opened once for all tests of this file: they look at it in several sizes and lights, and change nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from explorers import until
from hardmax.app.guide import TOURS
from hardmax.app.home.gallery import EXAMPLES
from hardmax.app.server import slugs

SIZES = ((1440, 900), (1024, 768), (390, 844))
# What sets the picture in motion, on each page.
START = {slug: "Fit and forecast" if slug == "forecasting" else "Play" for slug in slugs()}
# The name of what has the focus, through shadow roots.
FOCUSED = """() => {
  let one = document.activeElement;
  while (one && one.shadowRoot && one.shadowRoot.activeElement) { one = one.shadowRoot.activeElement; }
  if (!one || one === document.body) { return null; }
  const caption = one.labels && one.labels.length ? one.labels[0] : one;
  return (one.getAttribute("aria-label") || caption.textContent).trim();
}"""
MOST_STOPS = 150
# Places of all plots, through shadow roots.
PLOTS = """() => {
  const found = [];
  const walk = (root) => {
    for (const one of root.querySelectorAll("*")) {
      const box = one.matches("canvas") ? one.getBoundingClientRect() : null;
      if (box && box.width > 20) { found.push({top: box.top, bottom: box.bottom, right: box.right}); }
      if (one.shadowRoot) { walk(one.shadowRoot); }
    }
  };
  walk(document);
  return found;
}"""
# Megabytes that a page loads, from the network or the cache.
LOADED = "performance.getEntriesByType('resource').reduce((sum, one) => sum + one.encodedBodySize, 0) / 1e6"
MOST_LOADED = 3.2
"""The scripts of Bokeh and Panel are 2.8 MB; `python -m benchmarks explorer_pages` lists all pages."""
# Whether the entry of this page is inside the line of pages, which scrolls on a phone.
PRESENT = """() => {
  const here = document.querySelector("nav [aria-current]").getBoundingClientRect();
  const line = document.querySelector("nav").getBoundingClientRect();
  return here.left >= line.left - 1 && here.right <= line.right + 1;
}"""
OVERFLOW = "document.documentElement.scrollWidth - window.innerWidth"


@pytest.fixture(scope="module")
def standing(request: pytest.FixtureRequest, visitor: Any, explorer: str) -> Iterator[tuple[str, Any]]:
    """A page by its name, in the light, with its first results."""
    slug = request.param
    page = visitor.new_page()
    trouble: list[str] = []
    page.on("console", lambda message: trouble.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.goto(f"{explorer}/{slug}?theme=light")
    if slug:
        page.locator("canvas").first.wait_for()
        # Of networks and real models there is a player only with their first results.
        expect(page.get_by_role("button", name=START[slug], exact=True).first).to_be_visible()
    else:
        page.locator("a.example").first.wait_for()
    yield slug, page
    page.close()
    assert trouble == []


def eventually(page: Any, wrong: Callable[[], object]) -> None:
    """Wait until nothing is wrong: plots find their height, and results come, some moments after the page."""
    found = wrong()
    for _ in range(150):
        if not found:
            return
        page.wait_for_timeout(100)
        found = wrong()
    raise AssertionError(found)


@pytest.mark.parametrize("standing", slugs(), indirect=True)
def test_it_fits_a_tablet_and_has_code_and_a_tour(standing: tuple[str, Any], shoot: Callable[..., Any]) -> None:
    slug, page = standing
    page.set_viewport_size({"width": 820, "height": 1100})
    assert 1 < page.evaluate(LOADED) < MOST_LOADED
    assert page.evaluate("getComputedStyle(document.body).fontFamily").startswith("system-ui")
    code = page.get_by_role("button", name="Show the Python code")
    code.click()
    expect(page.locator("pre.code")).to_contain_text("import hardmax")
    eventually(page, lambda: page.evaluate(OVERFLOW) > 0)
    shoot(page, f"tablet-{slug}")
    code.click()
    expect(page.locator("pre.code")).to_be_hidden()
    page.locator("#tour").click()
    pointed = 0
    for number, (_, words) in enumerate(TOURS[slug], start=1):
        expect(page.locator("#tour-box")).to_contain_text(f"Step {number} of 5")
        expect(page.locator("#tour-box")).to_contain_text(words)
        pointed += page.locator("#tour-ring").is_visible()
        page.keyboard.press("ArrowRight")
    assert pointed >= 3, "a tour points at what is on the page; some cards appear with the first results"
    expect(page.locator("#tour-box")).to_have_count(0)


def test_a_tour_on_a_phone_begins_with_the_picture(page: Any, explorer: str) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{explorer}/forecasting")
    expect(page.get_by_role("button", name="Fit and forecast")).to_be_visible()
    page.locator("#tour").click()
    expect(page.locator("#tour-box")).to_contain_text("(Under Controls.)")  # of what is in the drawer
    assert page.evaluate("scrollY") == 0


@pytest.mark.parametrize("standing", slugs(), indirect=True)
def test_the_picture_is_on_the_first_screen(standing: tuple[str, Any], shoot: Callable[..., Any]) -> None:
    slug, page = standing
    start = page.get_by_role("button", name=START[slug], exact=True).first
    for width, height in SIZES:
        page.set_viewport_size({"width": width, "height": height})
        page.evaluate("window.scrollTo(0, 0)")

        def wrong(width: int = width, height: int = height) -> list[str]:
            plots, box = page.evaluate(PLOTS), start.bounding_box()
            held = {
                "no sideways scrolling": page.evaluate(OVERFLOW) <= 0,
                "a plot is on the screen": min(plot["top"] for plot in plots) < height - 100,
                "plots are not wider": max(plot["right"] for plot in plots) <= width,
                "what starts it is on the screen": box["y"] + box["height"] <= height,
                "the pages are one line": page.locator("nav").bounding_box()["height"] < 60,
                "this page is in sight in that line": page.evaluate(PRESENT),
            }
            return [f"not at {width} x {height}: {what}" for what, holds in held.items() if not holds]

        eventually(page, wrong)
        shoot(page, f"first-{slug}-{width}", whole=False)


def serious(page: Any) -> list[str]:
    """What axe-core calls serious or critical."""
    core = pytest.importorskip("axe_playwright_python")
    page.evaluate((Path(core.__file__).parent / "axe.min.js").read_text(encoding="utf-8"))
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
    return [
        f"{one['impact']} {one['id']}: {node['html'][:120]}"
        for one in found
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"]
    ]


@pytest.mark.parametrize("standing", [*slugs(), ""], indirect=True)
def test_no_serious_obstacle_in_either_light_and_a_way_by_the_keyboard(standing: tuple[str, Any]) -> None:
    slug, page = standing
    page.set_viewport_size({"width": 1280, "height": 900})
    for theme in ("light", "dark"):
        if theme == "dark":
            page.get_by_role("button", name="Dark").click()
            page.evaluate("localStorage.clear()")  # other tests begin in the light
        until(page, f"document.documentElement.dataset.theme === '{theme}'")
        # Results are dimmed, and some names not yet given, until the page has computed them.
        eventually(page, lambda: serious(page))
    # By the Tab key alone: everything that is reached has a name, and what starts the picture is reached.
    page.evaluate("document.activeElement.blur()")
    stops: list[str] = []
    while len(stops) < MOST_STOPS:
        page.keyboard.press("Tab")
        name = page.evaluate(FOCUSED)
        if name is None or (stops and name == stops[0]):
            break
        stops.append(name)
    assert all(stops), stops
    assert {"Show the Python code", "PNG", START[slug]} <= set(stops) if slug else len(stops) > len(EXAMPLES), stops
