"""Exact networks: draw or upload sequences and targets, compile them, and watch the proof happen."""

from __future__ import annotations

import html
from collections.abc import Mapping
from io import BytesIO
from typing import TYPE_CHECKING, Any, cast, get_args

import panel as pn

from ...errors import HardmaxError, InputError
from ...figures.interpolation import draw_construction
from ...interpolation.constructions.interpolate import Construction
from ...interpolation.evaluation.running import journey
from ...interpolation.problems import Problem
from ..page import Page
from ..panes import Steps, plot_pane, wide_html
from ..shell import beside, card, controls, empty, note, noted, split
from ..uploads import LONGEST, FilePicker, Upload, example_of, kept_text
from .state import (
    EXAMPLES,
    MOST_CHARACTERS,
    Compiled,
    Recipe,
    counted,
    load_network,
    network_archive,
    read_lines,
    read_upload,
    size_of,
    write_lines,
)
from .view import BlockPlane, Board, CountBars, proof

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..jobs import Job
    from ..session import Session

_WIDEST = 64
_WORDS = {
    "leaders": "True argmax attention, a few layers of it.",
    "fewest": "The fewest blocks: one layer that reads means.",
    "witness": "Argmax with integers and dyadic numbers only.",
    "conditioned": "The best accuracy in floating point.",
    "paper": "The route outlined in the paper, for comparison.",
}
_STALE = (
    "The sequences or the choices have changed since this network was compiled. Press Compile to prove it for them."
)
_MODES = {"Add tokens": "token", "Add targets": "target", "Erase": "erase"}


class NetworksPage(Page):
    """A data set becomes a transformer with rational weights, and a proof."""

    slug = "networks"
    title = "Exact networks"
    text = (
        "Nothing is trained here. From sequences of tokens and the targets that they should reach, a transformer is "
        "compiled whose weights are rational numbers; exact arithmetic then proves that every sequence lands on its "
        "targets. Draw some, press Compile, and watch the tokens go through the blocks."
    )
    paper = "2502.02270"
    functions = ("interpolate", "classify_exactly", "ExactTransformer", "Certificate", "verify")

    def __init__(self) -> None:
        self._lines = EXAMPLES["overlap"][1]
        self._construction: Construction = "leaders"
        self._width, self._temperature = 4, ""
        self._moment = 0
        self._problem: Problem | None = None
        self._done: Compiled | None = None
        self._done_for: tuple[str, ...] = ()
        """The sequences and the choices that the network was compiled for."""

    # What the address keeps

    def state(self) -> dict[str, str]:
        """The sequences and the choices."""
        kept = kept_text("lines", self._lines, EXAMPLES)
        kept |= {"construction": self._construction, "width": str(self._width)}
        if self._temperature:
            kept["temperature"] = self._temperature
        if self._moment:
            kept["moment"] = str(self._moment)
        return kept

    def restore(self, state: Mapping[str, str]) -> None:
        """Take up sequences and choices; what makes no sense is left out."""
        if state.get("example") in EXAMPLES:
            self._lines = EXAMPLES[state["example"]][1]
        elif "lines" in state:
            self._lines = state["lines"][:LONGEST]
        if state.get("construction") in get_args(Construction):
            self._construction = cast("Construction", state["construction"])
        if state.get("width", "").isdecimal():
            self._width = min(max(int(state["width"][:3]), 1), _WIDEST)
        self._temperature = state.get("temperature", "")[:20]
        if state.get("moment", "").isdecimal():
            self._moment = min(int(state["moment"][:6]), 10**5)

    def code(self) -> str:
        """Compile, prove, save."""
        recipe = self._recipe()
        inputs, outputs, labels = recipe.problem.inputs, recipe.problem.outputs, recipe.problem.labels
        options = "".join(f", {name}={value!r}" for name, value in recipe.options().items())
        if labels is None:
            data = f"inputs = {inputs!r}\noutputs = {outputs!r}\nnet = hm.interpolate(inputs, outputs{options})"
        else:
            data = f"inputs = {inputs!r}\nlabels = {labels!r}\nnet = hm.classify_exactly(inputs, labels{options})"
        return (
            f"import hardmax as hm\n\n{data}\n"
            "print(net.certify())           # the proof, with the hash of the data\n"
            "print(net.summary())           # blocks beside the published bound\n"
            "net.save('net')                # hm.verify('net') proves it again from the files\n"
        )

    def figure(self) -> Figure | None:
        """Five moments on the way, as the library draws them."""
        if self._stale:
            raise HardmaxError(_STALE)
        return None if self._done is None else cast("Figure", draw_construction(self._done.network))

    # What one sees

    def build(self, session: Session) -> Any:
        """Data and choices on the left; board, blocks, counts and proof on the right."""
        self._session = session
        self._board = Board(session, self._drawn)
        self._plane, self._bars = BlockPlane(session), CountBars(session)
        self._results = self._result_cards()
        body = split([self._data_card(), self._network_card()], self._board_card(), *self._results)
        self._read()
        if self._problem is not None:
            session.when_ready(session.guarded(self._compile))
        return body

    def _data_card(self) -> Any:
        guarded = self._session.guarded
        options = {title: name for name, (title, _) in EXAMPLES.items()}
        self._pick = pn.widgets.Select(
            label="Example", options={**options, "your own": ""}, value=example_of(self._lines, EXAMPLES) or ""
        )
        self._pick.param.watch(guarded(self._picked), "value")
        self._area = pn.widgets.TextAreaInput(
            label="One sequence a line",
            value=self._lines,
            rows=7,
            max_length=MOST_CHARACTERS,
            placeholder="(0, 0) (1, 3/8) -> (1, 2)",
        )
        self._area.param.watch(guarded(lambda event: self._typed(event.new)), "value")
        self._hint = note("")
        picker = FilePicker(label="Or upload them: JSON, or CSV in long form with labels")
        picker.on_file((".json", ".csv"), self._take_file, self._session.fail)
        form = note("Tokens, an arrow, and targets or a label: (0, 0) (1, 3/8) -> (1, 2). Numbers are taken exactly.")
        return controls(self._pick, self._area, self._hint, form, picker, title="Sequences and targets")

    def _network_card(self) -> Any:
        guarded = self._session.guarded
        self._how = pn.widgets.Select(label="Construction", options=list(_WORDS), value=self._construction)
        self._how_words = note(_WORDS[self._construction])
        self._wide = pn.widgets.IntInput(label="Neurons per layer", value=self._width, start=1, end=_WIDEST)
        self._heat = pn.widgets.TextInput(
            label="Softmax temperature (empty: hardmax)", value=self._temperature, placeholder="for example 1/10"
        )
        for widget in (self._how, self._wide, self._heat):
            widget.param.watch(guarded(lambda _: self._chosen()), "value")
        begin = pn.widgets.Button(label="Compile", color="primary")
        begin.on_click(guarded(lambda _: self._compile()))
        self._download = pn.widgets.FileDownload(
            callback=guarded(self._archive),
            filename="network.zip",
            label="Download the network",
            embed=False,
            icon=None,
            disabled=True,
        )
        check = FilePicker(label="Or check a network that was saved (ZIP, or its network.json)")
        check.on_file((".zip", ".json"), self._check, self._session.fail)
        return controls(
            self._how, self._how_words, self._wide, self._heat, begin, self._download, check, title="Network"
        )

    def _board_card(self) -> Any:
        mode = pn.widgets.RadioButtonGroup(label="Tapping the board", options=_MODES, value="token", margin=0)
        mode.param.watch(lambda event: setattr(self._board, "mode", event.new), "value")
        self._which = pn.widgets.Select(label="", options={"sequence 1": 0}, value=0, width=200, margin=0)
        self._which.param.watch(lambda event: setattr(self._board, "sequence", event.new), "value")
        self._board_note = note("")
        return card(
            pn.Row(mode, self._which, margin=0, css_classes=["tools"]),
            plot_pane(self._board.plot),
            self._board_note,
            title="Drawing board",
        )

    def _result_cards(self) -> list[Any]:
        self._steps_shown = Steps("Moment", self._session.guarded(self._moved))
        self._moment_words, self._count_words, self._proof = note(""), note(""), wide_html()
        self._waiting = empty(
            "Nothing compiled yet",
            "Give every sequence at least one token and one target (no more targets than tokens), then press Compile. "
            "Sequences may share tokens; only as sets they must differ.",
        )
        self._blocks_card = card(
            self._moment_words,
            plot_pane(self._plane.plot),
            self._steps_shown.box,
            title="Tokens on their way through the blocks",
        )
        self._proof_cards = beside(
            card(
                plot_pane(self._bars.plot),
                self._count_words,
                title="Blocks beside the published bound",
            ),
            card(self._proof, title="Certificate"),
        )
        self._blocks_card.visible = self._proof_cards.visible = False
        self._changed_card = wide_html()
        self._changed_card.object = f'<div class="message note stale" role="status">{html.escape(_STALE)}</div>'
        self._changed_card.visible = False
        return [self._waiting, self._changed_card, self._blocks_card, self._proof_cards]

    # What happens

    @property
    def _asked(self) -> tuple[str, ...]:
        """What a network would be compiled for now."""
        return self._lines, self._construction, str(self._width), self._temperature

    @property
    def _stale(self) -> bool:
        """Whether the network that is shown is one of other sequences or choices."""
        return self._done is not None and self._asked != self._done_for

    def _mark_stale(self) -> None:
        """Let a proof stand only beside what was proved."""
        stale = self._stale
        self._changed_card.visible = stale
        self._download.disabled = stale or self._done is None
        for shown in (self._blocks_card, self._proof_cards):
            shown.css_classes = [name for name in shown.css_classes if name != "dimmed"] + ["dimmed"] * stale
        if self._done is not None:
            self._proof.object = proof(self._done.certificate, stale=stale)

    def _picked(self, event: Any) -> None:
        if event.new in EXAMPLES:
            self._area.value = EXAMPLES[event.new][1]

    def _typed(self, lines: str) -> None:
        if lines == self._lines:
            return
        self._lines = lines
        self._read()
        self._session.changed()

    def _read(self) -> None:
        """Read the lines; a line that is not finished yet is said beside them, not shouted."""
        try:
            self._problem = read_lines(self._lines)
        except InputError as error:
            self._problem = None
            self._hint.object = noted(str(error) if self._lines.strip() else "Tap the board, or type a line.")
        else:
            self._hint.object = noted(size_of(self._problem))
            self._board.show(self._problem)
        if not self._lines.strip():
            self._board.show(None)
        self._after_edit()

    def _drawn(self, problem: Problem) -> None:
        """Somebody edited the board: the lines follow it."""
        self._board.show(problem)
        self._lines = write_lines(problem)
        self._area.value = self._lines
        try:
            self._problem = read_lines(self._lines)
            self._hint.object = noted(size_of(self._problem))
        except InputError as error:
            self._problem = None
            self._hint.object = noted(str(error))
        self._after_edit()
        self._session.changed()

    def _after_edit(self) -> None:
        self._pick.value = example_of(self._lines, EXAMPLES) or ""
        count = self._board.sequences
        names = {name: k for k, name in enumerate(self._board.names)} | {"a new sequence": count}
        chosen = self._which.value if self._which.value in names.values() else 0
        self._which.param.update(options=names, value=chosen)
        self._board_note.object = noted(
            "Filled: tokens, one colour and shape a sequence; rings: targets. Drag to move; points snap to quarters."
            if self._board.editable
            else "Shown in the first two coordinates; edit the lines or the file."
        )
        self._mark_stale()

    def _chosen(self) -> None:
        self._construction, self._width = self._how.value, self._wide.value
        self._temperature = self._heat.value.strip()
        self._how_words.object = noted(_WORDS[self._construction])
        self._mark_stale()
        self._session.changed()

    def _take_file(self, upload: Upload) -> None:
        self._session.hush()
        problem = read_upload(upload, self._session.folder)
        lines = write_lines(problem)
        if len(lines) > MOST_CHARACTERS:
            raise InputError(
                "data", f"{len(lines):,} characters", "is too large to be shown here", "use hardmax interpolate"
            )
        read_lines(lines)
        self._area.value = lines
        self._session.say(f"{upload.name}: {size_of(problem)}. Press Compile.", "good")

    def _recipe(self) -> Recipe:
        return Recipe(
            self._problem or read_lines(self._lines), self._construction, self._width, self._temperature or None
        )

    def _compile(self) -> None:
        recipe, asked = self._recipe(), self._asked

        def work(job: Job) -> Compiled:
            network = recipe.build(job.tell)
            certificate = network.certify(progress=job.tell)
            job.report(None, "following the tokens")
            return Compiled(network, certificate, journey(network))

        self._session.start("Compiling and proving", work, lambda compiled: self._show(compiled, asked))

    def _check(self, upload: Upload) -> None:
        files = load_network(upload)
        folder = self._session.folder

        def work(job: Job) -> Compiled:
            network, certificate = files.verify(folder, job.tell)
            return Compiled(network, certificate, journey(network))

        def done(compiled: Compiled) -> None:
            self._show_data_of(compiled)
            self._show(compiled, self._asked)
            kind = "good" if compiled.certificate.proved else "error"
            self._session.say(str(compiled.certificate).splitlines()[0], kind)

        self._session.start(f"Proving {upload.name}", work, done)

    def _show_data_of(self, compiled: Compiled) -> None:
        """Put the data of a network from a file into the lines and onto the board, where they can be typed."""
        lines = write_lines(compiled.problem)
        try:
            read_lines(lines)
        except InputError:  # too many, or a label that holds an arrow or a bracket
            return
        self._typed(lines)
        self._area.value = lines

    def _show(self, compiled: Compiled, asked: tuple[str, ...]) -> None:
        self._done, self._done_for = compiled, asked
        network, counts = compiled.network, compiled.network.counts
        self._waiting.visible, self._blocks_card.visible, self._proof_cards.visible = False, True, True
        self._plane.show(network, compiled.way)
        self._moment = min(self._moment, self._plane.last)
        self._steps_shown.show(self._plane.last, self._moment)
        self._moment_words.object = noted(self._plane.show_moment(self._moment))
        self._bars.show(counts, softmax=network.attention == "softmax")
        self._count_words.object = noted(
            f"N = {counted(len(network.data), 'sequence')}, M = {counted(network.data.targets, 'target')}: "
            f"{counted(counts.blocks, 'block')}, {counts.ratio:.0%} of the published bound. "
            f"{counted(counts.parameters, 'parameter')}."
        )
        self._mark_stale()
        self._session.changed()

    def _moved(self, event: Any) -> None:
        self._moment = event.new
        self._moment_words.object = noted(self._plane.show_moment(event.new))
        self._session.changed()

    def _archive(self) -> BytesIO:
        if self._done is None:
            raise HardmaxError("there is no network yet: press Compile first")
        if self._stale:
            raise HardmaxError(_STALE)
        return BytesIO(network_archive(self._done.network, self._done.certificate, self._session.folder))
