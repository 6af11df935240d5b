"""Exact networks, as a person does it: draw, compile, watch, download, check."""

import io
import json
import re
import zipfile

from playwright.sync_api import Page, expect

from explorers import glides, until


def _choose(page: Page, label: str, name: str, data: bytes, kind: str = "application/json") -> None:
    page.get_by_label(label).set_input_files({"name": name, "mimeType": kind, "buffer": data})


def _type(page: Page, label: str, text: str, address: str) -> None:
    """Type into a field, leave it, and wait until the server has read it, which the address then shows.

    A click right after typing is two events at once: the field is read, the page moves, and the click may miss.
    """
    field = page.get_by_label(label)
    field.fill(text)
    field.press("Tab")
    expect(page).to_have_url(re.compile(address))


def _open(page: Page, address: str) -> None:
    page.goto(address)
    expect(page.get_by_text("✓ Proved")).to_be_visible()


def test_draw_compile_and_download_a_network(explorer, page, shoot):
    _open(page, f"{explorer}/networks")
    lines = page.get_by_label("One sequence per line")
    before, first = lines.input_value(), page.locator(".hash").inner_text()
    board = page.locator(".bk-Figure").first
    box = board.bounding_box()
    board.click(position={"x": 0.52 * box["width"], "y": 0.42 * box["height"]})
    expect(lines).not_to_have_value(before)
    assert lines.input_value().splitlines()[0].count("(") == before.splitlines()[0].count("(") + 1
    # The proof of the data before must not stand beside the new ones, nor be downloaded.
    expect(page.get_by_text("Not proved for what is shown")).to_be_visible()
    expect(page.get_by_text("✓ Proved")).to_have_count(0)
    expect(page.locator(".stale")).to_contain_text("Press Compile")
    expect(page.get_by_role("button", name="Download the network")).to_be_disabled()
    shoot(page, "networks-stale")
    page.get_by_role("button", name="Compile").click()
    expect(page.get_by_text("✓ Proved")).to_be_visible()
    expect(page.locator(".stale")).to_be_hidden()
    expect(page.locator(".hash")).not_to_have_text(first)
    expect(page.get_by_role("button", name="Download the network")).to_be_enabled()
    expect(page.get_by_text("of the published bound")).to_be_visible()
    with page.expect_download() as waiting:
        page.get_by_text("Download the network").click()
    data = waiting.value.path().read_bytes()
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert sorted(archive.namelist()) == ["certificate.json", "network.json", "network.safetensors"]
        assert json.loads(archive.read("certificate.json"))["data_hash"] == page.locator(".hash").inner_text()
    _choose(page, "Or verify a saved network", "network.zip", data, "application/zip")
    expect(page.locator(".message.good")).to_contain_text("PROVED in exact rationals")
    shoot(page, "networks-checked")
    # A forged target: the sequence has the name that the board gives it, and the board has the data of the file.
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    record = json.loads(files["network.json"])
    record["data"]["outputs"][1][0][0] = "7"
    forged = io.BytesIO()
    with zipfile.ZipFile(forged, "w") as archive:
        for name, content in {**files, "network.json": json.dumps(record).encode()}.items():
            archive.writestr(name, content)
    _choose(page, "Or verify a saved network", "forged.zip", forged.getvalue(), "application/zip")
    expect(page.get_by_text("✗ Not proved")).to_be_visible()
    expect(page.locator("li", has_text="sequence 2: ")).to_be_visible()
    expect(lines).to_have_value(re.compile(r"\n.*-> \(7, "))


def test_watch_the_tokens_go_through_the_blocks(explorer, page, shoot):
    _open(page, f"{explorer}/networks?example=inside&construction=fewest")
    expect(page.get_by_text("The fewest blocks")).to_be_visible()
    slider = page.locator("input[type=range]").first
    expect(slider).to_have_attribute("max", "4")  # two blocks have four halves
    assert glides(page, "blocks")
    slider.focus()
    slider.press("End")
    expect(page.get_by_text(re.compile(r"block (\d+) of \1: "))).to_be_visible()
    expect(page).to_have_url(re.compile("moment="))
    shoot(page, "networks")


def test_upload_labels_then_hostile_files_and_the_page_lives_on(explorer, page, shoot):
    _open(page, f"{explorer}/networks")
    rows = b"sequence,token,x,y,label\nA,1,0,0,cat\nA,2,1,1/2,cat\nB,1,0,1,dog\n"
    _choose(page, "Or upload JSON", "pets.csv", rows, "text/csv")
    expect(page.locator(".message.good")).to_contain_text("2 sequences, 3 tokens, 2 classes")
    _type(page, "Softmax temperature", "1/10", "temperature=1%2F10")
    page.get_by_role("button", name="Compile").click()
    expect(page.get_by_text("softmax at temperature 1/10")).to_be_visible()
    _type(page, "One sequence per line", "", r"[?&]lines=(&|$)")
    page.get_by_role("button", name="Compile").click()
    expect(page.locator(".message.error")).to_contain_text("must describe a sequence")
    expect(page.get_by_text("✓ Proved")).to_have_count(0)
    shoot(page, "networks-empty")
    words = page.locator(".message.error")
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("network.json", bytes(60 * 2**20))
    _choose(page, "Or verify a saved network", "bomb.zip", bomb.getvalue(), "application/zip")
    expect(words).to_contain_text("unpacks to more than 40 MB")
    _choose(page, "Or upload JSON", "deep.json", b"[" * 10**5)
    expect(words).to_contain_text("is not JSON")
    _choose(page, "Or upload JSON", "nan.json", b'{"inputs": [[[NaN, 0]]], "outputs": [[[0, 0]]]}')
    expect(page.locator(".message.good")).to_contain_text("nan.json")
    expect(page.get_by_label("One sequence per line")).to_have_value(re.compile("NaN"))
    page.get_by_role("button", name="Compile").click()
    expect(words).to_contain_text("must be a finite number")
    _type(page, "One sequence per line", "(0, 0) -> (1, 1)", r"lines=%280%2C\+0%29")
    page.get_by_role("button", name="Compile").click()
    expect(page.get_by_text("1 with 1 token", exact=True)).to_be_visible()
    assert not re.search(r"\b1 (sequences|tokens|classes|blocks)\b", page.locator("main").inner_text())


def test_two_constructions_side_by_side(explorer, page, shoot):
    _open(page, f"{explorer}/networks?example=inside&construction=fewest")
    rows = page.locator("table.rivals tbody tr")
    expect(rows).to_have_count(0)
    page.get_by_label("Beside another construction").select_option("leaders")
    page.get_by_role("button", name="Compile").click()
    expect(rows.last.locator("td")).to_contain_text(["proof", "✓ proved", "✓ proved"])
    expect(page.get_by_role("heading", name="Two constructions of the same data")).to_be_visible()
    expect(page.get_by_role("columnheader")).to_contain_text(["fewest", "leaders"])
    blocks = rows.filter(has_text="blocks").first.locator("td").all_inner_texts()
    assert int(blocks[-2].replace(",", "")) < int(blocks[-1].replace(",", ""))
    until(page, "hardmaxStages.stages.has('rival blocks')")
    expect(page).to_have_url(re.compile("beside=leaders"))
    shoot(page, "networks-two")


def test_undo_gives_back_the_sequences_with_their_proof(explorer, page):
    _open(page, f"{explorer}/networks?example=swap&construction=fewest")
    lines, proved = page.get_by_label("One sequence per line"), page.get_by_text("✓ Proved")
    before, first = lines.input_value(), page.locator(".hash").inner_text()
    undo, redo = page.get_by_role("button", name="Undo"), page.get_by_role("button", name="Redo")
    expect(undo).to_be_disabled()
    board = page.locator(".bk-Figure").first
    box = board.bounding_box()
    board.click(position={"x": 0.52 * box["width"], "y": 0.22 * box["height"]})
    expect(lines).not_to_have_value(before)
    after = lines.input_value()
    expect(page.get_by_text("Not proved for what is shown")).to_be_visible()
    page.locator("body").press("Control+z")
    expect(lines).to_have_value(before)
    expect(proved).to_be_visible()
    expect(page.locator(".hash")).to_have_text(first)
    expect(page).to_have_url(re.compile("example=swap"))
    expect(page.get_by_role("button", name="Download the network")).to_be_enabled()
    page.locator("body").press("Control+Shift+z")
    expect(lines).to_have_value(after)
    expect(page.get_by_text("Not proved for what is shown")).to_be_visible()
    page.get_by_role("button", name="Compile").click()
    expect(proved).to_be_visible()
    second = page.locator(".hash").inner_text()
    assert second != first
    how = page.get_by_label("Construction", exact=True)
    how.select_option("leaders")
    expect(proved).to_have_count(0)
    how.press("Control+z")  # a list has no undo of its own
    expect(how).to_have_value("fewest")
    expect(page.locator(".hash")).to_have_text(second)
    # Each state has its own proof, never that of another.
    undo.click()
    expect(lines).to_have_value(before)
    expect(page.locator(".hash")).to_have_text(first)
    redo.click()
    expect(lines).to_have_value(after)
    expect(page.locator(".hash")).to_have_text(second)
    # A sequence without a target cannot be read, and is on the board all the same.
    points = "Bokeh.documents[0]._all_models.size, [...Bokeh.documents[0]._all_models.values()]"
    shown = f"({points}.filter((m) => m.data && m.data.place && m.data.x.length).flatMap((m) => [...m.data.x]).length)"
    count = page.evaluate(shown)
    page.get_by_label("Sequence", exact=True).select_option(label="a new sequence")
    board.click(position={"x": 0.3 * box["width"], "y": 0.8 * box["height"]})
    until(page, f"{shown} === {count + 1}")
    undo.click()
    until(page, f"{shown} === {count}")
    redo.click()
    until(page, f"{shown} === {count + 1}")
    page.get_by_role("button", name="Reset").click()
    expect(page.get_by_label("Example")).to_have_value(re.compile("share tokens"))
    expect(page).to_have_url(re.compile("example=overlap&construction=leaders"))
    # In a box of text, Ctrl+Z is that of the box.
    lines.click()
    lines.press("End")
    lines.press_sequentially(" ")
    lines.press("Control+z")
    expect(how).to_have_value("leaders")
    expect(page.get_by_label("Example")).to_have_value(re.compile("share tokens"))


def test_the_proof_goes_while_lines_are_typed_and_the_board_stays_where_it_is(explorer, page, shoot):
    """The proof of the old lines stood beside new ones until the box was left; the note then moved the board."""
    _open(page, f"{explorer}/networks")
    expect(page.get_by_text("✓ Exact: every sequence reaches its targets.")).to_be_visible()
    board, begin = page.locator(".bk-Figure").first, page.get_by_role("button", name="Compile")
    top = "board => board.getBoundingClientRect().top + window.scrollY"
    place = board.evaluate(top)
    lines = page.get_by_label("One sequence per line")
    lines.press("Control+End")
    lines.press_sequentially("\n(2, 2) -> (0, 0)")
    expect(page.locator(".stale")).to_contain_text("Press Compile")
    expect(lines).to_be_focused()
    expect(page.get_by_text("4 sequences, 11 tokens, 7 targets")).to_be_visible()
    expect(page.get_by_text("✓ Proved")).to_have_count(0)
    assert board.evaluate(top) == place
    shoot(page, "networks-typed", whole=False)
    begin.click()
    expect(page.get_by_text("✓ Proved")).to_be_visible()
    expect(page.get_by_text("4 with 11 tokens")).to_be_visible()
    # A field that is left by pressing Compile: both count, since the button does not move away.
    page.get_by_label("Softmax temperature").fill("1/10")
    begin.click(delay=400)  # a slow hand
    expect(page.get_by_text("softmax at temperature 1/10")).to_be_visible()
    assert board.evaluate(top) == place


def test_reset_is_how_the_page_begins_with_its_proof(explorer, page):
    _open(page, f"{explorer}/networks")
    first = page.locator(".hash").inner_text()
    _open(page, f"{explorer}/networks?example=swap&construction=fewest")
    page.get_by_role("button", name="Reset").click()
    expect(page.locator(".hash")).to_have_text(first)
    expect(page.get_by_text("✓ Proved")).to_be_visible()
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_label("One sequence per line")).to_have_value(re.compile(r"^\(-1, 0\)"))
    expect(page.get_by_text("✓ Proved")).to_be_visible()
    expect(page.locator(".hash")).not_to_have_text(first)
