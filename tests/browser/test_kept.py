"""Links that keep uploads: what a person uploads is there again for another browser at the same address."""

import csv
import io
import math
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from explorers import until
from made_up_texts import opinions

_NAME = "[0-9a-f]{40}"
_DAYS = "stored on this machine for 30 days after"


def _choose(page: Page, label: str, name: str, data: bytes) -> None:
    page.get_by_label(label).set_input_files({"name": name, "mimeType": "application/octet-stream", "buffer": data})


@pytest.fixture
def fresh(visitor: Any) -> Iterator[Callable[[str], Page]]:
    """Open an address in a browser that has never been here."""
    opened = []

    def visit(address: str) -> Page:
        context = visitor.browser.new_context(viewport={"width": 1280, "height": 900})
        context.set_default_timeout(30_000)
        opened.append(context)
        page = context.new_page()
        page.goto(address)
        return page

    yield visit
    for context in opened:
        context.close()


def _code(page: Page) -> str:
    page.get_by_role("button", name="Show the Python code").click()
    expect(page.locator("pre.code")).not_to_be_empty()
    return str(page.locator("pre.code").text_content())


def _words(seed: int) -> str:
    """A text that is too long for an address, however it is packed."""
    draw = random.Random(seed)  # noqa: S311 (no secret)
    return "a wonderful film " + " ".join(f"{draw.randrange(10**9)}" for _ in range(1_200))


def test_tokens(explorer: str, page: Page, fresh: Callable[[str], Page]) -> None:
    draw = random.Random(0)  # noqa: S311 (no secret)
    page.goto(f"{explorer}/tokens")
    rows = "\n".join(f"{draw.gauss(0, 1)},{draw.gauss(0, 1)}" for _ in range(500))
    _choose(page, "Or upload a CSV", "points.csv", rows.encode())
    expect(page.get_by_text(f"The link keeps your tokens: they are {_DAYS}")).to_be_visible()
    expect(page).to_have_url(re.compile(f"kept={_NAME}"))
    again = fresh(page.url)
    expect(again.get_by_text("500 tokens.")).to_be_visible()
    xs = "Array.from(hardmaxStages.stages.get('plane').tokens.data.x)"
    until(again, f"{xs}.length === 500")
    assert again.evaluate(xs) == page.evaluate(xs)


def test_a_series_its_forecast_and_its_model(
    explorer: str, page: Page, fresh: Callable[[str], Page], tmp_path: Path
) -> None:
    page.goto(f"{explorer}/forecasting?samples=100&steps=40&seconds=0.5")
    expect(page.get_by_text(f"The link keeps what you upload: it is {_DAYS}")).to_be_visible()
    rows = (f"{0.1 * k:.2f},{math.sin(0.1 * k):.6f},{math.cos(0.1 * k):.6f}" for k in range(150))
    _choose(page, "Or upload a CSV", "waves.csv", ("time,height,speed\n" + "\n".join(rows)).encode())
    expect(page).to_have_url(re.compile(f"kept={_NAME}"))
    page.get_by_role("button", name="Fit and forecast").click()
    expect(page.get_by_text("Outcome: ")).to_contain_text("40 steps")
    expect(page).to_have_url(re.compile("fit=1"))
    again = fresh(page.url)
    expect(again.get_by_text("waves.csv: 150 samples of 2 channels")).to_be_visible()
    expect(again.get_by_text("Outcome: ")).to_contain_text("40 steps")
    expect(again.get_by_label("System")).to_have_value("waves.csv")
    assert _code(again) == _code(page)
    with page.expect_download() as waiting:
        page.get_by_text("Download the model", exact=True).click()
    _choose(page, "Or load a saved model", "model.zip", waiting.value.path().read_bytes())
    expect(page).to_have_url(re.compile(f"model={_NAME}"))
    again = fresh(page.url)
    expect(again.locator(".message.good")).to_contain_text("model.zip is loaded")
    expect(again.get_by_text("Outcome: ")).to_contain_text("40 steps")
    again.get_by_label("System").select_option(label="Lorenz '63")
    expect(again).not_to_have_url(re.compile("kept="))
    again.get_by_role("button", name="Undo").click()
    expect(again.get_by_text("waves.csv: 150 samples of 2 channels")).to_be_visible()
    expect(again).to_have_url(re.compile("kept="))


def test_two_long_texts_and_a_model_trained_on_a_table(explorer: str, page: Page, fresh: Callable[[str], Page]) -> None:
    page.goto(f"{explorer}/text")
    area, other = page.get_by_label("Your text"), page.get_by_label("Second text", exact=True)
    area.fill(_words(0))
    expect(page.get_by_text(f"The link keeps your text: it is {_DAYS}")).to_be_visible()
    page.get_by_text("Compare with another text").click()
    other.fill(_words(1))
    expect(page.get_by_text(f"The link keeps your second text: it is {_DAYS}")).to_be_visible()
    expect(page).to_have_url(re.compile(f"text-kept={_NAME}&beside-kept={_NAME}"))
    again = fresh(page.url)
    expect(again.get_by_label("Your text")).to_have_value(_words(0))
    expect(again.get_by_label("Second text", exact=True)).to_have_value(_words(1))
    page.goto(f"{explorer}/text?text=a wonderful scene and a dull plot")
    texts, labels = opinions(60)
    table = io.StringIO()
    csv.writer(table).writerows([["text", "label"], *zip(texts, labels, strict=True)])
    _choose(page, "Train one: a CSV with texts and labels", "letters.csv", table.getvalue().encode())
    page.get_by_role("button", name="Train", exact=True).click()
    expect(page.get_by_text("trained on letters.csv")).to_be_visible(timeout=120_000)
    expect(page).to_have_url(re.compile(f"table={_NAME}&columns=0%2C1"))
    again = fresh(page.url)
    expect(again.get_by_text("trained on letters.csv")).to_be_visible(timeout=120_000)
    expect(again.locator(".verdict")).to_have_text(page.locator(".verdict").inner_text(), use_inner_text=True)
    assert _code(again) == _code(page)


def test_many_sequences(explorer: str, page: Page, fresh: Callable[[str], Page]) -> None:
    draw = random.Random(0)  # noqa: S311 (no secret)
    page.goto(f"{explorer}/networks?example=swap&construction=fewest")
    rows = [f"{k},1,{k + 1}.{draw.randrange(10**30)},{k % 3},cat{k % 2}" for k in range(220)]
    data = "sequence,token,x,y,label\n" + "\n".join(rows)
    _choose(page, "Or upload JSON", "data.csv", data.encode())
    expect(page.get_by_text(f"The link keeps your sequences: they are {_DAYS}")).to_be_visible()
    expect(page).to_have_url(re.compile(f"lines-kept={_NAME}"))
    again = fresh(page.url)
    expect(again.get_by_text("220 sequences, 220 tokens, 2 classes").first).to_be_visible()
    box = "One sequence per line"
    expect(again.get_by_label(box)).to_have_value(page.get_by_label(box).input_value())


def test_a_network(explorer: str, page: Page, fresh: Callable[[str], Page]) -> None:
    page.goto(f"{explorer}/networks?example=swap")
    expect(page.get_by_text("✓ Proved").first).to_be_visible()
    with page.expect_download() as waiting:
        page.get_by_text("Download the network").click()
    _choose(page, "Or verify a saved network", "network.zip", waiting.value.path().read_bytes())
    expect(page.locator(".message.good")).to_contain_text("PROVED")
    expect(page).to_have_url(re.compile(f"network={_NAME}"))
    again = fresh(page.url)
    expect(again.locator(".message.good")).to_contain_text("PROVED")
    assert "hm.verify(folder)" in _code(again)


def test_a_long_text_of_the_real_model(explorer: str, page: Page, fresh: Callable[[str], Page]) -> None:
    draw = random.Random(0)  # noqa: S311 (no secret)
    text = "".join(chr(draw.randrange(0x4E00, 0x9000)) for _ in range(1_990))
    page.goto(f"{explorer}/real_model?model=random-encoder&text=short")
    area = page.get_by_label("Your text")
    area.fill(text)
    page.get_by_role("button", name="Run the model").click()
    expect(page.get_by_text(f"The link keeps your text: it is {_DAYS}")).to_be_visible()
    expect(page).to_have_url(re.compile(f"text-kept={_NAME}"))
    expect(fresh(page.url).get_by_label("Your text")).to_have_value(text)


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("tokens?kept=", "The tokens of this link are not stored on this machine"),
        ("forecasting?samples=100&steps=40&fit=1&kept=", "The table of this link is not stored on this machine"),
        ("forecasting?samples=100&steps=40&model=", "The model of this link is not stored on this machine"),
        ("text?text-kept=", "The text of this link is not stored on this machine"),
        ("text?model=", "The model of this link is not stored on this machine"),
        ("networks?lines-kept=", "The sequences of this link are not stored on this machine"),
        ("networks?example=swap&network=", "The network of this link is not stored on this machine"),
        ("real_model?text-kept=", "The text of this link is not stored on this machine"),
    ],
)
@pytest.mark.parametrize("name", ["ab12" * 10, "../../secret"])
def test_what_is_not_stored_is_a_sentence(explorer: str, page: Page, address: str, words: str, name: str) -> None:
    page.goto(f"{explorer}/{address}{name}")
    expect(page.locator(".message.note:not(.stale)").first).to_contain_text(words)
    expect(page.locator(".message.error")).to_have_count(0)
