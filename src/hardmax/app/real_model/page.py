"""The Real model page: a text in a trained transformer, layer by layer and head by head, at any temperature."""

from __future__ import annotations

import html
from collections.abc import Mapping
from io import BytesIO
from typing import TYPE_CHECKING, Any

import pandas
import panel as pn

import hardmax as hm

from ...errors import HardmaxError
from ..address_texts import AddressTexts, example_of
from ..download import Download
from ..figure_colours import in_light
from ..history import History
from ..jobs import Job
from ..kept import Item, Kept
from ..layout import Steps, beside, card, controls, empty, note, noted, plot_pane, say, split, stack, wide_html
from ..page import Page
from ..painted import PaintedPlots
from .shelf import GET_MODEL, SHELF, WITHOUT_MODEL, Offer
from .state import (
    EXAMPLES,
    FACTORS,
    MOST_CHARACTERS,
    REACTION,
    Computed,
    RealModelState,
    code,
    compute,
    draw,
    run_key,
    seconds,
    unit_length,
)
from .view import (
    KEY,
    HeatMap,
    PlaneView,
    effects_table,
    frame_table,
    head_svg,
    heads_table,
    targets_sentence,
)

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure

    from ...progress import Progress
    from ..session import Session
from ..sliders import set_slider

# Estimated seconds up to which a run is computed immediately; longer ones are background jobs.
_LIVE = 0.3
_OWN = "your own text"
# What the box of the text takes, so that a text that is too long gets a message and is not cut in silence.
_MOST_TYPED = 10 * MOST_CHARACTERS
_TEXT = Item("text", remedy="type or paste it again")


def _same_view(one: RealModelState, other: RealModelState) -> bool:
    """Whether two states differ at most in the layer, which the player sets."""
    return one.changed(layer=0) == other.changed(layer=0)


class RealModelPage(Page):
    """The page; see the module."""

    slug = "real_model"
    title = "Real model"
    task = "Type a text, choose a head, and see which word attends to which."
    text = (
        "A trained transformer under the same verbs: the tokens of your text are words that move from layer to layer. "
        "See which token each token attends to most in every head, the tokens that others attend to (leaders) and "
        "those that take attention without meaning (sinks), and what changes when attention gets colder, up to "
        "hardmax. Real models are not hardmax: the page shows how far from it they are, beside a control."
    )
    paper = "2407.01602"
    functions = ("load_transformer", "probe", "simulate")

    def __init__(self) -> None:
        self._state = RealModelState()
        self._computed: Computed | None = None
        self._report: hm.ProbeReport | None = None
        self._probing: Job | None = None
        self._quiet = False
        self._texts = AddressTexts(EXAMPLES, _MOST_TYPED, Kept())
        self._gone = False
        """Whether the address names a text that is not stored."""
        self._automatic = False
        """Whether the page itself changes its state, which is then no step of the history."""

    # The interface of a page

    def restore(self, state: Mapping[str, str]) -> None:
        text = self._texts.read(state, "text")
        self._gone = self._texts.missing(state, "text")
        self._state = RealModelState.from_query(state, "" if self._gone else text)

    def state(self) -> dict[str, str]:
        query, text = self._state.to_query(), self._state.text
        return query if text == RealModelState().text else query | self._texts.query(text, "text")

    def code(self) -> str:
        known = self._computed
        model = known.model if known is not None and known.offer.name == self._offer.name else None
        return code(self._state, self._offer, model)

    def figure(self) -> Figure | None:
        if self._computed is None or run_key(self._computed.state) != run_key(self._state):
            return None
        figure: Figure = draw(self._computed, self._state)
        return in_light(figure, self._session.lighting.light)

    def film(self, path: Path, progress: Progress) -> Path | None:
        if self._computed is None or run_key(self._computed.state) != run_key(self._state):
            return None
        light, plots = self._session.lighting.light, [("Words in the layers", self._plane.figure)]
        return PaintedPlots(plots, self._steps.player, light).film(path, progress)

    def build(self, session: Session) -> Any:
        self._session = session
        self._offers = SHELF.offers()
        if self._state.model not in self._offers:
            self._state = self._state.changed(model="")
        self.history = self._history = History(self._state, self._travel, reset=RealModelState(), same=_same_view)
        self.history.connect(session.guarded)
        self._make_widgets()
        self._plane, self._heat = PlaneView(session), HeatMap(session)
        # Panel cannot change the classes of a Bokeh pane itself.
        self._picture = pn.Column(plot_pane(self._plane.figure), sizing_mode="stretch_width", margin=0)
        self._steps = Steps("Layer", session.guarded(self._moved), interval=900)
        self._about, self._lines, self._table, self._effects = note(""), wide_html(), wide_html(), wide_html()
        self._now, self._told = note(""), note("")
        self._empty = empty("Type a text", "The words are shown on their way through the layers of the model.")
        trained = any(not offer.control for offer in self._offers.values())
        missing = wide_html()
        missing.visible = not trained
        if not trained:
            missing.object = (
                f'<details class="message note"><summary>{html.escape(WITHOUT_MODEL)}</summary>'
                f"{html.escape(GET_MODEL)}</details>"
            )
        self._head_row = pn.FlexBox(self._head, self._lead, sizing_mode="stretch_width", margin=0)
        self._results = [
            beside(
                stack(
                    card(self._picture, self._steps.box, missing, self._now, title="Words in the layers"),
                    card(self._effects, title="What the temperature changes"),
                    roomy=True,
                ),
                stack(
                    card(self._head_row, self._told, self._lines, title="Who attends to whom"),
                    card(self._table, title="Heads of this layer"),
                    roomy=True,
                ),
            ),
            self._report_card(),
        ]
        self._show_results(False)
        session.lighting.follow(lambda _: self._show_head())
        session.when_ready(session.guarded(self._start))
        return split(
            [
                controls(self._pick, self._about, title="Model"),
                controls(self._example, self._area, self._stored_note, self._run, title="Text"),
                controls(
                    self._factor,
                    note("Scores are multiplied by this factor in every head before the softmax; 1 is as trained."),
                    self._unit,
                    title="Temperature and view",
                ),
            ],
            self._empty,
            *self._results,
        )

    def _start(self) -> None:
        self._update()
        if self._gone:
            self._session.show_message(_TEXT.gone)

    # Controls

    @property
    def _offer(self) -> Offer:
        offers = self._offers
        return offers.get(self._state.model) or next(iter(offers.values()))

    def _make_widgets(self) -> None:
        w, s, guarded = pn.widgets, self._state, self._session.guarded
        titles = {offer.title: name for name, offer in self._offers.items()}
        self._pick = w.Select(label="Model", options=titles, value=self._offer.name)
        self._pick.param.watch(guarded(lambda event: self._changed(model=event.new, head=0)), "value")
        options = {title: name for name, (title, _) in EXAMPLES.items()}
        self._example = w.Select(
            label="Example", options={**options, _OWN: ""}, value=example_of(s.text, EXAMPLES) or ""
        )
        self._example.param.watch(guarded(self._picked), "value")
        self._area = w.TextAreaInput(
            label="Your text", value=s.text, rows=5, max_length=_MOST_TYPED, placeholder="Type or paste a text …"
        )
        self._area.param.watch(guarded(lambda event: self._typed(event.new)), "value")
        self._stored_note = note("")
        self._run = w.Button(label="Run the model", color="primary")
        self._run.on_click(guarded(lambda _: self._update()))
        shown = {name if name == "hardmax" else f"× {name}": name for name in FACTORS}
        self._factor = w.DiscreteSlider(
            label="Inverse temperature β", options=shown, value=s.factor, css_classes=["captioned"]
        )
        self._factor.param.watch(guarded(lambda event: self._changed(factor=event.new)), "value_throttled")
        self._unit = w.Checkbox(label="Draw tokens at unit length", value=s.unit == "yes")
        self._unit.param.watch(guarded(lambda event: self._changed(unit="yes" if event.new else "no")), "value")
        self._head = w.Select(label="Head", options={"0": 0}, value=0, width=120, margin=(3, 10, 3, 0))
        self._lead = w.Button(label="Head with leaders", width=160, margin=(21, 0, 3, 0))
        self._lead.on_click(guarded(lambda _: self._go_to_leaders()))
        self._head.param.watch(guarded(lambda event: self._changed(head=event.new)), "value")

    def _report_card(self) -> Any:
        guarded, w = self._session.guarded, pn.widgets
        self._probe = w.Button(label="Probe this text", color="primary", width=150, margin=(3, 0))
        self._probe.on_click(guarded(lambda _: self._start_probe()))
        self._every = w.Checkbox(label="Replace every head alone, for its verdict (slower)", value=True, margin=(3, 0))
        self._stopped, self._sentences = wide_html(), wide_html()
        self._column = w.Select(label="Figure", options=[], width=220, margin=(3, 0))
        self._column.param.watch(guarded(lambda event: self._show_column(event.new)), "value")
        self._which = w.Select(label="Table", options=[], width=220, margin=(3, 0))
        self._which.param.watch(guarded(lambda event: self._show_table(event.new)), "value")
        self._rows = wide_html()
        self._download = Download(
            callback=guarded(self._report_file),
            filename="hardmax-probe.json",
            label="Download the report (JSON)",
            embed=False,
            icon=None,
            width=220,
            margin=(3, 0),
        )
        self._found = pn.Column(
            self._sentences,
            self._column,
            plot_pane(self._heat.figure),
            note(KEY),
            self._which,
            self._rows,
            self._download,
            sizing_mode="stretch_width",
            margin=0,
            visible=False,
        )
        return card(
            note(
                "The probe measures every head of the model as trained on this text: temperature, leaders, the error "
                "of hardmax with its proved bound, and what the model loses when heads are replaced, beside controls."
            ),
            self._every,
            self._probe,
            self._stopped,
            self._found,
            title="Probe",
        )

    # Events

    def _changed(self, **values: Any) -> None:
        if self._quiet:
            return
        self._state = self._state.changed(**values)
        if self._automatic or _same_view(self._state, self._history.current):
            self._history.amend(self._state)
        else:
            self._history.record(self._state, next(iter(values)))
        self._update()

    def _travel(self, state: RealModelState) -> None:
        """Show a state of the history."""
        self._state = state
        self._session.clear_message()
        with self._silence():
            self._pick.value = self._offer.name
            set_slider(self._factor, state.factor)
            self._area.value, self._example.value = state.text, example_of(state.text, EXAMPLES) or ""
        self._update()

    def _picked(self, event: Any) -> None:
        if not self._quiet and event.new in EXAMPLES:
            self._area.value = EXAMPLES[event.new][1]

    def _typed(self, text: str) -> None:
        if self._quiet or text == self._state.text:
            return
        with self._silence():
            self._example.value = example_of(text, EXAMPLES) or ""
        self._changed(text=text)

    def _go_to_leaders(self) -> None:
        if self._computed is not None:
            layer, head = self._computed.who.leading_head()
            self._changed(layer=layer, head=head)

    def _moved(self, event: Any) -> None:
        self._changed(layer=int(event.new))

    def _silence(self) -> Any:
        return _Quiet(self)

    # The run

    def _update(self) -> None:
        state, known, offer = self._state, self._computed, self._offer
        say(self._stored_note, self._texts.said(state.text, "text", _TEXT))
        self._session.changed()
        if known is None or not self._is_computed(known):
            self._mention_stopped()
        if not state.text.strip():
            self._session.jobs.cancel()
            self._session.clear_message()
            self._empty.visible = True
            self._show_results(False)
            return
        self._empty.visible = False
        model = SHELF.loaded(offer)
        if known is not None and self._is_computed(known):
            self._take(known)
        elif model is not None and seconds(model, state) <= _LIVE:
            self._session.jobs.cancel()
            self._session.clear_message()
            self._dim(True)  # for the case of an error
            self._take(compute(state, offer, model, known, lambda *_: None))
        else:
            self._dim(True)
            self._session.start(
                f"Loading {offer.title}" if model is None else "Running the model",
                lambda job: compute(state, offer, SHELF.model(offer), known, job.tell),
                self._take,
            )

    def _mention_stopped(self) -> None:
        """Say that a probe which is still running ends: a visit has one job at a time, and the model runs again."""
        probing, self._probing = self._probing, None
        if probing is not None and probing is self._session.jobs.current:
            self._stopped.object = (
                '<div class="message note" role="status">The probe was stopped, because the model runs again with '
                "other settings: press “Probe this text” when they stay as they are.</div>"
            )

    def _show_results(self, shown: bool) -> None:
        for part in self._results:
            part.visible = shown

    def _is_computed(self, known: Computed) -> bool:
        return (run_key(known.state), known.state.unit) == (run_key(self._state), self._state.unit)

    def _dim(self, old: bool) -> None:
        for part in (self._picture, self._lines, self._effects, self._table):
            part.css_classes = ["dimmed"] if old else []

    def _take(self, computed: Computed) -> None:
        if not self._is_computed(computed):
            return  # of a run that was replaced by another
        self._dim(False)
        fresh = self._computed is not computed
        self._computed = computed
        state = self._state
        layer, head = min(state.layer, computed.layers), min(state.head, computed.model.heads - 1)
        self._state = state.changed(layer=layer, head=head)
        self._history.amend(self._state)
        with self._silence():
            self._head.param.update(options={str(k): k for k in range(computed.model.heads)}, value=head)
            titles = [f"Layer {k} of {computed.layers}" for k in range(computed.layers + 1)]
            self._steps.show(computed.layers, layer, titles)
            self._unit.value = unit_length(state, computed.model)
        self._show_results(True)
        self._plane.show(computed, layer, head)
        self._show_head()
        self._table.object = heads_table(computed, layer, head)
        if fresh:
            self._mention_unknown(computed)
            if self._computed is not computed:
                return  # another example was run instead, and is shown
            self._about.object = noted(str(computed.model))
            self._effects.object = effects_table(computed)
        self._now.object = noted(
            f"{len(computed.words)} tokens in {computed.model.dimension:,} coordinates. {computed.placed.sentence()} "
            "★ a token that others attend to most in this head · ■ such a token that is a sink · "
            "dashed: from each token to the one it attends to most."
        )

    def _mention_unknown(self, computed: Computed) -> None:
        """Say that the model does not know the text; an example gives way to one that the model may know."""
        if 3 * computed.unknown <= len(computed.words):
            return
        if example_of(self._state.text, EXAMPLES) is not None and self._state.text != REACTION:
            self._automatic = True
            try:
                self._example.value = "reaction"
            finally:
                self._automatic = False
            return
        self._session.show_message(
            f"The model does not know {computed.unknown} of the {len(computed.words)} tokens of this text: it was "
            "trained on other texts."
        )

    def _show_head(self) -> None:
        computed = self._computed
        if computed is None:
            return
        layer, head = self._state.layer, self._state.head
        k = computed.attention_layer(layer)
        after = " (the last; nothing attends after it)" if layer == computed.layers else ""
        self._told.object = noted(f"Layer {k}{after}, head {head}. {targets_sentence(computed, layer, head)}")
        self._lines.object = head_svg(computed, layer, head, self._session.lighting.light)

    # The report

    def _start_probe(self) -> None:
        computed = self._computed
        if computed is None or run_key(computed.state) != run_key(self._state):
            self._session.show_message("Run the model on this text first.")
            return
        name, every = computed.offer.title, bool(self._every.value)

        def work(job: Job) -> hm.ProbeReport:
            rules = ("hardmax", "top-4", "beta=2", *(("every head",) if every else ()))
            return hm.probe(computed.model, [computed.given], interventions=rules, progress=job.tell)

        def done(report: hm.ProbeReport) -> None:
            self._report = report
            self._sentences.object = noted(f"{name}, on “{computed.state.text[:200]}”") + _sentences(report)
            heads: pandas.DataFrame = report.heads
            columns = [
                str(one)
                for one in heads.columns
                if one not in ("layer", "head", "text", "tokens") and pandas.api.types.is_numeric_dtype(heads[one])
            ]
            with self._silence():
                self._column.param.update(
                    options={one.replace("_", " "): one for one in columns},
                    value="tau" if "tau" in columns else columns[0],
                )
                self._which.param.update(options={one.capitalize(): one for one in _TABLES}, value=_TABLES[0])
            self._show_column(self._column.value)
            self._show_table(self._which.value)
            self._found.visible = True

        self._stopped.object = ""
        self._session.start("Probing the model", work, done)
        self._probing = self._session.jobs.current

    def _show_column(self, column: str | None) -> None:
        if self._report is not None and column is not None:
            self._heat.show(self._report.heads, column)

    def _show_table(self, name: str | None) -> None:
        if self._report is not None and name is not None:
            self._rows.object = frame_table(self._report.tables()[name])

    def _report_file(self) -> BytesIO:
        if self._report is None:
            raise HardmaxError("there is no report yet: press Probe this text")
        return BytesIO((self._report.save(self._session.folder / "report") / "report.json").read_bytes())


_TABLES = ("heads", "layers", "leaders", "weights", "interventions")


def _sentences(report: hm.ProbeReport) -> str:
    lines = "".join(f"<li>{html.escape(line)}</li>" for line in report.summary().splitlines() if line.strip())
    return f"<ul style='padding-left:18px;margin:4px 0'>{lines}</ul>"


class _Quiet:
    """Widgets that change within the block cause no event of the page."""

    def __init__(self, page: RealModelPage) -> None:
        self._page = page

    def __enter__(self) -> None:
        self._page._quiet = True

    def __exit__(self, *_: object) -> None:
        self._page._quiet = False
