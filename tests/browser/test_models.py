"""What a person does on the Models page."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from playwright.sync_api import expect

from explorers import glides


def measured(page: Any, name: str) -> str:
    """The measured value in one row of the table."""
    return page.locator("tr", has_text=name).locator("td").nth(1).inner_text()


def test_a_model_by_keyboard_with_a_mistake_and_on_a_phone(page: Any, explorer: str, shoot: Callable[..., Any]) -> None:
    page.goto(f"{explorer}/models?model=rank_collapse")
    expect(page.locator("tr", has_text="exponent")).to_contain_text("3")
    expect(page.locator("svg[role=img]").first).to_be_visible()
    before = measured(page, "residual")
    page.locator(".noUi-handle").first.focus()  # the inverse temperature
    page.keyboard.press("ArrowRight")
    expect(page).to_have_url(re.compile("beta=1.1"))
    expect(page.locator("tr", has_text="residual").locator("td").nth(1)).not_to_have_text(before)

    # A mistake: tokens come in pairs. It is a message, and the page can still be used.
    tokens = page.get_by_label("Number of tokens")
    tokens.fill("21")
    tokens.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("must be even")
    tokens.fill("22")
    tokens.press("Enter")
    expect(page.get_by_role("alert")).to_have_count(0)
    expect(page).to_have_url(re.compile("n=22"))

    page.get_by_label("Model", exact=True).select_option(label="Frank–Wolfe steps")
    expect(page.locator("tr", has_text="contraction")).to_contain_text("0.666667")
    page.locator("input[type=range]").press("End")
    expect(page.locator(".moment")).to_have_text("Layer 30")
    expect(page).to_have_url(re.compile("frame=40"))
    assert glides(page, "models")
    page.get_by_role("button", name="Show the Python code").click()
    expect(page.locator("pre.code")).to_contain_text("hm.zoo.frank_wolfe(alpha=0.5, sign=-1, n=40, d=2)")

    page.set_viewport_size({"width": 390, "height": 800})
    page.goto(f"{explorer}/models?model=kuramoto&n=100")
    expect(page.locator("tr", has_text="order")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    shoot(page, "models-phone")


def test_undo_of_parameters_and_of_the_model(page: Any, explorer: str) -> None:
    page.goto(f"{explorer}/models?model=rank_collapse")
    expect(page.locator("tr", has_text="exponent")).to_contain_text("3")
    before, residual = measured(page, "residual"), page.locator("tr", has_text="residual").locator("td").nth(1)
    slider = page.locator(".noUi-handle").first  # the inverse temperature
    slider.press("ArrowRight")
    expect(page).to_have_url(re.compile("beta=1.1"))
    expect(residual).not_to_have_text(before)
    after = residual.inner_text()
    seed = page.get_by_label("Seed")
    seed.fill("3")
    seed.press("Enter")
    expect(page).to_have_url(re.compile("seed=3"))
    page.get_by_label("Model", exact=True).select_option(label="Frank–Wolfe steps")
    expect(page.locator("tr", has_text="contraction")).to_contain_text("0.666667")
    page.get_by_label("Model", exact=True).press("Control+z")
    expect(page.get_by_label("Model", exact=True)).to_have_value("Rank collapse")
    expect(page).to_have_url(re.compile("model=rank_collapse&beta=1.1&seed=3"))
    expect(page.locator("tr", has_text="contraction")).to_have_count(0)
    page.locator("body").press("Control+z")
    expect(seed).to_have_value("0")
    expect(residual).to_have_text(after)
    page.get_by_role("button", name="Undo").click()
    expect(residual).to_have_text(before)
    expect(page).to_have_url(re.compile("model=rank_collapse$"))
    expect(page.locator(".noUi-handle").first).to_have_attribute("aria-valuenow", "1.0")
    expect(page.get_by_role("button", name="Undo")).to_be_disabled()
    page.locator("body").press("Control+Shift+z")
    expect(residual).to_have_text(after)
    expect(page.locator(".noUi-handle").first).to_have_attribute("aria-valuenow", "1.1")
    page.get_by_role("button", name="Reset").click()
    expect(page).to_have_url(re.compile(r"/models\??$"))
