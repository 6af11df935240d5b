"""
Masks and heads
===============

In a decoder a token sees only the tokens before it. The first token then sees itself alone and leads from the start,
and later tokens follow leaders among their past. The limit of infinite depth is still in closed form.
"""

# sphinx_gallery_capture_repr = ()
# sphinx_gallery_thumbnail_number = 1

import matplotlib.pyplot as plt
import numpy as np

import hardmax as hm
from hardmax.figures import draw_tokens

tokens = hm.make_tokens("gaussian", 80, 2, random_state=5)
matrices = [np.array([[1.2, 0.3], [0.3, 1.0]]), np.array([[1.0, -0.3], [-0.3, 1.2]])]
layers = {
    "all tokens in sight": hm.HardmaxLayer(alpha=0.5),
    "causal": hm.HardmaxLayer(alpha=0.5, causal=True),
    "two heads": hm.HardmaxLayer(alpha=0.5, heads=matrices),
    "two heads, causal": hm.HardmaxLayer(alpha=0.5, heads=matrices, causal=True),
}

# %%
# Each token is drawn where it started, with a line to where it ends. With a causal mask many early tokens lead that
# others in sight of everything would follow; with two heads a token ends between the leaders that its heads select.

figure, axes = plt.subplots(2, 2, figsize=(10, 9), layout="constrained")
for ax, (title, layer) in zip(axes.flat, layers.items(), strict=True):
    limit = hm.equilibrium(tokens, layer)
    draw_tokens(limit, start=tokens, ax=ax)
    ax.set_title(f"{title}: {len(limit.leaders)} leaders, {len(limit.limit_points)} limit points", loc="left")
    print(f"{title}: {limit.outcome}")

# %%
# The hull of the tokens in sight grows with the place in the sequence, so leaders become rare: the n-th token of a
# Gaussian sequence leads about as often as it is a new vertex of the hull.

count = 20_000
sequence = hm.make_tokens("gaussian", count, 2, random_state=0)
limit = hm.equilibrium(sequence, hm.HardmaxLayer(alpha=0.5, causal=True))
figure, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
ax.step(limit.leaders + 1, np.arange(1, len(limit.leaders) + 1), where="post")
ax.set_xscale("log")
ax.set_xlabel("tokens of the sequence")
ax.set_ylabel("leaders among them")
