r"""
Three phases at low temperature
===============================

Tokens on the circle attend by softmax at inverse temperature :math:`\beta`. The limit map of
:math:`B = \mathrm{diag}(4, 1)`, :math:`V = \mathrm{diag}(1, 2)` sends each to :math:`\pm e_1`, although V prefers
:math:`e_2`. They gather there first, rest for a time of order :math:`\log\beta`, and only then leave.
"""

# sphinx_gallery_capture_repr = ()

import matplotlib.pyplot as plt
import numpy as np

import hardmax as hm
from hardmax.figures import draw_angles, draw_distances

B, V = np.diag([4.0, 1.0]), np.diag([1.0, 2.0])
tokens = hm.circle_quantiles(520, lambda angle: 1 + np.sin(angle) / 2).points

runs = {beta: hm.simulate(tokens, hm.SphereFlow(B, V, beta), time=14.0, step=0.2) for beta in (10.0, 30.0, 100.0)}
found = {beta: hm.phases(run) for beta, run in runs.items()}

figure, (left, right) = plt.subplots(1, 2, figsize=(11.4, 4.2), layout="constrained")
draw_distances(list(found.values()), ax=left)
last = found[100.0]
draw_angles(runs[100.0], ax=right, marks={"closest approach": last.approach_time, "escape": last.escape_time})

# %%
# What was found in the run, beside the theory:

print(last)
