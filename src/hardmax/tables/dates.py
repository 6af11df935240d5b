"""Dates in a column of a table, and calendar months, quarters and years as even steps."""

from __future__ import annotations

import warnings
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
    """Dates of a column; None where a cell is no date.

    Dates with one offset from UTC have the clock of the file, those with several offsets that of UTC.

    >>> import pandas as pd
    >>> stamps_of(pd.Series(["2024-01-01T10:00+01:00", "2024-01-01T11:00+01:00"])).iloc[0]
    Timestamp('2024-01-01 10:00:00')
    """
    import pandas as pd

    if column.dtype.kind in "iufbm":
        return None
    if column.dtype.kind == "M":
        return column.dt.tz_convert(None) if isinstance(column.dtype, pd.DatetimeTZDtype) else column
    cells = column.astype(str).where(column.notna()).str.strip()
    try:
        in_utc = pd.to_datetime(cells, format="ISO8601", utc=True).dt.tz_convert(None)
        local = _with_one_offset(cells)
        return in_utc if local is None else local
    except (ValueError, TypeError):
        pass
    found = [stamps for order in (_DAY_FIRST, _MONTH_FIRST) if (stamps := _in_order(cells, order)) is not None]
    # 03/04/2024 may be either: the order in which time increases, and most evenly, is chosen.
    return min(found, key=_unevenness, default=None)


def are_in_utc(column: pd.Series) -> bool:
    """Whether :func:`stamps_of` brought the dates of a column to the clock of UTC, which is not that of the file."""
    import pandas as pd

    if column.dtype.kind == "M":
        return isinstance(column.dtype, pd.DatetimeTZDtype) and str(column.dtype.tz) != "UTC"
    return column.dtype.kind not in "iufbm" and _with_one_offset(column.astype(str).where(column.notna())) is None


def _with_one_offset(cells: pd.Series) -> pd.Series | None:
    """Dates in ISO 8601 by the clock of the file; None where they have several offsets from UTC, or are none."""
    import pandas as pd

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # earlier releases of pandas warn of several offsets instead of refusing
            local = pd.to_datetime(cells.str.strip(), format="ISO8601")
    except (ValueError, TypeError):
        return None
    return local.dt.tz_localize(None) if local.dtype.kind == "M" else None


def months_of(stamps: pd.Series) -> Months | None:
    """Step of dates that are equally many months but not days apart, some rows missing or not; None for others."""
    steps = np.diff(stamps.to_numpy())
    if len(stamps) < 3 or stamps.isna().any() or (steps == steps[0]).all():
        return None
    count = np.diff(_months_since_year_0(stamps))
    apart = int(count.min())
    # Most steps are one step long: otherwise the dates are uneven, and not a few of them missing.
    if stamps.dt.time.nunique() > 1 or apart < 1 or (count % apart).any() or 2 * (count == apart).sum() <= len(count):
        return None
    if stamps.dt.day.nunique() == 1:
        return Months(apart, at_end=False)
    return Months(apart, at_end=True) if stamps.dt.is_month_end.all() else None


def steps_of(stamps: pd.Series, months: Months) -> np.ndarray:
    """Numbers of steps from the first date to each, shape (dates,).

    >>> import pandas as pd
    >>> march_is_missing = pd.Series(pd.to_datetime(["2024-01-01", "2024-02-01", "2024-04-01"]))
    >>> steps_of(march_is_missing, Months(1, at_end=False)).tolist()
    [0, 1, 3]
    """
    count = _months_since_year_0(stamps)
    return np.asarray((count - count[0]) // months.apart)


def _months_since_year_0(stamps: pd.Series) -> np.ndarray:
    return np.asarray((12 * stamps.dt.year + stamps.dt.month).to_numpy())


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
