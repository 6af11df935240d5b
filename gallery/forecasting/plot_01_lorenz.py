r"""
Lorenz from one coordinate
==========================

The model is fitted to 2,500 samples of :math:`x` alone, without the equations. The forecast starts at the end of the
record; the bands are one and two spreads (errors measured on validation data), the dashed line is the true record.
"""

# sphinx_gallery_capture_repr = ()

import hardmax as hm
from hardmax.datasets import lorenz63
from hardmax.figures import draw_backtest, draw_climate, draw_forecast, draw_phase_portrait

series = lorenz63(2750)
seen, later = series.values[:2500, :1], series.values[2500:, :1]

model = hm.TimeDelayedTransformer(seconds=2.0, random_state=0).fit(seen, dt=series.dt)
ahead = model.forecast(250)
figure = draw_forecast(seen, ahead, dt=series.dt, names=["x"], truth=later)

# %%
# The selected model, and why it was selected:

print(model.report_)

# %%
# Forecasts of the last quarter by a model fitted to the rest, against persistence, TD-DMD and NG-RC:

figure = draw_backtest(model.backtest(150, starts=10))

# %%
# Beyond the horizon of predictability the state is not known, but its statistics are: a long forecast of a good model
# stays on the attractor, with its histogram and its spectrum.

long = model.forecast(2000).values
figure = draw_phase_portrait(seen, long, lag=6, names=["x"]).figure

# %%

figure = draw_climate(seen, long, dt=series.dt)
