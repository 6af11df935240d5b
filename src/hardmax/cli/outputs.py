"""Output files of a command: checked before the work, written atomically after it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..attention.layer import HardmaxLayer
from ..dynamics.equilibrium import Equilibrium
from ..dynamics.simulate import simulate
from ..dynamics.trajectory import Trajectory
from ..errors import FileError
from ..files import require_writable
from ..storage.array_files import MARKER
from ..storage.token_tables import READABLE, write_tokens
from ..storage.trajectories import SAVEABLE, save

if TYPE_CHECKING:
    from .simulate_run import Request


def require_target(option: str, path: Path | None, known: Sequence[str], *, folder_with: str | None = None) -> None:
    """Refuse a name whose suffix the option does not know, or that cannot be written; None asks for nothing.

    A folder may be replaced if it has the file ``folder_with``.
    """
    if path is None:
        return
    if path.suffix.lower() not in known:
        problem = f"{option} cannot write {path.suffix or 'a file without suffix'}"
        raise FileError(path, problem, f"use {', '.join(known)}")
    require_writable(path, folder_with=folder_with)


# A film of a limit shows the way there until tokens are within half a percent of it.
_NEARLY_THERE = 200.0
_LONGEST_FILM = 120


def is_zarr(path: Path | None) -> bool:
    """Whether this file can be written while the run goes on."""
    return path is not None and path.suffix.lower() in (".zarr", ".zip")


def require_writable_all(figure: Path | None, animate: Path | None, to_save: Path | None) -> None:
    """Refuse names that could not be written, before any work is done."""
    from ..figures.animate import FORMATS as FILMS
    from ..figures.save import FORMATS as PICTURES

    require_target("--figure", figure, PICTURES)
    require_target("--animate", animate, FILMS)
    in_a_folder = to_save is not None and to_save.suffix.lower() == ".zarr"
    require_target("--save", to_save, (*SAVEABLE, *READABLE), folder_with=MARKER if in_a_folder else None)


def write_all(
    request: Request,
    tokens: np.ndarray,
    weights: np.ndarray | None,
    result: Trajectory | Equilibrium,
    *,
    streamed: bool,
) -> list[str]:
    """Write the files that were asked for; give back their names."""
    written = []
    if request.save is not None:
        if not streamed:
            _save(result, request.save)
        written.append(str(request.save))
    if request.figure is not None:
        _draw(result, tokens, request.figure)
        written.append(str(request.figure))
    if request.animate is not None:
        from ..figures.animate import animate_tokens

        film = result if isinstance(result, Trajectory) else _way_to(result, tokens, weights)
        animate_tokens(film, request.animate, progress=False if request.quiet else None)
        written.append(str(request.animate))
    return written


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
    """The layers that lead to a limit, as far as the eye can see them move."""
    layer: HardmaxLayer = limit.layer
    approach = math.ceil(math.log(_NEARLY_THERE) / math.log1p(float(layer.alpha)))
    depth = min(_LONGEST_FILM, limit.layers + approach)
    return simulate(tokens, layer, depth=depth, weights=weights)
