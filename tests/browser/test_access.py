"""For everyone: names for assistive technology, the keyboard, and controls on a phone."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import expect


def opened(page: Any, address: str) -> None:
    page.goto(address)
    expect(page.get_by_role("button", name="Show the Python code")).to_be_visible()
    page.locator("canvas").first.wait_for()


def test_controls_are_a_drawer_on_a_phone(page: Any, explorer: str) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    opened(page, f"{explorer}/tokens")
    seed = page.get_by_label("Selected token")
    expect(seed).not_to_be_visible()
    caption = page.get_by_role("heading", name="Attention")
    expect(caption).to_have_count(0)  # texts, too, are no part of the page while the drawer is closed
    page.get_by_role("button", name="Controls").click()
    expect(seed).to_be_visible()
    expect(caption).to_be_visible()
    expect(page.get_by_role("button", name="Close")).to_have_attribute("aria-expanded", "true")
    page.keyboard.press("Escape")
    expect(seed).not_to_be_visible()


def test_what_is_asked_for_is_in_sight_on_a_phone(page: Any, explorer: str) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    opened(page, f"{explorer}/tokens")
    expect(page.locator("table")).to_contain_text("leader")
    # The tools are at the end of the page, and so is the code; the words of the pressed button stay inside it.
    code = page.get_by_role("button", name="Show the Python code")
    code.scroll_into_view_if_needed()
    code.click()
    expect(page.locator("pre.code")).to_be_in_viewport()
    expect(code).to_have_attribute("aria-pressed", "true")
    assert code.evaluate("one => one.scrollWidth <= one.clientWidth")
    # A message is in sight wherever the page was scrolled to.
    page.evaluate("window.scrollTo(0, document.body.scrollHeight)")
    file = {"name": "words.csv", "mimeType": "text/csv", "buffer": b"a,b\nx,y\n"}
    page.get_by_label("Or upload a CSV").set_input_files(file)
    expect(page.locator(".message.error")).to_contain_text("not a number")
    expect(page.locator(".message.error")).to_be_in_viewport(ratio=1)


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
    softmax, hardmax = (page.get_by_role("button", name=name, exact=True) for name in ("softmax", "hardmax"))
    expect(hardmax).to_have_attribute("aria-pressed", "true")
    softmax.click()
    expect(softmax).to_have_attribute("aria-pressed", "true")
    expect(hardmax).to_have_attribute("aria-pressed", "false")
    expect(page.get_by_role("button", name="Dark")).to_have_attribute("aria-pressed", "false")
    expect(page.get_by_role("img", name="Plot: Tokens").first).to_be_visible()
    opened(page, f"{explorer}/text?text=a+wonderful+film")
    for title in ("Words move towards their leaders", "What each leader contributes", "The map of words"):
        expect(page.get_by_role("img", name=f"Plot: {title}")).to_have_count(1)
    opened(page, f"{explorer}/tokens")
    page.locator("summary").click()
    assert page.get_by_role("link", name="simulate", exact=True).get_attribute("target") == "_blank"
