r"""
Equiangular tokens, with one head and with several
==================================================

Tokens whose pairs all have the same cosine keep that symmetry, so one scalar equation describes them. The rates of
several heads add up: a cold head alone is slow, and with a warm head beside it the warm head determines the rate.
"""

# sphinx_gallery_capture_repr = ()

from dataclasses import replace

import numpy as np

import hardmax as hm
from hardmax.figures import new_figure

figure = new_figure(6.4, 4.2)
ax = figure.subplots()
for betas, colour in (((0.5,), "#0072B2"), ((8.0,), "#D55E00"), ((0.5, 8.0), "#1d2730")):
    model = hm.zoo.multi_head(betas=betas, n=20)
    run = model.run(time=8.0)
    cosine = np.array([((x.sum(axis=0) ** 2).sum() - 20) / (20 * 19) for x in run.tokens])
    ax.plot(run.times, cosine, color=colour, lw=2, label="beta = " + " and ".join(f"{beta:g}" for beta in betas))
    for time in np.arange(1.0, 9.0):
        kept = int(np.searchsorted(run.times, time - 1e-9))
        part = replace(run, tokens=run.tokens[: kept + 1], times=run.times[: kept + 1])
        ax.plot(run.times[kept], model.theory["cosine"](part), "o", color=colour, ms=5, mfc="white")
ax.set(xlabel="time", ylabel="common cosine", title="Lines: 20 tokens. Circles: scalar equation")
ax.legend(loc="center right")
