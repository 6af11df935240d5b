r"""
Forecast a time series
======================

A time-delayed transformer predicts the next sample of a series from a window of the samples before it. In this lesson
we forecast a chaotic system from one of its coordinates and a monthly series with a season, look at the intervals, and
compare with simple baselines.
"""

# %%
# A record
# --------
#
# Axes are (samples, channels), the oldest sample first. This one is the coordinate :math:`x` of the Lorenz system,
# without its equations.

import numpy as np
import pandas as pd

import hardmax as hm

series = hm.datasets.lorenz63(1700)
record, later = series.values[:1500, :1], series.values[1500:, :1]
print(record.shape, "samples", series.dt, "apart")

# %%
# Fit and forecast
# ----------------
#
# The fit compares linear models (TD-DMD), polynomials of lags (NG-RC), reservoirs and attention by rollouts on held-out
# parts of the record, and says what it selected. ``seconds`` limits the processor time of the search.

model = hm.TimeDelayedTransformer(seconds=1.5, random_state=0).fit(record, dt=series.dt)
print(model.report_)

# %%
# The forecast starts at the end of the record. An interval of 90 % should contain nine true samples in ten.

ahead = model.forecast(200)
lower, upper = ahead.interval(0.9)
inside = ((later >= lower) & (later <= upper)).mean()
print(ahead.outcome)
print(f"{inside:.0%} of the true samples are inside the intervals of 90 %")
figure = hm.figures.draw_forecast(record, ahead, dt=series.dt, names=["x"], truth=later)

# %%
# Compare with baselines
# ----------------------
#
# A backtest forecasts the last quarter of the record from a model fitted to the rest, beside simple models.

print(model.backtest(100, starts=8))

# %%
# A monthly series
# ----------------
#
# A pandas series with dates needs no ``dt``, and its dates come back. Seasons are found by themselves or passed.

months = pd.date_range("2015-01-01", periods=108, freq="MS")
rng = np.random.default_rng(0)
sales = 100 + 0.8 * np.arange(108) + 12 * np.sin(2 * np.pi * np.arange(108) / 12) + rng.normal(0, 3, 108)
table = pd.Series(sales, index=months, name="sales")

monthly = hm.TimeDelayedTransformer(season=12, horizon=12, random_state=0).fit(table[:-12])
year = monthly.forecast(12)
print(year.to_pandas(interval=0.9).round(1).head(4))
error = np.abs(year.values[:, 0] - table[-12:].to_numpy()).mean()
naive = np.abs(table[-24:-12].to_numpy() - table[-12:].to_numpy()).mean()
print(f"mean absolute error {error:.1f}, of last year's values {naive:.1f}")

# %%
# New samples
# -----------
#
# ``update`` learns samples as they arrive, without a new fit, and says when the data have changed.

monthly.update(table[-12:].to_numpy()[:, None])
print(monthly.drift_)
print(monthly.forecast(3).to_pandas().round(1))

# %%
# Where to go next
# ----------------
#
# - :doc:`/howto/forecast`: missing values, several series, inputs, fields, files.
# - :doc:`/howto/forecast-a-series`: the same from the command line, for a CSV file.
# - :doc:`/papers/forecasting-study`: 21 chaotic systems in four settings; attention itself adds little there.
# - :doc:`/which-tool`: when statsforecast or PySINDy serve you better.
