"""What a person does on the Real model page, with the random control that is always there."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from playwright.sync_api import expect

from explorers import glides


def test_a_text_by_keyboard_colder_and_on_a_phone(page: Any, explorer: str, shoot: Callable[..., Any]) -> None:
    page.goto(f"{explorer}/real_model?model=random-encoder&text=a+dull+plot")
    picture = page.get_by_role("img", name="Layer 0, head 0.")
    expect(picture).to_be_visible()
    expect(picture.locator("line")).to_have_count(3)
    assert glides(page, "plane")
    page.locator("input[type=range]").first.press("Home")
    expect(picture).to_be_visible()
    page.locator("input[type=range]").first.press("ArrowRight")
    expect(page.get_by_role("img", name="Layer 1, head 0.")).to_be_visible()
    page.get_by_label("Head", exact=True).select_option("5")
    expect(page.get_by_role("img", name="Layer 1, head 5.")).to_be_visible()
    expect(page.locator("tr[aria-current]").locator("td").first).to_have_text("5")
    page.locator(".noUi-handle").first.press("End")
    expect(page.locator("tr", has_text="hardmax")).to_be_visible()
    expect(page).to_have_url(re.compile("factor=hardmax"))

    # A text that is too long is a message, and the page can still be used.
    area = page.get_by_label("Your text")
    area.fill("word " * 401)
    page.get_by_role("button", name="Run the model").click()
    expect(page.get_by_role("alert")).to_contain_text("2,005 characters")
    area.fill("<b>two</b> words")
    page.get_by_role("button", name="Run the model").click()
    expect(page.get_by_role("alert")).to_have_count(0)
    expect(page.get_by_role("img", name="Layer 1, head 5.").locator("line")).to_have_count(9)
    page.get_by_role("button", name="Show the Python code").click()
    expect(page.locator("pre.code")).to_contain_text("hm.models.attention_targets(changed, ids)")

    page.get_by_text("Replace every head alone").click()  # not the slow part
    page.get_by_role("button", name="Probe this text").click()
    expect(page.locator("li", has_text="Hypotheses")).to_be_visible()
    with page.expect_download() as waiting:
        page.get_by_text("Download the report (JSON)").click()
    assert json.loads(waiting.value.path().read_bytes())["tokens"] == 9

    page.set_viewport_size({"width": 390, "height": 800})
    expect(page.get_by_text("Heads of this layer")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    shoot(page, "real-model-phone")


def test_undo_of_a_text_and_of_a_head(page: Any, explorer: str) -> None:
    page.goto(f"{explorer}/real_model?model=random-encoder&text=a+dull+plot")
    expect(page.get_by_role("img", name="Layer 0, head 0.").locator("line")).to_have_count(3)
    page.get_by_label("Head", exact=True).select_option("5")
    expect(page.get_by_role("img", name="Layer 0, head 5.")).to_be_visible()
    area = page.get_by_label("Your text")
    area.fill("two words")
    page.get_by_role("button", name="Run the model").click()
    expect(page.get_by_role("img", name="Layer 0, head 5.").locator("line")).to_have_count(2)
    page.locator("body").press("Control+z")
    expect(area).to_have_value("a dull plot")
    expect(page.get_by_role("img", name="Layer 0, head 5.").locator("line")).to_have_count(3)
    expect(page).to_have_url(re.compile("head=5&text=a.dull.plot"))
    page.locator("body").press("Control+z")
    expect(page.get_by_role("img", name="Layer 0, head 0.")).to_be_visible()
    expect(page.get_by_label("Head", exact=True)).to_have_value("0")
    page.get_by_role("button", name="Redo").click()
    page.get_by_role("button", name="Redo").click()
    expect(area).to_have_value("two words")
    expect(page.get_by_role("img", name="Layer 0, head 5.").locator("line")).to_have_count(2)
    # A slider that is released, undone and released at the same place is heard both times.
    warmer = page.locator(".noUi-handle").first
    for _ in range(2):
        warmer.focus()
        warmer.press("ArrowRight")
        expect(page).to_have_url(re.compile("factor="))
        page.get_by_role("button", name="Undo").click()
        expect(page).not_to_have_url(re.compile("factor="))
    page.get_by_role("button", name="Reset").click()
    expect(page).to_have_url(re.compile(r"/real_model\??$"))
    expect(page.get_by_label("Head", exact=True)).to_have_value("0")
    expect(area).not_to_have_value("two words")
    page.get_by_role("button", name="Undo").click()
    expect(area).to_have_value("two words")
