r"""
Long contexts need a temperature that falls with the logarithm of their length
==============================================================================

One attention layer with :math:`\beta_n = \gamma\log n` on tokens whose pairs have the cosine :math:`\rho`. Below
:math:`\gamma_c = 1/(1-\rho)` every token attends to the average of all, above it to itself.
"""

# sphinx_gallery_capture_repr = ()

import numpy as np

import hardmax as hm
from hardmax.figures import new_figure

grid = hm.phase_diagram(
    hm.zoo.long_context,
    x=("rho", np.linspace(0.0, 0.7, 15)),
    y=("gamma", np.linspace(0.2, 4.0, 16)),
    measure="own_weight",
    fixed={"n": 100},
    seeds=1,
)
figure = new_figure(6.0, 4.0)
left = figure.subplots()
grid.draw(ax=left)

# %%
# The transition sharpens with the length of the context.

figure = new_figure(6.0, 4.0)
right = figure.subplots()
gammas = np.linspace(0.3, 2.4, 15)
for n, colour in ((10, "#56B4E9"), (100, "#0072B2"), (1000, "#1d2730")):
    weights = []
    for gamma in gammas:
        model = hm.zoo.long_context(gamma, rho=0.2, n=n)
        weights.append(model.measure("own_weight", model.run()))
    right.plot(gammas, weights, color=colour, lw=2, label=f"{n} tokens")
right.axvline(1.25, color="#c9d0d6", lw=1, ls="--")
right.set(xlabel="gamma", ylabel="attention of a token to itself", title=r"$\rho = 0.2$, $\gamma_c = 1.25$")
right.legend()
