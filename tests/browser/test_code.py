"""The code that a page shows, executed: it gives what the page shows, to the last digit."""

from __future__ import annotations

import csv
import io
import json
import zipfile
from pathlib import Path
from typing import Any

from playwright.sync_api import expect

from explorers import until
from visits import run_code, run_names


def shown_code(page: Any) -> str:
    """The code on the page, and that the button copies it."""
    page.get_by_role("button", name="Show the Python code").click()
    expect(page.locator("pre.code .keyword").first).to_have_text("import")
    code = str(page.locator("pre.code").text_content())
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy code").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == code
    return code


def test_the_code_of_a_text(page: Any, explorer: str, tmp_path: Path) -> None:
    page.goto(f"{explorer}/text?example=cast&struck=wonderful")
    expect(page.locator(".struck")).to_contain_text("Without “wonderful”")
    until(page, "Bokeh.documents[0].get_model_by_name('contributions').data.right.length > 0")
    bars = page.evaluate("(({left, right}) => [[...left], [...right]])"
                         "(Bokeh.documents[0].get_model_by_name('contributions').data)")  # fmt: skip
    code = shown_code(page) + "import json\nprint(json.dumps(why.data()))\n"
    printed = run_code(code, tmp_path).splitlines()
    found = json.loads(printed[-1])
    logit = found["logits"][0]
    assert logit in (bars[0][-1], bars[1][-1])  # the last bar goes from zero to the logit
    first = found["leaders"][0]["contribution"][0]
    assert first in (bars[0][0], bars[1][0])
    assert f"{logit:+.2f}".replace("-", "−") in page.locator(".sum").inner_text()
    without = float(printed[-2].strip("[] "))
    assert f"{without:+.2f}".replace("-", "−") in page.locator(".struck").inner_text()


def test_the_code_of_a_network(page: Any, explorer: str, tmp_path: Path) -> None:
    page.goto(f"{explorer}/networks?example=classes&construction=fewest&width=3")
    expect(page.get_by_text("✓ Proved")).to_be_visible()
    names = page.evaluate("Bokeh.documents[0].get_model_by_name('class names').data.label")
    assert sorted(names) == ["square", "triangle"]
    code = shown_code(page) + "print(net.counts.blocks, net.counts.parameters, net.predict(inputs))\n"
    printed = run_code(code, tmp_path)
    assert page.locator(".hash").inner_text() in printed
    blocks, parameters = printed.splitlines()[-1].split()[:2]
    expect(page.get_by_text(f"{blocks} blocks, ")).to_be_visible()
    expect(page.get_by_text(f"{int(parameters):,} parameters")).to_be_visible()
    assert printed.splitlines()[-1].endswith("['triangle', 'square', 'triangle', 'square']")


def test_the_code_of_a_forecast(page: Any, explorer: str, tmp_path: Path) -> None:
    page.goto(f"{explorer}/forecasting?system=airfoil&samples=150&steps=60&seconds=0.5&fit=1")
    expect(page.get_by_text("Outcome: ")).to_be_visible()  # the address asks for the forecast
    with page.expect_download() as waiting:
        page.get_by_text("Download the forecast").click()
    rows = list(csv.reader(waiting.value.path().read_text().splitlines()))
    with page.expect_download() as waiting:
        page.get_by_text("Download the model").click()
    with zipfile.ZipFile(io.BytesIO(waiting.value.path().read_bytes())) as archive:
        archive.extractall(tmp_path)
    code = (
        shown_code(page)
        + "ends = [end[-1].tolist() for level in (0.68, 0.95) for end in ahead.interval(level)]\n"
        + "print([ahead.values[-1].tolist(), ahead.spread[-1].tolist(), float(ahead.times[-1]), ends])\n"
    )
    values, spread, time, ends = json.loads(run_code(code, tmp_path).splitlines()[-1])
    pairs = [x for pair in zip(values, spread, strict=True) for x in pair]
    intervals = [x for channel in zip(*ends, strict=True) for x in channel]
    assert [float(number) for number in rows[-1]] == [time, *pairs, *intervals]


def test_the_code_of_a_model(page: Any, explorer: str, tmp_path: Path) -> None:
    page.goto(f"{explorer}/models?model=kuramoto&n=30&frame=20")
    expect(page.locator("tr", has_text="order")).to_be_visible()
    until(page, "hardmaxStages.stages.has('models')")
    names = run_names(shown_code(page), tmp_path)
    x, y = page.evaluate(
        "(({x, y}) => [Array.from(x), Array.from(y)])(hardmaxStages.stages.get('models').parts[0].data)"
    )
    assert names["run"].tokens[names["k"]].T.tolist() == [x, y]  # to the last digit
    order = names["model"].measure("order", names["run"])
    expect(page.locator("tr", has_text="order").locator("td").nth(1)).to_have_text(f"{order:.6g}")


def test_the_code_of_a_real_model(page: Any, explorer: str, tmp_path: Path) -> None:
    page.goto(f"{explorer}/real_model?model=random-encoder&text=a+dull+plot&layer=2&head=3&factor=4")
    expect(page.get_by_role("img", name="Layer 2, head 3.")).to_be_visible()
    until(page, "Bokeh.documents[0].get_model_by_name('real-words').data.weight.length === 3")
    weights = page.evaluate("Array.from(Bokeh.documents[0].get_model_by_name('real-words').data.weight)")
    names = run_names(shown_code(page), tmp_path)
    assert names["weights"].tolist() == weights  # to the last digit
    rows = page.locator("tr[aria-current] td").all_inner_texts()
    assert rows[0] == "3"
