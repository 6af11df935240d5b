"""A compiled network on the page: tokens after every block, block counts and the certificate."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from bokeh.core.properties import value
from bokeh.models import ColumnDataSource, FactorRange, HoverTool, LabelSet, Range1d

from ...figures.interpolation import targets_of, window_around
from ...interpolation.evaluation.certificate import Certificate
from ...interpolation.evaluation.counts import Counts
from ...interpolation.evaluation.running import Journey, Moment, every_moment
from ...interpolation.transformer import ExactTransformer
from ..layout import Steps, beside, beside_bars, card, empty, note, noted, plot_pane, wide_html
from ..look import DAY, FONT, PALETTE, Light, on_first_screen, rank_colours
from ..painted import PaintedPlots
from ..stage import empty_frames, path_frames, register_stage
from .board import SHAPES
from .state import Compiled, counted, sequence_names

if TYPE_CHECKING:
    from pathlib import Path

    from ...progress import Progress
    from ..session import Session


STALE = "The sequences or the choices have changed since this network was compiled. Press Compile to prove it for them."
_USED, _BOUND, _OTHER = PALETTE[0], PALETTE[4], "#8a96a0"


class BlockPlane:
    """A plot of the tokens in their first two coordinates at one moment; the ranges follow them."""

    def __init__(self, session: Session, name: str = "") -> None:
        self._moments: list[Moment] = []
        self._blocks = 0
        columns = ("x", "y", "token", "colour", "marker", "size", "name")
        self._tokens = ColumnDataSource({name: [] for name in columns})
        self._frames = empty_frames(f"{name}block frames")
        self._targets = ColumnDataSource(
            {name: [] for name in ("x", "y", "colour", "name")}, name=f"{name}block targets"
        )
        self._labels = ColumnDataSource({name: [] for name in ("x", "y", "label")}, name=f"{name}class names")
        self.plot = session.figure(height=400, x_range=Range1d(-1, 1), y_range=Range1d(-1, 1), name=f"{name}blocks")
        on_first_screen(self.plot, around=400)
        rings = self.plot.scatter(
            "x", "y", size=26, fill_alpha=0, line_color="colour", line_width=2.5, source=self._targets
        )
        called = LabelSet(
            x="x", y="y", text="label", x_offset=18, y_offset=8, text_font_size="13px", text_font=value(FONT),
            source=self._labels,
        )  # fmt: skip
        self.plot.add_layout(called)
        marks = self.plot.scatter(
            "x", "y", size="size", marker="marker", fill_color="colour", line_width=1, source=self._tokens
        )
        self.plot.add_tools(HoverTool(renderers=[marks, rings], tooltips=[("", "@name"), ("at", "(@x, @y)")]))

        self._light, self._owner, self._target_owner = DAY, np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)

        def repaint(light: Light) -> None:
            self._light = light
            marks.glyph.line_color = called.text_color = light.ink
            for source, owner in ((self._tokens, self._owner), (self._targets, self._target_owner)):
                source.data["colour"] = rank_colours(owner, light)

        session.lighting.follow(repaint)
        register_stage(self.plot, "points", {"plot": self.plot, "frames": self._frames, "parts": [self._tokens]})

    @property
    def last(self) -> int:
        """The number of the last moment."""
        return max(len(self._moments) - 1, 0)

    def show(self, network: ExactTransformer, way: Journey, labels: Sequence[object] | None) -> None:
        """Show another network; ``labels`` are the classes of its sequences, if it has some."""
        names = sequence_names(len(network.data), labels)
        self._moments = every_moment(network, way)
        self._blocks = len(network.blocks)
        points, owners = targets_of(network)
        self._target_points, self._target_owner, self._owner = points, owners, way.owner
        self._targets.data = {
            "x": points[:, 0],
            "y": points[:, 1],
            "colour": rank_colours(owners, self._light),
            "name": [f"target of {names[k]}" for k in owners],
        }
        first = {str(labels[k]): spot for k, spot in zip(owners[::-1], points[::-1], strict=True)} if labels else {}
        self._labels.data = {
            "x": [float(spot[0]) for spot in first.values()],
            "y": [float(spot[1]) for spot in first.values()],
            "label": list(first),
        }
        sizes = np.linspace(17, 9, len(network.data))
        self._tokens.data = {
            "x": way.before[:, 0],
            "y": way.before[:, 1],
            "token": np.arange(len(way.before)),
            "colour": rank_colours(way.owner, self._light),
            "marker": [SHAPES[k % len(SHAPES)] for k in way.owner],
            "size": sizes[way.owner],
            "name": [f"token of {names[k]}" for k in way.owner],
        }
        self.show_moment(0)

    def play_along(self, now: int, pace: float = 1.0) -> None:
        """Let the browser move the tokens between all moments, by so many moments per moment of the player."""
        path = np.stack([moment.positions[:, :2] for moment in self._moments])
        windows = [np.stack(self._window(k), axis=1).ravel() for k in range(len(self._moments))]
        self._frames.data = path_frames(path, now, windows=np.stack(windows), pace=pace)

    def titles(self) -> list[str]:
        """The name of every moment."""
        return [
            moment.title if moment.block == 0 else f"block {moment.block} of {self._blocks}: {moment.title}"
            for moment in self._moments
        ]

    def _window(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper corner of the plot at a moment."""
        # Far from the targets, including them would shrink the tokens to one dot.
        ends = number in (0, self.last)
        return window_around(self._moments[number].positions, self._target_points if ends else None)

    def show_moment(self, number: int) -> str:
        """Move the tokens to one moment; its name is returned."""
        if not self._moments:
            return ""
        number = min(number, self.last)
        at = self._moments[number].positions
        self._tokens.data = {**self._tokens.data, "x": at[:, 0], "y": at[:, 1]}
        low, high = self._window(number)
        self.plot.x_range.update(start=float(low[0]), end=float(high[0]))
        self.plot.y_range.update(start=float(low[1]), end=float(high[1]))
        return self.titles()[number]


class CountBars:
    """Bars of the number of blocks, of the formulas and of the bounds."""

    def __init__(self, session: Session) -> None:
        self._source = ColumnDataSource({name: [] for name in ("bar", "blocks", "colour")})
        self._bars = FactorRange()
        self.plot = session.figure(height=210, y_range=self._bars, x_range=Range1d(0, 1), x_axis_label="blocks")
        self.plot.ygrid.grid_line_color = None
        self.plot.hbar(y="bar", right="blocks", height=0.62, color="colour", alpha=0.9, source=self._source)
        beside_bars(session, self.plot, self._source, x="blocks", text="blocks")

    def show(self, counts: Counts, *, softmax: bool) -> None:
        """Show the counts of another network."""
        rows = count_rows(counts, softmax=softmax)
        self._bars.factors = [name for name, _, _ in reversed(rows)]
        self.plot.x_range.end = 1.15 * max(blocks for _, blocks, _ in rows)
        self._source.data = {
            "bar": [name for name, _, _ in rows],
            "blocks": [blocks for _, blocks, _ in rows],
            "colour": [colour for _, _, colour in rows],
        }


def count_rows(counts: Counts, *, softmax: bool) -> list[tuple[str, int, str]]:
    """Name, number of blocks and colour of each bar."""
    return [
        ("this network", counts.blocks, _USED),
        ("its formula", counts.formula, _OTHER),
        ("its worst case", counts.worst_case, _OTHER),
        ("published: 2M + 3N" if softmax else "published: 2M + 2N + 1", counts.published, _BOUND),
        ("necessary", counts.necessary_blocks, _OTHER),
    ]


# A readable list; the certificate file has all of them.
_FAILURES_SHOWN = 5


def proof(certificate: Certificate, names: Sequence[str], *, stale: bool = False) -> str:
    """The certificate as HTML, sequences by their ``names``; for a stale one, of other data, a note instead."""
    if stale:
        return "<p class='soft' style='font-size:20px;font-weight:650;margin:0'>Not proved for what is shown</p>"
    mark, colour = ("✓ Proved", "--hm-good") if certificate.proved else ("✗ Not proved", "--hm-warm")
    rows = [
        ("arithmetic", certificate.arithmetic),
        ("attention", certificate.attention),
        ("sequences", f"{certificate.sequences:,} with {counted(certificate.tokens, 'token')}"),
        ("smallest pre-activation", _margin(certificate.activation_margin)),
        ("smallest lead of a best score", _margin(certificate.score_margin)),
        ("largest float64 error", f"{certificate.float64_error:.3g}"),
        ("time for the proof", f"{certificate.seconds:.2g} s"),
    ]
    table = "".join(f"<tr><td class='soft'>{name}</td><td>{html.escape(value)}</td></tr>" for name, value in rows)
    failures = [f"{names[failure.sequence]}: {failure.reason}" for failure in certificate.failures]  # as on the board
    troubles = [*failures[:_FAILURES_SHOWN], *certificate.problems[:_FAILURES_SHOWN]]
    listed = "".join(f"<li>{html.escape(trouble)}</li>" for trouble in troubles)
    return (
        f"<p style='font-size:20px;font-weight:650;color:var({colour});margin:0'>{mark}</p>"
        f"<p class='soft' style='margin:2px 0'>SHA-256 of the data</p><code class='hash' style='overflow-wrap:anywhere;"
        f"font-size:12px'>{certificate.data_hash}</code><table style='width:100%'>{table}</table>"
        f"{f'<ul>{listed}</ul>' if listed else ''}"
    )


def status(certificate: Certificate, *, stale: bool) -> str:
    """One line above the plots, as HTML, always of the same height: the board must not move under the pointer."""
    if stale:
        kind, words = "note stale", "Changed since it was proved. Press Compile."
    elif certificate.proved:
        kind, words = "proved", "✓ Exact: every sequence reaches its targets."
    else:
        kind, words = "failed", "✗ The proof failed: see the certificate."
    return f'<div class="message {kind}" role="status">{words}</div>'


def _margin(value: float) -> str:
    return f"{value:.3g}" if math.isfinite(value) else "nothing had to be decided"


def comparison(names: Sequence[str], both: Sequence[Compiled]) -> str:
    """Two networks for the same data, side by side, as an HTML table; the smaller of two numbers is bold."""
    rows: list[tuple[str, list[float], list[str]]] = []
    counts = [one.network.counts for one in both]
    proofs = [one.certificate for one in both]
    rows.append(("blocks", [c.blocks for c in counts], [f"{c.blocks:,}" for c in counts]))
    rows.append(("parameters", [c.parameters for c in counts], [f"{c.parameters:,}" for c in counts]))
    rows.append(
        ("largest float64 error", [p.float64_error for p in proofs], [f"{p.float64_error:.3g}" for p in proofs])
    )
    rows.append(("smallest pre-activation", [0, 0], [_margin(p.activation_margin) for p in proofs]))
    rows.append(("smallest lead of a best score", [0, 0], [_margin(p.score_margin) for p in proofs]))
    rows.append(("proof", [0, 0], ["✓ proved" if p.proved else "✗ not proved" for p in proofs]))
    head = "".join(f"<th>{html.escape(name)}</th>" for name in ("", *names))
    body = ""
    for name, numbers, shown in rows:
        best = [number == min(numbers) and numbers[0] != numbers[1] for number in numbers]
        cells = "".join(f"<td>{f'<b>{text}</b>' if won else text}</td>" for text, won in zip(shown, best, strict=True))
        body += f"<tr><td class='soft'>{name}</td>{cells}</tr>"
    return f"<table class='rivals' style='width:100%'><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


_WAY, _OTHER_WAY = "Tokens on their way through the blocks", "The other construction, as far on its way"


class Results:
    """The cards of a compiled network; they are dimmed while the network does not match what is typed."""

    def __init__(self, session: Session, moved: Callable[[int], None]) -> None:
        self._plane, self._bars = BlockPlane(session), CountBars(session)
        self._other_plane, self._other_words, self._rivals = BlockPlane(session, "rival "), note(""), wide_html()
        self._moved = moved
        self._steps = Steps("Moment", session.guarded(lambda event: self._show_moment(event.new)))
        self._count_words, self._proof = note(""), wide_html()
        self._certificate: Certificate | None = None
        self._names: list[str] = []
        self._waiting = empty(
            "Nothing compiled yet",
            "Give every sequence at least one token and one target (no more targets than tokens), then press Compile. "
            "Sequences may share tokens, but no two may be equal as sets.",
        )
        self.blocks = card(
            plot_pane(self._plane.plot),
            self._steps.box,
            title=_WAY,
            css_classes=["half"],
        )
        self.rival = card(
            self._other_words,
            plot_pane(self._other_plane.plot),
            title=_OTHER_WAY,
            css_classes=["half"],
        )
        self._rival_table = card(self._rivals, title="Two constructions of the same data")
        self.rival.visible = self._rival_table.visible = False
        self.proofs = beside(
            card(plot_pane(self._bars.plot), self._count_words, title="Number of blocks and the published bound"),
            card(self._proof, title="Certificate"),
        )
        self.blocks.visible = self.proofs.visible = False
        self._status = wide_html()
        self._status.visible = False

    def cards(self, board: Any) -> list[Any]:
        """All cards, with the board beside the plots of the tokens; on a phone, where one can draw less, below them."""
        ways = beside(board, self.blocks, self.rival)
        return [self._status, ways, self._waiting, self._rival_table, self.proofs]

    def show(self, compiled: Compiled, moment: int) -> int:
        """Show another network at a moment; the moment that is shown, at most the last."""
        network, counts = compiled.network, compiled.network.counts
        self._certificate = compiled.certificate
        self._waiting.visible, self.blocks.visible, self.proofs.visible = False, True, True
        labels = compiled.problem.labels
        self._plane.show(network, compiled.way, labels)
        self._names = sequence_names(len(network.data), labels)
        moment = min(moment, self._plane.last)
        self._steps.show(self._plane.last, moment, self._plane.titles())
        self._plane.show_moment(moment)
        self._plane.play_along(moment)
        self._bars.show(counts, softmax=network.attention == "softmax")
        self._count_words.object = noted(
            f"N = {counted(len(network.data), 'sequence')}, M = {counted(network.data.targets, 'target')}: "
            f"{counted(counts.blocks, 'block')}, {counts.ratio:.0%} of the published bound. "
            f"{counted(counts.parameters, 'parameter')}."
        )
        return moment

    def film(self, path: Path, progress: Progress, light: Light) -> Path:
        """Write the motion of the plots that are shown as a film."""
        plots = [(_WAY, self._plane.plot)]
        if self.rival.visible:
            plots.append((_OTHER_WAY, self._other_plane.plot))
        return PaintedPlots(plots, self._steps.player, light).film(path, progress)

    def show_rival(self, first: Compiled, second: Compiled | None, names: Sequence[str], moment: int) -> None:
        """Show a second network for the same data beside the first, or none."""
        self.rival.visible = self._rival_table.visible = second is not None
        if second is not None:
            self._other_plane.show(second.network, second.way, second.problem.labels)
            self._rivals.object = comparison(names, [first, second])
            self._other_plane.play_along(moment, self._other_plane.last / max(self._plane.last, 1))
            self._follow(moment)

    def _follow(self, moment: int) -> None:
        """Move the second network to the same share of its way."""
        if self.rival.visible:
            other = round(moment * self._other_plane.last / max(self._plane.last, 1))
            self._other_words.object = noted(self._other_plane.show_moment(other))

    def mark(self, stale: bool) -> None:
        """Show the proof only while it is one of the sequences and choices on the page."""
        self._status.visible = self._certificate is not None
        for shown in (self.blocks, self.rival, self._rival_table, self.proofs):
            shown.css_classes = [name for name in shown.css_classes if name != "dimmed"] + ["dimmed"] * stale
        if self._certificate is not None:
            self._status.object = status(self._certificate, stale=stale)
            self._proof.object = proof(self._certificate, self._names, stale=stale)

    def _show_moment(self, moment: int) -> None:
        self._plane.show_moment(moment)
        self._follow(moment)
        self._moved(moment)
