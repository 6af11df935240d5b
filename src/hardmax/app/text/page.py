"""The text page: a document is classified, with the leader words that explain the answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from io import BytesIO
from typing import TYPE_CHECKING, Any, cast

import panel as pn

from ...errors import HardmaxError
from ...outcomes import counted
from ...text.explaining.explanation import Explanation
from ...text.pretrained import named
from ..address_texts import ROOM, AddressTexts, example_of
from ..download import Download
from ..figure_colours import in_light
from ..history import History
from ..kept import UPLOADS, Item, Kept
from ..layout import Steps, beside, card, controls, empty, heading, note, noted, plot_pane, say, split, stack, wide_html
from ..page import Page
from ..painted import PaintedPlots
from ..uploads import FilePicker, Upload, rows_of, text_of
from .reading import Reading, difference
from .state import (
    EXAMPLES,
    MODELS,
    MOST_CHARACTERS,
    SUFFIX,
    TABLES,
    Origin,
    TextModel,
    TextState,
    load_model,
    model_bytes,
    reviews,
    shipped,
    shipped_survey,
    usual_column,
)
from .view import in_class_colours, key_to_classes, key_to_directions
from .word_view import WordMap, WordPlane

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure

    from ...progress import Progress
    from ..session import Session

_OWN = "your own text"
_SECOND = EXAMPLES["waste"][1]
_CUT = f"The box holds {MOST_CHARACTERS:,} characters; what is longer is cut."
_PLANE_TITLE = "Words move towards their leaders"
_KEYS = ("text", "beside")
"""Names of the two texts in an address."""
_EXAMPLE_KEYS = {"text": "example", "beside": "beside-example"}
_ITEMS = {
    "text": Item("text", remedy="type or paste it again"),
    "beside": Item("second text", remedy="type or paste it again"),
    "model": Item("model"),
    "table": Item("training table"),
}
"""What a link keeps, by its name in the address."""
_MOST_STRUCK = 40
"""Words that an address strikes out; a reader strikes out a few."""


class TextPage(Page):
    """Classification of a text, its leader words and their contributions to the logit."""

    slug = "text"
    title = "Leaders in text"
    task = "Type a text, point at a word to see it everywhere, and strike it out to see what changes."
    text = (
        "Every word is a point. In each layer it moves towards the word that it listens to, until all words are close "
        "to a few leaders. The classifier reads the mean of the words, so that the answer is exactly the sum of the "
        "contributions of the leaders."
    )
    paper = "2407.01602"
    functions = ("LeaderClassifier", "Explanation")
    scripts = ("linked.js",)

    def __init__(self) -> None:
        self._typed = EXAMPLES["cast"][1]
        self._layer = 0
        self._struck: tuple[str, ...] = ()
        self._other: str | None = None
        """The second text; None while there is none beside the first."""
        self._using: TextModel = shipped()
        self._explanation: Explanation | None = None
        self._table: Upload | None = None
        """The table to train on, until that is done."""
        self._store = Kept()
        self._texts = AddressTexts(EXAMPLES, MOST_CHARACTERS, self._store)
        self._asked: Origin | None = None
        """The model of the address, until it is there."""
        self._fetching = False
        self._gone: list[Item] = []
        """What the address names that is not stored."""

    # The address

    def state(self) -> dict[str, str]:
        """The texts, the model, the words that are struck out, and the layer where it is not the first."""
        query: dict[str, str] = {}
        for key, text in zip(_KEYS, (self._typed, self._other), strict=True):
            if text is not None:
                query |= self._texts.query(text, key, _EXAMPLE_KEYS[key], self._room)
        if self._layer:
            query["layer"] = str(self._layer)
        if self._struck:
            query["struck"] = " ".join(self._struck)
        return query if self._origin is None else query | self._origin.query(self._store)

    @property
    def _room(self) -> int:
        """Characters that a text may take in the address."""
        return ROOM if self._other is None else ROOM // 2

    @property
    def _origin(self) -> Origin | None:
        """The upload behind the model that is shown, or is about to be; None for the shipped model."""
        stopped = self._fetching and self._session.jobs.current is None  # by Cancel or an error
        return self._using.origin if self._asked is None or stopped else self._asked

    def restore(self, state: Mapping[str, str]) -> None:
        """Take texts, a model, words that are struck out and a layer from an address."""
        found = {key: self._texts.read(state, key, _EXAMPLE_KEYS[key]) for key in _KEYS}
        missing = [key for key in _KEYS if self._texts.missing(state, key)]
        found |= dict.fromkeys(missing, "")
        self._typed = self._typed if found["text"] is None else found["text"]
        self._other = found["beside"]
        self._asked = Origin.read(state, self._store)
        missing += [key for key in ("model", "table") if key in state and self._asked is None]
        self._gone = [_ITEMS[key] for key in missing]
        self._struck = tuple(state.get("struck", "").split()[:_MOST_STRUCK])
        if state.get("layer", "").isdecimal():
            self._layer = min(int(state["layer"][:6]), 10_000)

    def code(self) -> str:
        """The explanation of this text by this model."""
        return (
            f"import hardmax as hm\n{self._using.code}\n\n"
            f"why = model.explain({self._typed!r})\n"
            "print(why)                     # the leaders, what each contributes, and the sum\n"
            f"{self._code_of_struck()}{self._code_of_other()}"
            "why.draw().get_figure().savefig('words.png')\n"
        )

    def _code_of_struck(self) -> str:
        if not self._struck or self._explanation is None or self._explanation.deletion is None:
            return ""
        return (
            f"\nstruck = {set(self._struck)!r}\n"
            "names = [word.removesuffix(' (at the end)').split(' ') for word in why.words]\n"
            "gone = [k for k, parts in enumerate(names) if struck & set(parts)]     # and the n-grams that hold one\n"
            "print(why.deletion.logits([gone])[0])     # without the words that are struck out\n\n"
        )

    def _code_of_other(self) -> str:
        return "" if self._other is None else f"print(model.explain({self._other!r}))     # the second text\n"

    def figure(self) -> Figure | None:
        """The words on their way to their leaders, as the library draws them."""
        if self._explanation is None or not self._explanation.known:
            return None
        axes = self._explanation.draw()
        in_class_colours(axes, self._explanation)
        return in_light(cast("Figure", axes.get_figure(root=True)), self._session.lighting.light)

    def film(self, path: Path, progress: Progress) -> Path | None:
        """The words on their way through the layers."""
        if self._explanation is None or not self._explanation.known:
            return None
        light, player = self._session.lighting.light, self._steps_shown.player
        return PaintedPlots([(_PLANE_TITLE, self._plane.plot)], player, light).film(path, progress)

    # The layout

    def build(self, session: Session) -> Any:
        """Text and model on the left, the answer and its reasons on the right."""
        self._session = session
        start = TextState(EXAMPLES["cast"][1], (), None, shipped())
        self.history = self._history = History(
            self._now, self._travel, reset=start, weigh=TextState.weigh, most_bytes=2**27, same=TextState.shows
        )
        self.history.connect(session.guarded)
        self._first, self._second = Reading(session), Reading(session, linked=False)
        self._plane, self._map = WordPlane(session), WordMap(session)
        self._plane.struck.on_change("data", session.guarded(lambda _a, _o, new: self._strike(new["word"])))
        self._plane_card()
        body = split([self._text_card(), self._model_card()], *self._answer_cards(), self._map_card())
        self._survey()
        self._explain()
        session.when_ready(session.guarded(self._start))
        return body

    def _start(self) -> None:
        """Fetch the model of the address, and say what is not stored."""
        if self._asked is not None:
            self._make(self._asked, self._fetched)
            self._fetching = True
        if self._gone:
            self._session.show_message(" ".join(item.gone for item in self._gone))

    def _text_card(self) -> Any:
        guarded = self._session.guarded
        self._area = pn.widgets.TextAreaInput(
            label="Your text",
            value=self._typed,
            value_input=self._typed,  # otherwise the browser does not report that the box was cleared
            rows=10,
            max_length=MOST_CHARACTERS,
            placeholder="Type or paste a text …",
        )
        # Both events read what was typed last: that of leaving the box may come late, after more was typed.
        self._area.param.watch(guarded(lambda *_: self._take(self._area.value_input)), ["value_input", "value"])
        self._length, self._other_length = note(""), note("")
        options = {title: name for name, (title, _) in EXAMPLES.items()}
        self._pick = pn.widgets.Select(
            label="Example", options={**options, _OWN: ""}, value=example_of(self._typed, EXAMPLES) or ""
        )
        self._pick.param.watch(guarded(self._picked), "value")
        self._another = pn.widgets.Button(label="A review from the test set", visible=reviews() is not None)
        self._another.on_click(guarded(lambda _: self._next_review()))
        self._reviewed = 0
        picker = FilePicker(label="Or a text file", most_bytes=2**20)
        picker.on_file((".txt", ".md"), self._take_file, self._session.fail)
        self._both = pn.widgets.Checkbox(label="Compare with another text", value=self._other is not None)
        self._both.param.watch(guarded(lambda event: self._compare(event.new)), "value")
        self._other_area = pn.widgets.TextAreaInput(
            label="Second text",
            value=self._other or "",
            value_input=self._other or "",
            rows=6,
            max_length=MOST_CHARACTERS,
            visible=self._other is not None,
        )
        read = guarded(lambda *_: self._take_other(self._other_area.value_input))
        self._other_area.param.watch(read, ["value_input", "value"])
        return controls(
            self._pick,
            self._area,
            self._length,
            self._both,
            self._other_area,
            self._other_length,
            self._another,
            picker,
            title="Text",
        )

    def _model_card(self) -> Any:
        guarded = self._session.guarded
        self._story = note("")
        load = FilePicker(label="Load a model (.safetensors, or a ZIP of one)")
        load.on_file(MODELS, self._load, self._session.fail)
        train = FilePicker(label="Train one: a CSV with texts and labels")
        train.on_file(TABLES, self._take_table, self._session.fail)
        self._stored_note = note(UPLOADS)
        self._text_column = pn.widgets.Select(label="Column of texts", options=[], visible=False)
        self._label_column = pn.widgets.Select(label="Column of labels", options=[], visible=False)
        self._begin = pn.widgets.Button(label="Train", color="primary", visible=False)
        self._begin.on_click(guarded(lambda _: self._train()))
        self._back = pn.widgets.Button(label="Back to the shipped model", visible=False)
        self._back.on_click(guarded(lambda _: self._use(shipped())))
        download = Download(
            callback=guarded(lambda: BytesIO(model_bytes(self._using, self._session.folder))),
            filename=f"model{SUFFIX}",
            label="Download the model",
            embed=False,
            icon=None,
        )
        return controls(
            self._story,
            load,
            train,
            self._stored_note,
            self._text_column,
            self._label_column,
            self._begin,
            self._back,
            download,
            title="Model",
        )

    def _answer_cards(self) -> list[Any]:
        self._empty = empty(
            "Type a text",
            "Each word is a point that follows the word with the highest score. After a few layers all words are close "
            "to a few leaders, which determine the answer. Or pick an example to begin with.",
        )
        self._answer = beside()
        self._apart = note("")
        self._arrange()
        self._place()
        return [self._empty, self._apart, self._answer]

    def _arrange(self) -> None:
        """Make the cards. One text: its words in motion, beside them the answer; the bars below. Two: a column each."""
        one, other = self._first, self._second
        title = "What each leader contributes"
        if self._other is None:
            self._reasons = [card(*one.reasons, title=title, css_classes=["full"])]
            words = stack(card(*one.answer, title="Answer"), card(*one.sentence, title="Leaders and followers"))
            self._plane_box.css_classes = ["card", "half"]
            self._plane_box[0].object = heading(_PLANE_TITLE)
            self._cards = [self._plane_box, words, *self._reasons]
            return
        self._reasons = [
            card(*one.reasons, title=f"{title}: first text"),
            card(*other.reasons, title=f"{title}: second text"),
        ]
        self._cards = [
            card(*one.answer, *one.sentence, title="First text"),
            card(*other.answer, *other.sentence, title="Second text"),
            self._plane_box,
            *self._reasons,
        ]
        self._plane_box.css_classes = ["card", "full"]
        self._plane_box[0].object = heading(f"{_PLANE_TITLE}: first text")

    def _place(self) -> None:
        """Show the cards, once they are filled: shown empty, they would grow and move under the pointer."""
        self._answer[:] = self._cards

    def _plane_card(self) -> None:
        self._steps_shown = Steps("Layer", self._session.guarded(self._moved))
        self._plane_key = wide_html()
        self._plane_box = card(
            plot_pane(self._plane.plot),
            self._steps_shown.box,
            self._plane_key,
            note(
                "★ leader · ● follower, larger with its share of the text · ◆ the mean that is classified · "
                "dashed: the boundary between the classes"
            ),
            title=_PLANE_TITLE,
            css_classes=["half"],
        )

    def _map_card(self) -> Any:
        self._map_key = wide_html()
        return card(
            note("Starting positions of all words. Stars lead most texts; hover over a dot to read its word."),
            self._map_key,
            plot_pane(self._map.plot),
            title="The map of words",
        )

    # The history

    @property
    def _now(self) -> TextState:
        return TextState(self._typed, self._struck, self._other, self._using, self._layer)

    def _record(self, control: str = "") -> None:
        """Add a step to the history where the texts, the words that are struck out or the model have changed."""
        if not self._now.shows(self._history.current):
            self._history.record(self._now, control)

    def _travel(self, state: TextState) -> None:
        """Show a state of the history."""
        alone, surveyed = self._other is None, self._using
        self._asked = None
        self._typed, self._struck, self._other = state.typed, state.struck, state.other
        self._using, self._layer = state.using, state.layer
        self._session.clear_message()  # a message about the state before
        self._put(state.typed)
        self._pick.value = example_of(state.typed, EXAMPLES) or ""
        self._both.value = state.other is not None
        self._show_other()
        if alone != (state.other is None):
            self._arrange()
        self._back.visible = state.using is not shipped()
        if state.using is not surveyed:
            self._survey()
        self._explain()
        if alone != (state.other is None):
            self._place()

    # Events

    def _picked(self, event: Any) -> None:
        if event.new in EXAMPLES and EXAMPLES[event.new][1] != self._typed:  # else more may have been typed meanwhile
            self._put(EXAMPLES[event.new][1])

    def _next_review(self) -> None:
        corpus = reviews()
        if corpus is not None and corpus.labels is not None:
            k = self._reviewed % len(corpus.texts)
            self._reviewed += 1
            self._put(corpus.texts[k][:MOST_CHARACTERS])
            self._session.show_message(f"The label of this review is {named(corpus.labels)[k]}.")

    def _take_file(self, upload: Upload) -> None:
        self._session.clear_message()
        text = text_of(upload)
        self._put(text[:MOST_CHARACTERS])
        if len(text) > MOST_CHARACTERS:
            self._session.show_message(
                f"The first {MOST_CHARACTERS:,} of {len(text):,} characters are shown and explained."
            )

    def _put(self, text: str) -> None:
        """Set the text in the box."""
        self._area.param.update(value=text, value_input=text)

    def _take(self, text: str) -> None:
        text = text[:MOST_CHARACTERS]
        if text == self._typed:
            return
        self._typed, self._struck = text, ()
        self._record("text")
        self._session.clear_message()  # a message about the previous text
        self._pick.value = example_of(text, EXAMPLES) or ""
        self._explain()

    def _take_other(self, text: str) -> None:
        if self._other is not None and text[:MOST_CHARACTERS] != self._other:
            self._other = text[:MOST_CHARACTERS]
            self._record("second text")
            self._explain_other()
            self._mention_stored()
            self._session.changed()

    def _compare(self, wanted: bool) -> None:
        """Show a second text beside the first, or the first alone."""
        if wanted == (self._other is not None):
            return
        self._other = (self._other_area.value_input or _SECOND) if wanted else None
        self._show_other()
        self._record()
        self._arrange()
        self._explain_other()
        self._place()
        self._mention_stored()
        self._session.changed()

    def _show_other(self) -> None:
        """Fill the box of the second text, then show it: what is typed into a box at once must not be overwritten."""
        if self._other is not None:
            self._other_area.param.update(value=self._other, value_input=self._other)
        self._other_area.visible = self._other is not None

    def _strike(self, words: Any) -> None:
        struck = tuple(str(word) for word in words)[:_MOST_STRUCK]
        if struck != self._struck:
            self._struck = struck
            self._record()
            self._first.strike(struck)
            self._session.changed()

    def _explain(self) -> None:
        typed = self._typed.strip() != ""
        self._explanation = self._using.model.explain(self._typed) if typed else None
        why = self._explanation
        known = why is not None and why.known
        self._empty.visible, self._answer.visible = not typed, typed
        self._plane_box.visible = known
        self._reasons[0].visible = known
        self._story.object = noted(f"{self._using.title}: {self._using.story}")
        self._mention_stored()
        if why is not None:
            self._first.show(why, self._struck)
        self._plane.struck.data = {"word": list(self._struck)}
        self._map.show_text(why if known else None)
        if why is not None and known:
            layers = len(why.path) - 1
            self._layer = min(self._layer, layers)
            self._plane.show(why, self._layer)
            self._plane_key.object = f"<p class='soft'>Led {key_to_directions(why)}</p>"
            self._steps_shown.show(layers, self._layer)
        self._explain_other()
        self._session.changed()

    def _mention_stored(self) -> None:
        """Say where texts and a model are that an address cannot hold."""
        panes = {"text": (self._length, self._typed), "beside": (self._other_length, self._other)}
        for key, (pane, text) in panes.items():
            cut = [_CUT] if text is not None and len(text) >= MOST_CHARACTERS else []
            say(pane, " ".join([*cut, self._texts.said(text or "", key, _ITEMS[key], self._room)]).strip())
        origin = self._origin
        lost = origin is not None and not origin.query(self._store)
        item = _ITEMS["model" if origin is None or origin.columns is None else "table"]
        say(self._stored_note, item.not_kept if lost else UPLOADS)

    def _explain_other(self) -> None:
        """Explain the second text, if there is one."""
        self._apart.visible = False
        if self._other is None:
            return
        why = self._using.model.explain(self._other)
        self._second.show(why)
        self._reasons[1].visible = why.known
        if self._explanation is not None:
            self._apart.object, self._apart.visible = noted(difference(self._explanation, why)), True

    def _moved(self, event: Any) -> None:
        self._plane.show_layer(event.new)
        self._layer = event.new
        self._history.amend(replace(self._history.current, layer=event.new))
        self._session.changed()

    def _survey(self) -> None:
        found = shipped_survey() if self._using is shipped() else self._using.survey()
        self._map.show(found)
        self._map_key.object = f"<p class='soft'>Colours of the classes: {key_to_classes(found.classes)}</p>"

    # Other models

    def _use(self, model: TextModel) -> None:
        self._session.clear_message()  # a message about the previous model
        self._struck = ()
        self._put_model(model)
        self._record()

    def _fetched(self, model: TextModel) -> None:
        """Use the model of the address, which is no step of the history."""
        if self._asked is not None and model.origin == self._asked:
            self._put_model(model)
            self._history.amend(self._now)

    def _put_model(self, model: TextModel) -> None:
        self._using, self._asked = model, None
        self._back.visible = model is not shipped()
        self._survey()
        self._explain()

    def _make(self, origin: Origin, then: Callable[[TextModel], None]) -> None:
        """Load or train a model in the background."""
        folder = self._session.folder
        name = "Loading the model" if origin.columns is None else "Training"
        self._session.start(name, lambda job: origin.model(folder, job.tell), then)

    def _load(self, upload: Upload) -> None:
        self._use(load_model(upload, self._session.folder))
        self._session.show_message(f"{upload.name} is loaded and explains your text.", "good")

    def _take_table(self, upload: Upload) -> None:
        table = rows_of(upload)
        columns = [str(column) for column in table.columns]
        if len(columns) < 2:
            raise HardmaxError(f"{upload.name} has one column: it needs one with texts and one with labels")
        self._table = upload
        for widget, what in ((self._text_column, "text"), (self._label_column, "label")):
            widget.param.update(options=columns, value=usual_column(columns, what))
        self._show_columns(True)
        rows = counted(len(table), "row")
        self._session.show_message(f"{upload.name} has {rows}. Choose its columns, then press Train.")

    def _show_columns(self, shown: bool) -> None:
        self._text_column.visible = self._label_column.visible = self._begin.visible = shown

    def _train(self) -> None:
        if self._table is None:
            return
        columns = self._text_column.options
        chosen = columns.index(self._text_column.value), columns.index(self._label_column.value)

        def done(model: TextModel) -> None:
            self._show_columns(False)
            self._use(model)
            self._session.show_message(model.story, "good")

        self._make(Origin(self._table, chosen), done)
