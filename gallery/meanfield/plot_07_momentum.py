r"""
Tokens with momentum
====================

With momentum attention is a force, :math:`m\ddot x + c\dot x = f(x)`: tokens overshoot, swing through the cluster and
come to rest by friction. For a small mass they follow the flow of first order.
"""

# sphinx_gallery_capture_repr = ()

import matplotlib.pyplot as plt
import numpy as np

import hardmax as hm
from hardmax.figures import draw_angles

flow = hm.SphereFlow(beta=6.0, few_tokens="ignore")
tokens = hm.circle_quantiles(60, lambda angle: 1 + np.cos(angle) / 2).points
plain = hm.simulate(tokens, flow, time=30.0)

heavy = hm.MomentumFlow(flow, friction=0.25, mass=1.0)
swinging = hm.simulate(tokens, heavy, time=30.0)

# %%
# The kinetic energy rises when clusters form and meet, and friction takes it away.

figure, axes = plt.subplots(1, 3, figsize=(12, 3.8), layout="constrained", width_ratios=[1, 1, 0.8])
draw_angles(plain, ax=axes[0])
axes[0].set_title("first order", loc="left")
draw_angles(heavy.without_momenta(swinging), ax=axes[1])
axes[1].set_title("with momentum", loc="left")
energy = (heavy.momenta(swinging) ** 2).sum(axis=2).mean(axis=1) / (2 * heavy.mass)
axes[2].plot(swinging.times, energy, color="#0072B2")
axes[2].set_xlabel("time")
axes[2].set_ylabel("kinetic energy per token")
axes[2].spines[["top", "right"]].set_visible(False)
