r"""
Normalisation schemes as speed regulation
=========================================

Where the normalisation stands in a layer decides how fast directions collapse: with post-norm and nGPT exponentially,
with pre-norm, peri-norm and a mixture like :math:`t^{-2}`, because the tokens grow and each layer turns them less.
"""

# sphinx_gallery_capture_repr = ()

import numpy as np

import hardmax as hm
from hardmax.figures import new_figure

schemes = {"post": "#0072B2", "nGPT": "#56B4E9", "mixed": "#009E73", "peri": "#E69F00", "pre": "#D55E00"}
figure = new_figure(6.4, 4.2)
ax = figure.subplots()
print("scheme  1 - cosine, measured   by the scalar equation")
for scheme, colour in schemes.items():
    model = hm.zoo.normalisation(scheme, n=16, step=0.04)
    run = model.run()
    unit = run.tokens / np.linalg.norm(run.tokens, axis=2, keepdims=True)
    cosine = np.array([((x.sum(axis=0) ** 2).sum() - 16) / (16 * 15) for x in unit])
    ax.semilogy(0.04 * run.layers, 1 - cosine, color=colour, lw=2, label=scheme)
    measured, theory = model.compare(run)["collapse"]
    print(f"{scheme:6s}  {measured:20.3g}  {theory:21.3g}")
ax.set(xlabel="depth times step", ylabel="1 - cosine of two tokens", title="From orthogonal tokens, beta = 1")
ax.legend()
