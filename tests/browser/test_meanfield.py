"""What a person does on the Mean field page."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from playwright.sync_api import expect


def found(page: Any, name: str) -> float:
    """The found value in one row of the table."""
    cells = page.locator("tr", has_text=name).locator("td").all_inner_texts()
    return float(cells[1].split()[0])


def wait_until_done(page: Any) -> None:
    expect(page.locator("tr", has_text="escape at t")).to_be_visible()
    expect(page.locator(".bar")).to_be_hidden()


def test_beta_moves_the_phases(page: Any, explorer: str, shoot: Callable[..., Any]) -> None:
    page.goto(f"{explorer}/meanfield?n=200&beta=10")
    wait_until_done(page)
    before = found(page, "escape at t")
    handle = page.locator(".noUi-handle").nth(2)  # tokens, tilt, beta
    handle.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(page).to_have_url(re.compile("beta=30|(?!.*beta=)n=200"))
    wait_until_done(page)
    expect(page.locator("tr", has_text="escape at t").locator("td").nth(1)).not_to_have_text(f"{before:.4g}")
    wait_until_done(page)
    # Tokens stay at the limit for a time of order log beta.
    assert found(page, "escape at t") > before + 0.5
    shoot(page, "meanfield")


def test_the_sphere_in_the_dark_and_a_run_that_is_cancelled(
    page: Any, explorer: str, shoot: Callable[..., Any]
) -> None:
    page.goto(f"{explorer}/meanfield?d=3&n=150&b1=2.5&theme=dark")
    wait_until_done(page)
    expect(page.locator(".js-plotly-plot")).to_be_visible()
    page.wait_for_timeout(1000)
    shoot(page, "meanfield-sphere-dark")
    page.goto(f"{explorer}/meanfield?n=2000&time=40&beta=500")
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator(".bar")).to_be_hidden()
