"""The first minute of a new visitor: the gallery, a tour by the keyboard, and words that explain themselves."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from playwright.sync_api import expect

from explorers import until
from hardmax.app.guide import GLOSSARY, TOURS
from hardmax.app.home.gallery import EXAMPLES


def test_the_gallery_and_a_tour_by_the_keyboard(page: Any, explorer: str, shoot: Callable[..., Any]) -> None:
    page.goto(explorer)
    cards = page.locator("a.example")
    expect(cards).to_have_count(len(EXAMPLES))
    for width, height in ((1440, 900), (1024, 768), (390, 844)):
        page.set_viewport_size({"width": width, "height": height})
        expect(cards.first).to_be_in_viewport(ratio=0.9)
        assert page.evaluate("document.documentElement.scrollWidth - window.innerWidth") <= 0
        shoot(page, f"home-{width}")
    assert all(cards.locator("img").evaluate_all("all => all.map((one) => one.complete && one.naturalWidth > 0)"))
    page.evaluate("localStorage.clear()")
    page.reload()
    button, box = page.locator("#tour"), page.locator("#tour-box")
    expect(button).to_have_text("New here? A tour in five steps")
    expect(box).to_have_count(0)  # it is never in the way
    expect(cards).to_have_count(len(EXAMPLES))
    button.focus()
    page.keyboard.press("Enter")
    for number, (_, words) in enumerate(TOURS[""], start=1):
        expect(box).to_contain_text(f"Step {number} of 5")
        expect(box).to_contain_text(words)
        expect(box).to_be_in_viewport(ratio=0.99)
        expect(page.locator("#tour-ring")).to_be_visible()
        page.keyboard.press("ArrowRight" if number % 2 else "Enter")
    expect(box).to_have_count(0)
    expect(button).to_be_focused()
    expect(button).to_have_text("Tour")  # it is remembered
    page.keyboard.press("Enter")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowLeft")
    expect(box).to_contain_text("Step 1 of 5")
    page.keyboard.press("Escape")
    expect(box).to_have_count(0)
    page.get_by_role("link", name="Two reviews side by side").click()
    expect(page.locator(".verdict")).to_have_count(2)
    expect(page.locator(".verdict").first).to_contain_text("positive")
    expect(page.locator(".verdict").last).to_contain_text("negative")


def test_terms_explain_themselves(page: Any, explorer: str) -> None:
    page.goto(f"{explorer}/networks?example=swap")
    expect(page.get_by_text("✓ Proved")).to_be_visible()
    tip = page.locator("#glossary")
    bound = page.locator("dfn.term[data-term='published bound']")
    expect(bound).to_have_count(1)  # once on a page
    bound.hover()
    expect(tip).to_have_text(GLOSSARY["published bound"])
    page.mouse.move(0, 0)
    expect(tip).to_be_hidden()
    bound.focus()
    expect(tip).to_be_visible()
    page.keyboard.press("Escape")
    expect(tip).to_be_hidden()
    assert bound.get_attribute("aria-label") == f"published bound: {GLOSSARY['published bound']}"
    assert re.search("published bound", page.get_by_role("heading", name="Number of blocks").inner_text())


_PARTS = """() => {
  const count = (root) => [...root.querySelectorAll("*")].reduce(
    (sum, one) => sum + one.childNodes.length + (one.shadowRoot ? count(one.shadowRoot) : 0), 0);
  return count(document);
}"""


def test_a_page_at_rest_does_not_grow(page: Any, explorer: str) -> None:
    page.goto(f"{explorer}/tokens")
    until(page, "document.querySelectorAll('.term').length > 0 && Bokeh.documents[0].is_idle")
    expect(page.locator("table")).to_contain_text("leader")
    frames = "async () => { for (let k = 0; k < 40; k++) { await new Promise(requestAnimationFrame); } }"
    page.evaluate(frames)
    parts = page.evaluate(_PARTS)
    page.evaluate(frames)
    assert page.evaluate(_PARTS) == parts  # looking for words to explain has changed nothing once they are found
