r"""
Causal attention: the first token never moves
=============================================

In a decoder token i attends to tokens 1 to i. On the circle the first token stays where it is and all others end there,
while without the mask the tokens meet somewhere in between. Angles that differ by :math:`2\pi` are the same point.
"""

# sphinx_gallery_capture_repr = ()

import matplotlib as mpl
import numpy as np

import hardmax as hm
from hardmax.figures import new_figure

causal = hm.zoo.causal_sphere(beta=1.5, n=24)
tokens = causal.start(random_state=7)
full = hm.AttentionFlow(weighting=hm.Softmax(1.5))

figure = new_figure(10.5, 4.0)
axes = figure.subplots(1, 2, sharey=True)
colours = mpl.colormaps["viridis"](np.linspace(0, 0.9, len(tokens)))
for ax, flow, title in zip(axes, (causal.rule, full), ("Causal (dark: first token)", "All tokens"), strict=True):
    run = hm.simulate(tokens, flow, time=50.0, step=0.1, integrator="rk4")
    angles = np.unwrap(np.arctan2(run.tokens[..., 1], run.tokens[..., 0]), axis=0)
    angles = angles - angles[0, 0]
    angles -= 2 * np.pi * np.round(angles[0] / (2 * np.pi))
    for token in reversed(range(len(tokens))):
        ax.plot(run.times, angles[:, token], color=colours[token], lw=2.6 if token == 0 else 1.0)
    ax.set(xlabel="time", title=title)
axes[0].set_ylabel("angle from the first token's start")
measured, theory = causal.compare(causal.run(time=3.0, random_state=7))["angle"]
print(f"angle of the second token to the first at time 3: measured {measured:.8f}, theory {theory:.8f}")
