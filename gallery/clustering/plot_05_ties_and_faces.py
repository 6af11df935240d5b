r"""
Ties, and points on faces
=========================

A token that gives two tokens the same score listens to both and moves towards their mean. If both have the same norm
:math:`\|z\|_A` the tie lasts for ever, and the token ends on a face of the polytope; otherwise the token listens to the
one of larger norm at the next layer.
"""

# sphinx_gallery_capture_repr = ()
# sphinx_gallery_thumbnail_number = 3

import matplotlib.pyplot as plt
import numpy as np

import hardmax as hm
from hardmax.figures import draw_panels, draw_tokens

# %%
# Two leaders of equal norm, and a token exactly between them. The tie lasts.

tokens = np.array([[-1.0, 2.0], [1.0, 2.0], [0.0, 0.5], [0.4, 0.6], [-0.6, 0.8]])
run = hm.simulate(tokens, hm.HardmaxLayer(alpha=0.5), depth=30)
figure, axes = plt.subplots(1, 3, figsize=(10, 3.2), layout="constrained")
draw_panels(run, [0, 2, 30], axes=axes)
for token, leaders in run.leadership.ties.items():
    print(f"token {token} is tied for ever between {leaders.tolist()}")

# %%
# One of them is moved outwards, on the line where the scores stay equal. The tie breaks after one layer.

tokens[1] = [1.5, 2.0]
run = hm.simulate(tokens, hm.HardmaxLayer(alpha=0.5), depth=30)
figure, axes = plt.subplots(1, 3, figsize=(10, 3.2), layout="constrained")
draw_panels(run, [0, 2, 30], axes=axes)
print("tied for ever:", len(run.leadership.ties))

# %%
# Integer points have many exact ties. A tolerance decides them in floating point; rational arithmetic decides them
# without one, and both agree.

rng = np.random.default_rng(12)
grid = np.unique(rng.integers(-4, 5, (70, 2)), axis=0).astype(float)
grid = grid[grid.any(axis=1)]
limit = hm.equilibrium(grid, hm.HardmaxLayer(alpha=0.5))
exact = hm.equilibrium(grid, hm.HardmaxLayer(alpha=0.5, tolerance="exact"))
same = np.array_equal(limit.follows, exact.follows)
print("the same leaders in rational arithmetic:", same)

figure, ax = plt.subplots(figsize=(6, 5.6), layout="constrained")
draw_tokens(limit, start=grid, ax=ax)
