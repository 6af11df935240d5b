"""What a person does on the Mean field page."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import expect

from explorers import until
from visits import run_names


def found(page: Any, name: str) -> float:
    """The found value in one row of the table."""
    cells = page.locator("tr", has_text=name).locator("td").all_inner_texts()
    return float(cells[1].split()[0])


def wait_until_done(page: Any) -> None:
    expect(page.locator("tr", has_text="escape at t")).to_be_visible()
    expect(page.locator(".bar")).to_be_hidden()


def test_beta_moves_the_phases(page: Any, explorer: str, shoot: Callable[..., Any], tmp_path: Path) -> None:
    page.goto(f"{explorer}/meanfield?n=200&beta=10")
    wait_until_done(page)
    before = found(page, "escape at t")
    handle = page.locator(".noUi-handle").nth(2)  # tokens, tilt, beta
    handle.focus()
    page.keyboard.press("ArrowRight")
    expect(page).to_have_url(re.compile("beta=20"))
    wait_until_done(page)
    expect(page.locator("tr", has_text="escape at t").locator("td").nth(1)).not_to_have_text(f"{before:.4g}")
    wait_until_done(page)
    # Tokens stay at the limit for a time of order log beta.
    assert found(page, "escape at t") > before + 0.3
    shoot(page, "meanfield")
    page.get_by_role("button", name="Undo").click()
    expect(page).to_have_url(re.compile("beta=10"))
    wait_until_done(page)
    expect(page.locator("tr", has_text="escape at t").locator("td").nth(1)).to_have_text(f"{before:.4g}")
    # The code on the page gives the figures of the table, and the tokens in single precision.
    page.get_by_role("button", name="Show the Python code").click()
    names = run_names(page.locator("pre.code").inner_text(), tmp_path)
    for name, value, error, expected in names["found"].rows():
        row = page.locator("tr", has_text=name.replace("W2", "W₂"))
        cells = row.first.locator("td").all_inner_texts()
        shown = "–" if value is None else f"{value:.4g}" + ("" if error is None else f" ± {error:.1g}")
        assert cells[1:] == [shown, "–" if expected is None else f"{expected:.4g}"], name
    moment = page.evaluate("hardmaxPlayer.latest.t")
    x = page.evaluate("Array.from(hardmaxStages.stages.get('circle').tokens.data.x)")
    assert np.allclose(x, names["run"].tokens[moment][:, 0], rtol=2**-23, atol=1e-9)
    # Played in the browser: the line of the time moves along, and the address of the page is what it was.
    page.get_by_role("button", name="To the beginning").click()
    page.locator("body").press(" ")
    until(page, "hardmaxPlayer.latest.t > 5")
    assert page.evaluate("Array.from(hardmaxStages.stages.get('circle').tokens.data.x)") != x
    here = "hardmaxStages.stages.get('circle').here.location"
    assert 0.3 < page.evaluate(here) < 12
    with page.expect_download() as waiting:
        page.get_by_role("button", name="HTML").click()
    assert b"hardmaxPlayer.attach" in Path(waiting.value.path()).read_bytes()
    waiting.value.save_as(tmp_path / "saved.html")
    saved = page.context.new_page()  # not watched: a file is no address of the explorer
    saved.set_viewport_size({"width": 390, "height": 844})
    saved.goto((tmp_path / "saved.html").as_uri())
    until(saved, "Bokeh.documents[0].is_idle")
    # On a phone the plots are one below the other, so that nothing is cut, and the player is in sight.
    until(saved, "document.querySelectorAll('.row > * > *').length === 2")
    assert (
        saved.evaluate("Math.min(...Array.from(document.querySelectorAll('.row > * > *'), (p) => p.offsetWidth))") > 300
    )
    assert saved.evaluate("document.documentElement.scrollWidth <= innerWidth")
    play = saved.get_by_role("button", name="Play", exact=True).bounding_box()
    assert play["y"] + play["height"] <= 844
    shoot(saved, "meanfield-saved-phone", whole=False)
    saved.close()


def test_undo_redo_and_reset_show_the_run_and_its_controls(page: Any, explorer: str) -> None:
    page.goto(f"{explorer}/meanfield?n=200&beta=10")
    wait_until_done(page)
    escape = page.locator("tr", has_text="escape at t").locator("td").nth(1)
    undo, redo = page.get_by_role("button", name="Undo"), page.get_by_role("button", name="Redo")
    label = page.locator(".bk-Div.captioned")
    before = escape.inner_text()
    expect(undo).to_be_disabled()
    expect(redo).to_be_disabled()
    page.locator(".noUi-handle").nth(2).focus()  # tokens, tilt, beta
    page.keyboard.press("ArrowRight")
    expect(page).to_have_url(re.compile("beta=20"))
    expect(escape).not_to_have_text(before)
    wait_until_done(page)
    after = escape.inner_text()

    def shows(beta: int, value: str) -> None:
        expect(page).to_have_url(re.compile(f"beta={beta}(&|$)"))
        wait_until_done(page)
        expect(escape).to_have_text(value)
        expect(label).to_contain_text(f"β: {beta}")

    undo.click()
    shows(10, before)
    expect(undo).to_be_disabled()
    redo.click()
    shows(20, after)
    expect(redo).to_be_disabled()
    page.locator("body").press("Control+z")
    shows(10, before)
    # A slider that is moved to where it was before the undo says so again.
    page.locator(".noUi-handle").nth(2).focus()
    page.keyboard.press("ArrowRight")
    shows(20, after)
    page.get_by_role("button", name="Sphere").click()
    until(page, "hardmaxStages.stages.has('sphere') && hardmaxStages.stages.get('sphere').tokens.data.x.length === 200")
    wait_until_done(page)
    page.get_by_role("button", name="Reset").click()
    expect(page).to_have_url(re.compile(r"/meanfield\??$"))
    wait_until_done(page)
    until(page, "hardmaxStages.stages.get('circle').tokens.data.x.length === 400")
    expect(label).to_contain_text("β: 30")
    expect(page.locator(".noUi-handle").first).to_have_attribute("aria-valuenow", "400.0")
    undo.click()
    expect(page).to_have_url(re.compile("d=3.*n=200.*beta=20"))
    wait_until_done(page)
    until(page, "hardmaxStages.stages.get('sphere').tokens.data.x.length === 200")


def test_the_sphere_in_the_dark_and_a_run_that_is_cancelled(
    page: Any, explorer: str, shoot: Callable[..., Any]
) -> None:
    page.goto(f"{explorer}/meanfield?d=3&n=150&b1=2.5&theme=dark")
    wait_until_done(page)
    until(page, "hardmaxStages.stages.get('sphere').tokens.data.x.length === 150")
    shoot(page, "meanfield-sphere-dark")
    page.goto(f"{explorer}/meanfield?n=2000&time=40&beta=500")
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator(".bar")).to_be_hidden()
