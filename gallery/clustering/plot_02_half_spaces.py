r"""
Points that can attract a token
===============================

Token i scores token j by :math:`\langle A z_i, z_j\rangle`. It is attracted only by points y that score at least as
high as itself, :math:`\langle A z_i, y\rangle \ge \langle A z_i, z_i\rangle`: a half-plane with its boundary through
:math:`z_i`, normal to :math:`A z_i` (Figure 1 of the clustering paper).
"""

# sphinx_gallery_capture_repr = ()

import matplotlib.pyplot as plt

import hardmax as hm
from hardmax.datasets import half_space_example, make_matrix, make_tokens
from hardmax.figures import draw_attention_geometry

tokens = half_space_example()
paper = make_matrix("paper", 2, random_state=None)
matrices = {"A = I": None, "A = ((2, 1), (1, 1))": paper}

figure, axes = plt.subplots(1, 2, figsize=(9.6, 4.9), layout="constrained")
for ax, (name, A) in zip(axes, matrices.items(), strict=True):
    layer = hm.HardmaxLayer(alpha=0.5, A=A)
    draw_attention_geometry(tokens, layer, token=0, ax=ax)
    ax.set_title(name, loc="left")
    chosen = hm.choose(tokens, layer)[0].tolist()
    print(f"{name}: the first token listens to {chosen}")

# %%
# With the identity the half-plane faces away from the origin, so tokens move outwards: norms never decrease. Two
# tokens tie here, and the first token moves towards the mean of both. Another A turns the half-plane, and the tie is
# broken.
#
# A token that has no other token in its half-plane is a leader. A cloud with a few far-out tokens:

cloud = make_tokens("heavy-tails", 40, 2, random_state=4)
leader = int(hm.equilibrium(cloud).leaders[0])

figure, ax = plt.subplots(figsize=(5.6, 5), layout="constrained")
draw_attention_geometry(cloud, hm.HardmaxLayer(alpha=0.5), token=leader, ax=ax)
