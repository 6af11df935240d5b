r"""
Many tokens at low temperature
==============================

With layer normalisation tokens lie on the unit sphere, and a long sequence is better described by the *distribution*
of its tokens: the mean field. In this lesson tokens on a circle attend by softmax at a low temperature. They gather
at a limit that can be computed beforehand, stay there for a long time, and finally leave it.
"""

# %%
# A distribution and a flow
# -------------------------
#
# The 500 tokens are quantiles of a density on the circle, so there is no random noise. ``B`` scores pairs of
# tokens, ``V`` is the value matrix and ``beta`` the inverse temperature.

import numpy as np

import hardmax as hm

B, V = np.diag([4.0, 1.0]), np.diag([1.0, 2.0])
law = hm.circle_quantiles(500, lambda angle: 1 + np.sin(angle) / 2)
flow = hm.SphereFlow(B, V, beta=30.0)
run = hm.simulate(law.points, flow, weights=law.weights, time=14.0, step=0.2)
print(run)

# %%
# Depth is now a continuous time. The lines are the angles of the tokens:

axes = hm.figures.draw_angles(run)

# %%
# The limit of low temperature
# ----------------------------
#
# At temperature zero, with infinitely many tokens, the limit is known: each token is projected onto the leading
# eigenspace of :math:`VB`. :func:`hardmax.low_temperature_limit` computes it for every token.

limit = hm.low_temperature_limit(law.points, B, V)
print(limit)
for time in (0, 4, 8, 14):
    state = run.tokens[round(time / 0.2)]
    print(f"time {time:2d}: distance {float(hm.wasserstein(state, limit.positions)):.3f}")

# %%
# The distance (Wasserstein's :math:`W_2`) falls, stays low and grows again: the limit of low temperature is
# *metastable*. In the terminal phase tokens move to the leading axis of the value matrix.
#
# Three phases
# ------------
#
# :func:`hardmax.phases` finds the phases in the run and puts the theory beside them.

found = hm.phases(run)
print(found)
axes = hm.figures.draw_distances([found])

# %%
# The phase at the limit lasts for a time of order :math:`\log\beta`. Two temperatures are enough to see it:

colder = hm.phases(hm.simulate(law.points, hm.SphereFlow(B, V, beta=90.0), weights=law.weights, time=14.0, step=0.2))
print(f"beta = 30: leaves at {found.escape_time:.1f}; beta = 90: leaves at {colder.escape_time:.1f}")
print(f"difference {colder.escape_time - found.escape_time:.2f}, theory 1.5 ln 3 = {1.5 * np.log(3):.2f}")

# %%
# Number of tokens
# ----------------
#
# Few tokens do not approximate the mean field: at low temperature each attends only to its neighbours, and then to
# itself. ``kernel_occupancy`` is the number of tokens that share an attention kernel; below ten there is a warning.

print(hm.kernel_occupancy(law.points, B, beta=30.0))

# %%
# :func:`hardmax.simulate_density` solves for the density of infinitely many tokens.

density = hm.circle_density(lambda angle: 1 + np.sin(angle) / 2)
smooth = hm.simulate_density(density, hm.SphereFlow(B, V, beta=5.0), time=4.0, every=0.5)
print(smooth)

# %%
# Where to go next
# ----------------
#
# - :doc:`/concepts/temperature-and-mean-field` has the picture behind this lesson.
# - :doc:`/howto/mean-field`: spheres of any dimension, the theorem with its constants, distances.
# - :doc:`/howto/models-of-the-field`: Kuramoto, noise, causal masks, each beside its theory.
