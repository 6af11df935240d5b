"""Series, fits, forecasts and model files of the forecasting page."""

from __future__ import annotations

import csv
import io
import re
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ...datasets import airfoil, chaotic_series, chaotic_systems, lorenz63, read_series, sinusoids
from ...datasets.series import Series
from ...errors import FileError, InputError, MissingExtraError, in_other_words
from ...figures.forecasting import LEVELS, interval_of
from ...forecasting.data.series import Record
from ...forecasting.data.series import read_series as regular_record
from ...forecasting.diagnostics.backtest import Backtest
from ...forecasting.forecast import Band, Forecast
from ...forecasting.forecaster import TimeDelayedTransformer, load_forecaster
from ...forecasting.model_files import FILE
from ...progress import Tell
from ...tables.dates import MONTH
from ..archives import pack, unpack
from ..kept import Kept
from ..page import choice, number
from ..uploads import Upload, as_file, for_a_sheet, text_of, within_bounds

# Bounds that let a fit end within seconds and plots stay responsive.
FEWEST, MOST_SAMPLES, MOST_CHANNELS, MOST_STEPS = 60, 5_000, 12, 2_000
UPLOAD = "upload"
TABLES, MODELS = (".csv", ".tsv", ".txt"), (".zip", ".safetensors")
"""How the names of files of series and of models end."""
_CHAOTIC = ("Rossler", "Chua", "Halvorsen", "Thomas", "DoublePendulum")
_TITLES = {"DoublePendulum": "Double pendulum", "Rossler": "Rössler"}
# The noise level of the forecasting study.
_NOISE = 0.02
_ON_THE_PAGE = {
    "gaps": "tick Fill gaps by interpolation",
    "irregular": "tick Resample uneven times",
    "delays": "",
    "columns": "remove that column from the table",
    "time": "remove the column if it is no time",
}
"""Action on the page for each argument that a remedy of the library names."""

_MADE: dict[str, tuple[str, Callable[[int], Series], str]] = {
    "lorenz": ("Lorenz '63", lambda n: lorenz63(n, random_state=0), "lorenz63({n}, random_state=0)"),
    "airfoil": ("Airfoil in flutter", airfoil, "airfoil({n})"),
    "sinusoids": (
        "Sinusoids with noise",
        lambda n: sinusoids(n, noise=_NOISE, random_state=0),
        f"sinusoids({{n}}, noise={_NOISE}, random_state=0)",
    ),
}


@cache
def systems() -> dict[str, str]:
    """Titles of the systems by their name in an address; the chaotic ones need the package dysts."""
    found = {name: title for name, (title, _, _) in _MADE.items()}
    try:
        known = set(chaotic_systems())
    except MissingExtraError:
        return found
    return found | {name: _TITLES.get(name, name) for name in _CHAOTIC if name in known}


LONGEST_SEARCH = 20.0
"""Seconds of search at most: a visitor waits for it."""


@dataclass(frozen=True)
class Choices:
    """The system and the numbers of the page; the address stores them."""

    system: str = "lorenz"
    samples: int = 600
    steps: int = 200
    seconds: float = 3.0
    channel: int = 0

    def to_query(self) -> dict[str, str]:
        """The part of the address that stores the choices."""
        query = {"samples": str(self.samples), "steps": str(self.steps), "seconds": f"{self.seconds:g}"}
        if self.system != UPLOAD:
            query["system"] = self.system
        return {**query, "channel": str(self.channel)} if self.channel else query

    @classmethod
    def from_query(cls, query: Mapping[str, str]) -> Choices:
        """Choices from an address, within bounds; values that make no sense get their defaults."""
        usual = cls()
        return cls(
            system=choice(query, "system", usual.system, systems()),
            samples=_whole(query, "samples", usual.samples, FEWEST, MOST_SAMPLES),
            steps=_whole(query, "steps", usual.steps, 1, MOST_STEPS),
            seconds=number(query, "seconds", usual.seconds, 0.5, LONGEST_SEARCH),
            channel=_whole(query, "channel", usual.channel, 0, 99),
        )


@dataclass(frozen=True)
class ForecastingState:
    """A state of the history of the page: the choices, and the uploaded table with the way in which it is read."""

    choices: Choices
    upload: Upload | None = None
    fill: bool = False
    even: bool = False
    at_once: bool = False
    """Whether a forecast is made without a press of the button."""

    def table_query(self, store: Kept) -> dict[str, str]:
        """The part of the address that names the stored table and how it is read; empty where there is none."""
        name = store.keep(self.upload) if self.upload is not None and self.choices.system == UPLOAD else None
        read = {"fill": self.fill, "even": self.even}
        return {} if name is None else {"kept": name} | {key: "1" for key, value in read.items() if value}

    @classmethod
    def from_query(cls, query: Mapping[str, str], store: Kept) -> ForecastingState:
        """The state of an address, with the table that it names if that is stored."""
        choices = Choices.from_query(query)
        at_once = query.get("fit") == "1"
        table = store.read(query.get("kept", ""), TABLES)
        if table is None:
            return cls(choices, at_once=at_once and "kept" not in query)
        choices = replace(choices, system=UPLOAD)
        return cls(choices, table, query.get("fill") == "1", query.get("even") == "1", at_once)

    def weigh(self) -> dict[int, int]:
        """Bytes of the uploaded table, by its ``id``."""
        return {} if self.upload is None else {id(self.upload): len(self.upload.data)}

    @property
    def fit_key(self) -> tuple[object, ...]:
        """What a forecast depends on."""
        c = self.choices
        if c.system == UPLOAD:
            return (UPLOAD, self.upload, self.fill, self.even, c.steps, c.seconds)
        return (c.system, c.samples, c.steps, c.seconds)


def _whole(query: Mapping[str, str], name: str, usual: int, least: int, most: int) -> int:
    text = query.get(name, "")
    return min(max(int(text[:9]), least), most) if text.isdecimal() else usual


_UNITS = (("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0))
_MONTHS = (("months", MONTH), *_UNITS)
_STEP = re.compile(r"\b(steps? of|and of|samples of|median) (\d[\d.e+-]*\d|\d)")
_UNEVEN = 0.01
"""Share of the usual step by which another one differs where times are told to be uneven."""


@dataclass(frozen=True, eq=False)
class Data:
    """A series to train on, and its true future where that is known."""

    series: Series
    samples: int
    """Number of training samples; the others are the future."""
    code: str
    gaps: str = "refuse"
    irregular: str = "refuse"

    @property
    def values(self) -> np.ndarray:
        """The training samples, shape (samples, channels)."""
        return self.series.values[: self.samples]

    @property
    def times(self) -> np.ndarray:
        """Times of the training samples, shape (samples,)."""
        return self.series.times[: self.samples]

    @property
    def step(self) -> float:
        """The usual time between samples; missing rows and some other steps do not change it."""
        return self.series.dt if self.series.months is not None else float(np.median(np.diff(self.series.times)))

    @property
    def uneven(self) -> bool:
        """Whether some time between samples is another one."""
        if self.series.months is not None:
            return False
        return bool(np.abs(np.diff(self.series.times) - self.step).max() > _UNEVEN * self.step)

    @property
    def unit(self) -> tuple[str, float]:
        """The unit of time in which durations are told, and its length; ("", 1.0) where times are no dates."""
        if not self.series.began:
            return "", 1.0
        known = _MONTHS if self.series.months is not None else _UNITS
        return next(((name, size) for name, size in known if self.step >= 0.999 * size), ("seconds", 1.0))

    @property
    def interval(self) -> str:
        """The time between samples in words; empty where samples are only numbered."""
        if not self.series.time_name:
            return ""
        return f"{'mostly ' if self.uneven else ''}{self.told(self.step)} apart"

    def told(self, duration: float) -> str:
        """A duration in words where times are dates, else a number."""
        name, size = self.unit
        count = f"{duration / size:.4g}"
        if not name:
            return count
        return f"1 {name.removesuffix('s')}" if count == "1" else f"{count} {name}"

    def in_words(self, sentence: str) -> str:
        """A sentence of the library with its time step in words: "an even step of 1 day" instead of 86400."""
        return _STEP.sub(lambda found: f"{found.group(1)} {self.told(float(found.group(2)))}", sentence)

    @contextmanager
    def errors_in_words(self) -> Iterator[None]:
        """Context in which errors say what to do on the page, with time steps in words."""
        with in_other_words(_ON_THE_PAGE):
            try:
                yield
            except InputError as error:
                remedy = error.marked_remedy.partition(", or split the series")[0]  # for Python
                raise InputError(error.argument, self.in_words(str(error.value)), error.problem, remedy) from error

    def regular(self) -> Record:
        """The training samples at even times; gaps are filled or refused as chosen."""
        gaps: Any = self.gaps
        irregular: Any = self.irregular
        with self.errors_in_words():
            return regular_record(self.values, times=self.times, gaps=gaps, irregular=irregular)

    @property
    def future(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Times and values of the true future; None where it is unknown."""
        if self.samples == len(self.series):
            return None
        return self.series.times[self.samples :], self.series.values[self.samples :]


def make_data(system: str, samples: int, ahead: int) -> Data:
    """``samples`` training samples of a system and the ``ahead`` samples that follow."""
    if system not in systems():
        raise InputError("system", repr(system), "is not known", f"choose one of {', '.join(systems())}")
    total = samples + ahead
    if system in _MADE:
        _, make, code = _MADE[system]
        series, made = make(total), code.format(n=total)
        source = made.partition("(")[0]
    else:
        series, source = chaotic_series(system, total), "chaotic_series"
        made = f'chaotic_series("{system}", {total})'
    lines = (
        f"from hardmax.datasets import {source}\n\n"
        f"series = {made}\n"
        f"known, times = series.values[:{samples}], series.times[:{samples}]"
    )
    return Data(series, samples, lines)


def read_data(upload: Upload, folder: Path, *, fill: bool, even: bool) -> Data:
    """The series in an uploaded table: one row per time, one column per channel, with or without a time column."""
    text = text_of(upload)
    within_bounds(upload.name, text)
    with as_file(folder / f"series{upload.suffix}", text.encode(), upload.name) as path, in_other_words(_ON_THE_PAGE):
        series = read_series(path)
    if len(series) > MOST_SAMPLES or series.channels > MOST_CHANNELS:
        problem = f"has {len(series):,} samples of {series.channels} channel{'' if series.channels == 1 else 's'}"
        remedy = f"upload at most {MOST_SAMPLES:,} samples of {MOST_CHANNELS} channels, or use hardmax forecast for all"
        raise FileError(upload.name, problem, remedy)
    lines = (
        "from hardmax.datasets import read_series\n\n"
        f"series = read_series({upload.name!r})\n"
        "known, times = series.values, series.times"
    )
    gaps, irregular = "interpolate" if fill else "refuse", "resample" if even else "refuse"
    return Data(replace(series, source=upload.name), len(series), lines, gaps, irregular)


@dataclass(frozen=True, eq=False)
class Fit:
    """A fitted model and its forecast."""

    data: Data
    model: TimeDelayedTransformer
    forecast: Forecast
    file: Upload | None = None
    """The uploaded file of the model; None where it was fitted here."""

    @cached_property
    def intervals(self) -> dict[float, Band]:
        """Intervals of the forecast by their probability; empty for a file of a model without held-out errors."""
        found = {level: interval_of(self.forecast, level) for level in LEVELS}
        return {level: band for level, band in found.items() if band is not None}

    def backtest(self, tell: Tell) -> Backtest:
        """Backtest on the last quarter of the series."""
        self.model.progress = tell
        try:
            if self.file is None:
                return self.model.backtest()
            return self.model.backtest(series=self.data.regular().trajectories)
        finally:
            self.model.progress = False


_TICK = 0.2
"""Seconds between two reports of a bar that moves by the clock: some stages of a fit last a second."""
_NEARLY = 0.97
"""Where a bar stays that is overdue."""


@contextmanager
def by_the_clock(tell: Tell, seconds: float) -> Iterator[Tell]:
    """Reports of stages for a bar that also moves between them: it shows the share of ``seconds`` that is over.

    Errors of ``tell``, such as a cancellation, end the work at its own next report.
    """
    began, stage, over = time.monotonic(), [""], threading.Event()

    def share() -> float:
        return min(_NEARLY, (time.monotonic() - began) / seconds)

    def told(name: str, _done: float, _total: float | None) -> None:
        stage[0] = name
        tell(name, share(), 1.0)

    def tick() -> None:
        try:
            while not over.wait(_TICK):
                tell(stage[0], share(), 1.0)
        except BaseException:  # noqa: S110 (the work meets the same error at its next report)
            pass

    clock = threading.Thread(target=tick, daemon=True)
    clock.start()
    try:
        yield told
    finally:
        over.set()
        clock.join()


def fit_and_forecast(data: Data, seconds: float, steps: int, tell: Tell) -> Fit:
    """A model fitted within about ``seconds``, and its forecast of ``steps`` samples."""
    model = TimeDelayedTransformer(budget=seconds, random_state=0)
    gaps: Any = data.gaps
    irregular: Any = data.irregular
    with data.errors_in_words(), by_the_clock(tell, seconds) as told:
        model.progress = told
        model.fit(data.values, times=data.times, gaps=gaps, irregular=irregular)
    model.progress = False
    return Fit(data, model, model.forecast(steps))


def code_of(data: Data, seconds: float, steps: int, ended: bool = False) -> str:
    """Python that fits, forecasts, backtests and saves the model.

    A search that was ``ended`` by its time may select another model when it is run again; the model is then read from
    the file of the page.
    """
    options = "".join(
        f", {name}={value!r}"
        for name, value in (("gaps", data.gaps), ("irregular", data.irregular))
        if value != "refuse"
    )
    fit = f"model = hm.TimeDelayedTransformer(budget={seconds:g}, random_state=0).fit(known, times=times{options})\n"
    made = f"{fit}print(model.report_)           # the selected model, and why\n"
    if ended:
        made = (
            f"# The search on the page was ended after {seconds:g} s. Run again, it may end elsewhere:\n# {fit}"
            "# Exactly the model of the page, from Download the model (unpack model.zip):\n"
            f"model = hm.load_forecaster({FILE!r})\n{_regular_lines(data)}print(model.report_)\n"
        )
    unit, size = data.unit
    told = f"unit={unit!r}, size={size:g}" if unit else ""
    after = "" if ended else "model.save('model')            # hm.load_forecaster('model')\n"
    return (
        f"import hardmax as hm\n{data.code}\n{made}"
        f"ahead = model.forecast({steps})     # ahead.values, ahead.interval(0.95), ahead.times\n"
        "print(ahead.outcome)\n"
        f"print(model.backtest({'series=known' if ended else ''}).text({told}))\n{after}"
    )


def _regular_lines(data: Data) -> str:
    """Python that fills gaps and makes times even as a fit does, for a model from a file; empty without such."""
    gaps, uneven = data.gaps != "refuse" and not np.isfinite(data.values).all(), data.irregular != "refuse"
    uneven = uneven and data.uneven
    lines = "import numpy as np\n\n# The series at even times without gaps, as for the fit:\n" if gaps or uneven else ""
    if gaps:
        lines += (
            "rows, there = np.arange(len(known)), np.isfinite(known)\n"
            "columns = zip(known.T, there.T)\n"
            "known = np.stack([np.interp(rows, rows[good], x[good]) for x, good in columns], axis=1)\n"
        )
    if uneven:
        lines += (
            "even = times[0] + model.dt_ * np.arange(int((times[-1] - times[0]) / model.dt_ + 1e-9) + 1)\n"
            "known = np.stack([np.interp(even, times, x) for x in known.T], axis=1)\n"
        )
    return lines


_MIDNIGHT = "T00:00:00"


def forecast_table(fit: Fit) -> bytes:
    """The forecast as CSV: time, each channel and its spread, then the ends of the intervals of each channel.

    Dates have no hours where all are at midnight.
    """
    series, ahead = fit.data.series, fit.forecast
    names = [for_a_sheet(name) for name in series.names]
    dates = series.dates_with_offset(ahead.times) if series.began else ahead.times
    times = [str(date) if series.began else repr(float(date)) for date in dates]
    if all(time.endswith(_MIDNIGHT) for time in times):
        times = [time.removesuffix(_MIDNIGHT) for time in times]
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    columns: list[tuple[str, np.ndarray]] = []
    for k, name in enumerate(names):
        columns += [(name, ahead.values[:, k]), (f"{name} spread", ahead.spread[:, k])]
    for k, name in enumerate(names):
        for level, band in fit.intervals.items():
            columns.append((f"{name} lower {100 * level:g} %", band.lower[:, k]))
            columns.append((f"{name} upper {100 * level:g} %", band.upper[:, k]))
    writer.writerow([for_a_sheet(series.time_name or "time"), *(name for name, _ in columns)])
    for when, *numbers in zip(times, *(values for _, values in columns), strict=True):
        writer.writerow([when, *(repr(float(x)) for x in numbers)])
    return table.getvalue().encode()


def model_archive(fit: Fit, folder: Path) -> bytes:
    """The files of the model as a ZIP archive."""
    place = fit.model.save(folder / "model")
    try:
        return pack({path.name: path.read_bytes() for path in sorted(place.iterdir())})
    finally:
        shutil.rmtree(place, ignore_errors=True)


_SAME_STEP = 1e-3
"""Relative difference up to which two time steps are equal; allows for rounded times."""


def read_model(upload: Upload, folder: Path) -> TimeDelayedTransformer:
    """The forecaster in an uploaded file: an archive that was downloaded here, or its safetensors file."""
    data = upload.data
    if upload.suffix == ".zip":
        files = unpack(upload, (".safetensors",))
        if FILE not in files:
            raise FileError(upload.name, f"holds no {FILE}", "upload an archive that was downloaded from here")
        data = files[FILE]
    path = folder / "uploaded.safetensors"
    path.write_bytes(data)
    try:
        model = load_forecaster(path)
        if model.forcing_ is None:
            model.forecast(1)  # an inconsistent file fails here
    except FileError as error:
        raise FileError(upload.name, error.problem, error.remedy) from None
    except (ValueError, TypeError, IndexError, KeyError) as error:
        raise FileError(upload.name, f"cannot be used ({error})", "the file is damaged; save the model again") from None
    finally:
        path.unlink(missing_ok=True)
    if model.forcing_ is not None or model.pod_ is not None:
        kind = "a model with inputs" if model.forcing_ is not None else "a model of fields"
        raise FileError(
            upload.name, f"holds {kind}, which this page cannot show", "use it in Python: hm.load_forecaster"
        )
    return model


def forecast_with(model: TimeDelayedTransformer, file: Upload, data: Data, steps: int) -> Fit:
    """The forecast of an uploaded model from the end of the series; channels and time step must agree."""
    record, name = data.regular(), file.name
    series = record.trajectories[-1]
    if series.shape[1] != model.channels_:
        raise InputError(
            "model",
            name,
            f"was fitted to {model.channels_} channels and the series has {series.shape[1]}",
            "choose or upload the series that it belongs to, then load it again",
        )
    if abs(record.dt - model.dt_) > _SAME_STEP * model.dt_:
        raise InputError(
            "model",
            name,
            f"was fitted to samples {data.told(model.dt_)} apart and the series has them {data.told(record.dt)} apart",
            "choose or upload the series that it belongs to, then load it again",
        )
    ahead = model.forecast(steps, window=series[-model.window :])
    times = np.asarray(record.last_time + model.dt_ * np.arange(1, steps + 1), dtype=np.float64)
    return Fit(data, model, replace(ahead, times=times), file)


def code_of_loaded(data: Data, name: str, steps: int) -> str:
    """Python that forecasts with a model from a file."""
    unpacked = "model.safetensors" if name.lower().endswith(".zip") else name
    return (
        f"import hardmax as hm\n{data.code}\n"
        f"model = hm.load_forecaster({unpacked!r})     # unpack an archive first\n{_regular_lines(data)}"
        f"ahead = model.forecast({steps}, window=known[-model.window:])\n"
        "print(ahead.outcome)\n"
        "print(model.backtest(series=known).text())\n"
    )
