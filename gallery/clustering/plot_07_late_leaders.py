"""
Leaders that emerge late
========================

Most leaders lead from the first layer. Others listen to a neighbour until it has moved away, and only then to
themselves alone.
"""

# sphinx_gallery_capture_repr = ()

import matplotlib.pyplot as plt
import numpy as np

import hardmax as hm
from hardmax.datasets import four_configurations
from hardmax.figures import draw_panels

late = four_configurations()[2]
run = hm.simulate(late.tokens, hm.HardmaxLayer(alpha=0.5), depth=40)
who = run.leadership
for leader, emerged_at in zip(who.leaders, who.emerged_at, strict=True):
    print(f"token {leader} leads from layer {emerged_at}")

# %%
# Token 6 and the tokens that it listens to, layer by layer:

for k in range(5):
    follows = hm.attention_at(run, k).follows
    print(f"layer {k}: token 6 listens to {follows[6]}, token 7 to {follows[7]}")

figure, axes = plt.subplots(1, 4, figsize=(12, 3.9), layout="constrained")
draw_panels(run, [0, 1, 2, 3], axes=axes)

# %%
# Whether the token leads at all depends on the position of its neighbour at each layer, and therefore on the step
# alpha; every dot is a step with which it leads. The smaller the step, the later the token becomes a leader.

alphas = np.geomspace(0.05, 3.0, 48)
emerged_at = []
for alpha in alphas:
    limit = hm.equilibrium(late.tokens, hm.HardmaxLayer(alpha))
    leads = np.flatnonzero(limit.leaders == 6)
    emerged_at.append(limit.emerged_at[leads[0]] if len(leads) else np.nan)

figure, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
ax.semilogx(alphas, emerged_at, "o", color="#0072B2")
ax.set_xlim(0.045, 3.3)
ax.set_xlabel("step alpha")
ax.set_ylabel("layer at which token 6 leads")
ax.spines[["top", "right"]].set_visible(False)
print(f"it leads with {int(np.isfinite(emerged_at).sum())} of {len(alphas)} steps")
