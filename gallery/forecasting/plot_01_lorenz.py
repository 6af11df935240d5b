r"""
Lorenz from one coordinate
==========================

The model sees :math:`x` alone, 2,500 samples of it, and none of the equations. It goes on from the end of the record;
the fan is the disagreement of other good models of the same data, and the dashed line is what really followed.
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
# What was kept, and why:

print(model.report_)

# %%
# Forecasts of the last quarter by a model that has not seen it, beside persistence, TD-DMD and NG-RC:

figure = draw_backtest(model.backtest(150, starts=10))

# %%
# Beyond the horizon no model knows where the system is, but a good one still knows where it may be: a long forecast
# stays on the attractor, with its histogram and its spectrum.

long = model.forecast(2000).values
figure = draw_phase_portrait(seen, long, lag=6, names=["x"]).figure

# %%

figure = draw_climate(seen, long, dt=series.dt)
