"""
Four configurations of the paper
================================

The four starting configurations of Figure 2 of the clustering paper, with alpha = 0.5 and A = I, at its layers. Stars
listen to themselves alone; the colour of a token is that of the leader it follows, two colours mean two
leaders; a token that others follow has an edge in their colour. The last panel shades the polytope that the leaders
span.
"""

# sphinx_gallery_capture_repr = ()
# sphinx_gallery_thumbnail_number = 4

import matplotlib.pyplot as plt

import hardmax as hm
from hardmax.datasets import four_configurations, paper_configurations
from hardmax.figures import draw_panels

triangle, emerging, square, non_leaders = paper_configurations()


def show(configuration):
    layer = hm.HardmaxLayer(configuration.alpha)
    run = hm.simulate(configuration.tokens, layer, depth=configuration.layers[-1])
    count = len(configuration.layers)
    _, axes = plt.subplots(1, count, figsize=(2.7 * count, 3.0), layout="constrained")
    draw_panels(run, configuration.layers, axes=axes)


# %%
# Triangular polytope
# -------------------
# Three tokens lead from the start. At layer 0 the light blue token listens to one that itself listens to a leader: the
# edge of that one is light blue.

show(triangle)

# %%
# A leader emerges
# ----------------
# The token near the origin first listens to its neighbour. The neighbour leaves for the leader on the right, and from
# layer 1 on the token listens to itself alone.

show(emerging)

# %%
# Square polytope
# ---------------
# The corners of a square lead, and every other token follows one of them.

show(square)

# %%
# Clusters that are not at leaders
# --------------------------------
# Two tokens are as far from one corner as from another. They listen to both, for ever, and end in the middle of a side:
# points of the boundary of the polytope that are no vertices.

show(non_leaders)

# %%
# Ties that break
# ---------------
# A configuration that is not in the paper: three leaders at different distances from the origin. Four tokens start with
# two equal scores, but after one layer they listen to the leader of larger norm.

show(four_configurations()[3])
