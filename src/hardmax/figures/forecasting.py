"""Figures of forecasts: the forecast with its spread, phase portraits, histogram and power spectrum."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import NormalDist

import numpy as np
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure

from ..drawing.style import INK, LINE, NOBODY, PALETTE, SOFT, axes_or_new, new_figure, rule_lines, style_axes, styled
from ..errors import InputError
from ..forecasting.forecast import Band, Forecast
from ._stage import corner_note

RECORD, AHEAD, FAN, TRUTH = "record", "ahead", "fan", "truth"
"""Names (gid) by which the artists can be found again."""
_MOST_CHANNELS = 6
"""Panels that are readable in one figure."""
_AHEAD_COLOUR, _TRUTH_COLOUR = PALETTE[0], PALETTE[4]


LEVELS = (0.68, 0.95)
"""Probabilities of the intervals that are drawn."""
MOST_ROOM = 0.6
"""Share of the range of the data by which bands may extend beyond it."""


def interval_of(ahead: Forecast, level: float) -> Band | None:
    """Interval of the forecast; of columns that were reduced to modes from their spread; None where it is not known."""
    if ahead.distribution is not None:
        return ahead.interval(level)
    if not np.isfinite(ahead.spread).all():
        return None
    width = NormalDist().inv_cdf((1 + level) / 2) * ahead.spread
    return Band(ahead.values - width, ahead.values + width)


def draw_forecast(
    record: np.ndarray,
    forecast: Forecast,
    *,
    dt: float,
    names: Sequence[str] | None = None,
    truth: np.ndarray | None = None,
    past: int | None = None,
    times: np.ndarray | None = None,
    dates: Callable[[np.ndarray], np.ndarray] | None = None,
    levels: Sequence[float] = LEVELS,
    figure: Figure | None = None,
) -> Figure:
    """Figure of the end of a record and the forecast after it, a panel per channel, with its intervals.

    A dotted line marks the step at which the forecast left the range of the training data.

    Parameters
    ----------
    record
        The known samples, shape (samples, channels); the last one precedes the forecast.
    forecast
        What :meth:`hardmax.TimeDelayedTransformer.forecast` returned.
    dt
        Time between two samples.
    names
        Names of the channels; "channel 1", … when left out.
    truth
        The samples that followed, where they are known, shape (steps, channels).
    past
        Number of samples of the record to draw; twice as many as are forecast when left out.
    times
        Times of the record, shape (samples,); ``dt`` apart up to the forecast when left out.
    dates
        Function from times to dates, such as :meth:`hardmax.datasets.Series.dates`; numbers when left out.
    levels
        Probabilities of the intervals, a band each.
    figure
        Figure to draw on; a new one when left out.

    Returns
    -------
    Figure
        The figure that was drawn on.
    """
    seen = np.asarray(record, dtype=np.float64)
    seen = seen[:, None] if seen.ndim == 1 else seen
    if forecast.values.ndim != 2 or forecast.values.shape[1] != seen.shape[1]:
        raise InputError(
            "forecast",
            f"values of shape {forecast.values.shape}",
            f"must be one forecast of {seen.shape[1]} channels",
            "draw one start at a time, with the record it came from",
        )
    shown = min(seen.shape[1], _MOST_CHANNELS)
    kept = min(len(seen), 2 * len(forecast) if past is None else past)
    before = forecast.times[0] - dt * np.arange(kept, 0, -1) if times is None else np.asarray(times)[-kept:]
    after = forecast.times
    if dates is not None:
        before, after = (np.asarray(dates(part), dtype="datetime64[ms]") for part in (before, after))
    called = [f"channel {k + 1}" for k in range(seen.shape[1])] if names is None else list(names)
    bands = [
        (band, level, alpha)
        for level, alpha in zip(sorted(levels, reverse=True), np.linspace(0.18, 0.28, len(levels)), strict=True)
        if (band := interval_of(forecast, level)) is not None
    ]
    with styled():
        if figure is None:
            figure = new_figure(9.0, 1.0 + 1.55 * shown)
        axes = figure.subplots(shown, 1, sharex=True, squeeze=False)[:, 0]
        for k, ax in enumerate(axes):
            style_axes(ax)
            tail, ahead = seen[-kept:, k], forecast.values[:, k]
            ax.plot(before, tail, color=INK, lw=1.1, gid=RECORD, label="record")
            # From the last known sample on, so that the lines connect.
            span = np.concatenate([before[-1:], after])
            middle = np.concatenate([tail[-1:], ahead])
            # A band much wider than the data is cut off; in full it would flatten the lines.
            room = MOST_ROOM * np.ptp(seen[:, k])
            least, most = min(seen[:, k].min(), ahead.min()), max(seen[:, k].max(), ahead.max())
            floor, roof = least - 0.1 * np.ptp(seen[:, k]), most + 0.1 * np.ptp(seen[:, k])
            for band, level, alpha in bands:
                low, high = (
                    np.clip(np.concatenate([tail[-1:], end[:, k]]), least - room, most + room)
                    for end in (band.lower, band.upper)
                )
                floor, roof = min(floor, low.min()), max(roof, high.max())
                name = f"{100 * level:g} %"
                ax.fill_between(span, low, high, color=_AHEAD_COLOUR, alpha=alpha, lw=0, gid=FAN, label=name)
            ax.plot(span, middle, color=_AHEAD_COLOUR, lw=1.5, gid=AHEAD, label="forecast")
            if truth is not None:
                real = np.asarray(truth).reshape(len(truth), -1)[: len(forecast), k]
                style = {"color": _TRUTH_COLOUR, "lw": 1.2, "ls": (0, (4, 2)), "gid": TRUTH, "label": "truth"}
                ax.plot(after[: len(real)], real, **style)
            ax.axvline(before[-1], color=LINE, lw=1.0, zorder=0)
            left = int(np.asarray(forecast.left_range_at))
            if left > 0:
                ax.axvline(after[left - 1], color=_TRUTH_COLOUR, lw=1.0, ls=":", zorder=0)
            margin = 0.35 * (roof - floor or 1.0) if k == 0 else 0.02 * (roof - floor or 1.0)
            ax.set_ylim(floor - 0.02 * (roof - floor or 1.0), roof + margin)  # room for the legend above the first
            ax.set_ylabel(called[k])
        if dates is None:
            axes[-1].set_xlabel("time")
        else:
            locator = AutoDateLocator()  # type: ignore[no-untyped-call]
            axes[-1].xaxis.set_major_locator(locator)
            axes[-1].xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]
        # On white, so that the vertical line does not cross the text.
        lines, fans = axes[0].lines, [fan for fan in axes[0].collections if fan.get_gid() == FAN]
        handles = [*(line for line in lines if line.get_gid() in (RECORD, AHEAD, TRUTH)), *reversed(fans)]
        axes[0].legend(
            handles=handles,
            loc="upper left",
            ncols=6,
            borderaxespad=0.2,
            frameon=True,
            edgecolor="none",
            framealpha=1.0,
        )
        if int(np.asarray(forecast.left_range_at)) > 0:
            corner_note(
                axes[0], f"leaves the training range at step {int(np.asarray(forecast.left_range_at)):,} (dotted)"
            )
        if not np.isfinite(forecast.spread).all():
            corner_note(axes[0], "the spread is unknown")
        if shown < seen.shape[1]:
            corner_note(axes[-1], f"{shown} of {seen.shape[1]} channels")
    return figure


def draw_phase_portrait(
    record: np.ndarray,
    ahead: np.ndarray,
    *,
    lag: int = 1,
    names: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Phase portrait: two channels against each other, or one against itself ``lag`` samples ago.

    Parameters
    ----------
    record
        The known samples, shape (samples, channels), drawn in grey.
    ahead
        The forecast, shape (steps, channels).
    lag
        Samples between the two axes where there is one channel.
    names
        Names of the channels; "channel 1", … when left out.
    ax
        Axes to draw on; new ones when left out.

    Returns
    -------
    Axes
        The axes that were drawn on.
    """
    seen, path = (np.asarray(z, dtype=np.float64).reshape(len(z), -1) for z in (record, ahead))
    if seen.shape[1] != path.shape[1]:
        raise InputError("ahead", f"{path.shape[1]} channels", f"must have {seen.shape[1]}", "pass the same channels")
    called = [f"channel {k + 1}" for k in range(seen.shape[1])] if names is None else list(names)
    alone = seen.shape[1] == 1
    with styled():
        ax = axes_or_new(ax, 5.2, 4.6)
        style_axes(ax)
        for z, style in (
            (seen, {"color": NOBODY, "lw": 0.6, "alpha": 0.8, "gid": RECORD, "label": "record"}),
            (path, {"color": _AHEAD_COLOUR, "lw": 1.0, "gid": AHEAD, "label": "forecast"}),
        ):
            pair = (z[:-lag, 0], z[lag:, 0]) if alone else (z[:, 0], z[:, 1])
            ax.plot(*pair, **style)  # type: ignore[arg-type]
        ax.plot(*((path[0, 0], path[lag, 0]) if alone else path[0, :2]), "o", ms=5, color=_AHEAD_COLOUR)
        ax.set_xlabel(f"{called[0]}, {lag} samples ago" if alone else called[0])
        ax.set_ylabel(called[0] if alone else called[1])
        ax.legend(loc="upper right", borderaxespad=0.1)
        low, high = ax.get_ylim()
        ax.set_ylim(low, high + 0.14 * (high - low))  # room for the legend
    return ax


def draw_climate(
    record: np.ndarray, ahead: np.ndarray, *, dt: float, channel: int = 0, figure: Figure | None = None
) -> Figure:
    """Figure of the histogram and the power spectrum of a long forecast beside those of the record, for one channel.

    Parameters
    ----------
    record
        The known samples, shape (samples, channels).
    ahead
        The forecast, shape (steps, channels), at least 64 steps.
    dt
        Time between two samples.
    channel
        The channel to compare.
    figure
        Figure to draw on; a new one when left out.

    Returns
    -------
    Figure
        The figure that was drawn on.
    """
    from scipy.signal import welch

    seen, path = (np.asarray(z, dtype=np.float64).reshape(len(z), -1)[:, channel] for z in (record, ahead))
    if len(path) < 64:
        raise InputError("ahead", f"{len(path)} steps", "is too short for a spectrum", "forecast at least 64 steps")
    with styled():
        if figure is None:
            figure = new_figure(9.0, 3.4)
        left, right = figure.subplots(1, 2)
        for ax in (left, right):
            style_axes(ax)
        low, high = min(seen.min(), path.min()), max(seen.max(), path.max())
        bins = np.linspace(low, high, 61)
        length = min(1024, len(seen) // 2, len(path) // 2)
        for z, colour, name, gid in ((seen, NOBODY, "record", RECORD), (path, _AHEAD_COLOUR, "forecast", AHEAD)):
            if z is seen:
                left.hist(z, bins=bins, density=True, color=colour, alpha=0.7, label=name, gid=gid)
            else:
                left.hist(z, bins=bins, density=True, histtype="step", color=colour, lw=1.6, label=name, gid=gid)
            frequency, power = welch(z - z.mean(), fs=1 / dt, nperseg=length)
            dark = SOFT if z is seen else colour
            right.semilogy(frequency[1:], power[1:], color=dark, lw=1.2 if z is path else 2.4, label=name, gid=gid)
            counts = power[1:] > 1e-7 * power[1:].max()
            if z is seen:
                right.set_xlim(0, frequency[1:][counts][-1])
                right.set_ylim(1e-7 * power[1:].max(), 5 * power[1:].max())
        left.set_xlabel("value")
        left.set_ylabel("density")
        right.set_xlabel("frequency, 1 / time")
        right.set_ylabel("power")
        right.legend()
        rule_lines(right)
    return figure
