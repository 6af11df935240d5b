"""
A polytope in space
===================

In three dimensions the leaders span a solid. Tokens end at its corners, or, where leaders tie for ever, on its edges
and faces.
"""

# sphinx_gallery_capture_repr = ()

import itertools

import matplotlib.pyplot as plt
import numpy as np

import hardmax as hm
from hardmax.datasets import make_tokens
from hardmax.figures import draw_tokens

tokens = make_tokens("gaussian", 400, 3, random_state=5)
limit = hm.equilibrium(tokens, hm.HardmaxLayer(alpha=0.5))
print(limit)
print(limit.polytope, f"of volume {limit.polytope.volume:.2f}")

figure = plt.figure(figsize=(7, 6.4), layout="constrained")
ax = figure.add_subplot(projection="3d")
draw_tokens(limit, start=tokens, ax=ax)

# %%
# Eight leaders at the corners of a cube, all equally far from the origin, and tokens on its axes and diagonals: they
# listen to two or to four leaders at once and end on edges and faces.

corners = np.array(list(itertools.product((-1.0, 1.0), repeat=3)))
on_axes = np.array([[0.5, 0, 0], [0, 0, 0.5], [0, -0.5, 0]])
on_diagonals = np.array([[0.4, 0.4, 0], [-0.4, 0, 0.4], [0.2, 0.3, 0.4]])
limit = hm.equilibrium(np.vstack([corners, on_axes, on_diagonals]))
for token, leaders in limit.ties.items():
    where = limit.positions[token]
    print(f"token {token} ends between {leaders.tolist()} at {where}")

figure = plt.figure(figsize=(7, 6.4), layout="constrained")
ax = figure.add_subplot(projection="3d")
draw_tokens(limit, ax=ax)

# %%
# Beyond three coordinates tokens are shown on their two principal directions, and the axes say how much of the variance
# those hold.

tokens = make_tokens("clusters", 300, 6, random_state=1)
limit = hm.equilibrium(tokens)

figure, ax = plt.subplots(figsize=(6.6, 5.6), layout="constrained")
draw_tokens(limit, start=tokens, ax=ax)
