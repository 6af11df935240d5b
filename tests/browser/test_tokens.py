"""What a person does on the Tokens page."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from playwright.sync_api import expect

# Where a point of the plane is on the screen.
_PLACE = """([x, y]) => {
  const plot = Bokeh.documents[0].get_model_by_name("plane");
  const find = (view) => view.model === plot ? view
    : (view.child_views || []).map(find).find((found) => found != null);
  const view = Object.values(Bokeh.index.roots).map(find).find((found) => found != null);
  const box = view.el.getBoundingClientRect();
  return [box.x + view.frame.x_scale.compute(x), box.y + view.frame.y_scale.compute(y)];
}"""


def open_tokens(page: Any, explorer: str, query: str = "") -> None:
    page.goto(f"{explorer}/tokens{query}")
    expect(page.locator("table")).to_contain_text("leader")
    page.wait_for_function("Bokeh.documents[0].get_model_by_name('plane').inner_width > 0")


def place(page: Any, x: float, y: float) -> tuple[float, float]:
    left, top = page.evaluate(_PLACE, [x, y])
    return left, top


def drag(page: Any, start: tuple[float, float], end: tuple[float, float]) -> None:
    here, there = place(page, *start), place(page, *end)
    page.mouse.move(*here)
    page.mouse.down()
    for k in range(1, 9):
        page.mouse.move(*(a + (b - a) * k / 8 for a, b in zip(here, there, strict=True)))
    page.wait_for_timeout(100)


def leaders(page: Any) -> set[int]:
    rows = page.locator("table tr").all_inner_texts()[1:]
    return {int(row.split()[0]) for row in rows}


def test_dragging_a_token_makes_it_a_leader(page: Any, explorer: str, shoot: Callable[..., Any]) -> None:
    open_tokens(page, explorer)
    assert leaders(page) == {0, 1, 2, 3, 4}
    shoot(page, "tokens")
    drag(page, (0.5, 0.2), (3.4, 2.4))
    # Still held: the words change while dragging, the table and the address at the drop.
    shown = "Bokeh.documents[0].get_model_by_name('plane').renderers.flatMap(r => r.data_source.data.shape || [])"
    page.wait_for_function(f"{shown}[23] === 'star'")
    page.mouse.up()
    expect(page.locator("table")).to_contain_text("23")
    assert 0 not in leaders(page)  # the one it overtook
    expect(page).to_have_url(re.compile("selected=23&tokens="))
    page.reload()
    expect(page.locator("table")).to_contain_text("23")


def test_adding_selecting_and_deleting(page: Any, explorer: str, shoot: Callable[..., Any]) -> None:
    open_tokens(page, explorer)
    words = page.get_by_text(re.compile(r"At layer 0, \d+ tokens"))
    page.mouse.dblclick(*place(page, -3.0, -1.0))
    expect(words).to_contain_text("25 tokens. 6 leaders")
    page.mouse.click(*place(page, 0.5, 0.2))
    expect(page).to_have_url(re.compile("selected=23&"))
    shoot(page, "tokens-half-space")
    page.get_by_role("button", name="Delete the selected token").click()
    expect(words).to_contain_text("24 tokens")


def test_the_ellipse_turns_by_hand(page: Any, explorer: str) -> None:
    open_tokens(page, explorer)
    drag(page, (1.0, 0.0), (0.0, 2.0))
    page.mouse.up()
    expect(page).to_have_url(re.compile("a=2"))
    assert re.search(r"angle=-?90", page.url)


def test_layers_limit_space_and_code(page: Any, explorer: str, shoot: Callable[..., Any]) -> None:
    open_tokens(page, explorer, "?start=late-leader&layer=3")
    expect(page.get_by_text("At layer 3")).to_be_visible()
    page.get_by_role("button", name="Jump to the limit").click()
    expect(page.get_by_text("At infinite depth")).to_be_visible()
    page.get_by_role("button", name="Show the Python code").click()
    expect(page.locator("pre.code")).to_contain_text("hm.equilibrium(tokens, layer)")
    shoot(page, "tokens-limit")
    page.get_by_role("button", name="Space").click()
    expect(page.locator(".js-plotly-plot")).to_be_visible()
    expect(page.get_by_text("3-dimensional polytope")).to_be_visible()
    page.wait_for_timeout(500)
    shoot(page, "tokens-space")


def test_a_hundred_thousand_tokens_and_the_dark(page: Any, explorer: str, shoot: Callable[..., Any]) -> None:
    open_tokens(page, explorer, "?start=gaussian&n=100000&theme=dark")
    expect(page.get_by_text("of 100,000 tokens are drawn")).to_be_visible()
    shoot(page, "tokens-many-dark")
    page.get_by_role("button", name="softmax").click()
    expect(page.locator(".message")).to_contain_text("must be at most 2,000 for softmax")


def test_everything_can_be_reached_by_the_keyboard(page: Any, explorer: str) -> None:
    open_tokens(page, explorer)
    page.get_by_label("Selected token").fill("23")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("selected=23"))
    page.get_by_label("Its first coordinate").fill("5")
    page.keyboard.press("Enter")
    expect(page.locator("table")).to_contain_text("23")
    page.get_by_role("button", name="softmax").focus()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("attention=softmax"))
