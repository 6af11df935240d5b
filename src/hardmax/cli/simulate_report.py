"""The result of ``hardmax simulate``: a summary in words, JSON, and the files that were asked for."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import typer

from ..attention.layer import HardmaxLayer
from ..dynamics.equilibrium import Equilibrium
from ..dynamics.simulate import simulate
from ..dynamics.trajectory import Trajectory
from ..geometry.clusters import Clusters, clusters
from ..geometry.findings import TheoremReport
from ..geometry.leaders import Leaders, leaders
from ..inputs import plain
from ..outcomes import counted
from ..storage.array_files import MARKER
from ..storage.token_tables import READABLE, write_tokens
from ..storage.trajectories import SAVEABLE, save
from .options import require_target

_SHOWN = 8
"""Leaders that the summary lists; the others are counted."""
_SHOWN_COORDINATES = 4
"""Coordinates of a position that fit on a line of the summary."""
_NEARLY_THERE = 200.0
"""An animation of a limit ends where tokens are within half a percent, 1/200, of it."""
_LONGEST_FILM = 120
"""Layers of an animation at most; more would make a longer file."""


@dataclass(frozen=True, eq=False)
class Summary:
    """A run or a limit, where its tokens came from, how long it took, and the files written."""

    tokens: np.ndarray
    source: str
    result: Trajectory | Equilibrium
    seconds: float
    theorem: TheoremReport | None
    files: Sequence[str]

    def data(self) -> dict[str, Any]:
        """The summary as plain values for JSON, without the positions of all tokens, which ``--save`` writes."""
        result, n, d = self.result, *self.tokens.shape
        outcome = result.outcome
        found: dict[str, Any] = {
            "tokens": {"n": n, "d": d, "source": self.source},
            "layer": str(result.layer),
            "outcome": {
                "ending": outcome.ending.value,
                "ok": outcome.ok,
                "sentence": outcome.sentence,
                "remedy": outcome.remedy,
            },
            "seconds": self.seconds,
            "files": list(self.files),
            "infinite_depth": isinstance(result, Equilibrium),
        }
        if isinstance(result, Equilibrium):
            found["layers_until_decided"] = result.layers
        else:
            found["kept_layers"] = result.layers.tolist()
        if result.assumptions is not None:
            hold = {"hold": result.assumptions.hold, "sentence": str(result.assumptions)}
            found["assumptions"] = {**asdict(result.assumptions), **hold}
        if result.leadership is not None:
            found |= self._leadership_data()
        if self.theorem is not None:
            found["theorem"] = {
                "holds": self.theorem.holds,
                "findings": [
                    {"name": f.name, "statement": f.statement, "holds": f.holds, "sentence": f.sentence}
                    for f in self.theorem.findings
                ],
            }
        return found

    def _leadership_data(self) -> dict[str, Any]:
        leadership, who, groups = self.result.leadership, leaders(self.result), clusters(self.result)
        assert leadership is not None  # noqa: S101  (known to the caller)
        return {
            "leaders": [
                {"token": token, "emerged_at": layer, "followers": followers, "position": position}
                for token, layer, followers, position in zip(
                    who.index.tolist(),
                    who.emerged_at.tolist(),
                    who.followers.tolist(),
                    who.positions.tolist(),
                    strict=True,
                )
            ],
            "clusters": [
                {"kind": kind, "leaders": members.tolist(), "size": size, "centre": centre}
                for kind, members, size, centre in zip(
                    groups.kinds, groups.leaders, groups.sizes.tolist(), groups.centres.tolist(), strict=True
                )
            ],
            "follows": plain(leadership.follows).tolist(),
            "decided_at": plain(leadership.decided_at).tolist(),
            "ties": {str(token): members.tolist() for token, members in leadership.ties.items()},
        }

    def print(self) -> None:
        """Print the summary."""
        for label, words in self.lines():
            typer.echo(typer.style(f"{label:<10}", fg="cyan", bold=True) + words)

    def lines(self) -> Iterator[tuple[str, str]]:
        """The summary, line by line: a label (empty on lines that continue) and words."""
        result, (n, d) = self.result, self.tokens.shape
        yield "tokens", f"{n:,} in {counted(d, 'dimension')} ({self.source})"
        yield "layer", str(result.layer)
        if result.assumptions is not None:
            yield "theorem", str(result.assumptions)
        if result.leadership is not None:
            who, found = leaders(result), clusters(result)
            yield from _leader_lines(who)
            yield from _cluster_lines(found)
            yield "ties", _ties(len(result.leadership.ties))
            yield "decided", _decided(plain(result.leadership.decided_at))
        if self.theorem is not None:
            for finding in self.theorem.findings:
                yield "checked" if finding is self.theorem.findings[0] else "", str(finding)
        yield "outcome", str(result.outcome)
        yield "time", f"{self.seconds:.3g} s"
        for k, name in enumerate(self.files):
            yield "wrote" if k == 0 else "", name


def _leader_lines(who: Leaders) -> Iterator[tuple[str, str]]:
    if len(who) == 0:
        yield "leaders", "none"
        return
    late = int((who.emerged_at > 0).sum())
    since = "all from layer 0" if late == 0 else f"{late} emerged after layer 0, the last at {who.emerged_at.max()}"
    yield "leaders", f"{len(who):,}, {since}"
    order = np.argsort(-who.followers, kind="stable")[:_SHOWN]
    width = max(len(str(who.index[k])) for k in order)
    most = max(len(f"{who.followers[k]:,}") for k in order)
    for k in order:
        followers = f"{who.followers[k]:>{most},} {'follower ' if who.followers[k] == 1 else 'followers'}"
        place = f"since layer {who.emerged_at[k]}  at {_point(who.positions[k])}"
        yield "", f"token {who.index[k]:>{width}}  {followers}  {place}"
    if len(who) > len(order):
        yield "", f"and {len(who) - len(order):,} more"


def _point(position: np.ndarray) -> str:
    shown = ", ".join(f"{x:.4g}" for x in position[:_SHOWN_COORDINATES])
    return f"({shown}{', …' if len(position) > _SHOWN_COORDINATES else ''})"


def _cluster_lines(found: Clusters) -> Iterator[tuple[str, str]]:
    kinds = list(found.kinds)
    parts = [f"{kinds.count('vertex'):,} at leaders", f"{kinds.count('face'):,} on faces between leaders"]
    if "undecided" in kinds:
        parts.append(f"{kinds.count('undecided'):,} undecided")
    yield "clusters", f"{', '.join(parts)}; the largest has {counted(int(found.sizes.max()), 'token')}"


def _ties(count: int) -> str:
    if count == 0:
        return "no token follows several leaders for ever"
    return f"{count:,} token{'s follow' if count > 1 else ' follows'} several leaders for ever"


def _decided(decided_at: np.ndarray) -> str:
    undecided = int((decided_at < 0).sum())
    decided = decided_at[decided_at >= 0]
    if len(decided) == 0:
        return f"none; {counted(undecided, 'token')} undecided"
    at_once = 100.0 * float((decided == 0).sum()) / len(decided_at)
    words = f"{at_once:.3g} % at layer 0, the last at layer {decided.max()}"
    return words if undecided == 0 else f"{words}; {counted(undecided, 'token')} undecided"


def is_zarr(path: Path | None) -> bool:
    """Whether this file can be written during the run."""
    return path is not None and path.suffix.lower() in (".zarr", ".zip")


def require_targets(figure: Path | None, animate: Path | None, to_save: Path | None) -> None:
    """Refuse names that could not be written, before any work is done."""
    from ..figures.save import FORMATS as PICTURES
    from ..figures.save import MOVIE_FORMATS as FILMS

    require_target("--figure", figure, PICTURES)
    require_target("--animate", animate, FILMS)
    in_a_folder = to_save is not None and to_save.suffix.lower() == ".zarr"
    require_target("--save", to_save, (*SAVEABLE, *READABLE), folder_with=MARKER if in_a_folder else None)


def write_files(
    result: Trajectory | Equilibrium,
    tokens: np.ndarray,
    weights: np.ndarray | None,
    *,
    table: Path | None,
    figure: Path | None,
    animation: Path | None,
    quiet: bool,
) -> list[str]:
    """Names of the files written: the result itself, a figure of it and an animation, each where it is not None."""
    if table is not None:
        _save(result, table)
    if figure is not None:
        _draw(result, tokens, figure)
    if animation is not None:
        from ..figures.tokens import animate_tokens

        film = result if isinstance(result, Trajectory) else _way_to(result, tokens, weights)
        animate_tokens(film, animation, progress=False if quiet else None)
    return [str(path) for path in (table, figure, animation) if path is not None]


def _save(result: Trajectory | Equilibrium, path: Path) -> None:
    if path.suffix.lower() in SAVEABLE:
        save(result, path)
    else:
        write_tokens(result.final if isinstance(result, Trajectory) else result.positions, path)


def _draw(result: Trajectory | Equilibrium, tokens: np.ndarray, path: Path) -> None:
    from ..figures.save import save_figure
    from ..figures.tokens import draw_panels, draw_tokens

    if isinstance(result, Equilibrium):
        figure = draw_tokens(result, start=tokens).figure
    elif len(result) > 1:
        figure = draw_panels(result)
    else:
        figure = draw_tokens(result).figure
    save_figure(figure, path)  # type: ignore[arg-type]


def _way_to(limit: Equilibrium, tokens: np.ndarray, weights: np.ndarray | None) -> Trajectory:
    """The layers that lead to a limit, up to the last one with visible motion."""
    layer: HardmaxLayer = limit.layer
    approach = math.ceil(math.log(_NEARLY_THERE) / math.log1p(float(layer.alpha_at(0))))
    depth = min(_LONGEST_FILM, limit.layers + approach)
    return simulate(tokens, layer, depth=depth, weights=weights)
