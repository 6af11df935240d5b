r"""
TD-DMD inside one attention layer
=================================

One attention layer with one query forecasts from a window of the past. Explicit weights make it carry any TD-DMD model:
the samples are written into the attention weights, times a small number, and a linear readout recovers them. The error
of the prediction falls with a power of that number, which is the order of the construction, until rounding takes over.
"""

# sphinx_gallery_capture_repr = ()

import matplotlib.pyplot as plt
import numpy as np

from hardmax.datasets import sinusoids
from hardmax.forecasting import TimeDelayedDMD, published_layer_from_td_dmd

series = sinusoids(900)
record, later = series.values[:700], series.values[700:]
model = TimeDelayedDMD(32).fit([record], series.dt)

windows = np.stack([record[k - 32 : k] for k in range(400, 700)])
exact = model.roll(windows, 1)
sizes = 10.0 ** np.arange(-7.0, 0.51, 0.25)
figure, ax = plt.subplots(figsize=(7.5, 4.4), layout="constrained")
for order, colour in zip((1, 2, 3, 4), ("#0072B2", "#E69F00", "#009E73", "#CC79A7"), strict=True):
    errors = [
        np.abs(published_layer_from_td_dmd(model, order=order, eps=eps).roll(windows, 1) - exact).max() for eps in sizes
    ]
    ax.loglog(sizes, errors, "o-", ms=3, lw=1.2, color=colour, label=f"order {order}")
ax.set_xlabel(r"size of the embedding, $\varepsilon$")
ax.set_ylabel("largest difference from TD-DMD, one step")
ax.grid(alpha=0.3)
ax.legend(frameon=False)

# %%
# Over a rollout of 200 steps the layer of order 3 follows TD-DMD, and both follow the record. The attention weights
# themselves are the window: nearly uniform, and each deviates from the mean by its sample.

layer = published_layer_from_td_dmd(model)
ahead = layer.roll(record[None, -32:], 200)[0]
figure, ax = plt.subplots(figsize=(9.0, 3.0), layout="constrained")
time = series.dt * np.arange(1, 201)
ax.plot(time, later[:, 0], color="#E69F00", lw=6, alpha=0.5, label="truth")
ax.plot(time, ahead[:, 0], color="#0072B2", lw=1.4, label="the layer")
ax.set_xlabel("time")
ax.legend(frameon=False, ncols=2)
print(f"largest error of the layer over 200 steps: {np.abs(ahead - later).max():.1e}")
