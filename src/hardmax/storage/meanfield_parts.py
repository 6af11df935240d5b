"""Low-temperature limits and the phases of a run in files: every number of theirs, the theory's included."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
import torch

from ..meanfield.limit import LowTemperatureLimit
from ..meanfield.occupancy import Occupancy
from ..meanfield.phases import Fit, Phases, Terminal
from ..meanfield.rates import Rates
from ..meanfield.spectrum import Leading
from .contents import Contents, Reader

_SQUARE = ("coordinate", "coordinate_too")


def limit_contents(limit: LowTemperatureLimit) -> Contents:
    """A low-temperature limit."""
    contents = Contents.of("low-temperature limit", limit.positions)
    _put_limit(contents, limit)
    return contents


def read_limit(reader: Reader) -> LowTemperatureLimit:
    """The low-temperature limit in a file."""
    return _get_limit(reader)


def phases_contents(found: Phases) -> Contents:
    """The phases of a run, with the limit that they were measured against."""
    contents = Contents.of("phases", found.limit.positions)
    _put_limit(contents, found.limit)
    for name in ("times", "distances", "trimmed"):
        contents.put(name, ("time",), getattr(found, name))
    contents.put("terminal_direction", ("coordinate",), found.terminal.direction)
    if found.terminal.expected is not None:
        contents.put("terminal_expected", ("coordinate",), found.terminal.expected)
    contents.put("theory_pointwise", ("token",), found.theory.pointwise)
    contents.put_words(
        "phases",
        _spelled(
            {
                "method": found.method,
                "beta": found.beta,
                "approach_time": found.approach_time,
                "approach_distance": found.approach_distance,
                "window": list(found.window),
                "escape_time": found.escape_time,
                "concentration": None if found.concentration is None else asdict(found.concentration),
                "escape": None if found.escape is None else asdict(found.escape),
                "terminal_spread": found.terminal.spread,
                "terminal_distance": found.terminal.distance,
                "occupancy": asdict(found.occupancy),
                "theory_slowest": found.theory.slowest,
                "theory_wasserstein": found.theory.wasserstein,
                "theory_escape": found.theory.escape,
            }
        ),
    )
    return contents


def read_phases(reader: Reader) -> Phases:
    """The phases in a file."""
    limit = _get_limit(reader)
    count, d = limit.positions.shape
    times = reader.plain("times", (None,))
    expected = reader.plain("terminal_expected", (d,)) if reader.has("terminal_expected") else None
    words = reader.words("phases")

    def make() -> Phases:
        occupied = words["occupancy"]
        return Phases(
            times=times,
            distances=reader.plain("distances", times.shape),
            trimmed=reader.plain("trimmed", times.shape),
            method=str(words["method"]),
            approach_time=float(words["approach_time"]),
            approach_distance=float(words["approach_distance"]),
            window=_pair(words["window"]),
            escape_time=_maybe(words["escape_time"]),
            concentration=_fit(words["concentration"]),
            escape=_fit(words["escape"]),
            terminal=Terminal(
                direction=reader.plain("terminal_direction", (d,)),
                spread=float(words["terminal_spread"]),
                expected=expected,
                distance=_maybe(words["terminal_distance"]),
            ),
            occupancy=Occupancy(
                tokens=int(occupied["tokens"]),
                dimension=int(occupied["dimension"]),
                beta=float(occupied["beta"]),
                smallest=float(occupied["smallest"]),
                median=float(occupied["median"]),
            ),
            limit=limit,
            theory=Rates(
                pointwise=reader.plain("theory_pointwise", (count,)),
                slowest=float(words["theory_slowest"]),
                wasserstein=float(words["theory_wasserstein"]),
                escape=_maybe(words["theory_escape"]),
            ),
            beta=float(words["beta"]),
        )

    return reader.made("phases", make)


def _put_limit(contents: Contents, limit: LowTemperatureLimit) -> None:
    contents.put("positions", ("token", "coordinate"), limit.positions)
    if limit.weights is not None:
        contents.put("weights", ("token",), limit.weights)
    contents.put("B", _SQUARE, limit.B)
    contents.put("V", _SQUARE, limit.V)
    contents.put("projector", _SQUARE, limit.projector)
    contents.put("leading_basis", ("coordinate", "leading"), limit.leading.basis)
    contents.put("second_basis", ("coordinate", "second"), limit.leading.second_basis)
    contents.put_words("leading", {"eigenvalue": limit.leading.eigenvalue, "second": limit.leading.second})


def _get_limit(reader: Reader) -> LowTemperatureLimit:
    positions = reader.numbers("positions", (None, None))
    count, d = positions.shape
    projector = reader.plain("projector", (d, d))
    words = reader.words("leading")

    def make() -> Leading:
        return Leading(
            eigenvalue=float(words["eigenvalue"]),
            second=_maybe(words["second"]),
            basis=reader.plain("leading_basis", (d, None)),
            second_basis=reader.plain("second_basis", (d, None)),
            projector=projector,
        )

    return LowTemperatureLimit(
        positions=positions,
        projector=torch.from_numpy(projector.copy()) if isinstance(positions, torch.Tensor) else projector,
        weights=reader.numbers("weights", (count,)) if reader.has("weights") else None,
        leading=reader.made("leading", make),
        B=reader.plain("B", (d, d)),
        V=reader.plain("V", (d, d)),
    )


def _spelled(value: Any) -> Any:
    """The same with infinities and NaN as words: JSON knows neither."""
    if isinstance(value, dict):
        return {name: _spelled(inside) for name, inside in value.items()}
    if isinstance(value, (list, tuple)):
        return [_spelled(inside) for inside in value]
    return str(value) if isinstance(value, float) and not np.isfinite(value) else value


def _maybe(value: Any) -> float | None:
    return None if value is None else float(value)


def _pair(value: Any) -> tuple[float, float]:
    first, second = value
    return float(first), float(second)


def _fit(words: Any) -> Fit | None:
    if words is None:
        return None
    return Fit(
        rate=float(words["rate"]),
        error=float(words["error"]),
        r_squared=float(words["r_squared"]),
        interval=_pair(words["interval"]),
    )
