r"""
Kuramoto's oscillators are attention at infinite temperature
============================================================

On the circle, with :math:`\beta = 0`, self-attention is Kuramoto's model. The order of many identical oscillators obeys
:math:`\dot r = \tfrac{K}{2} r (1 - r^2)`; with Lorentzian frequencies of half width :math:`\Delta` it settles at
:math:`\sqrt{1 - 2\Delta/K}`.
"""

# sphinx_gallery_capture_repr = ()

import numpy as np

import hardmax as hm
from hardmax.figures import new_figure

figure = new_figure(6.0, 4.0)
left = figure.subplots()

model = hm.zoo.kuramoto(coupling=1.0, n=200)
run = model.run(time=8.0, random_state=0)
order = np.linalg.norm(run.tokens.mean(axis=1), axis=1)
start = 1 / order[0] ** 2 - 1
left.plot(run.times, 1 / np.sqrt(1 + start * np.exp(-run.times)), color="#E69F00", lw=5, alpha=0.6, label="theory")
left.plot(run.times, order, color="#1d2730", lw=1.4, label="200 tokens")
left.set(xlabel="time", ylabel="order r", title="Identical oscillators, K = 1")
left.legend()

# %%
# Above the critical coupling :math:`K_c = 2\Delta` a part of the oscillators locks.

figure = new_figure(6.0, 4.0)
right = figure.subplots()
width = 0.5
couplings = np.linspace(0.2, 3.0, 12)
found = []
for coupling in couplings:
    model = hm.zoo.kuramoto(coupling=coupling, width=width, initial=0.5, n=600)
    run = model.run(time=20.0, step=0.2, random_state=0)
    found.append(np.linalg.norm(run.tokens[50:].mean(axis=1), axis=1).mean())
fine = np.linspace(1.0, 3.0, 200)
right.plot([0.2, 1.0, *fine], [0, 0, *np.sqrt(1 - 2 * width / fine)], color="#E69F00", lw=5, alpha=0.6, label="theory")
right.plot(couplings, found, "o", color="#1d2730", ms=5, label="600 tokens")
right.axvline(2 * width, color="#c9d0d6", lw=1, ls="--")
right.set(xlabel="coupling K", ylabel="order r at late times", title=r"Frequencies of half width $\Delta = 0.5$")
right.legend()
