r"""
The limit map is an oblique projection
======================================

The limit of a token is its image under the *spectral* projector of :math:`VB`, which is oblique in general. For
matrices that do not commute, a third of the tokens end on the other side from where the orthogonal projector would send
them.
"""

# sphinx_gallery_capture_repr = ()

import matplotlib.pyplot as plt
import numpy as np

import hardmax as hm

B, V = np.array([[3.0, 4.0], [0.0, 1.0]]), np.array([[1.0, 0.5], [0.0, 0.5]])
tokens = hm.circle_quantiles(800).points
law = hm.low_temperature_limit(tokens, B, V)
end = hm.simulate(tokens, hm.SphereFlow(B, V, beta=100.0), time=10.0, step=0.1, keep="last").final

angle = np.degrees(np.arctan2(tokens[:, 1], tokens[:, 0]))
order = np.argsort(angle)
orthogonal = np.sign(tokens[:, 0])

figure, ax = plt.subplots(figsize=(7.4, 3.6), layout="constrained")
ax.plot(angle[order], orthogonal[order], color="#E69F00", lw=2.2, ls=(0, (5, 3)), label="orthogonal projector")
ax.plot(angle[order], law.positions[order, 0], color="#0072B2", lw=4, alpha=0.45, label="spectral projector")
ax.plot(angle[order][::8], end[order, 0][::8], ".", color="#1d2730", ms=4, label=r"run at $\beta = 100$")
ax.set_xlabel("angle at which a token starts, degrees")
ax.set_ylabel("first coordinate where it ends")
ax.set_xlim(-180, 180)
ax.set_xticks(range(-180, 181, 90))
ax.set_ylim(-1.25, 1.7)
ax.set_yticks([-1, 0, 1])
ax.spines[["top", "right"]].set_visible(False)
ax.legend(loc="upper center", ncols=3, frameon=False)

# %%
# Where no limit exists, the error names the reason:

try:
    hm.low_temperature_limit(tokens, V=[[0.0, -1.0], [1.0, 0.0]])
except hm.NoLimitError as error:
    print(error)
