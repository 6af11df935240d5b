r"""
Tokens that attend to each other
================================

In a transformer a sequence is a list of vectors, the *tokens*. Attention moves each token towards tokens that it scores
highly, and a model with many layers does this many times. In this lesson we put five tokens into the plane, follow
them through the layers, and compute where they go after infinitely many layers.

The lesson requires only hardmax.
"""

# %%
# Tokens and a layer
# ------------------
#
# Tokens are one array of shape ``(token, coordinate)``.

import numpy as np

import hardmax as hm

tokens = np.array([[2.0, 2.0], [-2.0, 2.0], [0.0, -3.0], [0.0, 1.0], [0.5, -0.25]])

# %%
# A layer is a function from tokens to tokens. In a **hardmax** layer token :math:`i` scores every token :math:`j` by
# :math:`\langle A z_i, z_j\rangle`, attends to those with the largest score, the set :math:`C_i`, and moves towards
# their mean :math:`m_i`:
#
# .. math:: z_i' = \frac{z_i + \alpha m_i}{1 + \alpha}.
#
# Softmax attention, which trained models use, gives all tokens some weight; hardmax is its limit at temperature zero.

layer = hm.HardmaxLayer(alpha=0.5)  # A is the identity
layer(tokens)

# %%
# The first three tokens did not move. To which tokens does each token attend?

choice = hm.choose(tokens, layer)
[choice[i].tolist() for i in range(5)]

# %%
# Tokens 0, 1 and 2 attend only to themselves. Such tokens are called **leaders**: they never move again. Token 4
# attends to token 2 and follows it. Token 3 lies halfway between tokens 0 and 1 and attends to both.
#
# Many layers
# -----------
#
# :func:`hardmax.simulate` applies the layer again and again and stores every state.

run = hm.simulate(tokens, layer, depth=40)
print(run.tokens.shape)  # (layer, token, coordinate); layer 0 is the start
print(run.outcome)
print(np.round(run.final, 3))

# %%
# Every result has an outcome in words. *Every token is decided* means that no token will change what it attends to,
# so that all later layers have a closed form.
#
# Infinitely many layers
# ----------------------
#
# :func:`hardmax.equilibrium` uses that closed form and returns the limit of infinite depth.

limit = hm.equilibrium(tokens, layer)
print(limit.positions)
print("leaders", limit.leaders, "each token follows", limit.follows)

# %%
# ``follows`` has one leader per token, the lowest index where there are several. The others are in ``ties``:

dict(limit.ties)

# %%
# A picture
# ---------
#
# Stars are leaders; every other token has the colour of the leader that it follows, and two colours if it follows two.

figure = hm.draw_panels(run, layers=[0, 1, 3, 40])

# %%
# The leaders are the vertices of a polytope, here a triangle. All tokens end on its boundary: at a vertex or, like
# token 3, at a point of a face.

print(limit.polytope)
print("limits on faces:", limit.limit_points[limit.on_faces])

# %%
# :func:`hardmax.clusters` groups tokens by their limit. For a run it measures how fast they approach it: the distance
# shrinks by the factor :math:`1/(1+\alpha)`, here 2/3, in each layer.

for cluster in hm.clusters(run):
    print(cluster.kind, cluster.leaders, cluster.members, round(cluster.rate, 4))

# %%
# Check the theorem
# -----------------
#
# This behaviour is Theorem 1.1 of the clustering paper. The library says whether its assumptions hold for your tokens,
# and checks its conclusions on your run.

print(limit.assumptions)
report = hm.check_theorem(run)
print(report.holds, "-", report["support"].sentence)

# %%
# A larger example
# ----------------
#
# The limit costs about as much as one layer, also for many tokens. A score matrix :math:`A` changes the
# geometry.

crowd = hm.make_tokens("gaussian", 2000, 2, random_state=1)
far = hm.equilibrium(crowd, hm.HardmaxLayer(A=np.array([[2.0, 1.0], [1.0, 1.0]]), alpha=0.5))
print(far)
figure = hm.draw(far)

# %%
# Where to go next
# ----------------
#
# - :doc:`/concepts/leaders-and-limits` explains the cost of the limit, :doc:`/devdocs/loyal-followers` has the proof.
# - :doc:`/howto/attention-layers` has masks, heads, softmax and layers that differ along depth.
# - :doc:`/howto/tolerance` says when two scores count as equal.
# - ``hardmax explore`` opens a page in the browser on which tokens can be dragged.
