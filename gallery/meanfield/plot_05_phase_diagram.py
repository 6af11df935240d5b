r"""
A phase diagram by a sweep
==========================

A sweep runs a function on a grid, one row per run, in any number of processes, and resumes where it stopped. Here it
measures how the two characteristic times depend on :math:`\beta`.
"""

# sphinx_gallery_capture_repr = ()

import matplotlib.pyplot as plt
import numpy as np

import hardmax as hm
from hardmax.figures import draw_durations, draw_phase_diagram

B, V = np.diag([4.0, 1.0]), np.diag([1.0, 2.0])
tokens = hm.circle_quantiles(500, lambda angle: 1 + np.sin(angle) / 2).points
kept = {}


def measure(beta):
    run = hm.simulate(tokens, hm.SphereFlow(B, V, beta), time=12.0, step=0.2)
    kept[beta] = hm.phases(run)
    found = kept[beta]
    return {"approach": found.approach_time, "escape": found.escape_time, "least": found.approach_distance}


table = hm.sweep(measure, {"beta": np.geomspace(8, 96, 7)})
print(table[["beta", "approach", "escape", "least", "outcome"]].round(3).to_string(index=False))

# %%
# Bright is close to the limit law: the metastable phase widens with log beta.

figure, (left, right) = plt.subplots(1, 2, figsize=(11.4, 4.2), layout="constrained", width_ratios=[1.25, 1])
draw_phase_diagram(list(kept.values()), ax=left)
draw_durations([kept[beta] for beta in list(kept)[::3]], ax=right)
