"""A stop of the tour: a forecast of Lorenz '63 from one of its coordinates."""

from __future__ import annotations

import numpy as np

from ..datasets.lorenz import lorenz63
from ..figures import draw_backtest, draw_forecast, figure_bytes
from ..forecasting.forecaster import TimeDelayedTransformer
from .report import Section

_LEARNED, _AHEAD = 2500, 300


def show_forecast(section: Section) -> None:
    """Fit, look back, look ahead."""
    series = lorenz63(_LEARNED + _AHEAD)
    seen, later = series.values[:_LEARNED, :1], series.values[_LEARNED:, :1]
    model = TimeDelayedTransformer(seconds=2.0, random_state=0, progress=False).fit(seen, dt=series.dt)
    ahead = model.forecast(_AHEAD)
    record = model.backtest(200, starts=10)
    apart = np.abs(ahead.values - later)[:, 0] / seen.std() > 0.4
    good = int(apart.argmax()) if apart.any() else _AHEAD
    section.text(
        "The layer that leads tokens also forecasts: the tokens are the last samples of a series, the latest one asks, "
        "and an explicit linear path (time-delayed DMD) carries what is linear. The model sees one coordinate of the "
        "Lorenz system and none of its equations. After Alcalde, Widhalm and Yılmaz (arXiv 2602.08478)."
    ).picture(
        figure_bytes(draw_forecast(seen, ahead, dt=series.dt, names=("x",), truth=later), dpi=130),
        f"The forecast stays within 0.4 standard deviations of what followed for {good} steps.",
    ).text(str(model.report_)).picture(
        figure_bytes(draw_backtest(record), dpi=130),
        "Forecasts of the last quarter by a model that has not seen it, beside the simplest rivals.",
    ).code(
        "model = hm.TimeDelayedTransformer().fit(series, dt=0.02)\n"
        "ahead = model.forecast(200)          # values, spread, times, outcome\n"
        "print(model.backtest().text())\n\nhardmax forecast data.csv --steps 200 --figure out.png"
    )
