r"""
Rate of convergence
===================

Once a token listens to one leader alone, its distance to it shrinks by the factor :math:`1/(1+\alpha)` in every layer,
whatever A and the other tokens are. On a logarithmic axis that is a straight line.
"""

# sphinx_gallery_capture_repr = ()

import matplotlib.pyplot as plt

import hardmax as hm
from hardmax.datasets import make_matrix, make_tokens
from hardmax.figures import draw_convergence

tokens = make_tokens("gaussian", 80, 3, random_state=2)
A = make_matrix("random-spd", 3, random_state=2)

figure, axes = plt.subplots(1, 2, figsize=(11, 4), layout="constrained", sharey=True)
for ax, alpha in zip(axes, (0.25, 1.0), strict=True):
    run = hm.simulate(tokens, hm.HardmaxLayer(alpha, A), depth=40)
    draw_convergence(run, ax=ax)
    ax.label_outer()

# %%
# Grey is the time before a token is decided. The measured factor of every cluster, beside the theory:

table = hm.clusters(run).to_pandas()
print(table[["kind", "leaders", "size", "rate", "theory"]].to_string(index=False))
