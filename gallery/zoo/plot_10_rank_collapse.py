r"""
Rank collapse without skip connections
======================================

Attention alone makes tokens equal doubly exponentially: the logarithm of the residual triples from layer to layer. A
skip connection makes the decay merely exponential.
"""

# sphinx_gallery_capture_repr = ()

import hardmax as hm
from hardmax.figures import new_figure

figure = new_figure(6.4, 4.2)
ax = figure.subplots()
for skip, colour in ((0.0, "#D55E00"), (0.3, "#E69F00"), (0.6, "#009E73"), (0.9, "#0072B2")):
    model = hm.zoo.rank_collapse(skip=skip)
    run = model.run(depth=3 if skip == 0 else 12, random_state=0)
    ax.semilogy(run.layers, hm.zoo.residuals(run), color=colour, lw=2, marker="o", ms=4, label=f"skip {skip:g}")
    print(f"skip {skip:g}: exponent of the last layer {model.measure('exponent', run):.3f}")
ax.set(xlabel="layer", ylabel="Frobenius norm of the residual", title="Attention with and without skip connection")
ax.legend()
