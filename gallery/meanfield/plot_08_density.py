r"""
The density of infinitely many tokens
=====================================

:func:`hardmax.simulate_density` solves the mean-field equation for the law along characteristics, so that the result
does not depend on a number of tokens. Two clusters form at the angles 0 and :math:`\pi`, and the gap between them
empties faster than any exponential.
"""

# sphinx_gallery_capture_repr = ()

import matplotlib.pyplot as plt
import numpy as np

import hardmax as hm
from hardmax.figures import draw_distances

B, V = np.diag([4.0, 1.0]), np.diag([1.0, 2.0])
law = hm.circle_density(lambda angle: 1 + np.sin(angle) / 2)
runs = {
    beta: hm.simulate_density(law, hm.SphereFlow(B, V, beta), time=9.0, every=0.2, tolerance=1e-6) for beta in (5, 15)
}

figure, (left, right) = plt.subplots(1, 2, figsize=(11.4, 4.2), layout="constrained")
shown = (0.0, 0.4, 0.8, 1.2, 1.6)
colours = plt.colormaps["viridis"](np.linspace(0.85, 0.0, len(shown)))
for time, colour in zip(shown, colours, strict=True):
    angles, values = runs[15].states[round(time / 0.2)].curve()
    inside = values > 1e-9
    left.semilogy(np.where(inside, angles, np.nan), values, color=colour, lw=1.8, label=f"t = {time:g}")
left.set_xticks(np.pi * np.arange(5) / 2, ["0", r"$\pi/2$", r"$\pi$", r"$3\pi/2$", r"$2\pi$"])
left.set_ylim(1e-5, 40)
left.set_xlabel("angle")
left.set_ylabel("density")
left.spines[["top", "right"]].set_visible(False)
left.legend(loc="upper center", ncols=5, frameon=False, handlelength=1.0, columnspacing=1.0)
draw_distances([hm.phases(run) for run in runs.values()], ax=right)

# %%
# The phases of the density, beside the theory:

print(hm.phases(runs[15]))
