"""Forecasts: values, spread, times and outcome, also as a table for notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
import numpy.typing as npt

from ..outcomes import Ending, Outcome
from .protocol import FloatArray


def html_table(caption: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """HTML of a table; every cell is escaped."""
    cells = "".join(f"<th>{escape(name)}</th>" for name in head)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><caption>{escape(caption)}</caption><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table>"


_ROWS, _COLUMNS = 4, 6
"""First and last steps, and channels, that a notebook shows: a table that fits on a screen."""


@dataclass(frozen=True, repr=False)
class Forecast:
    """A forecast from one window or from several; ``numpy.asarray(forecast)`` is its values.

    Attributes
    ----------
    values
        Predicted samples, shape (steps, channels), or (starts, steps, channels) for several windows.
    spread
        Expected errors, of the same shape: the root mean square error that many steps ahead of the same model fitted
        without the data that it forecast. NaN for a model from a file that does not hold such errors.
    times
        Times of the steps, shape (steps,).
    outcome
        Whether the forecast stayed within the range of the training data, in words.
    left_range_at
        Step, counted from 1, at which the forecast left the range of the training data; 0 where it did not. One
        number per start.
    """

    values: FloatArray
    spread: FloatArray
    times: FloatArray
    outcome: Outcome
    left_range_at: int | npt.NDArray[np.int64]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> FloatArray:
        return np.array(self.values, dtype=dtype, copy=True if copy is None else copy)

    def __repr__(self) -> str:
        return f"Forecast({self._about()})"

    def _repr_html_(self) -> str:
        if self.values.ndim != 2:
            return f"<p>{escape(repr(self))}</p>"
        steps, channels = self.values.shape
        shown = range(steps) if steps <= 2 * _ROWS else (*range(_ROWS), None, *range(steps - _ROWS, steps))
        columns = range(min(channels, _COLUMNS))
        head = ["time", *(f"channel {k + 1}" for k in columns), *(["…"] if channels > _COLUMNS else [])]
        rows = [
            ["…"] * len(head)
            if step is None
            else [
                f"{self.times[step]:.6g}",
                *(f"{self.values[step, k]:.4g} ± {self.spread[step, k]:.2g}" for k in columns),
                *(["…"] if channels > _COLUMNS else []),
            ]
            for step in shown
        ]
        return html_table(self._about(), head, rows)

    def _about(self) -> str:
        *starts, steps, channels = self.values.shape
        many = f"{starts[0]} starts, " if starts else ""
        return (
            f"{many}{steps} steps of {channels} channel{'s' if channels != 1 else ''}, "
            f"times {self.times[0]:.6g} to {self.times[-1]:.6g}: {self.outcome}"
        )

    def __len__(self) -> int:
        return len(self.values)

    def data(self) -> dict[str, Any]:
        """Everything as plain values for JSON.

        Returns
        -------
        dict
            ``"values"``, ``"spread"`` (None where not known), ``"times"``, ``"outcome"`` and ``"left_range_at"``.
        """
        left = self.left_range_at
        return {
            "values": self.values.tolist(),
            # JSON has no NaN.
            "spread": np.where(np.isfinite(self.spread), self.spread.astype(object), np.array(None)).tolist(),
            "times": self.times.tolist(),
            "outcome": str(self.outcome),
            "left_range_at": int(left) if np.ndim(left) == 0 else np.asarray(left).tolist(),
        }


def outcome_of(left: npt.NDArray[np.int64], steps: int, far: npt.NDArray[np.bool_], fades: bool) -> Outcome:
    """Outcome of a forecast: within the training range, outside it, or far outside it.

    ``left`` is the step per start at which the range was left (0: never), ``far`` whether the start ended far outside,
    ``fades`` whether the nonlinear part fades out there.
    """
    if far.any():
        return Outcome(
            Ending.DIVERGED,
            f"{int(far.sum())} of {len(left)} forecasts left the training range for good, "
            f"the first at step {int(left[left > 0].min())}",
            "trust the steps before; train on data that cover the range of the forecast",
        )
    if (left > 0).any():
        return Outcome(
            Ending.TIME_REACHED,
            f"{steps} steps; {int((left > 0).sum())} of {len(left)} forecasts left the training range, the first at "
            f"step {int(left[left > 0].min())}{', where the nonlinear part fades out' if fades else ''}",
            "treat the steps after as extrapolation",
        )
    return Outcome(Ending.TIME_REACHED, f"{steps} steps within the range of the training data")
