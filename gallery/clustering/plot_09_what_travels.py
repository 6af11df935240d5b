r"""
Communication between processes
===============================

Of tokens split over processes, only few need to be sent to the others. Each process selects among its own tokens the
few that can be listened to at all; the leaders are found among these. A token that follows one leader from the first
layer on, inside the polytope of the leaders, is never listened to and stays local to its process.
"""

# sphinx_gallery_capture_repr = ()

import matplotlib.pyplot as plt
import numpy as np

import hardmax as hm
from hardmax.attention import outer_points

tokens = hm.make_tokens("gaussian", 40_000, 2, random_state=1)
shares = np.array_split(tokens, 4)  # four processes
candidates = [share[outer_points(share, 1e-13)] for share in shares]

limit = hm.equilibrium(tokens)
at_once = limit.decided_at == 0
print(f"{sum(map(len, candidates))} of {len(tokens):,} tokens can lead as far as their processes see,")
print(f"{len(limit.leaders)} do; {at_once.mean():.0%} are decided in the first layer.")

# %%
# On the left the tokens that each process sends, in its colour. On the right local tokens (grey), and tokens that are
# undecided after the first layer and therefore replicated on every process: those that listen to a token that does not
# lead.

figure, (left, right) = plt.subplots(1, 2, figsize=(10.6, 5.2), layout="constrained", sharex=True, sharey=True)
colours, marks = ("#0072B2", "#E69F00", "#009E73", "#CC79A7"), "os^D"
left.scatter(*tokens.T, s=1, color="#e6ebef", rasterized=True)
for rank, sent in enumerate(candidates):
    left.scatter(*sent.T, s=9, color=colours[rank], marker=marks[rank], label=f"process {rank} sends {len(sent)}")
left.set_title("candidates")
left.legend(frameon=False, loc="upper left", fontsize=9)

right.scatter(*tokens[at_once].T, s=1, color="#c9d0d6", rasterized=True)
right.scatter(*tokens[~at_once].T, s=1.5, color="#D55E00", label="undecided after one layer", rasterized=True)
corners = limit.polytope.vertices
corners = corners[np.argsort(np.arctan2(*(corners - corners.mean(axis=0)).T))]
right.fill(*corners.T, fill=False, edgecolor="#1d2730", lw=1)
right.plot(*tokens[limit.leaders].T, "*", ms=11, color="#1d2730", label="leaders")
right.set_title("tokens replicated on every process")
right.legend(frameon=False, loc="upper left", fontsize=9, markerscale=1.5)
for ax in (left, right):
    ax.set_aspect("equal")
    ax.set_ylim(-5, 6.2)
    ax.spines[["top", "right"]].set_visible(False)
