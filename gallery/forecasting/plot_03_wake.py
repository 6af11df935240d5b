r"""
The wake of a cylinder between walls
====================================

A cylinder in a channel sheds vortices in turn from above and below. The flow is computed by a small lattice Boltzmann
method, reduced to eight modes (POD), forecast as eight coefficients, and reconstructed as a field. The cycle is nearly
linear, so the linear model may well be the one that is selected.
"""

# sphinx_gallery_capture_repr = ()

import numpy as np

import hardmax as hm
from hardmax.datasets import cylinder_wake
from hardmax.figures import draw_fields

wake = cylinder_wake(260, dt=0.1, cells=8, length=14.0, warm_up=50.0)
print(f"Strouhal number {wake.strouhal():.3f}; 0.295 to 0.305 in the benchmark, on much finer grids")

known, ahead = wake.velocity[:200], 60
model = hm.TimeDelayedTransformer(pod=8, random_state=0).fit(known, dt=0.1)
print(model.report_)

# %%
# Vorticity at the start of the forecast, six units of time later (a unit is the time in which the flow passes one
# diameter), and as forecast:

field = model.reconstruct(model.forecast(ahead))[-1]
figure = draw_fields(
    wake.vorticity(known[-1]),
    wake.vorticity(wake.velocity[199 + ahead]),
    wake.vorticity(field),
    x=wake.x,
    y=wake.y,
    hidden=wake.solid,
    name="vorticity",
    ahead="6 units of time ahead",
)

# %%
# The error of the velocity, including what the modes leave out, relative to the deviation from its mean in time:

truth, mean = wake.velocity[199 + ahead], known.mean(axis=0)
in_modes = model.pod_.reconstruct(model.pod_.reduce(truth))
for name, guess in (("forecast", field), ("projection onto eight modes", in_modes)):
    print(f"{name}: {np.linalg.norm(guess - truth) / np.linalg.norm(truth - mean):.1e}")
