"""
A million tokens, infinitely deep
=================================

Only corners of the convex hull can win an argmax, and a follower never changes its leader. So a million tokens can be
taken to infinite depth at about the cost of one layer, without comparing each with each.
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
# A handful of tokens lead a million. Every token is counted in its pixel, in the colour of the leader with whom it
# ends; stronger is denser. The basins are almost cones: what counts is the direction of a token, not how far out it is.

figure, ax = plt.subplots(figsize=(7, 6.4), layout="constrained")
draw_tokens(limit, start=tokens, ax=ax)

# %%
# At the end only the leaders are left, and how many stand with each of them.

figure, ax = plt.subplots(figsize=(7, 6.4), layout="constrained")
draw_tokens(limit, ax=ax)
