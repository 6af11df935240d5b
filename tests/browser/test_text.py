"""Leaders in text, as a person does it: type, read, step through the layers, bring a model, train one."""

import csv
import io
import re
from urllib.parse import quote_plus

import pytest
from playwright.sync_api import Page, expect

from explorers import glides, until
from made_up_texts import opinions
from visits import run_names


def _choose(page: Page, label: str, name: str, data: bytes, kind: str = "text/csv") -> None:
    page.get_by_label(label).set_input_files({"name": name, "mimeType": kind, "buffer": data})


def test_type_a_text_and_see_the_words(explorer, page, shoot):
    page.goto(f"{explorer}/text")
    area = page.get_by_label("Your text")
    expect(page.get_by_text("What each leader contributes")).to_be_visible()
    shoot(page, "text")
    area.fill("")
    area.press_sequentially("two dull hours, a terrible waste")
    expect(page.locator(".verdict")).to_contain_text("negative")
    expect(page.locator("mark.leader").first).to_be_visible()
    expect(page.locator(".marked")).to_contain_text("two dull hours, a terrible waste")
    expect(page.locator(".sum")).to_contain_text("so positive has probability")
    expect(page).to_have_url(re.compile(r"text=two\+dull\+hours%2C\+a\+terrible\+waste"))
    page.reload()
    expect(page.get_by_label("Your text")).to_have_value("two dull hours, a terrible waste")
    # What is nearly certain is not called certain.
    area.fill("a wonderful, excellent, brilliant, superb and beautiful masterpiece, the best film of the year " * 3)
    expect(page.locator(".verdict")).to_contain_text(re.compile(r"99\.\d%"))
    expect(page.locator(".verdict")).not_to_contain_text("100%")


_COLOURS = """() => {
  const documents = Bokeh.documents[0];
  const of = (name) => [...new Set(documents.get_model_by_name(name).data.colour)].map((one) => one.toLowerCase());
  return [of("contributions"), of("words"), of("map")];
}"""


def _backgrounds(page: Page, which: str) -> list[str]:
    """The colours behind some words, without their strength, in order and each once."""
    found = [
        re.findall(r"\d+", one.evaluate("one => getComputedStyle(one).backgroundColor"))[:3]
        for one in page.locator(which).all()
    ]
    return list(dict.fromkeys("#" + "".join(f"{int(part):02x}" for part in parts) for parts in found))


@pytest.mark.parametrize("light", ["light", "dark"])
def test_a_class_has_one_colour_on_the_whole_page(explorer, page, shoot, light):
    page.goto(f"{explorer}/text?text=a+wonderful+film,+a+terrible+ending&theme={light}")
    expect(page.locator("mark.leader").first).to_be_visible()
    both = ["#d55e00", "#0072b2"]  # negative, positive
    assert _backgrounds(page, ".verdict .chance") == both
    assert set(_backgrounds(page, "mark")) <= set(both)
    assert set(_backgrounds(page, ".swatch")) == set(both)
    until(page, "Bokeh.documents[0].get_model_by_name('words').data.colour.length > 0")
    for colours in page.evaluate(_COLOURS):
        assert set(colours) <= set(both)
    page.set_viewport_size({"width": 390, "height": 844})
    shoot(page, f"text-phone-{light}")
    page.set_viewport_size({"width": 1280, "height": 900})
    shoot(page, f"text-{light}")


# Names of words that end beyond the right edge of their plot, and all that are written.
_NAMES = """() => {
  const all = Bokeh.documents[0], plot = all.get_model_by_name("word-plane");
  const { x, shown } = all.get_model_by_name("plane names").data, { start, end } = plot.x_range;
  const pen = document.createElement("canvas").getContext("2d"), width = plot.inner_width;
  pen.font = "12px " + getComputedStyle(document.body).fontFamily;
  const ends = (name, k) => (x[k] - start) / (end - start) * width + 12 + pen.measureText(name).width;
  return [[...shown].filter((name, k) => ends(name, k) > width), [...shown]];
}"""


def test_names_of_words_end_inside_their_plot(explorer, page):
    page.goto(f"{explorer}/text?text=a+wonderful+film&beside=a+terrible+film")
    expect(page.get_by_role("heading", name="Words move towards their leaders: first text")).to_be_visible()
    full = "wonderful film (at the end)"
    until(page, f"({_NAMES})()[0].length === 0 && ({_NAMES})()[1].includes('{full}')")
    page.set_viewport_size({"width": 390, "height": 844})
    cut = f"({_NAMES})()[1].some((name) => name.endsWith('…') && '{full}'.startsWith(name.slice(0, -1)))"
    until(page, f"({_NAMES})()[0].length === 0 && {cut}")
    page.set_viewport_size({"width": 1280, "height": 900})
    until(page, f"({_NAMES})()[1].includes('{full}')")  # in full again where it fits


def test_clearing_the_box_first_takes_the_verdict_away(explorer, page):
    page.goto(f"{explorer}/text?text=a+wonderful+film")
    expect(page.locator(".verdict")).to_contain_text("positive")
    page.get_by_label("Your text").fill("")  # still in the box: nothing was left yet
    expect(page.locator(".empty")).to_contain_text("Type a text")
    expect(page.locator(".verdict")).to_be_hidden()
    page.get_by_label("Your text").fill("a wonderful film")
    expect(page.locator(".verdict")).to_contain_text("positive")
    page.get_by_label("Example").select_option(index=1)
    expect(page.get_by_label("Your text")).not_to_have_value("a wonderful film")
    page.get_by_label("Your text").fill("")
    expect(page.locator(".empty")).to_contain_text("Type a text")


def test_the_player_moves_the_words_the_code_can_be_read_and_nothing_teaches(explorer, page, shoot):
    page.goto(f"{explorer}/text?example=quiet")
    expect(page.get_by_text("Words move towards their leaders")).to_be_visible()
    page.get_by_role("button", name="Show the Python code").click()
    expect(page.locator("pre.code")).to_contain_text("model.explain(")
    slider = page.locator("input[type=range]").first
    assert glides(page, "word-plane")
    slider.press("Home")
    expect(page.locator(".moment")).to_have_text("Layer 0")
    for _ in range(4):
        slider.press("ArrowRight")
    expect(page).to_have_url(re.compile("layer=4"))
    shoot(page, "text-layer-4")
    page.get_by_label("Your text").fill("")
    expect(page.locator(".empty")).to_contain_text("Type a text")
    shoot(page, "text-empty")


def test_train_on_a_table_and_download_the_model(explorer, page, shoot, tmp_path):
    page.goto(f"{explorer}/text?text=a wonderful scene and a dull plot")
    texts, labels = opinions(60)
    table = io.StringIO()
    csv.writer(table).writerows([["text", "label"], *zip(texts, labels, strict=True)])
    expect(page.get_by_text("The map of words")).to_be_visible()
    title = "Bokeh.documents[0].get_model_by_name('word-map').title.text"
    until(page, f"{title} !== ''")
    words = page.evaluate(title)
    with page.expect_download() as waiting:
        page.get_by_text("Download the model").click()
    shipped = waiting.value.path().read_bytes()
    _choose(page, "Train one: a CSV with texts and labels", "letters.csv", table.getvalue().encode())
    page.get_by_role("button", name="Train", exact=True).click()
    # Training takes seconds, or a minute on a busy machine.
    expect(page.locator(".message.good")).to_contain_text("held-out texts the accuracy is", timeout=120_000)
    shoot(page, "text-trained")
    # The code on the page trains the same model from the same table.
    (tmp_path / "letters.csv").write_text(table.getvalue(), newline="")
    page.get_by_role("button", name="Show the Python code").click()
    expect(page.locator("pre.code")).to_contain_text("letters.csv")
    names = run_names(str(page.locator("pre.code").text_content()), tmp_path)
    shown = "Bokeh.documents[0].get_model_by_name('contributions').data"
    assert names["why"].logits[0] in page.evaluate(f"[...{shown}.left, ...{shown}.right]")  # the last bar ends there
    with page.expect_download() as waiting:
        page.get_by_text("Download the model").click()
    model = waiting.value.path().read_bytes()
    page.get_by_role("button", name="Back to the shipped model").click()
    expect(page.get_by_text("film reviews (shipped)")).to_be_visible()
    expect(page.locator(".message")).to_have_count(0)  # what was said about the model before is gone
    _choose(page, "Load a model", "mine.safetensors", model, "application/octet-stream")
    expect(page.locator(".message.good")).to_contain_text("mine.safetensors is loaded")
    until(page, f"{title} !== {words!r}")
    _choose(page, "Load a model", "shipped.safetensors", shipped, "application/octet-stream")
    expect(page.locator(".message.good")).to_contain_text("shipped.safetensors is loaded")
    until(page, f"{title} === {words!r}")  # as many words as before
    page.get_by_label("Your text").fill("another text")
    expect(page.locator(".message")).to_have_count(0)  # what was said about the text before is gone


def test_hostile_files_give_a_message_and_the_page_lives_on(explorer, page):
    page.goto(f"{explorer}/text")
    expect(page.get_by_text("The map of words")).to_be_visible()
    table, model = "Train one: a CSV with texts and labels", "Load a model"
    words = page.locator(".message.error")
    _choose(page, table, "wide.csv", b",".join(b"x" for _ in range(10**6)))
    expect(words).to_contain_text("1,000,000 columns")
    _choose(page, table, "bomb.csv", b"PK\x03\x04" + bytes(1000))
    expect(words).to_contain_text("is a ZIP archive")
    _choose(page, model, "model.safetensors", b"\x80\x04\x95 no", "application/octet-stream")
    expect(words).to_contain_text("was not written by hardmax")
    _choose(page, "Or a text file", "long.txt", b"dull " * 3 * 10**5)
    expect(page.locator(".problem", has_text="long.txt")).to_contain_text("MB are read here")
    page.get_by_label("Your text").fill("<img src=x onerror=alert(1)> a wonderful film")
    expect(page.locator(".verdict")).to_contain_text("positive")
    expect(page.locator(".marked")).to_contain_text("<img src=x")


_HALOS = """() => {
  const rows = (name) => Bokeh.documents[0].get_model_by_name(name).data;
  return [rows("plane halo").x.length, rows("map halo").x.length, [...rows("bar halo").bar]];
}"""


def _write_anew_under_a_resting_pointer(page: Page) -> None:
    """The page may write its words anew without an event of the pointer, which rests on "wonderful"."""
    marked, here = page.locator(".marked"), page.locator("mark.here")
    page.mouse.move(0, 0)  # a picture of the whole page moves it under the pointer for a moment
    page.locator("mark[data-word='wonderful']").hover()
    expect(here).to_have_text("wonderful")
    page.evaluate("""() => {
      window.deaf = true;
      for (const kind of ["mouseover", "mouseout", "mousemove"]) {
        window.addEventListener(kind, (event) => { if (window.deaf) { event.stopImmediatePropagation(); } }, true);
      }
    }""")
    write = "(one, [from, to]) => { one.innerHTML = one.innerHTML.replaceAll(' here', '').replaceAll(from, to); }"
    marked.evaluate(write, ["wonderful", "wonderful"])
    expect(here).to_have_text("wonderful")
    marked.evaluate(write, ["wonderful", "marvellous"])  # another word where the pointer is
    expect(here).to_have_text("marvellous")
    marked.evaluate(write, ["marvellous", "wonderful"])
    expect(here).to_have_text("wonderful")
    page.evaluate("window.hardmaxLinked.show('is dull', true)")  # a dot of the plane is pointed at
    marked.evaluate(write, ["wonderful", "wonderful"])
    expect(here).to_have_text(["is", "dull", "is", "is"])
    page.evaluate("window.hardmaxLinked.show('wonderful')")
    words = marked.evaluate("one => { const before = one.innerHTML; one.innerHTML = 'gone'; return before; }")
    expect(page.locator(".here")).to_have_count(0)  # nothing is under the pointer
    marked.evaluate("(one, words) => { one.innerHTML = words.replaceAll(' here', ''); }", words)
    page.evaluate("window.deaf = false")
    page.mouse.move(0, 0)
    page.locator("mark[data-word='wonderful']").hover()
    expect(here).to_have_text("wonderful")


def test_a_word_is_seen_in_every_view_and_struck_out(explorer, page, shoot):
    page.goto(f"{explorer}/text")
    expect(page.locator(".because")).to_contain_text("positive because of “")
    until(page, "Bokeh.documents[0].get_model_by_name('words').data.x.length > 0")
    word = page.locator("mark[data-word='wonderful']")
    word.hover()
    expect(page.locator(".because .word.here").first).to_have_text("“wonderful”")
    expect(page.locator(".told")).to_contain_text("Without it the logit of positive would be")
    plane, on_map, bars = page.evaluate(_HALOS)
    assert plane == on_map == 3  # the word, and the pairs that hold it
    assert bars == ["★ stays with"]
    shoot(page, "text-linked")
    _write_anew_under_a_resting_pointer(page)
    word.click()
    expect(page.locator("mark.gone")).to_have_text("wonderful")
    expect(page.locator("mark.here")).to_have_text("wonderful")
    assert page.evaluate(_HALOS) == [3, 3, ["★ stays with"]]
    word.click()
    expect(page.locator("mark.gone")).to_have_count(0)
    expect(page.locator("mark.here")).to_have_text("wonderful")
    page.mouse.move(0, 0)
    expect(page.locator(".here")).to_have_count(0)
    assert page.evaluate(_HALOS) == [0, 0, []]
    # A dot of the plane shows its word in the sentence.
    page.evaluate("window.hardmaxLinked.show('is dull', true)")
    assert page.locator("mark.here").all_inner_texts() == ["is", "dull", "is", "is"]
    # By the keyboard: one stop for the text, arrows between words, Enter strikes out.
    page.locator("mark").first.focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    expect(page.locator("mark[data-word='dull']")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator(".struck")).to_contain_text("Without “dull” it is still positive")
    expect(page.locator("mark[data-word='dull']")).to_have_attribute("aria-pressed", "true")
    expect(page.locator("mark[data-word='dull']")).to_be_focused()
    expect(page).to_have_url(re.compile("struck=dull"))
    page.reload()
    expect(page.locator("mark.gone")).to_have_text("dull")
    page.get_by_role("button", name="Put back").click()
    expect(page.locator("mark.gone")).to_have_count(0)
    page.get_by_role("checkbox", name="Compare with another text").check()
    expect(page.locator(".verdict")).to_have_count(2)
    page.get_by_role("textbox", name="Second text").fill("a wonderful film")
    expect(page.locator(".verdict").last).to_contain_text("positive")
    expect(page.locator("mark[data-word='wonderful']")).to_have_count(2)
    for _ in range(60):  # parts of the second text arrive one after the other and move the first under the pointer
        page.mouse.move(0, 0)
        page.locator("mark[data-word='wonderful']").first.hover()
        if page.locator("mark.here").count() == 2:
            break
        page.wait_for_timeout(500)
    expect(page.locator("mark.here")).to_have_count(2)  # in both texts
    shoot(page, "text-two")
    # Longer than a link holds as it is: packed. Longer than the box: said.
    long = "".join(f"The film number {k} was wonderful, its ending dull. " for k in range(100))
    page.get_by_label("Your text").fill(long)
    expect(page).to_have_url(re.compile("text-packed="))
    page.reload()
    expect(page.get_by_label("Your text")).to_have_value(long)
    page.get_by_label("Your text").fill("é" * 25_000)
    expect(page.get_by_text("The box holds 20,000 characters; what is longer is cut.")).to_be_visible()


# The text of the second box in the first frame in which it is seen.
_FIRST_SEEN = """() => {
  const find = (root) => {
    for (const one of root.querySelectorAll("*")) {
      const labels = one.matches("textarea") ? [...one.labels] : [];
      if (labels.some((label) => label.textContent === "Second text")) { return one; }
      const inner = one.shadowRoot ? find(one.shadowRoot) : null;
      if (inner) { return inner; }
    }
    return null;
  };
  const look = () => {
    const box = find(document);
    if (box && box.checkVisibility()) { window.firstSeen = box.value; } else { requestAnimationFrame(look); }
  };
  look();
}"""


def test_a_second_text_is_in_its_box_before_the_box_is_seen(explorer, page):
    """What is typed into a box at once must neither be overwritten nor join the text that arrives."""
    page.goto(f"{explorer}/text?text=a+wonderful+film")
    expect(page.locator(".verdict")).to_contain_text("positive")
    second = page.get_by_role("textbox", name="Second text")
    page.context.new_cdp_session(page).send("Emulation.setCPUThrottlingRate", {"rate": 4})  # frames between messages
    page.evaluate(_FIRST_SEEN)
    page.get_by_text("Compare with another text").click()
    second.fill("a terrible film")  # as soon as it can be seen
    assert page.evaluate("window.firstSeen").startswith("Two hours of my life")
    expect(page.locator(".verdict").last).to_contain_text("negative")
    expect(page).to_have_url(re.compile(r"beside=a\+terrible\+film$"))
    expect(second).to_have_value("a terrible film")
    # Put away and shown again by Undo and Redo, it has the text of that step.
    page.get_by_text("Compare with another text").click()
    expect(second).to_be_hidden()
    page.evaluate(_FIRST_SEEN)
    page.get_by_role("button", name="Undo").click()
    expect(second).to_have_value("a terrible film")
    assert page.evaluate("window.firstSeen") == "a terrible film"


def test_undo_of_words_texts_examples_and_models(explorer, page):
    page.goto(f"{explorer}/text?text=a+wonderful+film")
    area, verdict = page.get_by_label("Your text"), page.locator(".verdict")
    undo, redo = page.get_by_role("button", name="Undo"), page.get_by_role("button", name="Redo")
    expect(verdict).to_contain_text("positive")
    expect(undo).to_be_disabled()
    page.locator("mark[data-word='wonderful']").click()
    expect(page.locator("mark.gone")).to_have_text("wonderful")
    area.fill("a terrible film")
    expect(verdict).to_contain_text("negative")
    expect(page).to_have_url(re.compile(r"text=a\+terrible\+film$"))
    page.wait_for_timeout(1_100)  # what follows within a second is the same step
    area.press("End")
    page.keyboard.insert_text(", dull")
    expect(page.locator(".marked")).to_contain_text("a terrible film, dull")
    expect(page).to_have_url(re.compile(r"text=a\+terrible\+film%2C\+dull"))
    page.wait_for_timeout(1_100)
    # In the box, Ctrl+Z is that of the box; it is a change like any other.
    area.press("Control+z")
    expect(area).to_have_value("a terrible film")
    expect(page).to_have_url(re.compile(r"text=a\+terrible\+film$"))
    page.wait_for_timeout(1_100)
    area.press("Control+Shift+z")
    expect(area).to_have_value("a terrible film, dull")
    expect(page).to_have_url(re.compile(r"text=a\+terrible\+film%2C\+dull"))
    page.locator("h1").click()
    for text in ("a terrible film", "a terrible film, dull", "a terrible film"):
        page.locator("body").press("Control+z")
        expect(area).to_have_value(text)
        expect(page).to_have_url(re.compile(rf"text={re.escape(quote_plus(text))}$"))
    page.locator("body").press("Control+z")
    expect(area).to_have_value("a wonderful film")
    expect(page.locator("mark.gone")).to_have_text("wonderful")
    expect(page).to_have_url(re.compile("struck=wonderful"))
    undo.click()
    expect(page.locator("mark.gone")).to_have_count(0)
    expect(verdict).to_contain_text("positive")
    expect(undo).to_be_disabled()
    redo.click()
    redo.click()
    expect(area).to_have_value("a terrible film")
    expect(verdict).to_contain_text("negative")
    # An example, a second text and another model.
    page.get_by_label("Example").select_option(label="A quiet masterpiece")
    expect(page).to_have_url(re.compile("example=quiet"))
    page.get_by_role("checkbox", name="Compare with another text").check()
    expect(verdict).to_have_count(2)
    undo.click()
    expect(verdict).to_have_count(1)
    expect(page.get_by_role("checkbox", name="Compare with another text")).not_to_be_checked()
    with page.expect_download() as waiting:
        page.get_by_text("Download the model").click()
    data = waiting.value.path().read_bytes()
    _choose(page, "Load a model", "mine.safetensors", data, "application/octet-stream")
    expect(page.get_by_text("mine.safetensors: Your model")).to_be_visible()
    undo.click()
    expect(page.get_by_text("film reviews (shipped)")).to_be_visible()
    expect(page.get_by_role("button", name="Back to the shipped model")).to_be_hidden()
    redo.click()
    expect(page.get_by_text("mine.safetensors: Your model")).to_be_visible()
    undo.click()
    undo.click()
    expect(area).to_have_value("a terrible film")
    expect(page.get_by_label("Example")).to_have_value("your own text")
    page.get_by_role("button", name="Reset").click()
    expect(page).to_have_url(re.compile(r"\?example=cast$"))


def test_a_long_text_scrolls_beside_its_pictures(explorer, page, shoot):
    """Its words had a card of 10,000 pixels, above the other cards."""
    page.goto(f"{explorer}/text?text=a+wonderful+film")
    expect(page.locator(".verdict")).to_contain_text("positive")
    page.get_by_label("Your text").fill("a terrible plot, and a wonderful film about nothing. " * 300)
    text = page.get_by_role("group", name="The text")
    expect(text).to_contain_text("nothing. a terrible")
    heading = page.get_by_role("heading", name="What each leader contributes")
    until(page, "window.scrollY === 0")
    assert heading.bounding_box()["y"] < 1_400
    last = text.get_by_role("button", name="wonderful", exact=True).last
    last.scroll_into_view_if_needed()
    before, down = last.bounding_box(), text.evaluate("box => box.scrollTop")
    assert down > 1_000
    last.click()
    expect(page.locator(".struck").first).to_contain_text("Without “wonderful” it is")
    expect(last).to_have_class(re.compile("gone"))
    expect(last).to_be_focused()
    assert text.evaluate("box => box.scrollTop") == down
    assert last.bounding_box()["y"] == before["y"]
    shoot(page, "text-long", whole=False)
