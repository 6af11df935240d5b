r"""
An index that grows
===================

A decoder appends one key per token and searches the key of the largest score for each query. Here 240 keys arrive
along a spiral that winds outwards, rests and winds on, and after each arrival :class:`hardmax.LeaderIndex` is queried
in 360 directions. Only vertices of the convex hull are attended to, and each new key is attended to in the directions
in which it lies outside of the hull.
"""

# sphinx_gallery_capture_repr = ()

import matplotlib.pyplot as plt
import numpy as np

import hardmax as hm

arrival = np.arange(240)
angles = 0.37 * arrival
lengths = 1 + 0.008 * arrival + 0.35 * np.sin(arrival / 21)
keys = lengths[:, None] * np.stack([np.cos(angles), np.sin(angles)], axis=1)
directions = np.radians(np.arange(360) - 180)
queries = np.stack([np.cos(directions), np.sin(directions)], axis=1)

index = hm.LeaderIndex(2)
attended = np.empty((len(directions), len(keys)))
margins = np.empty_like(attended)
hulls = {}
for k, key in enumerate(keys):
    index.append(key)
    found = index.best(queries)
    attended[:, k], margins[:, k] = found.first, found.margin
    if k + 1 in (30, 100, 240):
        hulls[k + 1] = keys[list(dict.fromkeys(found.first.tolist()))]  # in the order of the directions
print(
    f"{len(np.unique(attended))} of {len(index)} keys are attended to at some time; at the end {len(hulls[240])} are."
)

# %%
# On the left the keys in the order of their arrival, and the convex hull after 30, 100 and 240 of them. In the middle
# the key that each direction attends to, over the number of keys: colours as on the left, so that bright stripes are
# new keys taking over, and flat bands are times at which the spiral shrinks and earlier keys remain the best. On the
# right the margin to the next key, which vanishes where the best key changes.

figure, (left, middle, right) = plt.subplots(
    1, 3, figsize=(13.2, 4.6), layout="constrained", width_ratios=(1, 1.25, 1.25)
)
colours = plt.get_cmap("viridis")
left.plot(*keys.T, color="#c9d0d6", lw=0.6, zorder=0)
left.scatter(*keys.T, c=arrival, cmap=colours, s=9)
for count, hull in hulls.items():
    left.fill(*hull.T, fill=False, edgecolor=colours((count - 1) / 239), lw=1.4)
    left.annotate(f"{count} keys", hull[np.argmax(hull[:, 1])], xytext=(4, 4), textcoords="offset points", fontsize=8)
left.set_aspect("equal")
left.set_title("keys and hulls")
left.spines[["top", "right"]].set_visible(False)

extent = (0.5, 240.5, -180, 180)
shown = middle.imshow(attended, cmap=colours, origin="lower", aspect="auto", extent=extent, interpolation="nearest")
figure.colorbar(shown, ax=middle, label="position of the attended key")
middle.set_title("attended key")
finite = np.where(np.isfinite(margins), margins, np.nan)
shown = right.imshow(finite, cmap="magma", origin="lower", aspect="auto", extent=extent, vmin=0, vmax=0.4)
figure.colorbar(shown, ax=right, label="margin to the next key", extend="max")
right.set_title("margin")
for ax in (middle, right):
    ax.set_xlabel("keys so far")
    ax.set_ylabel("direction of the query (degrees)")
    ax.set_yticks([-180, -90, 0, 90, 180])
