"""Saved views: HTML with plots, numbers and words of the explorer that plays without any server, and films."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import expect

from explorers import glides, until

# What the plots of these names draw: places, ends and colours.
_DRAWN = """(names) => names.map((name) => {
  const plain = (column) => Array.from(column, (one) => typeof one === "object" ? Array.from(one) : one);
  const marks = Bokeh.documents[0].get_model_by_name(name).renderers.filter((one) => one.visible);
  const columns = ["x", "y", "t", "low", "high", "xs", "ys", "colour", "size"];
  return marks.map(({ data_source: { data } }) => columns.filter((key) => data[key]).map((key) => plain(data[key])));
})"""


# Length of a pixel in the plot of eigenvalues, along one axis; the unit circle is round where both are alike.
_ROUND = """(range, pixels) => {
  const plot = Bokeh.documents[0].get_model_by_name("eigenvalues");
  return (plot[range].end - plot[range].start) / plot[pixels];
}"""


@pytest.mark.parametrize("light", ["light", "dark"])
@pytest.mark.parametrize(
    ("address", "ready", "plots", "stage", "words"),
    [
        ("text?example=cast&layer=2", ".verdict", ["word-plane", "word-map"], "word-plane", [".because", ".sum"]),
        ("networks?example=classes&construction=fewest&beside=leaders", ".hash", ["blocks"], "blocks", [".hash"]),
        ("models?model=kuramoto&n=30&frame=20", "tr:has-text('order')", ["models"], "models", ["table"]),
        ("forecasting?system=airfoil&samples=150&steps=60&seconds=0.5&fit=1", "text=Outcome: ", ["fan"], None, []),
        ("real_model?model=random-encoder&text=a+dull+plot&layer=2", "tr[aria-current]", ["plane"], "plane", ["td"]),
    ],
)
def test_a_saved_page_shows_what_was_seen_and_plays(
    page: Any,
    explorer: str,
    shoot: Callable[..., Any],
    tmp_path: Path,
    address: str,
    ready: str,
    plots: list[str],
    stage: str | None,
    words: list[str],
    light: str,
) -> None:
    page.goto(f"{explorer}/{address}&theme={light}")
    page.locator(ready).first.wait_for()
    until(
        page, f"Bokeh.documents[0].get_model_by_name('{plots[0]}').renderers.length > 0 && Bokeh.documents[0].is_idle"
    )
    page.wait_for_timeout(500)  # ranges and names of words follow the width of their plots
    seen, said = page.evaluate(_DRAWN, plots), [page.locator(one).first.text_content() for one in words]
    with page.expect_download() as waiting:
        page.get_by_role("button", name="HTML", exact=True).click()
    waiting.value.save_as(tmp_path / "saved.html")
    saved, trouble = page.context.new_page(), []  # not watched: a file is no address of the explorer
    saved.on("console", lambda message: trouble.append(message.text) if message.type == "error" else None)
    saved.on("pageerror", lambda error: trouble.append(str(error)))
    inside = ("file:", "data:", "blob:")
    saved.on("request", lambda request: None if request.url.startswith(inside) else trouble.append(request.url))
    saved.goto((tmp_path / "saved.html").as_uri())
    until(saved, "Bokeh.documents[0].is_idle")
    assert saved.evaluate("document.documentElement.dataset.theme") == light
    assert saved.evaluate(_DRAWN, plots) == seen
    assert [saved.locator(one).first.text_content() for one in words] == said
    expect(saved.locator("img")).to_have_count(0)
    shoot(saved, f"saved-{address.partition('?')[0]}-{light}")
    if stage is not None:
        moment = saved.locator(".moment")
        before = moment.inner_text()
        expect(saved.get_by_text(f"the moment that was saved: {before}.")).to_be_visible()
        assert glides(saved, stage)
        saved.get_by_role("button", name="To the end").click()
        expect(moment).not_to_have_text(before)
    else:
        shares = f"[({_ROUND})('x_range', 'inner_width'), ({_ROUND})('y_range', 'inner_height')]"
        until(saved, f"(([wide, high]) => Math.abs(wide / high - 1) < 0.02)({shares})")
    saved.set_viewport_size({"width": 390, "height": 844})
    until(saved, "document.documentElement.scrollWidth <= window.innerWidth")
    saved.close()
    assert trouble == []


@pytest.mark.parametrize(
    ("address", "ready"),
    [
        ("text?text=a+wonderful+film", ".verdict"),
        ("networks?example=swap&construction=fewest", ".hash"),
        ("models?model=kuramoto&n=12", "tr:has-text('order')"),
        ("real_model?model=random-encoder&text=a+dull+plot", "tr[aria-current]"),
    ],
)
def test_films_and_pictures_have_the_colours_of_the_page(
    page: Any, explorer: str, tmp_path: Path, address: str, ready: str
) -> None:
    page.goto(f"{explorer}/{address}&theme=dark")
    page.locator(ready).first.wait_for()
    until(page, "hardmaxStages.stages.size > 0 && Bokeh.documents[0].is_idle")
    colours = set(page.evaluate("Array.from(hardmaxStages.stages.values().next().value.parts[0].data.colour)"))
    with page.expect_download(timeout=120_000) as waiting:  # every frame is drawn
        page.get_by_role("button", name="GIF", exact=True).click()
    waiting.value.save_as(tmp_path / "film.gif")
    with Image.open(tmp_path / "film.gif") as film:
        assert film.n_frames > 5
        frames = []
        for number in (0, film.n_frames - 1):
            film.seek(number)
            frames.append(np.asarray(film.convert("RGB")).astype(int))
    assert np.abs(frames[0] - frames[1]).max() > 100  # tokens have moved
    for colour in colours:
        wanted = [int(colour[k : k + 2], 16) for k in (1, 3, 5)]
        assert np.abs(frames[0] - wanted).max(axis=2).min() < 40, colour  # marks may be a little transparent
    assert frames[0][3, 3].max() < 60  # the card of the dark theme
