"""
A million tokens at infinite depth
==================================

Only vertices of the convex hull can have the largest score, and a follower never changes its leader. Therefore the
limit of a million tokens costs about as much as one layer, without scores of all pairs.
"""

# sphinx_gallery_capture_repr = ()

import time

import matplotlib.pyplot as plt

import hardmax as hm
from hardmax.datasets import make_tokens
from hardmax.figures import draw_tokens

tokens = make_tokens("gaussian", 1_000_000, 2, random_state=0)

began = time.perf_counter()
limit = hm.equilibrium(tokens, hm.HardmaxLayer(alpha=0.5))
print(f"{time.perf_counter() - began:.2f} seconds: {limit.outcome}")

# %%
# A few tokens lead a million. Every token is counted in its pixel, in the colour of its leader; stronger colours mean
# more tokens. The basins are almost cones: the leader depends on the direction of a token, hardly on its length.

figure, ax = plt.subplots(figsize=(7, 6.4), layout="constrained")
draw_tokens(limit, start=tokens, ax=ax)

# %%
# The leaders, and the number of tokens that converge to each:

figure, ax = plt.subplots(figsize=(7, 6.4), layout="constrained")
draw_tokens(limit, ax=ax)
