"""
Four things that can happen
===========================

Four starting configurations with alpha = 0.5 and A = I, at chosen layers (Figure 2 of the clustering paper; the
coordinates are our own). Stars listen to themselves alone, colours say who is followed, two colours that two are
followed. The last panel shades the polytope that the leaders span.
"""

# sphinx_gallery_capture_repr = ()
# sphinx_gallery_thumbnail_number = 2

import matplotlib.pyplot as plt

import hardmax as hm
from hardmax.datasets import four_configurations
from hardmax.figures import draw_panels

cloud, equals, late, broken = four_configurations()


def show(configuration):
    layer = hm.HardmaxLayer(configuration.alpha)
    run = hm.simulate(configuration.tokens, layer, depth=40)
    _, axes = plt.subplots(1, 4, figsize=(12, 3.4), layout="constrained")
    draw_panels(run, configuration.layers, axes=axes)


# %%
# Every token ends with a leader
# ------------------------------
# Five tokens lead from the start; all others follow one of them to its vertex.

show(cloud)

# %%
# Some end on faces
# -----------------
# Six leaders are equally far from the origin. Tokens halfway between two of them listen to both, for ever, and end in
# the middle of an edge: points of the boundary of the polytope that are no vertices.

show(equals)

# %%
# A leader emerges late
# ---------------------
# The token on the upper left first listens to a neighbour. The neighbour leaves for a leader on the right, and at
# layer 3 the token has nobody left to listen to but itself.

show(late)

# %%
# Ties that break
# ---------------
# Three leaders at different distances from the origin. Four tokens start with two equal scores, but after one layer
# the leader of larger norm wins.

show(broken)
