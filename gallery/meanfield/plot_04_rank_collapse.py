r"""
Clusters, then one: the pictures of "A mathematical perspective on transformers"
================================================================================

Geshkovski, Letrouit, Polyanskiy and Rigollet study :math:`B = V = I`: tokens on the sphere that attract each other. In
the end all collapse to one point, but at larger :math:`\beta` they first form a few clusters that merge slowly.
"""

# sphinx_gallery_capture_repr = ()

import matplotlib.pyplot as plt
import numpy as np

import hardmax as hm
from hardmax.figures import draw_sphere

tokens = hm.sphere_sample(64, 3, random_state=1).points

# %%
# High temperature: one cluster soon. These tokens do not approximate a measure, so ``few_tokens="ignore"`` switches
# the warning off.

warm = hm.simulate(tokens, hm.SphereFlow(beta=1.0, few_tokens="ignore"), time=15.0, step=0.1)
figure = draw_sphere(warm, [0.0, 2.0, 5.0, 15.0])

# %%
# Low temperature: several clusters, for a long time.

cold = hm.simulate(tokens, hm.SphereFlow(beta=9.0, few_tokens="ignore"), time=30.0, step=0.1)
figure = draw_sphere(cold, [0.0, 2.0, 10.0, 30.0])

# %%
# The histogram of all inner products through time: rank collapse is everything at 1. Bands below 1 are clusters that
# have not met yet. The interaction energy, which this flow can only raise, goes up in steps.

figure, axes = plt.subplots(1, 3, figsize=(12, 3.7), layout="constrained", width_ratios=[1, 1, 0.95])
edges = np.linspace(-1, 1, 81)
upper = np.triu_indices(len(tokens), 1)
for ax, run, beta in ((axes[0], warm, 1), (axes[1], cold, 9)):
    states = run.tokens[::2]
    counts = np.array([np.histogram((x @ x.T)[upper], edges)[0] for x in states])
    ax.pcolormesh(run.times[::2], edges, np.log1p(counts.T[:, :-1]), cmap="viridis", shading="flat", rasterized=True)
    ax.set_title(rf"$\beta = {beta}$", loc="left")
    ax.set_xlabel("time")
axes[0].set_ylabel("inner products of tokens")
for run, beta, colour in ((warm, 1, "#0072B2"), (cold, 9, "#D55E00")):
    axes[2].plot(run.times, hm.lyapunov(run).interaction, color=colour, lw=1.8, label=rf"$\beta = {beta}$")
axes[2].set_xlabel("time")
axes[2].set_ylabel("interaction energy")
axes[2].spines[["top", "right"]].set_visible(False)
axes[2].legend(frameon=False)
