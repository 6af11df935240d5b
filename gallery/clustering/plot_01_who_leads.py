"""
Leaders and followers
=====================

In every layer a token listens to the token with the largest score and moves a step towards it. A token that
listens to itself alone is a **leader**: it never moves again. All other tokens follow.
"""

# sphinx_gallery_capture_repr = ()
# sphinx_gallery_thumbnail_number = 2

import matplotlib.pyplot as plt

import hardmax as hm
from hardmax.datasets import make_tokens
from hardmax.figures import draw_cluster_sizes, draw_panels, draw_tokens

tokens = make_tokens("gaussian", 60, 2, random_state=3)
layer = hm.HardmaxLayer(alpha=0.5)
run = hm.simulate(tokens, layer, depth=40)
print(run)

# %%
# Stars listen to themselves alone; the colour of any other token is that of the token it listens to. A follower is
# loyal: once it listens to one leader alone, it does so for ever.

figure, axes = plt.subplots(1, 4, figsize=(12, 3.4), layout="constrained")
draw_panels(run, [0, 1, 3, 40], axes=axes)

# %%
# Because followers are loyal, the layers need not be run: the limit of infinitely many layers is in closed form and
# costs about as much as one layer. Here every token is drawn where it started, with a line to where it ends.

limit = hm.equilibrium(tokens, layer)
print(limit)

figure, ax = plt.subplots(figsize=(6, 5.2), layout="constrained")
draw_tokens(limit, start=tokens, ax=ax)

# %%
# How many tokens end where:

figure, ax = plt.subplots(figsize=(6, 2.6), layout="constrained")
draw_cluster_sizes(limit, ax=ax)
