"""What is true of every page: it stays on this machine, has two lights and lets others work."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from playwright.sync_api import expect

from explorers import until
from hardmax.app.server import load_page, slugs


def test_the_first_page_leads_to_all_others(page: Any, explorer: str, shoot: Callable[..., Any]) -> None:
    page.goto(explorer)
    expect(page.get_by_role("heading", level=1)).to_have_text("Tokens are points, layers are time")
    shoot(page, "home")
    page.keyboard.press("Tab")
    expect(page.get_by_text("Skip to the page")).to_be_focused()
    for slug in slugs():
        title = load_page(slug).title
        expect(page.get_by_role("navigation").get_by_role("link", name=title)).to_have_attribute("href", f"./{slug}")
    page.get_by_role("navigation").get_by_role("link", name="Tokens").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Tokens")
    page.get_by_text("What is shown here").click()
    with page.expect_popup() as waiting:  # a tab of its own, so that nothing on the page is lost
        page.get_by_role("link", name="simulate", exact=True).click()
    expect(waiting.value.get_by_role("heading", level=1)).to_have_text("hardmax.simulate")
    waiting.value.close()


def test_the_light_is_remembered(page: Any, explorer: str) -> None:
    page.goto(f"{explorer}/tokens")
    page.get_by_role("button", name="Dark").click()
    plot = "Bokeh.documents[0].get_model_by_name('plane').below[0].major_label_text_color"
    until(page, f"{plot} === '#a3b0bb'")
    page.goto(explorer)
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.get_by_role("button", name="Dark").click()
    until(page, "document.documentElement.dataset.theme === 'light'")


def test_long_work_on_one_page_does_not_stop_another(page: Any, visitor: Any, explorer: str) -> None:
    page.goto(f"{explorer}/meanfield?d=3&n=2000&time=40")
    expect(page.get_by_role("button", name="Cancel")).to_be_visible()
    other = visitor.new_page()
    other.goto(f"{explorer}/tokens")
    expect(other.locator("table")).to_contain_text("leader")
    other.get_by_role("button", name="Jump to the limit").click()
    expect(other.get_by_text("Infinite depth", exact=True)).to_be_visible()
    expect(page.get_by_role("button", name="Cancel")).to_be_visible()  # the work still went on
    other.close()


def test_a_style_sheet_from_the_network_is_taken_from_here(page: Any, explorer: str) -> None:
    page.goto(explorer)
    add = """() => {
      const link = document.createElement("link");
      link.rel = "stylesheet";
      link.setAttribute("href", "https://cdn.holoviz.org/panel/1.0/dist/css/loading.css");
      document.head.append(link);
      return link.href;
    }"""
    assert page.evaluate(add) == f"{explorer}/static/extensions/panel/css/loading.css"


def test_the_page_itself_forbids_requests_to_elsewhere(visitor: Any, explorer: str) -> None:
    page = visitor.new_page()  # not watched: the refusal is an error on its console
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.goto(explorer)
    page.evaluate("fetch('https://example.org/').catch(() => null)")
    page.close()
    assert any("violates the following Content Security Policy" in words for words in said)


def test_views_are_saved(page: Any, explorer: str) -> None:
    page.goto(f"{explorer}/tokens")
    for kind, start in (("PNG", b"\x89PNG"), ("SVG", b"<?xml"), ("HTML", b"<!doctype html>")):
        with page.expect_download() as waiting:
            page.get_by_role("button", name=kind).click()
        assert waiting.value.suggested_filename == f"hardmax-tokens.{kind.lower()}"
        with open(waiting.value.path(), "rb") as file:
            assert file.read(20).startswith(start)


def test_a_hostile_address_is_a_page_like_any_other(page: Any, explorer: str) -> None:
    page.goto(f"{explorer}/tokens?alpha=nan&n=1e99&start=<script>alert(1)</script>&tokens=1,nan_2&selected=zz")
    expect(page.locator("table")).to_contain_text("leader")
