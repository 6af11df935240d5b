r"""
Frank-Wolfe steps, and attention that keeps the mean
====================================================

Hardmax attention with A = -I is a Frank-Wolfe step towards the shortest vector in the hull of the tokens. The hull
shrinks to one point, which is not the origin: it is the place of one token that the others follow.
"""

# sphinx_gallery_capture_repr = ()

import numpy as np

import hardmax as hm
from hardmax.figures import new_figure

figure = new_figure(6.0, 4.6)
left = figure.subplots()

model = hm.zoo.frank_wolfe(alpha=0.5, n=12)
run = model.run(depth=40, random_state=1)
limit = hm.equilibrium(run.tokens[0], model.rule)
for token in range(model.n):
    left.plot(*run.tokens[:, token].T, color="#0072B2", lw=0.9, alpha=0.6, marker=".", ms=3)
left.plot(0, 0, "+", color="#1d2730", ms=14, mew=1.6, label="origin")
left.plot(*np.asarray(limit.positions)[0], "o", color="#D55E00", ms=7, label="exact limit")
left.set(title="Hardmax with A = -I", aspect="equal")
left.legend()
print(f"leader: token {limit.leaders[0]}, length of the limit {np.linalg.norm(limit.positions[0]):.4f}")
print("contraction per layer: measured {:.6f}, theory {:.6f}".format(*model.compare(run)["contraction"]))

# %%
# Doubly stochastic attention (Sinkhorn) moves the mean token by a linear equation, exactly. Softmax does not.

figure = new_figure(6.0, 4.6)
right = figure.subplots()
model = hm.zoo.sinkhorn(beta=1.0, coupling=-1.0)
run = model.run(time=2.0, random_state=0)
softmax = hm.AttentionFlow(weighting=hm.Softmax(1.0), sphere=False, coupling=-1.0)
other = hm.simulate(run.tokens[0], softmax, time=2.0, integrator="rk4")
lengths = [np.linalg.norm(each.tokens.mean(axis=1), axis=1) for each in (run, other)]
right.plot(run.times, lengths[0][0] * np.exp(-run.times), color="#E69F00", lw=5, alpha=0.6, label=r"$e^{-t}$")
right.plot(run.times, lengths[0], color="#1d2730", lw=1.4, label="Sinkhorn")
right.plot(other.times, lengths[1], color="#D55E00", lw=1.4, ls="--", label="softmax")
right.set(title="Length of the mean token", xlabel="time")
right.legend()
