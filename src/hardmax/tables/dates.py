"""Dates in a column of a table, and calendar months, quarters and years as even steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

MONTH = 2629746.0
"""Seconds in a twelfth of the mean year of 365.2425 days."""
_CLOCKS = ("", " %H:%M", " %H:%M:%S", " %H:%M:%S.%f")
_DAY_FIRST, _MONTH_FIRST = "%d{0}%m{0}%Y", "%m{0}%d{0}%Y"


@dataclass(frozen=True)
class Months:
    """Step of dates that are whole months apart: on one day of the month, or on its last day."""

    apart: int
    at_end: bool

    def after(self, began: str, steps: np.ndarray) -> np.ndarray:
        """Dates of steps counted from the first, shape (steps,), as ``datetime64``.

        >>> Months(1, at_end=True).after("2024-02-29T00:00:00", np.array([0, 1])).astype("datetime64[D]").tolist()
        [datetime.date(2024, 2, 29), datetime.date(2024, 3, 31)]
        """
        import pandas as pd

        first = pd.Timestamp(began)
        ahead = [first + pd.DateOffset(months=self.apart * int(step)) for step in steps]
        if self.at_end:
            ahead = [stamp + pd.offsets.MonthEnd(0) for stamp in ahead]
        return np.array([stamp.to_datetime64() for stamp in ahead], dtype="datetime64[ms]")


def stamps_of(column: pd.Series) -> pd.Series | None:
    """Dates of a column, in UTC where they name a time zone; None where a cell is no date."""
    import pandas as pd

    if column.dtype.kind in "iufbm":
        return None
    if column.dtype.kind == "M":
        return column.dt.tz_convert(None) if isinstance(column.dtype, pd.DatetimeTZDtype) else column
    cells = column.astype(str).where(column.notna()).str.strip()
    try:
        return pd.to_datetime(cells, format="ISO8601", utc=True).dt.tz_convert(None)
    except (ValueError, TypeError):
        pass
    found = [stamps for order in (_DAY_FIRST, _MONTH_FIRST) if (stamps := _in_order(cells, order)) is not None]
    # 03/04/2024 may be either: the order in which time increases, and most evenly, is chosen.
    return min(found, key=_unevenness, default=None)


def months_of(stamps: pd.Series) -> Months | None:
    """Step of dates that are equally many months but not days apart; None for others."""
    steps = np.diff(stamps.to_numpy())
    if len(stamps) < 3 or stamps.isna().any() or (steps == steps[0]).all():
        return None
    count = np.diff((12 * stamps.dt.year + stamps.dt.month).to_numpy())
    one_clock = stamps.dt.time.nunique() == 1
    if not one_clock or count[0] < 1 or (count != count[0]).any():
        return None
    if stamps.dt.day.nunique() == 1:
        return Months(int(count[0]), at_end=False)
    return Months(int(count[0]), at_end=True) if stamps.dt.is_month_end.all() else None


def _in_order(cells: pd.Series, order: str) -> pd.Series | None:
    import pandas as pd

    first = cells.dropna().iloc[0] if cells.notna().any() else ""
    mark = next((mark for mark in "./-" if mark in first), None)
    if mark is None or (mark == "." and order == _MONTH_FIRST):
        return None
    for clock in _CLOCKS:
        try:
            return pd.to_datetime(cells, format=order.format(mark) + clock)
        except (ValueError, TypeError):
            continue
    return None


def _unevenness(stamps: pd.Series) -> tuple[bool, float]:
    steps = stamps.dropna().diff().dropna().dt.total_seconds().to_numpy()
    if len(steps) == 0:
        return False, 0.0
    return bool(steps.min() <= 0), float(np.ptp(steps))
