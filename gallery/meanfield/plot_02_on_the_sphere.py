r"""
A metastable great circle on the sphere
=======================================

A repeated leading eigenvalue of :math:`VB`: on the sphere, tokens first gather on a great circle, the unit sphere of
the leading eigenspace, and only much later at the two ends of the leading direction of V.
"""

# sphinx_gallery_capture_repr = ()

import numpy as np

import hardmax as hm
from hardmax.figures import draw_sphere

B, V = np.diag([2.0, 1.0, 1.0]), np.diag([1.0, 2.0, 0.5])
tokens = hm.fibonacci_sphere(900, axis=(0.3, 0.2, 1.0)).points

law = hm.low_temperature_limit(tokens, B, V)
print(law)

# %%
# At beta = 60 only four of these tokens share an attention kernel, too few for the duration of the second phase to be
# that of the mean field; the phases themselves are there. ``few_tokens="ignore"`` switches the warning off.

flow = hm.SphereFlow(B, V, beta=60.0, few_tokens="ignore")
run = hm.simulate(tokens, flow, time=25.0, step=0.1, keep=[0, 15, 50, 120, 250])
figure = draw_sphere(run, run.times)
