"""The Real model page without a browser, with small models of random weights."""

from __future__ import annotations

import html
import json
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import param
import pytest
from matplotlib.colors import to_hex
from typer.testing import CliRunner

import hardmax as hm
from hardmax.app.look import DAY, NIGHT
from hardmax.app.real_model import page as page_module
from hardmax.app.real_model import shelf as shelf_module
from hardmax.app.real_model.page import RealModelPage
from hardmax.app.real_model.shelf import Shelf, random_offer
from hardmax.app.real_model.state import EXAMPLES, FACTORS, MOST_CHARACTERS, RealModelState
from hardmax.app.real_model.view import named
from hardmax.cli.app import app
from hardmax.errors import InputError
from hardmax.figures import figure_bytes, word_paths
from hardmax.models import AbstractTokeniser, Tokenised, Transformer
from visits import Visit, run_code

SMALL = {"layers": 3, "heads": 2, "d": 8, "vocabulary": 300, "scale": 0.6}
TEXT = "a dull plot, a <b>wonderful</b> cast"


class Letters(AbstractTokeniser):
    """Words become their first letters; the end is a special token."""

    def tokenise(self, text: str) -> Tokenised:
        words = ["[UNK]" if word[0].isupper() and word[1:].islower() else word for word in text.split()]
        return Tokenised((*(ord(word[0]) for word in words), 1), (*words, "[END]"), (*[False] * len(words), True))

    def word(self, token: int) -> str:
        return chr(token)

    @property
    def size(self) -> int:
        return 300


def trained(family: str) -> Transformer:
    made = hm.models.random_transformer(family=family, random_state=1, **SMALL)
    return replace(made, name=f"small {family}", tokeniser=Letters())


@pytest.fixture
def shelf(monkeypatch: pytest.MonkeyPatch) -> Shelf:
    """A shelf with small controls and no installed package."""
    controls = (
        random_offer("random-encoder", "Control: random encoder", family="bert", **SMALL),
        random_offer("random-causal", "Control: random causal model", family="gpt2", **SMALL),
    )
    monkeypatch.setattr(shelf_module, "CONTROLS", controls)
    monkeypatch.setattr(hm.models, "installed_models", list)
    monkeypatch.setattr(page_module, "SHELF", made := Shelf())
    made.offer([])
    return made


@pytest.fixture
def visit(shelf: Shelf) -> Iterator[Visit]:
    """A visit without any trained model."""
    opened = Visit(RealModelPage(), {"text": TEXT})
    yield opened
    opened.close()


@pytest.fixture
def folders(shelf: Shelf, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """Paths that the loader asked for; two models are given on the command line."""
    asked: list[str] = []

    def load(path: object) -> Transformer:
        asked.append(str(path))
        return trained("gpt2" if "gpt2" in str(path) else "bert")

    monkeypatch.setattr(hm, "load_transformer", load)
    for name in ("one-bert", "two-gpt2"):
        (tmp_path / name).mkdir()
    shelf.offer([str(tmp_path / "one-bert"), str(tmp_path / "two-gpt2")])
    return asked


def test_without_a_model_the_page_says_what_to_install_and_shows_random_weights(visit: Visit) -> None:
    shown = [pane.object for pane in visit.body.select(lambda part: hasattr(part, "object")) if pane.visible]
    words = html.unescape(" ".join(one for one in shown if isinstance(one, str)))
    assert "pip install --no-deps rxnmapper" in words
    assert "hardmax explore --model FOLDER" in words
    assert visit.page._computed.offer.name == "random-encoder"
    assert visit.page._plane.words.data["word"] == ["a", "dull", "plot", ",", "a", "<", "b", ">", *_rest()]


def _rest() -> list[str]:
    return ["wonderful", "<", "/", "b", ">", "cast"]


def test_words_stand_where_the_library_puts_them_and_heads_say_what_was_measured(visit: Visit) -> None:
    page = visit.page
    page._steps.player.value = 2
    page._head.value = 1
    seen = page._computed
    model = hm.models.random_transformer(family="bert", random_state=0, **SMALL)
    run = hm.simulate(model.tokens(seen.given), model.layers)
    who = hm.models.attention_targets(model, seen.given)
    data = page._plane.words.data
    np.testing.assert_array_equal(np.column_stack([data["x"], data["y"]]), word_paths(run).path[2])
    assert [re.match("“(.*?)”", one)[1] for one in data["target"]] == [seen.words[k] for k in who.targets[2, 1]]
    assert named(seen, 0) == "“a” at place 0"  # there is another one
    assert named(seen, 1) == "“dull”"
    np.testing.assert_array_equal(data["weight"], who.weights[2, 1])
    leads = np.isin(np.arange(len(seen.words)), who.targets[2, 1])
    assert [shape != "circle" for shape in data["shape"]] == leads.tolist()
    assert "Layer 2, head 1." in page._told.object
    for row in who.heads(2).itertuples():
        cells = f"<td>{row.head}</td><td>{row.largest_weight:.3f}</td><td>{row.attended:.1f}</td>"
        assert cells in page._table.object
    assert page._table.object.count("aria-current") == 1
    assert page.state() == {"text": TEXT, "layer": "2", "head": "1"}
    # After the last layer nothing attends: no dashed lines, and the last layer is named.
    assert len(page._plane._lines.data["x0"]) > 0
    page._steps.player.value = 3
    assert len(page._plane._lines.data["x0"]) == 0
    assert "Layer 2 (the last; nothing attends after it)" in page._told.object
    assert f"{word_paths(run).sentence()}" in page._now.object


def test_a_button_leads_to_the_head_with_most_leaders(visit: Visit) -> None:
    visit.page._lead.clicks += 1
    layer, head = visit.page._computed.who.leading_head()
    assert (layer, head) != (0, 0)
    assert (visit.page._steps.player.value, visit.page._head.value) == (layer, head)
    assert f"Layer {layer}, head {head}." in visit.page._told.object


def test_words_of_a_visitor_are_text(folders: list[str]) -> None:
    opened = Visit(RealModelPage(), {"model": "two-gpt2", "text": "<i>dull</i> 'plot' <i>dull</i>"})
    page = opened.page
    page._every.value = False
    page._probe.clicks += 1
    opened.settle()
    page._which.value = "leaders"
    for pane in (page._lines, page._told, page._effects, page._sentences, page._rows):
        assert "<i>" not in pane.object
    assert page._lines.object.count("&lt;i&gt;dull") >= 4  # in both columns
    assert page._lines.object.count("<line") == len(page._computed.words) == 4
    assert "role='img' aria-label='Layer 0, head 0." in page._lines.object
    opened.close()


@pytest.mark.parametrize("factor", ["4", "hardmax"])
def test_the_temperature_runs_the_model_again_beside_its_control(visit: Visit, factor: str) -> None:
    page = visit.page
    with param.edit_constant(page._factor):  # as the browser does when the handle is let go
        page._factor.param.update(value=factor, value_throttled=factor)
    model = hm.models.random_transformer(family="bert", random_state=0, **SMALL)
    rule = "hardmax" if factor == "hardmax" else "beta=4"
    given = page._computed.given
    point = model.embed(given)
    for name, told in (("softmax", "as trained"), (rule, "hardmax" if factor == "hardmax" else "β × 4"), ("zero", "")):
        other = model.with_attention(name).embed(given)
        cosine = float(point @ other / np.linalg.norm(point) / np.linalg.norm(other))
        assert f"{told or 'no attention (control)'}</td><td>{cosine:.4f}</td>" in page._effects.object
    changed = hm.models.attention_targets(model.with_attention(rule), given)
    np.testing.assert_array_equal(page._plane.words.data["weight"], changed.weights[0, 0])
    same = (changed.targets == hm.models.attention_targets(model, given).targets).mean()
    assert f"{same:.0%} of all rows" in page._effects.object
    assert page.state()["factor"] == factor


def test_a_causal_model_shows_perplexity_and_next_tokens(folders: list[str]) -> None:
    opened = Visit(RealModelPage(), {"model": "two-gpt2", "text": TEXT, "factor": "hardmax"})
    model = trained("gpt2")
    shown = opened.page._effects.object
    for name in ("softmax", "hardmax", "zero"):
        assert f"<td>{model.with_attention(name).perplexity(TEXT):,.1f}</td>" in shown
    logits = model.logits(TEXT)[-1].astype(np.float64)
    best = int(logits.argmax())
    share = np.exp(logits[best] - logits.max()) / np.exp(logits - logits.max()).sum()
    assert f"{html.escape(repr(chr(best)))} {share:.1%}" in shown
    assert opened.page._unit.value is True  # pre-norm: layers read tokens at unit length
    np.testing.assert_allclose(
        opened.page._computed.placed.path, word_paths(opened.page._computed.run, unit_length=True).path
    )
    opened.page._unit.value = False
    assert opened.page.state()["unit"] == "no"
    np.testing.assert_allclose(opened.page._computed.placed.path, word_paths(opened.page._computed.run).path)
    opened.close()


def test_only_models_on_offer_are_loaded_and_once_for_all_visitors(folders: list[str], shelf: Shelf) -> None:
    given = [*shelf._given]
    for model in ("/etc/passwd", given[1], "one-bert"):
        opened = Visit(RealModelPage(), {"model": model, "text": TEXT})
        assert opened.message == ""
        assert opened.page._computed.offer.name == "one-bert"  # the first on offer
        assert opened.page.state().get("model", "one-bert") == "one-bert"
        opened.close()
    assert folders == [given[0]]


def test_few_models_stay_in_memory(folders: list[str], shelf: Shelf) -> None:
    offers = shelf.offers()
    for name in ("one-bert", "two-gpt2", "random-encoder", "two-gpt2", "one-bert"):
        shelf.model(offers[name])
    assert [Path(path).name for path in folders] == ["one-bert", "two-gpt2", "one-bert"]


def test_models_of_one_name_are_told_apart(shelf: Shelf, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    paths = [tmp_path / one / "model" for one in "ab"]
    for path in paths:
        path.mkdir(parents=True)
    monkeypatch.setattr(hm.models, "installed_models", lambda: [hm.models.InstalledModel("model", paths[0], "bert", 1)])
    shelf.offer([str(one) for one in paths])
    assert [*shelf.offers()] == ["model", "model (2)", "model (3)", "random-encoder", "random-causal"]
    with pytest.raises(InputError, match="--model does not exist"):
        shelf.offer([str(tmp_path / "nothing")])


def test_the_command_refuses_a_model_that_is_not_there(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["explore", "--no-browser", "--model", str(tmp_path / "nothing")])
    assert result.exit_code == 2
    assert "--model does not exist" in result.output


def test_a_model_that_cannot_be_loaded_is_a_message(folders: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: object) -> Transformer:
        raise hm.FileError(str(path), "is of the unknown architecture 'mamba'", "load another model")

    monkeypatch.setattr(hm, "load_transformer", refuse)
    opened = Visit(RealModelPage(), {"text": TEXT})
    assert "unknown architecture 'mamba'" in html.unescape(opened.message)
    opened.page._pick.value = "random-encoder"
    opened.settle()
    assert opened.message == ""
    assert opened.page._computed.offer.name == "random-encoder"
    opened.close()


def test_texts_that_cannot_be_shown_give_a_message(visit: Visit) -> None:
    page = visit.page
    page._area.value = "   "
    assert page._empty.visible
    assert not page._results[0].visible
    page._area.value = "x" * (MOST_CHARACTERS + 1)
    visit.settle()
    assert "2,001 characters" in visit.message
    page._area.value = "a " * 300
    visit.settle()
    assert "300 tokens" in visit.message
    assert page.figure() is None
    page._area.value = "one word"
    visit.settle()
    assert visit.message == ""
    assert page._results[0].visible
    assert page._computed.words == ("one", "word")


def test_examples_and_addresses(visit: Visit) -> None:
    page = visit.page
    page._example.value = "bread"
    visit.settle()
    assert page._computed.state.text == EXAMPLES["bread"][1]
    assert page.state() == {"example": "bread"}
    page._area.value = "something else"
    assert page._example.value == ""
    for query in ({"layer": "x", "head": "-3"}, {"factor": "nan"}, {"unit": "maybe"}, {"text": "y" * 10**5}):
        state = RealModelState.from_query(query)
        assert state.factor in FACTORS
        assert len(state.text) <= MOST_CHARACTERS + 1
        assert RealModelState.from_query(state.to_query() | {"text": state.text}) == state
    opened = Visit(RealModelPage(), {"text": TEXT, "layer": "99", "head": "99"})
    assert opened.page.state() == {"text": TEXT, "layer": "3", "head": "1"}
    opened.close()


def test_a_text_that_the_model_does_not_know(folders: list[str]) -> None:
    opened = Visit(RealModelPage(), {"model": "one-bert", "text": "Anna Bert and Carl"})
    assert "does not know 3 of the 5 tokens" in opened.message
    opened.page._area.value = "plain words only"
    opened.settle()
    assert opened.message == ""
    opened.close()
    opened = Visit(RealModelPage(), {"model": "one-bert", "example": "capital"})  # "The capital of France is"
    assert opened.message == ""
    assert opened.page._computed.unknown == 2
    opened.close()


def test_an_example_gives_way_to_one_that_the_model_knows(folders: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(EXAMPLES, "bread", ("Names", "Anna Bert Carl"))
    opened = Visit(RealModelPage(), {"model": "one-bert", "example": "bread"})
    opened.settle()
    assert opened.page.state() == {"model": "one-bert", "example": "reaction"}
    assert opened.page._computed.state.text == EXAMPLES["reaction"][1]
    assert opened.message == ""
    opened.close()


def test_a_text_of_one_token_is_shown(shelf: Shelf) -> None:
    for model in shelf.offers():
        opened = Visit(RealModelPage(), {"model": model, "text": "alone"})
        assert opened.message == ""
        assert opened.page._computed.words == ("alone",)
        opened.close()


@pytest.mark.parametrize("model", ["random-encoder", "random-causal"])
@pytest.mark.parametrize("factor", ["1", "hardmax"])
def test_the_code_on_the_page_gives_the_same_numbers(shelf: Shelf, model: str, factor: str, tmp_path: Path) -> None:
    opened = Visit(RealModelPage(), {"model": model, "text": "it's a 'dull' plot", "factor": factor, "layer": "1"})
    # All of the code but the drawing, which is as slow as everything else and run by the next test.
    code, drawing, _ = opened.page.code().partition("figure = ")
    assert drawing
    printed = run_code(code + 'import numpy\nnumpy.save("tokens", run.tokens)\n', tmp_path)
    np.testing.assert_array_equal(np.load(tmp_path / "tokens.npy"), opened.page._computed.run.tokens)
    for effect in opened.page._computed.effects:
        number = effect.cosine if effect.perplexity is None else effect.perplexity
        told = re.search(rf"^{effect.rule} \w+ ([\d.e+-]+)$", printed, flags=re.MULTILINE)
        assert float(told[1]) == pytest.approx(number, rel=1e-4)
    opened.close()


def test_the_code_of_a_model_with_a_tokeniser_runs(folders: list[str], tmp_path: Path) -> None:
    opened = Visit(RealModelPage(), {"model": "one-bert", "text": TEXT})
    code = opened.page.code()
    assert f"hm.load_transformer({folders[0]!r})" in code
    assert "softmax cosine" in run_code(code, tmp_path)
    assert (tmp_path / "words.png").read_bytes() == figure_bytes(opened.page.figure(), "png")
    opened.close()


def test_the_probe_shows_sentences_and_tables_and_can_be_saved(visit: Visit) -> None:
    page = visit.page
    assert not page._found.visible
    page._probe.clicks += 1
    visit.settle()
    assert visit.message == ""
    assert page._found.visible
    report = page._report
    for line in report.summary().splitlines():
        assert html.escape(line) in page._sentences.object
    page._column.value = "largest_weight"
    np.testing.assert_allclose(page._heat._cells.data["value"], report.heads["largest_weight"])
    assert set(page._heat._cells.data["verdict"]) == set(report.heads["verdict"])
    for name in ("heads", "layers", "leaders", "weights", "interventions"):
        page._which.value = name
        assert page._rows.object.count("<tr>") == len(report.tables()[name]) + 1
        assert "<b>" not in page._rows.object
    saved = json.loads(page._report_file().read())
    assert saved["tables"]["heads"]["head"] == report.heads["head"].tolist()


@pytest.mark.parametrize("text", ["another text", " "])
def test_a_probe_that_another_text_ends_is_mentioned(visit: Visit, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    page, probe, started, may_go_on = visit.page, hm.probe, threading.Event(), threading.Event()

    def slow(*given: object, progress: Callable[..., None], **options: object) -> hm.ProbeReport:
        started.set()
        may_go_on.wait(30)
        progress("texts", 0, 1)  # a cancelled job ends here
        return probe(*given, progress=progress, **options)

    monkeypatch.setattr(hm, "probe", slow)
    page._probe.clicks += 1
    assert started.wait(30)
    page._head.value = 1  # shows another head of the same run: the probe goes on
    assert visit.session.jobs.current.name == "Probing the model"
    assert page._stopped.object == ""
    page._area.value = text
    may_go_on.set()
    visit.settle()
    assert "The probe was stopped, because the model runs again" in page._stopped.object
    assert page._report is None
    page._area.value = "a third text"  # no probe ends now
    visit.settle()
    page._probe.clicks += 1
    visit.settle()
    assert page._stopped.object == ""
    assert page._report is not None


def test_a_probe_of_another_text_waits_for_its_run(visit: Visit) -> None:
    page = visit.page
    page._area.value = "x" * (MOST_CHARACTERS + 1)
    visit.settle()
    page._probe.clicks += 1
    visit.settle()
    assert "Run the model on this text first" in visit.message
    assert page._report is None


def test_pictures_follow_the_theme(visit: Visit) -> None:
    visit.session.lighting.switch(True)
    assert visit.page._plane._labels.glyph.text_color == NIGHT.ink
    words = visit.page._computed
    attended = replace(words.who, targets=np.zeros_like(words.who.targets))  # the first token is a sink
    visit.page._computed = replace(words, who=attended)
    visit.page._show_head()
    assert f'stroke="{NIGHT.grey}"' in visit.page._lines.object
    figure = visit.page.figure()
    assert to_hex(figure.get_facecolor()) == NIGHT.card
    assert to_hex(figure.axes[0].title.get_color()) == NIGHT.ink
    assert {to_hex(one.get_color()) for one in figure.axes[1].texts} <= {NIGHT.ink, NIGHT.soft, NIGHT.grey}
    visit.session.lighting.switch(False)
    assert to_hex(visit.page.figure().get_facecolor()) == DAY.card
    assert f'stroke="{DAY.grey}"' in visit.page._lines.object
