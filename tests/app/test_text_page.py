"""The text page without a browser: what it says, what it keeps, and what it refuses."""

import base64
import html
import itertools
import json
import math
import re
import zlib

import numpy as np
import pandas
import pytest
from matplotlib.colors import to_hex
from safetensors.numpy import save as save_tensors

import hardmax as hm
from hardmax.app.archives import pack
from hardmax.app.layout import readable
from hardmax.app.look import NIGHT
from hardmax.app.shell import address_of
from hardmax.app.text import state
from hardmax.app.text.page import TextPage
from hardmax.app.text.reasons import Words, percent, signed
from hardmax.app.text.state import EXAMPLES, MOST_CHARACTERS
from hardmax.app.text.view import OTHERS, class_colours, marked_text, staircase, sum_in_words
from hardmax.app.uploads import Upload
from hardmax.drawing.words import words_in_plane
from hardmax.figures import figure_bytes
from made_up_texts import opinions
from visits import Visit, run_code


@pytest.fixture
def visit():
    """A visit to the page."""
    opened = Visit(TextPage())
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A small model of one's own, and the file it was saved to."""
    texts = ["a dull plot", "a wonderful cast", "dull again", "wonderful songs"] * 5
    model = hm.LeaderClassifier(epochs=3, random_state=0).fit(texts, ["bad", "good"] * 10)
    path = tmp_path_factory.mktemp("models") / "own.safetensors"
    model.save(path)
    return model, path.read_bytes()


def test_the_staircase_climbs_to_the_logit():
    for _, text in EXAMPLES.values():
        why = state.shipped().model.explain(text)
        rows = staircase(why)
        assert rows[0][1] == 0.0
        for before, after in itertools.pairwise(rows[:-1]):
            assert after[1] == before[2]
        assert rows[-2][2] == pytest.approx(rows[-1][2], abs=1e-9)
        assert rows[-1][2] == float(why.logits[0])


def test_the_sum_in_words_is_right_to_two_digits():
    why = state.shipped().model.explain(EXAMPLES["cast"][1])
    words = sum_in_words(why)
    plain = re.sub(r"<[^>]+>", "", words).replace("−", "-")
    left, right = plain.split(" = ")
    terms = [float(term) for term in re.findall(r"[+-]\d+\.\d\d", left)]
    assert math.isclose(sum(terms), float(re.match(r"[+-]\d+\.\d\d", right)[0]), abs_tol=0.006 * (len(terms) + 1))
    assert f"{why.probabilities[1]:.1%}" in words


def test_marked_text_shows_every_letter_and_nothing_of_the_visitors_html():
    text = 'a wonderful <script>alert("x")</script> cast & a dull plot'
    words = marked_text(Words.of(state.shipped().model.explain(text)))
    assert "<script>" not in words
    assert "class='leader'" in words
    assert html.unescape(re.sub(r"<[^>]+>", "", words)) == text


def test_typing_changes_the_answer_the_address_and_the_code(visit):
    visit.page._area.value_input = "a terrible waste of time"
    assert "negative" in visit.page._first.verdict.object
    assert visit.page.state() == {"text": "a terrible waste of time"}
    assert visit.page.figure() is not None


def test_the_code_on_the_page_gives_the_same_sum(visit, tmp_path):
    visit.page._area.value_input = "a 'dull' plot,\na wonderful cast"
    printed = run_code(visit.page.code(), tmp_path)
    assert f"{visit.page._explanation.logits[0]:+.4f}" in printed
    assert (tmp_path / "words.png").is_file()


def test_nothing_typed_teaches_and_unknown_words_are_said(visit):
    visit.page._area.value_input = "  "
    assert visit.page._empty.visible
    assert not visit.page._plane_box.visible
    assert visit.page.figure() is None
    visit.page._area.value_input = "xqzt wvrpl"
    assert not visit.page._empty.visible
    assert "prior alone" in visit.page._first.verdict.object
    visit.page._area.value_input = "a dull plot"
    assert visit.page._plane_box.visible


_BLUE, _VERMILION = "#0072b2", "#d55e00"


def _colours(markup: str) -> list[str]:
    """Backgrounds in the order of a piece of HTML, whatever their strength, as hexadecimal colours."""
    found = re.findall(r"background:(?:rgba\((\d+),(\d+),(\d+),[\d.]+\)|(#\w{6}))", markup)
    return [named.lower() or "#" + "".join(f"{int(part):02x}" for part in parts) for *parts, named in found]


def test_a_class_has_one_colour_on_the_whole_page(visit):
    page = visit.page
    for dark in (False, True):
        visit.session.lighting.switch(dark)
        for text in ("a wonderful film, a terrible ending", "two terrible hours", "wonderful, wonderful songs"):
            page._area.value_input = text
            why = page._explanation
            assert list(why.classes) == ["negative", "positive"]
            assert _colours(page._first.verdict.object) == [_VERMILION, _BLUE]
            marks, _, key = page._first.marked.object.partition("<p class='soft'")
            assert _colours(key) == _colours(page._plane_key.object) == [_BLUE, _VERMILION]
            assert _colours(page._map_key.object) == [_VERMILION, _BLUE]
            weights = [weight for _, _, weight, leads in why.word_weights() if weight or leads]
            for colour, weight in zip(_colours(marks), weights, strict=True):
                assert colour == (_BLUE if weight > 0 else _VERMILION) or weight == 0
            bars = page._first.staircase._source.data
            signs = [_BLUE if float(label.replace("−", "-")) > 0 else _VERMILION for label in bars["label"]]
            for colour, sign, label in zip(bars["colour"], signs, bars["label"], strict=True):
                assert colour.lower() == sign or label[1:] == "0.00"
            given = {leader.word: leader.contribution[0] for leader in why.leaders}
            words = page._plane._words.data
            for colour, leader in zip(words["colour"], words["leader"], strict=True):
                assert colour.lower() == (_BLUE if given[leader] > 0 else _VERMILION)
            stars = page._map._stars.data
            for colour, x in zip(stars["colour"], stars["x"], strict=True):
                assert colour.lower() == (_BLUE if x > 0 else _VERMILION)


def test_an_exported_figure_has_the_colours_of_the_page(visit):
    axes = visit.page.figure().axes[0]
    trails, followers, leaders = axes.collections[:3]
    for artist in (trails.get_colors(), followers.get_facecolors(), leaders.get_facecolors()):
        assert {to_hex(colour) for colour in artist} == {_BLUE, _VERMILION}
    words = visit.page._plane._words.data
    leads = words["size"] == 0
    assert [to_hex(one) for one in leaders.get_facecolors()] == [
        words["colour"][k].lower() for k in np.flatnonzero(leads)
    ]


def test_an_exported_figure_is_dark_on_a_dark_page(visit):
    visit.session.lighting.switch(True)
    figure = visit.page.figure()
    visit.session.lighting.switch(False)
    assert to_hex(figure.get_facecolor()) == NIGHT.card
    named = [one for one in figure.axes[0].texts if one.get_text() in visit.page._explanation.words]
    assert named
    assert {to_hex(one.get_color()) for one in named} == {NIGHT.ink}
    assert {to_hex(colour) for colour in figure.axes[0].collections[0].get_colors()} == {_BLUE, _VERMILION}


def test_several_classes_have_a_colour_each_and_others_are_grey(visit):
    texts, labels = ["red roses", "blue seas", "green woods"] * 8, ["rose", "sea", "wood"] * 8
    table = pandas.DataFrame({"text": texts, "label": labels}).to_csv(index=False).encode()
    visit.page._take_table(Upload("colours.csv", table))
    visit.page._begin.clicks += 1
    visit.settle()
    for text, label in zip(texts[:3], labels[:3], strict=True):
        visit.page._area.value_input = text
        own = class_colours(3)[["rose", "sea", "wood"].index(label)]
        assert visit.page._explanation.prediction == label
        assert _colours(visit.page._first.verdict.object) == list(class_colours(3))
        assert _colours(visit.page._plane_key.object) == [own, OTHERS]
        assert _colours(visit.page._map_key.object) == list(class_colours(3))
        assert set(visit.page._first.staircase._source.data["colour"]) <= {own, OTHERS}


def test_what_is_not_certain_does_not_read_so():
    shown = [percent(share) for share in (0.0, 1e-9, 0.004, 0.5, 0.994, 0.996, 0.999, 0.9996, 1 - 1e-12, 1.0)]
    assert shown == ["0%", "&lt; 0.1%", "0.4%", "50%", "99%", "99.6%", "99.9%", "&gt; 99.9%", "&gt; 99.9%", "100%"]
    assert percent(0.99996, 1) == "&gt; 99.9%"
    assert percent(0.5, 1) == "50.0%"


def test_words_about_a_text_or_a_model_go_with_it(visit, small):
    visit.page._load(Upload("own.safetensors", small[1]))
    assert "own.safetensors is loaded" in visit.message
    visit.page._area.value_input = "a dull plot"
    assert visit.message == ""
    visit.session.show_message("about this model")
    visit.page._back.clicks += 1
    assert visit.message == ""


def test_an_address_brings_back_the_text_and_the_layer():
    opened = Visit(TextPage(), {"text": "a dull plot, a wonderful cast", "layer": "3"})
    assert opened.page._steps_shown.player.value == 3
    assert opened.page.state() == {"text": "a dull plot, a wonderful cast", "layer": "3"}
    opened.close()


@pytest.mark.parametrize(
    "state", [{"layer": "x"}, {"layer": "9" * 4000}, {"example": "nothing"}, {"text": "a" * 10**6}]
)
def test_an_address_that_makes_no_sense_does_no_harm(state):
    opened = Visit(TextPage(), state)
    assert len(opened.page._typed) <= MOST_CHARACTERS
    assert opened.message == ""
    opened.close()


def test_the_words_stand_where_the_library_puts_them(visit):
    placed = words_in_plane(visit.page._explanation)
    visit.page._steps_shown.player.value = 5
    words = visit.page._plane._words.data
    assert np.array_equal(np.column_stack([words["x"], words["y"]]), placed.path[5])


def test_a_model_of_ones_own_as_a_file_and_in_an_archive(visit, small):
    model, data = small
    for upload in (Upload("own.safetensors", data), Upload("own.zip", pack({"folder/own.safetensors": data}))):
        visit.page._load(upload)
        visit.page._area.value_input = "a wonderful plot"
        assert visit.page._explanation.logits == pytest.approx(model.explain("a wonderful plot").logits)
        assert "good" in visit.page._first.verdict.object
        assert state.model_bytes(visit.page._using, visit.session.folder) == data
    visit.page._back.clicks += 1
    assert visit.page._using is state.shipped()


def test_bad_models_are_refused_in_words(visit, small):
    _, data = small
    for name, sent, words in [
        ("model.safetensors", b"\x00" * 100, "was not written by hardmax"),
        ("model.zip", b"PK\x03\x04 nothing", "is no ZIP archive"),
        ("model.zip", pack({"readme.txt": b"hello"}), "holds no file that ends in .safetensors"),
        ("model.zip", pack({"a.safetensors": data, "b.safetensors": data}), "holds 2 models"),
        ("bomb.zip", pack({"model.safetensors": b"\0" * (50 * 2**20)}), "unpacks to more than 40 MB"),
    ]:
        visit.session.guarded(visit.page._load)(Upload(name, sent))
        assert words in visit.message
    assert visit.page._using is state.shipped()


@pytest.mark.parametrize(("part", "value"), [("pattern", "(?:a+)+b"), ("removed", ["(?:a+)+b"])])
def test_a_model_that_may_take_for_ever_is_refused(small, tmp_path, part, value):
    _, data = small
    header_length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + header_length])
    recipe = json.loads(header["__metadata__"]["hardmax"])
    recipe["tokeniser"][part] = value
    header["__metadata__"]["hardmax"] = json.dumps(recipe)
    changed = json.dumps(header).encode()
    forged = len(changed).to_bytes(8, "little") + changed + data[8 + header_length :]
    with pytest.raises(hm.FileError, match="may take for ever"):
        state.load_model(Upload("evil.safetensors", forged), tmp_path)


@pytest.mark.parametrize("recipe", ["accurate", "paper", "short"])
def test_a_model_of_another_recipe_of_ours_is_shown(recipe, visit, tmp_path):
    model = hm.LeaderClassifier(recipe=recipe, epochs=2, random_state=0).fit(*opinions(60))
    model.save(tmp_path / "own.safetensors")
    data = (tmp_path / "own.safetensors").read_bytes()
    visit.session.guarded(visit.page._load)(Upload("own.safetensors", data))
    assert visit.page._using.title == "own.safetensors", visit.message


def test_other_tensors_are_no_model(tmp_path):
    with pytest.raises(hm.FileError, match=r"other\.safetensors: was not written by hardmax"):
        state.load_model(Upload("other.safetensors", save_tensors({"a": np.zeros(3)})), tmp_path)
    assert list(tmp_path.iterdir()) == []


def _table(rows: int) -> bytes:
    texts, labels = opinions(rows)
    return pandas.DataFrame({"id": range(rows), "review": texts, "label": labels}).to_csv(index=False).encode()


def test_training_on_a_table(visit):
    visit.page._take_table(Upload("letters.csv", _table(60)))
    assert visit.page._text_column.value == "review"
    assert visit.page._label_column.value == "label"
    visit.page._begin.clicks += 1
    visit.settle()
    assert "held-out texts the accuracy is" in visit.message
    assert visit.page._using.title == "trained on letters.csv"
    assert "read_documents('letters.csv'" in visit.page.code()


def test_training_can_be_cancelled(visit):
    visit.page._take_table(Upload("letters.csv", _table(60)))
    visit.page._begin.clicks += 1
    visit.session.jobs.cancel()
    visit.settle()
    assert visit.page._using is state.shipped()


def test_tables_that_cannot_be_learned_from(visit):
    for rows, words in [
        ("text,label\na,1\nb,2\n", "holds 2 texts"),
        ("text,label\na,1\n,2\n", "holds 1 text with a label"),
        ("text,label\n" + "a,1\n" * 9, "has 1 different label:"),
        ("text,label\n" + "".join(f"a,{k}\n" for k in range(99)), "has 99 different labels"),
    ]:
        visit.page._take_table(Upload("t.csv", rows.encode()))
        visit.page._begin.clicks += 1
        visit.settle()
        assert words in visit.message


def test_names_that_would_lie_on_others_are_left_out():
    places = np.array([[0.0, 0.0], [0.0, 0.001], [0.0, 0.5], [np.nan, 0.0]])
    assert readable(places, ["first", "second", "third", "nowhere"], np.zeros(2), np.ones(2), (700, 300)) == [0, 2]


def test_names_of_classes_are_no_formulas():
    table = "text,label\n" + "a dull plot,$\\\\nothing$\na wonderful cast,<b>good</b>\n" * 3
    opened = Visit(TextPage())
    opened.page._take_table(Upload("t.csv", table.encode()))
    opened.page._begin.clicks += 1
    opened.settle()
    opened.page._area.value_input = "a dull plot"
    assert "$\\\\nothing$" in opened.page._first.verdict.object
    assert "&lt;b&gt;good" in opened.page._first.verdict.object
    figure_bytes(opened.page.figure(), "png")
    opened.close()


def test_a_review_comes_with_what_somebody_else_called_it(visit):
    corpus = state.reviews()
    assert visit.page._another.visible == (corpus is not None)
    visit.page._next_review()
    if corpus is not None:
        assert visit.page._typed == corpus.texts[0]
        assert ("positive" if corpus.labels[0] else "negative") in visit.message


def test_words_that_are_struck_out_change_the_logit_as_the_library_says(visit):
    page = visit.page
    why = page._explanation
    for struck in (("wonderful",), ("dull", "mess", "nowhere to be found")):
        page._plane.struck.data = {"word": list(struck)}
        gone = [
            k for k, word in enumerate(why.words) if set(word.removesuffix(" (at the end)").split(" ")) & set(struck)
        ]
        kept = why.deletion.logits([np.array(gone)])[0]
        words = page._first.words
        assert np.array_equal(words.logits, kept)
        assert signed(float(kept[0])) in page._first.struck.object
        assert page._first.marked.object.count("aria-pressed='true'") == sum(
            len(words.places[w]) > 0 for w in words.struck
        )
        # The effect of each word alone, one by one, is that of the document evaluated without it.
        for word in ("wonderful", "dull"):
            alone = why.deletion.logits([words.places[word]])[0, 0]
            assert words.effects[word] == pytest.approx(float(why.logits[0] - alone), abs=1e-12)
    assert page.state()["struck"] == "dull mess nowhere to be found"
    page._area.value_input = "another text"
    assert "struck" not in page.state()


def test_the_answer_is_a_sentence_with_its_reasons(visit):
    for name, (_, text) in EXAMPLES.items():
        visit.page._area.value_input = text
        words = visit.page._first.words
        sentence = re.sub(r"<[^>]+>", "", visit.page._first.because.object)
        assert sentence.startswith(f"{words.why.prediction} because of “"), name
        speaking, against = words.reasons()
        assert all(words.towards * words.effects[word] > 0 for word in speaking)
        assert all(words.towards * words.effects[word] < 0 for word in against)
        other = words.why.counterfactual()
        assert other is None or f"it would be {other.prediction}" in sentence


def test_a_second_text_stands_beside_the_first(visit):
    page = visit.page
    page._both.value = True
    assert page._other_area.visible
    page._other_area.value_input = "a terrible, terrible waste"
    assert "negative" in page._second.verdict.object
    assert page._second.words.why.logits == pytest.approx(
        state.shipped().model.explain("a terrible, terrible waste").logits
    )
    assert "data-place" not in page._second.marked.object  # words of the first text alone are struck out
    assert page.state()["beside"] == "a terrible, terrible waste"
    again = Visit(TextPage(), page.state())
    assert "negative" in again.page._second.verdict.object
    assert len(again.page._answer) == 5  # two texts, the reasons of both, and the words in motion
    again.close()
    page._both.value = False
    assert "beside" not in page.state()


@pytest.mark.parametrize(
    "text",
    ["a wonderful film. " * 200, "Ein schöner Film – ☂ & more?\n" * 150, "".join(map(chr, range(0x4E00, 0x5E00)))],
)
def test_long_texts_are_kept_in_the_link_and_the_page_says_what_is_stored(text, visit):
    visit.page._area.value_input = text
    kept = visit.page.state()
    assert len(address_of(kept)) > 1
    again = TextPage()
    again.restore(kept)
    assert again._typed == text
    assert visit.page._length.visible == ("text-kept" in kept)
    assert ("The link keeps your text: it is stored" in visit.page._length.object) == ("text-kept" in kept)
    visit.page._area.value_input = "x" * MOST_CHARACTERS
    assert "what is longer is cut" in visit.page._length.object
    visit.page._area.value_input = "short"
    assert not visit.page._length.visible


@pytest.mark.parametrize(
    "packed", ["!!!", "AAAA", "eJw", "%00", base64.urlsafe_b64encode(zlib.compress(bytes(10**8))).decode()]
)
def test_packed_texts_that_are_none_do_no_harm(packed):
    page = TextPage()
    page.restore({"text-packed": packed})
    assert len(page._typed) <= MOST_CHARACTERS


def test_the_shipped_model_saved_and_loaded_shows_the_same_words(visit):
    before = visit.page._map.plot.title.text, visit.page._explanation.logits
    data = state.model_bytes(state.shipped(), visit.session.folder)
    visit.page._load(Upload("model.safetensors", data))
    assert (visit.page._map.plot.title.text, visit.page._explanation.logits) == before
    assert f"{len(state.shipped().model.words()):,} words" in visit.page._using.story


def test_the_code_of_a_model_trained_here_trains_the_same_model(visit, tmp_path):
    (tmp_path / "letters.csv").write_bytes(_table(60))
    visit.page._take_table(Upload("letters.csv", _table(60)))
    visit.page._begin.clicks += 1
    visit.settle()
    visit.page._area.value_input = "a wonderful scene and a dull plot"
    visit.page._plane.struck.data = {"word": ["dull"]}
    printed = run_code(visit.page.code() + "print(why.logits.tolist())\n", tmp_path)
    assert str(visit.page._explanation.logits.tolist()) in printed
    assert str(visit.page._first.words.logits) in printed


def test_names_cover_neither_names_nor_dots_and_leaders_keep_theirs():
    places = np.array([[0.1, 0.5], [0.15, 0.5], [0.1, 0.9], [np.nan, 0.1]])
    corners = np.zeros(2), np.ones(2)
    names = ["first", "second", "third", "nowhere"]
    assert readable(places, names, *corners, (400.0, 300.0)) == [0, 2]
    dots = np.vstack([places, [[0.2, 0.9]]])
    assert readable(places, names, *corners, (400.0, 300.0), dots=dots) == [1]
    assert readable(places, names, *corners, (400.0, 300.0), dots=dots, leading=1) == [0]
    assert readable(places, names, *corners, (4000.0, 300.0), dots=dots) == [0, 1, 2]  # a wider plot has room for all


def test_late_events_take_nothing_back_that_was_typed(visit):
    """The event of leaving a box, or of the list of examples, may come after more was typed."""
    page = visit.page
    page._both.value = True
    standard = page._other_area.value
    page._other_area.value_input = "a terrible film"
    assert page._other_area.value == standard  # the browser sends it when the box is left
    page._other_area.param.trigger("value")
    assert page.state()["beside"] == page._other == "a terrible film"
    page._area.param.update(value="a plot", value_input="a plot")
    example = EXAMPLES["cast"][1]
    page._area.value_input = example
    assert page._pick.value == "cast"
    assert page._area.value == "a plot"  # the box is not written again: more may have been typed into it


def test_a_table_of_one_row_is_no_plural(visit):
    visit.page._take_table(Upload("short.csv", b"text,label\na film,good\n"))
    assert "has 1 row. Choose" in visit.message
