r"""
Noise against attention: the exact critical coupling
====================================================

With noise, tokens on the sphere stay spread out unless attention is stronger than

.. math:: K_\# = \frac{\beta^{d/2}}{2^{d/2}\,\Gamma(d/2)\,I_{d/2}(\beta)}

(Brownian motion of amplitude one, attention without normalisation). The line is this formula; colours are simulations.
"""

# sphinx_gallery_capture_repr = ()

import numpy as np

import hardmax as hm
from hardmax.figures import new_figure

grid = hm.phase_diagram(
    hm.zoo.noisy,
    x=("beta", np.linspace(0.0, 2.4, 7)),
    y=("coupling", np.linspace(0.2, 1.8, 9)),
    measure="order",
    fixed={"n": 100},
    seeds=1,
    time=20.0,
    step=0.4,
)
figure = new_figure(6.0, 4.0)
left = figure.subplots()
grid.draw(ax=left)

# %%
# The rate at which a small mean token grows is measured from the velocities of the tokens. It is linear in the coupling
# and zero at :math:`K_\#`; three seeds each.

figure = new_figure(6.0, 4.0)
right = figure.subplots()
model = hm.zoo.noisy(beta=1.0)
critical = model.critical["coupling"]
for share in (0.2, 0.4, 0.6):
    for seed in range(3):
        model = hm.zoo.noisy(coupling=share * critical, beta=1.0, n=150)
        growth = model.measure("growth", model.run(time=8.0, step=0.2, random_state=seed))
        right.plot(share * critical, growth, "o", color="#0072B2", ms=6, alpha=0.7)
        ratio = share / (1 + growth / 0.5)
        print(f"K = {share:.1f} K_#, seed {seed}: growth {growth:+.4f}; K_#, measured over theory: {ratio:.3f}")
right.plot([0, 1.2 * critical], [-0.5, 0.1], color="#E69F00", lw=2, label="theory")
right.axhline(0, color="#c9d0d6", lw=1)
right.axvline(critical, color="#c9d0d6", lw=1, ls="--")
right.set(xlabel="coupling K", ylabel="growth rate of the mean token", title=r"On the circle, $\beta = 1$")
right.legend()
