r"""
Metastability: the energy rises in steps
========================================

At large :math:`\beta` clusters interact weakly. They stay apart for times that grow exponentially with :math:`\beta`,
and then merge quickly; the energy is constant in between.
"""

# sphinx_gallery_capture_repr = ()

import numpy as np

import hardmax as hm
from hardmax.figures import new_figure

figure = new_figure(6.0, 4.0)
left = figure.subplots()

beta = 4.0
model = hm.zoo.metastable(beta=beta, scatter=0.05, n=60)
run = model.run(time=150.0, step=0.25, random_state=1)
angles = np.arctan2(run.tokens[..., 1], run.tokens[..., 0])
angles = np.unwrap(np.where(angles < -1, angles + 2 * np.pi, angles), axis=0)
left.plot(run.times[1:], angles[1:], color="#0072B2", lw=0.8, alpha=0.5)
left.set(xscale="log", xlabel="time", ylabel="angle", title="60 tokens on the circle")

# %%
# The energy relative to its maximum. With k clusters of shares :math:`m_c` it is near :math:`\sum_c m_c^2`.

figure = new_figure(6.0, 4.0)
right = figure.subplots()
energy = [np.exp(beta * (z @ z.T - 1)).mean() for z in run.tokens]
right.plot(run.times[1:], energy[1:], color="#D55E00", lw=2)
for level, text in ((1 / 3, "3 equal clusters: 1/3"), (5 / 9, "2 clusters: 5/9"), (1.0, "1 cluster: 1")):
    right.axhline(level, color="#c9d0d6", lw=1, ls="--")
    right.text(8.0 if level < 0.5 else 0.27, level + 0.015, text, color="#5b6873", fontsize=9)
right.set(xscale="log", xlabel="time", ylabel="energy / maximum", title="Energy", ylim=(0, 1.1))
measured, theory = model.compare(run)["energy"]
print(f"energy at the end: measured {measured:.6f}, by one equation per cluster {theory:.6f}")
