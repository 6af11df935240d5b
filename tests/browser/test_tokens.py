"""What a person does on the Tokens page."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import expect

from explorers import until
from visits import run_names

# Where a point of the plane is on the screen.
_PLACE = """([x, y]) => {
  const plot = Bokeh.documents[0].get_model_by_name("plane");
  const find = (view) => view.model === plot ? view
    : (view.child_views || []).map(find).find((found) => found != null);
  const view = Object.values(Bokeh.index.roots).map(find).find((found) => found != null);
  const box = view.el.getBoundingClientRect();
  return [box.x + view.frame.x_scale.compute(x), box.y + view.frame.y_scale.compute(y)];
}"""


# The plot finds its height in some frames after it was first drawn.
_HEIGHT_FOUND = """async () => {
  const plot = Bokeh.documents[0].get_model_by_name("plane"), frame = () => new Promise(requestAnimationFrame);
  for (let same = 0, before = 0; same < 6; before = plot.inner_height) {
    await frame();
    same = plot.inner_height === before ? same + 1 : 0;
  }
}"""
SECOND = "hardmaxStages.stages.get('plane2')"


def open_tokens(page: Any, explorer: str, query: str = "") -> None:
    page.goto(f"{explorer}/tokens{query}")
    expect(page.locator("table")).to_contain_text("leader")
    until(page, "hardmaxStages.stages.has('plane') && Bokeh.documents[0].is_idle")
    page.evaluate(_HEIGHT_FOUND)


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


def test_dragging_a_token_makes_it_a_leader_and_files_show_the_same(
    page: Any, explorer: str, shoot: Callable[..., Any], tmp_path: Path
) -> None:
    open_tokens(page, explorer)
    assert leaders(page) == {0, 1, 2, 3, 4}
    shoot(page, "tokens")
    drag(page, (0.5, 0.2), (3.4, 2.4))
    # Still held: the words change while dragging, the table and the address at the drop.
    shown = "Bokeh.documents[0].get_model_by_name('plane').renderers.flatMap(r => r.data_source.data.shape || [])"
    until(page, f"{shown}[23] === 'star'")
    page.mouse.up()
    expect(page.locator("table")).to_contain_text("23")
    assert 0 not in leaders(page)  # the one it overtook
    expect(page).to_have_url(re.compile("selected=23&tokens="))
    page.reload()
    expect(page.locator("table")).to_contain_text("23")
    compare_exports(page, tmp_path)


# Tokens and hull of a plot as they are drawn.
_SHOWN = """(name) => {
  const { x, y, fill, shape } = hardmaxStages.stages.get(name).tokens.data;
  const hull = Bokeh.documents[0].get_model_by_name(name + "-hull").data;
  const pairs = (a, b) => Array.from(a, (one, k) => [one, b[k]]), stars = Array.from(shape, (one) => one === "star");
  return { tokens: pairs(x, y), fill: [...fill], stars, hull: pairs(hull.x, hull.y) };
}"""


def compare_exports(page: Any, folder: Path) -> None:
    """Check that SVG, PNG and HTML have the places and colours of all tokens, and the hull, of the page."""
    until(page, "hardmaxStages.stages.has('plane') && Bokeh.documents[0].is_idle")
    seen = page.evaluate(_SHOWN, "plane")
    assert len(set(seen["fill"])) >= 5
    assert len(seen["hull"]) == len(leaders(page)) == sum(seen["stars"])
    for kind in ("svg", "png", "html"):
        with page.expect_download() as waiting:
            page.get_by_role("button", name=kind.upper(), exact=True).click()
        waiting.value.save_as(folder / f"saved.{kind}")
    saved = page.context.new_page()  # not watched: a file is no address of the explorer
    saved.goto((folder / "saved.html").as_uri())
    until(saved, "hardmaxStages.stages.get('plane0').tokens.data.x.length > 0")
    assert saved.evaluate(_SHOWN, "plane0") == seen
    saved.close()
    # Followers are drawn first, then leaders.
    order = [k for star in (False, True) for k, leads in enumerate(seen["stars"]) if leads == star]
    dots, polygons, size = _read_svg(folder / "saved.svg")
    assert [fill for _, _, fill in dots[: len(order)]] == [seen["fill"][k].lower() for k in order]
    at, drawn = np.array(seen["tokens"])[order], np.array([dot[:2] for dot in dots[: len(order)]], dtype=float)
    scale, shift = np.array([np.polyfit(at[:, k], drawn[:, k], 1) for k in range(2)]).T
    assert np.abs(at * scale + shift - drawn).max() < 0.01
    hull = np.array(seen["hull"]) * scale + shift
    assert any(len(one) == len(hull) and np.abs(one - hull).max() < 0.01 for one in polygons)
    with Image.open(folder / "saved.png") as opened:
        picture = np.asarray(opened.convert("RGB")).astype(int)
    enlarged = np.array(picture.shape[1::-1]) / size
    for place, k in zip(drawn, order, strict=True):
        column, row = np.round(place * enlarged).astype(int)
        if seen["stars"][k]:  # a leader lies above all others
            colour = [int(seen["fill"][k][i : i + 2], 16) for i in (1, 3, 5)]
            assert np.abs(picture[row, column] - colour).max() < 12
    middle = hull.mean(axis=0)
    inside = np.array([middle + t * (corner - middle) for corner in hull for t in np.linspace(0.1, 0.9, 30)])
    column, row = np.round(inside * enlarged).astype(int).T
    shade, background = np.median(picture[row, column], axis=0), picture[3, 3]
    assert 5 < np.abs(shade - background).max() < 60  # the hull is shaded


FRAMES_PER_LAYER = 8  # of a film: 12 per second, 0.7 seconds per layer


def compare_film(page: Any, folder: Path, layer: int, plots: tuple[str, ...]) -> None:
    """Check that the film has, at this layer, every token of the page at its place and in its colour."""
    dots, _, size = _read_svg(folder / "saved.svg")
    with Image.open(folder / "film.gif") as film:
        frames = []
        for number in (0, FRAMES_PER_LAYER * layer):
            film.seek(number)
            frames.append(np.asarray(film.convert("RGB")))
        enlarged = np.array(film.size) / size
    found: list[list[bool]] = [[], []]
    for name in plots:
        seen = page.evaluate(_SHOWN, name)
        order = [k for star in (False, True) for k, leads in enumerate(seen["stars"]) if leads == star]
        own, dots = dots[: len(order)], dots[len(order) :]
        at, drawn = np.array(seen["tokens"])[order], np.array([dot[:2] for dot in own], dtype=float)
        scale, shift = np.array([np.polyfit(at[:, k], drawn[:, k], 1) for k in range(2)]).T
        assert np.abs(at * scale + shift - drawn).max() < 0.01
        for place, k in zip(drawn, order, strict=True):
            column, row = np.round(place * enlarged).astype(int)
            colour = [int(seen["fill"][k][i : i + 2], 16) for i in (1, 3, 5)]
            for frame, hits in zip(frames, found, strict=True):
                hits.append(bool((frame[row - 3 : row + 4, column - 3 : column + 4] == colour).all(axis=2).any()))
    assert all(found[1])
    assert not all(found[0])  # other places at the beginning


def _read_svg(path: Path) -> tuple[list[tuple[float, float, str]], list[np.ndarray], np.ndarray]:
    """Place and colour of every filled mark, corners of every closed shape, and the size of the picture."""
    root = ElementTree.parse(path).getroot()  # noqa: S314 (made by the explorer)
    name = "{http://www.w3.org/2000/svg}"
    dots, polygons = [], []
    for group in root.iter(f"{name}g"):
        for drawn in group.findall(f"{name}path"):
            pieces = re.findall(r"[MLC]([^MLCz]+)", drawn.get("d", ""))
            corners = np.array([piece.split()[-2:] for piece in pieces], dtype=float)
            if group.get("id", "").startswith("patch"):
                polygons.append(corners)
            fill = re.search(r"fill: (#\w{6})", drawn.get("style", ""))
            if fill and group.get("id", "").startswith("PathCollection"):
                x, y = np.unique(corners, axis=0).mean(axis=0).tolist()
                dots.append((x, y, fill.group(1)))
    return dots, polygons, np.array(root.get("viewBox", "").split()[2:], dtype=float)


def test_adding_selecting_and_deleting(page: Any, explorer: str, shoot: Callable[..., Any]) -> None:
    open_tokens(page, explorer)
    words = page.get_by_text(re.compile(r"^\d+ tokens\."))
    page.mouse.dblclick(*place(page, -3.0, -1.0))
    expect(words).to_contain_text("25 tokens. 6 leaders")
    page.mouse.click(*place(page, 0.5, 0.2))
    expect(page).to_have_url(re.compile("selected=23&"))
    shoot(page, "tokens-half-space")
    page.get_by_role("button", name="Delete the selected token").click()
    expect(words).to_contain_text("24 tokens")
    page.evaluate("window.scrollTo(0, 0)")
    drag(page, (1.0, 0.0), (0.0, 2.0))  # the end of an axis of the ellipse
    page.mouse.up()
    expect(page).to_have_url(re.compile("a=2"))
    assert re.search(r"angle=-?90", page.url)


def test_limit_space_and_the_window_of_a_preset(page: Any, explorer: str, shoot: Callable[..., Any]) -> None:
    open_tokens(page, explorer, "?start=late-leader&layer=3")
    moment = page.locator(".moment")
    expect(moment).to_have_text("Layer 3")
    expect(page.get_by_role("slider", name="Layer")).to_have_value("3")
    page.get_by_role("button", name="Jump to the limit").click()
    expect(moment).to_have_text("Infinite depth")
    shoot(page, "tokens-limit")
    ends = "Bokeh.documents[0].get_model_by_name('plane').y_range.end"
    before = page.evaluate(ends)
    page.get_by_label("Start from").select_option(label="Random: heavy tails")
    until(page, f"{ends} > 1.5 * {before}")
    farthest = "Math.max(...hardmaxStages.stages.get('plane').tokens.data.y.map(Math.abs))"
    until(page, f"{farthest} < {ends} && {farthest} > 0.3 * {ends}")
    expect(moment).to_have_text("Layer 0")
    page.get_by_role("button", name="Space", exact=True).click()
    expect(page.get_by_text("3-dimensional polytope")).to_be_visible()
    until(page, "hardmaxStages.stages.get('space').tokens.data.x.length === 200")
    seen = page.evaluate("Array.from(hardmaxStages.stages.get('space').tokens.data.x)")
    box = page.locator("canvas").first.bounding_box()
    page.mouse.move(box["x"] + 300, box["y"] + 200)
    page.mouse.down()
    page.mouse.move(box["x"] + 400, box["y"] + 220, steps=5)
    page.mouse.up()
    assert page.evaluate("Array.from(hardmaxStages.stages.get('space').tokens.data.x)") != seen  # it has turned
    shoot(page, "tokens-space")


def test_a_hundred_thousand_tokens_and_the_dark(page: Any, explorer: str, shoot: Callable[..., Any]) -> None:
    open_tokens(page, explorer, "?start=gaussian&n=100000&theme=dark")
    expect(page.get_by_text("of 100,000 tokens are drawn")).to_be_visible()
    shoot(page, "tokens-many-dark")
    page.get_by_role("button", name="softmax").click()
    expect(page.locator(".message")).to_contain_text("must be at most 2,000 for softmax")
    # The plot, its badge and the leaders are still those of hardmax.
    expect(page.locator(".dimmed")).to_have_count(2)
    expect(page).to_have_url(re.compile("attention=softmax"))
    shoot(page, "tokens-too-many", whole=False)
    page.get_by_role("button", name="PNG").click()
    expect(page.locator(".message")).to_contain_text("the plot is not of these settings")
    page.get_by_label("Number of tokens").fill("50")
    page.get_by_label("Number of tokens").press("Enter")
    expect(page.get_by_text("50 tokens. Softmax has no leaders")).to_be_visible()
    expect(page.locator(".dimmed")).to_have_count(0)
    with page.expect_download() as waiting:
        page.get_by_role("button", name="PNG").click()
    assert waiting.value.path().read_bytes().startswith(b"\x89PNG")


def test_mistakes_are_put_right_and_their_messages_go(page: Any, explorer: str) -> None:
    open_tokens(page, explorer, "?selected=24")  # of 24 tokens, numbered from 0
    selected = page.get_by_label("Selected token")
    expect(selected).to_have_value("-1")
    for typed, taken in (("9999", "23"), ("-7", "-1"), ("9999", "23"), ("9999", "23")):
        selected.fill(typed)
        selected.press("Enter")
        expect(selected).to_have_value(taken)
        expect(page).to_have_url(re.compile("selected=23" if taken == "23" else r"/tokens\?$"))
    message = page.locator(".message")
    for name, data, words in (
        ("words.csv", b"a,b\nx,y\n", "not a number"),
        ("two.csv", b"1,2\n-1,0.5\n", "2 tokens"),
        ("picture.png", b"\x89PNG", "is not a file of a kind that is read here"),
    ):
        page.get_by_label("Or upload a CSV").set_input_files({"name": name, "mimeType": "text/csv", "buffer": data})
        expect(message).to_contain_text(words)
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_text("24 tokens.")).to_be_visible()
    expect(message).to_have_count(0)  # it was about the state before


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
    badge = "Bokeh.documents[0].get_model_by_name('plane-badge').text"
    assert page.evaluate(badge) == "✗ Theorem 1.1: not for softmax"
    expect(page.get_by_text("Theorem 1.1 applies")).to_have_count(0)


# Frames in which the plot was painted, and frames of the browser, while tokens move for some milliseconds.
_RATE = """async (milliseconds) => {
  const rate = async (seen) => {
    const began = performance.now();
    let frames = 0;
    while (performance.now() - began < milliseconds) {
      await new Promise((next) => requestAnimationFrame(next));
      frames += 1;
      if (seen) { seen(); }
    }
    return frames;
  };
  const empty = await rate();
  const { tokens } = hardmaxStages.stages.get("plane");
  const moved = new Set(), between = [];
  hardmaxPlayer.latest.toggle();
  const busy = await rate(() => { moved.add(tokens.data.x[5]); between.push(hardmaxPlayer.latest.t); });
  return { empty, busy, moved: moved.size, between: between.filter((t) => t % 1 > 0).length };
}"""


def test_tokens_glide_between_layers_in_the_browser_alone(page: Any, explorer: str) -> None:
    sent: list[object] = []
    page.on("websocket", lambda socket: socket.on("framesent", lambda sent_now: sent.append(sent_now)))
    open_tokens(page, explorer, "?start=gaussian&n=200&seed=1")
    moment, slider = page.locator(".moment"), page.get_by_role("slider", name="Layer")
    page.wait_for_timeout(500)
    sent.clear()
    found = page.evaluate(_RATE, 1200)
    assert sent == []  # no message while tokens move
    # Other places in most frames; how many there are, `python -m benchmarks explorer_pages` measures.
    assert found["moved"] > 0.5 * found["busy"] > 1
    assert found["between"] > 0.5 * found["busy"]
    # Moving tokens are painted on canvases of their own, without Bokeh, whose own marks are hidden meanwhile.
    marks = "Bokeh.documents[0].get_model_by_name('plane').renderers.filter((one) => one.data_source.data.shape)"
    expect(page.locator("canvas.motion")).to_have_count(2)
    assert page.evaluate(f"{marks}.map((one) => one.visible)") == [False]
    page.keyboard.press(" ")
    expect(page.get_by_role("button", name="Play", exact=True)).to_be_visible()
    until(page, "hardmaxPlayer.latest.t % 1 === 0")
    expect(page.locator("canvas.motion")).to_have_count(0)
    assert page.evaluate(f"{marks}.map((one) => one.visible)") == [True]
    layer = int(page.evaluate("hardmaxPlayer.latest.t"))
    assert 0 <= layer <= 20
    expect(moment).to_have_text(f"Layer {layer}")
    expect(slider).to_have_value(str(layer))
    expect(page).to_have_url(re.compile(f"layer={layer}" if layer else "seed=1$"))
    page.keyboard.press("ArrowRight")
    expect(page).to_have_url(re.compile(f"layer={layer + 1}"))
    expect(moment).to_have_text(f"Layer {layer + 1}")
    slider.focus()
    page.keyboard.press("End")
    expect(moment).to_have_text("Infinite depth")
    expect(page).to_have_url(re.compile("limit=1"))
    page.get_by_role("button", name="Repeat").click()
    page.get_by_label("Speed").select_option("4")
    page.get_by_role("button", name="Play", exact=True).click()  # again from the beginning
    until(page, "hardmaxPlayer.latest.t > 0.2 && hardmaxPlayer.latest.t < 20")
    until(
        page, "window.was = Math.max(window.was || 0, hardmaxPlayer.latest.t), was > 20 && hardmaxPlayer.latest.t < 10"
    )


def test_undo_uploads_and_presets_chosen_again(page: Any, explorer: str, tmp_path: Path) -> None:
    open_tokens(page, explorer)
    start, second = page.get_by_label("Start from"), page.get_by_label("Its second coordinate")
    drag(page, (0.5, 0.2), (3.4, 2.4))
    page.mouse.up()
    expect(start).to_have_value("Your tokens")
    expect(second).to_have_value(re.compile("^2.4"))
    page.locator("body").press("Control+z")
    expect(start).not_to_have_value("Your tokens")
    expect(page.locator("table")).to_contain_text("(2.400, 0.700)")
    assert leaders(page) == {0, 1, 2, 3, 4}
    page.locator("body").press("Control+Shift+z")
    expect(start).to_have_value("Your tokens")
    start.select_option(label="Example: all end with a leader")
    expect(page).not_to_have_url(re.compile("tokens="))
    expect(page.locator("table")).to_contain_text("(2.400, 0.700)")
    points = tmp_path / "points.csv"
    points.write_text("1,2,3\n-1,0.5,2\n3,-3,1\n0.25,1,-2\n-2,-2,-2\n")
    page.locator("input[type=file]").set_input_files(points)
    expect(page.locator(".message")).to_contain_text("points.csv: 5 tokens.")
    until(page, "hardmaxStages.stages.get('space').tokens.data.x.length === 5")
    lines = [f"{0.001 * (k % 141) - 0.07},{0.002 * (k // 141) - 0.14}" for k in range(20_000)]
    points.write_text("\n".join(lines))
    page.locator("input[type=file]").set_input_files(points)
    expect(page.locator(".message")).to_contain_text("20,000 tokens.")
    expect(page.get_by_text("The link keeps your tokens: they are stored on this machine")).to_be_visible()
    expect(page).to_have_url(re.compile("kept=[0-9a-f]{40}"))
    page.reload()
    expect(page.get_by_text("20,000 tokens.")).to_be_visible()
    page.get_by_role("button", name="Reset").click()
    expect(page.get_by_text("24 tokens.")).to_be_visible()


def test_two_layers_side_by_side_and_their_files(
    page: Any, explorer: str, shoot: Callable[..., Any], tmp_path: Path
) -> None:
    open_tokens(page, explorer, "?start=broken-ties&layer=2")
    page.get_by_label("Compare with").select_option(label="Softmax at a temperature")
    until(page, "hardmaxStages.stages.has('plane2') && hardmaxStages.stages.get('plane2').tokens.data.x.length > 0")
    heading = "(name) => Bokeh.documents[0].get_model_by_name(name + '-badge').text"
    assert "softmax" in page.evaluate(heading, "plane2")
    page.wait_for_timeout(500)
    shoot(page, "tokens-compared")
    with page.expect_download() as waiting:
        page.get_by_role("button", name="HTML").click()
    waiting.value.save_as(tmp_path / "saved.html")
    with page.expect_download() as waiting:
        page.get_by_role("button", name="GIF").click()
    waiting.value.save_as(tmp_path / "film.gif")
    assert (tmp_path / "film.gif").read_bytes()[:6] == b"GIF89a"
    with page.expect_download() as waiting:
        page.get_by_role("button", name="SVG").click()
    waiting.value.save_as(tmp_path / "saved.svg")
    compare_film(page, tmp_path, 2, ("plane", "plane2"))
    seen = page.evaluate("Array.from(hardmaxStages.stages.get('plane2').tokens.data.x)")
    saved = page.context.new_page()  # not watched: a file is no address of the explorer
    asked: list[str] = []
    saved.on("request", lambda request: asked.append(request.url))
    saved.goto((tmp_path / "saved.html").as_uri())
    expect(saved.locator(".moment")).to_have_text("Layer 2")
    assert saved.evaluate("Array.from(hardmaxStages.stages.get('plane1').tokens.data.x)") == seen
    saved.get_by_role("button", name="Play", exact=True).click()
    until(saved, "hardmaxPlayer.latest.t > 2.5")
    assert saved.evaluate("Array.from(hardmaxStages.stages.get('plane1').tokens.data.x)") != seen
    assert all(url.startswith(("file:", "data:", "blob:")) for url in asked)
    saved.close()


@pytest.mark.parametrize(
    ("title", "badge"), [("The causal mask", "causal"), ("Another matrix A", "Theorem 1.1"), ("Nothing", None)]
)
def test_the_causal_mask_and_another_matrix_beside_the_first(
    page: Any, explorer: str, title: str, badge: str | None
) -> None:
    open_tokens(page, explorer, "?start=gaussian&n=30&layer=4&compare=softmax")
    until(page, f"{SECOND}.tokens.data.x.length === 30")
    page.get_by_label("Compare with").select_option(label=title)
    if badge is None:
        expect(page).not_to_have_url(re.compile("compare="))
        expect(page.get_by_role("img", name="Plot: Tokens")).to_have_count(1)
        return
    until(page, f"Bokeh.documents[0].get_model_by_name('plane2-badge').text.includes('{badge}')")
    until(page, "!Bokeh.documents[0].get_model_by_name('plane2-badge').text.includes('softmax')")
    places = "(name) => Array.from(hardmaxStages.stages.get(name).tokens.data.x)"
    assert page.evaluate(places, "plane") != page.evaluate(places, "plane2")
    page.get_by_role("button", name="To the beginning").click()
    expect(page.locator(".moment")).to_have_text("Layer 0")
    assert page.evaluate(places, "plane") == page.evaluate(places, "plane2")  # both begin at the same tokens


def test_a_finger_drags_a_token_to_where_it_is(visitor: Any, explorer: str, shoot: Callable[..., Any]) -> None:
    phone = visitor.browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    page = phone.new_page()
    open_tokens(page, explorer)
    until(page, "hardmaxStages.stages.has('plane')")
    fingers = phone.new_cdp_session(page)

    def touch(kind: str, *points: tuple[float, float]) -> None:
        fingers.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": x, "y": y} for x, y in points]})

    for scrolled, start, end in ((0, (0.5, 0.2), (1.5, 1.0)), (60, (1.5, 1.0), (-0.8, 2.4))):
        page.evaluate("y => window.scrollTo(0, y)", scrolled)
        here, there = place(page, *start), place(page, *end)
        touch("touchStart", here)
        for k in range(1, 11):
            touch("touchMove", (here[0] + (there[0] - here[0]) * k / 10, here[1] + (there[1] - here[1]) * k / 10))
            page.wait_for_timeout(20)
        touch("touchEnd")
        x, y = end
        data = "hardmaxStages.stages.get('plane').tokens.data"
        until(page, f"Math.hypot({data}.x[23] - {x}, {data}.y[23] - {y}) < 0.02")
        assert page.evaluate("window.scrollY") == scrolled
    shoot(page, "tokens-phone")
    phone.close()


def test_the_code_gives_what_is_shown(page: Any, explorer: str, tmp_path: Path) -> None:
    open_tokens(page, explorer, "?start=gaussian&n=40&layer=3&a=1.7&angle=33&compare=softmax&beta=3")
    until(page, "hardmaxStages.stages.has('plane2') && hardmaxStages.stages.get('plane2').tokens.data.x.length > 0")
    page.get_by_role("button", name="Show the Python code").click()
    expect(page.locator("pre.code")).to_contain_text("hm.simulate")
    names = run_names(page.locator("pre.code").inner_text(), tmp_path)
    for plot, run in (("plane", "run"), ("plane2", "other_run")):
        data = page.evaluate(
            f"(() => {{ const {{x, y}} = hardmaxStages.stages.get('{plot}').tokens.data;"
            " return [Array.from(x), Array.from(y)]; })()"
        )
        assert names[run].tokens[3].T.tolist() == data, plot  # to the last digit
    table = [int(row.split()[0]) for row in page.locator("table tr").all_inner_texts()[1:]]
    assert set(table) == set(names["limit"].leaders.tolist())


def test_the_film_as_mp4(page: Any, explorer: str, tmp_path: Path) -> None:
    video = pytest.importorskip("imageio_ffmpeg", reason="MP4 needs the extra video: pip install hardmax[video]")
    open_tokens(page, explorer)
    with page.expect_download(timeout=180_000) as waiting:  # every frame is drawn
        page.get_by_role("button", name="MP4").click()
    assert waiting.value.suggested_filename == "hardmax-tokens.mp4"
    path = tmp_path / "film.mp4"
    waiting.value.save_as(path)
    data = path.read_bytes()
    assert data[4:8] == b"ftyp"
    assert data.index(b"moov") < data.index(b"mdat")  # a browser plays it before it has all of it
    assert 20_000 < len(data) < 20_000_000
    expect(page.locator(".message.good")).to_contain_text(f"hardmax-tokens.mp4: {len(data) / 1e6:.1f} MB.")
    about = next(video.read_frames(str(path)))
    assert about["codec"] == "h264"
    frames, seconds = video.count_frames_and_secs(str(path))
    assert about["fps"] == 12
    assert abs(frames - 12 * seconds) <= 1
    assert 3 < seconds < 30  # a few layers of 0.7 seconds, and the end
    width, height = about["size"]
    assert height == 486
    assert 0.8 < width / height < 3.1


def test_a_field_left_by_another_choice_changes_both(page: Any, explorer: str) -> None:
    open_tokens(page, explorer, "?start=gaussian&n=30")
    seed = page.get_by_label("Seed", exact=True)
    for value, view in enumerate(("Space", "Plane", "Space"), start=2):
        seed.fill(str(value))  # not left yet: the press on the view sends two changes at once
        page.get_by_role("button", name=view, exact=True).click()
        name = view.lower()
        until(page, f"hardmaxStages.stages.get('{name}').tokens.data.x.length === 30")
        expect(page).to_have_url(re.compile(rf"\bseed={value}\b"))
    until(page, "hardmaxStages.stages.get('plane').frames.data.at.length === 0")


def test_an_emptied_field_shows_the_number_that_is_used(page: Any, explorer: str) -> None:
    open_tokens(page, explorer, "?start=gaussian&n=30&selected=2")
    for name in ("Number of tokens (random starts)", "Seed", "Its first coordinate", "Selected token (-1 for none)"):
        field = page.get_by_label(name, exact=True)
        expect(field).not_to_have_value("")
        before = field.input_value()
        field.fill("")
        field.press("Tab")
        expect(field).to_have_value(before)
    expect(page).to_have_url(re.compile("n=30"))
    expect(page.get_by_role("button", name="Undo", exact=True)).to_be_disabled()


def test_other_tokens_play_from_layer_zero(page: Any, explorer: str, tmp_path: Path) -> None:
    open_tokens(page, explorer)
    points = tmp_path / "points.csv"
    points.write_text("1,2\n-1,0.5\n3,-3\n0.25,1\n")
    start, file = page.get_by_label("Start from"), page.locator("input[type=file]")
    for change in (
        lambda: start.select_option(label="Random: Gaussian"),
        lambda: file.set_input_files(points),
        lambda: start.select_option(label="Example: ties that break"),
    ):
        page.evaluate("hardmaxPlayer.latest.go(6)")
        expect(page).to_have_url(re.compile("layer=6"))
        page.evaluate("hardmaxPlayer.latest.speed.value = '0.25'; hardmaxPlayer.latest.toggle()")
        until(page, "hardmaxPlayer.latest.playing && hardmaxPlayer.latest.t > 6")
        change()
        until(page, "hardmaxPlayer.latest.playing && hardmaxPlayer.latest.t < 1")
        expect(page).not_to_have_url(re.compile("layer="))
    page.evaluate("hardmaxPlayer.latest.go(2)")
    start.select_option(label="Random: Gaussian")  # at rest, too
    until(page, "!hardmaxPlayer.latest.playing && hardmaxPlayer.latest.t === 0")
