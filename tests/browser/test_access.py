"""For everyone: names for assistive technology, the keyboard, and the picture on the first screen of any size."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

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
# All elements of a kind, through shadow roots, with their places.
PLACES = """(selector) => {
  const found = [];
  const walk = (root) => {
    for (const one of root.querySelectorAll("*")) {
      const box = one.matches(selector) ? one.getBoundingClientRect() : null;
      if (box && box.width > 20) { found.push({top: box.top, bottom: box.bottom, right: box.right}); }
      if (one.shadowRoot) { walk(one.shadowRoot); }
    }
  };
  walk(document);
  return found;
}"""


def opened(page: Any, address: str) -> None:
    page.goto(address)
    expect(page.get_by_role("button", name="Show the Python code")).to_be_visible()
    page.locator("canvas").first.wait_for()


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


def expect_no_obstacle(page: Any, theme: str) -> None:
    assert page.evaluate("document.documentElement.dataset.theme") == theme
    found = ["not looked at"]
    for _ in range(30):  # results are dimmed, and some names not yet given, until the page has computed them
        page.wait_for_timeout(500)
        found = serious(page)
        if not found:
            break
    assert found == [], theme


@pytest.mark.parametrize("slug", ["", *slugs()])
def test_no_serious_obstacle_in_either_light_and_a_way_by_the_keyboard(page: Any, explorer: str, slug: str) -> None:
    if slug:
        opened(page, f"{explorer}/{slug}?theme=light")
    else:
        page.goto(f"{explorer}?theme=light")
        page.locator("a.example").first.wait_for()
    expect_no_obstacle(page, "light")
    page.get_by_role("button", name="Dark").click()
    page.evaluate("localStorage.clear()")  # other tests begin in the light
    expect_no_obstacle(page, "dark")
    # By the Tab key alone: everything that is reached has a name, and what starts the picture is reached.
    page.evaluate("document.activeElement.blur()")
    stops = []
    while len(stops) < MOST_STOPS:
        page.keyboard.press("Tab")
        name = page.evaluate(FOCUSED)
        if name is None or (stops and name == stops[0]):
            break
        stops.append(name)
    assert all(stops), stops
    assert {"Show the Python code", "PNG", START[slug]} <= set(stops) if slug else len(stops) > len(EXAMPLES), stops


@pytest.mark.parametrize("slug", slugs())
def test_the_picture_is_on_the_first_screen(page: Any, explorer: str, slug: str) -> None:
    for width, height in SIZES:
        page.set_viewport_size({"width": width, "height": height})
        opened(page, f"{explorer}/{slug}")
        start = page.get_by_role("button", name=START[slug], exact=True).first
        expect(start).to_be_visible()  # of networks and real models with their first results
        page.wait_for_timeout(500)  # plots find their height
        assert page.evaluate("document.documentElement.scrollWidth - window.innerWidth") <= 0
        plots = page.evaluate(PLACES, "canvas")
        assert min(plot["top"] for plot in plots) < height - 100, (width, plots)
        assert max(plot["right"] for plot in plots) <= width
        box = start.bounding_box()
        assert box["y"] + box["height"] <= height, (width, box)


def test_controls_are_a_drawer_on_a_phone(page: Any, explorer: str) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    opened(page, f"{explorer}/tokens")
    seed = page.get_by_label("Selected token")
    expect(seed).not_to_be_visible()
    page.get_by_role("button", name="Controls").click()
    expect(seed).to_be_visible()
    expect(page.get_by_role("button", name="Close")).to_have_attribute("aria-expanded", "true")
    page.keyboard.press("Escape")
    expect(seed).not_to_be_visible()


def test_views_are_saved_by_the_keyboard(page: Any, explorer: str) -> None:
    opened(page, f"{explorer}/tokens")
    for key in ("Enter", " "):
        page.get_by_role("button", name="SVG").focus()
        with page.expect_download() as waiting:
            page.keyboard.press(key)
        assert waiting.value.suggested_filename == "hardmax-tokens.svg"


def test_sliders_players_and_captions_are_named_as_shown(page: Any, explorer: str) -> None:
    opened(page, f"{explorer}/meanfield")
    beta = page.get_by_role("slider", name="Inverse temperature β")
    expect(beta).to_have_attribute("aria-valuetext", "30")
    opened(page, f"{explorer}/tokens")
    expect(page.get_by_role("slider", name="Layer")).to_be_visible()
    expect(page.get_by_role("button", name="Play", exact=True)).to_be_visible()
    trails = page.get_by_role("checkbox", name="Trails")
    expect(trails).to_be_checked()
    page.get_by_text("Trails", exact=True).click()
    expect(trails).not_to_be_checked()
    page.locator("summary").click()
    assert page.get_by_role("link", name="simulate", exact=True).get_attribute("target") == "_blank"
