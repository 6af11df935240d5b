"""The page of exact networks: sequences and targets are compiled into a transformer and proved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from io import BytesIO
from typing import TYPE_CHECKING, Any, cast

import panel as pn

from ...errors import HardmaxError, InputError
from ...figures.interpolation import draw_construction
from ...interpolation.data import Problem
from ...interpolation.evaluation.running import journey
from ..address_texts import AddressTexts, example_of
from ..download import Download
from ..figure_colours import in_light
from ..history import History
from ..kept import UPLOADS, Item, Kept
from ..layout import card, controls, note, noted, plot_pane, say, split
from ..page import Page
from ..uploads import FilePicker, Upload
from .board import Board
from .state import (
    EXAMPLES,
    MOST_CHARACTERS,
    WIDEST,
    Choices,
    Compiled,
    NetworksState,
    Shown,
    code_of_file,
    load_network,
    network_archive,
    outcome_of,
    read_lines,
    read_upload,
    refuse_labels,
    size_of,
    write_lines,
)
from .view import STALE, Results

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure

    from ...progress import Progress
    from ..jobs import Job
    from ..session import Session

_WORDS = {
    "leaders": "True argmax attention, a few layers of it.",
    "fewest": "The fewest blocks: one layer that reads means.",
    "witness": "Argmax with integers and dyadic numbers only.",
    "conditioned": "The best accuracy in floating point.",
    "paper": "The route outlined in the paper, for comparison.",
}
_NETWORKS = (".zip", ".json")
_LINES = Item("sequences", several=True, remedy="upload or type them again")
_NETWORK = Item("network")
_MODES = {"+ Token": "token", "+ Target": "target", "Erase": "erase"}


class NetworksPage(Page):
    """Compilation of a data set into a transformer with rational weights, with its certificate."""

    slug = "networks"
    title = "Exact networks"
    task = "Draw some sequences, press Compile, and play the blocks one by one."
    text = (
        "Sequences of tokens and their targets are compiled, without training, into a transformer with rational "
        "weights; exact arithmetic then proves that every sequence is mapped to its targets."
    )
    paper = "2502.02270"
    functions = ("interpolate", "classify_exactly", "ExactTransformer", "Certificate", "verify")

    def __init__(self) -> None:
        self._choices = Choices()
        self._moment = 0
        self._problem: Problem | None = None
        self._done: Shown | None = None
        """The networks that are shown, and the choices that they were compiled for."""
        self._beginning = NetworksState(Choices())
        """The state that Reset goes to."""
        self._quiet = False
        self._store = Kept()
        self._texts = AddressTexts(EXAMPLES, MOST_CHARACTERS, self._store)
        self._asked: tuple[Choices, Upload] | None = None
        """The network of the address, and its choices."""
        self._gone: Item | None = None
        """What the address names that is not stored."""

    # The address

    def state(self) -> dict[str, str]:
        """The sequences, the choices and the uploaded network."""
        query = self._texts.query(self._choices.lines, "lines") | self._choices.to_query()
        file = self._file
        name = None if file is None else self._store.keep(file)
        query |= {} if name is None else {"network": name}
        return {**query, "moment": str(self._moment)} if self._moment else query

    @property
    def _file(self) -> Upload | None:
        """The file of the network that is shown; None where it is compiled from the lines."""
        if self._done is not None and not self._stale:
            return self._done.file
        return None if self._asked is None or self._asked[0] != self._choices else self._asked[1]

    def restore(self, state: Mapping[str, str]) -> None:
        """Take sequences, choices and a network from an address."""
        lines = self._texts.read(state, "lines")
        if self._texts.missing(state, "lines"):
            lines, self._gone = "", _LINES
        self._choices = Choices.from_query(state, lines)
        if "network" in state:
            file = self._store.read(state["network"], _NETWORKS)
            self._asked, self._gone = (None, _NETWORK) if file is None else ((self._choices, file), None)
        if state.get("moment", "").isdecimal():
            self._moment = min(int(state["moment"][:6]), 10**5)

    def code(self) -> str:
        """Python that compiles, proves and saves the network, or proves the uploaded one."""
        if self._file is not None:
            return code_of_file(self._file.name)
        rival = self._choices.rival()
        other = "" if rival is None else f"\n# The other construction of the same data\n{rival.code(bare=True)}"
        return self._choices.recipe().code() + other

    def figure(self) -> Figure | None:
        """Five stages of the network, drawn by the library."""
        if self._stale:
            raise HardmaxError(STALE)
        if self._done is None:
            return None
        return in_light(cast("Figure", draw_construction(self._done.compiled.network)), self._session.lighting.light)

    def film(self, path: Path, progress: Progress) -> Path | None:
        """The tokens on their way through the blocks."""
        if self._stale:
            raise HardmaxError(STALE)
        return None if self._done is None else self._results.film(path, progress, self._session.lighting.light)

    # The layout

    def build(self, session: Session) -> Any:
        """The body of the page: data and choices on the left, board and results on the right."""
        self._session = session
        self.history = self._history = History(
            NetworksState(self._choices, self._moment),
            self._travel,
            reset=self._beginning,
            weigh=NetworksState.weigh,
            same=lambda one, other: one.choices == other.choices,
        )
        self.history.connect(session.guarded)
        self._board = Board(session, self._drawn)
        self._results = Results(session, self._moved)
        body = split([self._data_card(), self._network_card()], *self._results.cards(self._board_card()))
        self._read()
        session.when_ready(session.guarded(self._start))
        return body

    def _start(self) -> None:
        if self._asked is not None:
            self._check(self._asked[1])
        elif self._problem is not None:
            self._compile()
        if self._gone is not None:
            self._session.show_message(self._gone.gone)

    def _data_card(self) -> Any:
        guarded = self._session.guarded
        options = {title: name for name, (title, _) in EXAMPLES.items()}
        self._pick = pn.widgets.Select(
            label="Example", options={**options, "your own": ""}, value=example_of(self._choices.lines, EXAMPLES) or ""
        )
        self._pick.param.watch(guarded(self._picked), "value")
        self._area = pn.widgets.TextAreaInput(
            label="One sequence per line",
            value=self._choices.lines,
            value_input=self._choices.lines,  # otherwise the browser does not report that the box was cleared
            rows=7,
            max_length=MOST_CHARACTERS,
            placeholder="(0, 0) (1, 3/8) -> (1, 2)",
        )
        # Both events read what was typed last: that of leaving the box may come late, after more was typed.
        self._area.param.watch(guarded(lambda *_: self._typed(self._area.value_input)), ["value_input", "value"])
        self._hint = note("")
        picker = FilePicker(label="Or upload JSON, or CSV in long form with labels")
        picker.on_file((".json", ".csv"), self._take_file, self._session.fail)
        self._stored_note = note(UPLOADS)
        form = note("Tokens, an arrow, and targets or a label: (0, 0) (1, 3/8) -> (1, 2). Numbers are taken exactly.")
        return controls(
            self._pick, self._area, self._hint, form, picker, self._stored_note, title="Sequences and targets"
        )

    def _network_card(self) -> Any:
        guarded = self._session.guarded
        self._how = pn.widgets.Select(label="Construction", options=list(_WORDS), value=self._choices.construction)
        self._how_words = note(_WORDS[self._choices.construction])
        self._wide = pn.widgets.IntInput(label="Neurons per layer", value=self._choices.width, start=1, end=WIDEST)
        self._heat = pn.widgets.TextInput(
            label="Softmax temperature (empty: hardmax)",
            value=self._choices.temperature,
            placeholder="for example 1/10",
        )
        self._beside = pn.widgets.Select(
            label="Beside another construction", options={"none": "", **{name: name for name in _WORDS}},
            value=self._choices.beside,
        )  # fmt: skip
        tied = {"how": self._how, "wide": self._wide, "heat": self._heat, "beside": self._beside}
        for name, widget in tied.items():
            widget.param.watch(guarded(lambda _, name=name: self._chosen(name)), "value")
        self._download = Download(
            callback=guarded(self._archive),
            filename="network.zip",
            label="Download the network",
            embed=False,
            icon=None,
            disabled=True,
        )
        check = FilePicker(label="Or verify a saved network (ZIP, or its network.json)")
        check.on_file(_NETWORKS, self._check, self._session.fail)
        return controls(
            self._how,
            self._how_words,
            self._wide,
            self._heat,
            self._beside,
            self._download,
            check,
            title="Network",
        )

    def _board_card(self) -> Any:
        mode = pn.widgets.RadioButtonGroup(label="Click on the board to", options=_MODES, value="token", margin=0)
        guarded = self._session.guarded
        mode.param.watch(guarded(lambda event: setattr(self._board, "mode", event.new)), "value")
        self._which = pn.widgets.Select(label="Sequence", options={"sequence 1": 0}, value=0, width=128, margin=0)
        self._which.param.watch(guarded(lambda event: setattr(self._board, "sequence", event.new)), "value")
        begin = pn.widgets.Button(label="Compile", color="primary", width=92, margin=0)
        begin.on_click(guarded(lambda _: self._compile()))
        self._board_note = note("")
        return card(
            pn.Row(mode, self._which, begin, margin=0, css_classes=["tools", "level"]),
            plot_pane(self._board.plot),
            self._board_note,
            title="Drawing board",
            css_classes=["half", "later", "editor"],
        )

    # Events

    @property
    def _stale(self) -> bool:
        """Whether the network that is shown is one of other sequences or choices."""
        return self._done is not None and self._choices != self._done.choices

    def _mark_stale(self) -> None:
        """Show a proof only beside what was proved."""
        self._download.disabled = self._stale or self._done is None
        self._mention_stored()
        self._results.mark(self._stale)

    def _mention_stored(self) -> None:
        """Say where sequences and a network are that an address cannot hold."""
        words = self._texts.said(self._choices.lines, "lines", _LINES)
        if self._file is not None and self._store.keep(self._file) is None:
            words = _NETWORK.not_kept
        say(self._stored_note, words or UPLOADS)

    def _picked(self, event: Any) -> None:
        if event.new in EXAMPLES and EXAMPLES[event.new][1] != self._choices.lines:
            self._put(EXAMPLES[event.new][1])

    def _put(self, lines: str) -> None:
        """Set the lines in the box."""
        self._area.param.update(value=lines, value_input=lines)

    def _typed(self, lines: str) -> None:
        if lines == self._choices.lines:
            return
        self._choices = replace(self._choices, lines=lines)
        self._read()
        self._record("lines")
        self._session.changed()

    def _record(self, control: str = "") -> None:
        """Add a step to the history where the sequences or the choices have changed."""
        if self._choices != self._history.current.choices:
            known = None if self._stale else self._done
            drawn = None if self._problem is not None else self._board.problem
            self._history.record(NetworksState(self._choices, self._moment, known, drawn), control)

    def _travel(self, state: NetworksState) -> None:
        """Show a state of the history, with the network that was proved for it, if there is one."""
        chosen = self._choices = state.choices
        self._moment = state.moment
        self._session.clear_message()
        self._quiet = True
        try:
            self._put(chosen.lines)
            self._how.value, self._wide.value = chosen.construction, chosen.width
            self._heat.value, self._beside.value = chosen.temperature, chosen.beside
        finally:
            self._quiet = False
        self._how_words.object = noted(_WORDS[chosen.construction])
        self._read()
        if self._problem is None and state.drawn is not None:
            self._board.show(state.drawn)
            self._after_edit()
        if state.shown is not None:
            if not chosen.lines.strip():
                self._show_on_board(state.shown.compiled)
            self._show(state.shown)
        elif state is self._beginning and (self._done is None or self._stale):
            self._compile()  # as at the start of a visit
        self._session.changed()

    def _read(self) -> None:
        """Read the lines; an error is shown in the note below them."""
        try:
            self._problem = read_lines(self._choices.lines)
        except InputError as error:
            self._problem = None
            self._hint.object = noted(
                str(error) if self._choices.lines.strip() else "Click on the board, or type a line."
            )
        else:
            self._hint.object = noted(size_of(self._problem))
            self._board.show(self._problem)
        if not self._choices.lines.strip():
            self._board.show(None)
        self._after_edit()

    def _drawn(self, problem: Problem) -> None:
        """Update the lines after an edit of the board."""
        self._board.show(problem, still=True)
        self._choices = replace(self._choices, lines=write_lines(problem))
        self._put(self._choices.lines)
        try:
            self._problem = read_lines(self._choices.lines)
            self._hint.object = noted(size_of(self._problem))
        except InputError as error:
            self._problem = None
            self._hint.object = noted(str(error))
        self._record()
        self._after_edit()
        self._session.changed()

    def _after_edit(self) -> None:
        self._pick.value = example_of(self._choices.lines, EXAMPLES) or ""
        count = self._board.sequences
        names = {name: k for k, name in enumerate(self._board.names)} | {"a new sequence": count}
        chosen = self._which.value if self._which.value in names.values() else 0
        self._which.param.update(options=names, value=chosen)
        self._board_note.object = noted(
            "Filled: tokens, one colour and shape per sequence; rings: targets. Drag to move; points snap to quarters."
            if self._board.editable
            else "Shown in the first two coordinates; edit the lines or the file."
        )
        self._mark_stale()

    def _chosen(self, control: str) -> None:
        if self._quiet or self._wide.value is None:
            return
        self._choices = replace(
            self._choices,
            construction=self._how.value,
            width=self._wide.value,
            temperature=self._heat.value.strip(),
            beside=self._beside.value,
        )
        self._record(control)
        self._how_words.object = noted(_WORDS[self._choices.construction])
        self._mark_stale()
        self._session.changed()

    def _take_file(self, upload: Upload) -> None:
        self._session.clear_message()
        problem = read_upload(upload, self._session.folder)
        lines = write_lines(problem)
        refuse_labels(problem, upload.name)
        if len(lines) > MOST_CHARACTERS:
            raise InputError(
                "data", f"{len(lines):,} characters", "is too large to be shown here", "use hardmax interpolate"
            )
        read_lines(lines)
        self._put(lines)
        self._session.show_message(f"{upload.name}: {size_of(problem)}. Press Compile.", "good")

    def _compile(self) -> None:
        recipes, asked = [self._choices.recipe(), self._choices.rival()], self._choices

        def work(job: Job) -> list[Compiled]:
            done = []
            for recipe in recipes:
                if recipe is not None:
                    network = recipe.build(job.tell)
                    certificate = network.certify(progress=job.tell)
                    job.report(None, "recording the tokens")
                    done.append(Compiled(network, certificate, journey(network)))
            return done

        self._session.start("Compiling and proving", work, lambda done: self._show(Shown(asked, *done)))

    def _check(self, upload: Upload) -> None:
        files = load_network(upload)
        folder = self._session.folder

        def work(job: Job) -> Compiled:
            network, certificate = files.verify(folder, job.tell)
            return Compiled(network, certificate, journey(network))

        def done(compiled: Compiled) -> None:
            unlike = self._show_data_of(compiled)
            self._show(Shown(self._choices, compiled, file=upload))
            kind = "good" if compiled.certificate.proved else "error"
            self._session.show_message(f"{outcome_of(compiled.certificate)}{unlike}", kind)

        self._session.start(f"Proving {upload.name}", work, done)

    def _show_data_of(self, compiled: Compiled) -> str:
        """Show the data of an uploaded network in the lines and on the board; a note where they cannot be typed."""
        lines = write_lines(compiled.problem)
        try:
            fits = len(lines) <= MOST_CHARACTERS and write_lines(read_lines(lines)) == lines
        except InputError:  # a label that holds an arrow or a bracket
            fits = False
        self._typed(lines if fits else "")
        self._put(lines if fits else "")
        if fits:
            return ""
        self._show_on_board(compiled)
        return " Its data are on the board; they are too long for the lines, or have labels that lines cannot hold."

    def _show_on_board(self, compiled: Compiled) -> None:
        self._board.show(compiled.problem)
        self._hint.object = noted(f"On the board: {size_of(compiled.problem)}, from the file.")

    def _show(self, shown: Shown) -> None:
        """Show compiled networks; those of earlier choices do not replace the ones that were proved for these."""
        choices = shown.choices
        if choices != self._choices and self._done is not None and not self._stale:
            return
        self._done = shown
        self._moment = self._results.show(shown.compiled, self._moment)
        names = (choices.construction, choices.beside)
        self._results.show_rival(shown.compiled, shown.rival, names, self._moment)
        self._mark_stale()
        if choices == self._choices:
            self._history.amend(NetworksState(choices, self._moment, shown))
        self._session.changed()

    def _moved(self, moment: int) -> None:
        self._moment = moment
        self._history.amend(replace(self._history.current, moment=moment))
        self._session.changed()

    def _archive(self) -> BytesIO:
        if self._done is None:
            raise HardmaxError("there is no network yet: press Compile first")
        if self._stale:
            raise HardmaxError(STALE)
        done = self._done.compiled
        return BytesIO(network_archive(done.network, done.certificate, self._session.folder))
