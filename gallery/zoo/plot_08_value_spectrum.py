r"""
The spectrum of V decides the shape: hyperplanes and polytopes
==============================================================

In Euclidean space tokens run away like :math:`e^{tV}`. The rescaled tokens :math:`z = e^{-tV}x` converge: where the
largest eigenvalue is simple, to at most three hyperplanes; for V = I to the boundary of a polytope.
"""

# sphinx_gallery_capture_repr = ()

from scipy.spatial import ConvexHull

import hardmax as hm
from hardmax.figures import new_figure

figure = new_figure(10.5, 4.6)
axes = figure.subplots(1, 2)
for ax, spectrum, title in zip(
    axes, ((1.0, 0.3), (1.0, 1.0)), ("Eigenvalues 1 and 0.3: hyperplanes", "V = I: a polytope"), strict=True
):
    model = hm.zoo.value_spectrum(spectrum, n=40)
    run = model.run(time=9.0, step=0.1, random_state=2)
    z = hm.zoo.rescaled(run, spectrum)
    for token in range(model.n):
        ax.plot(*z[:, token].T, color="#c9d0d6", lw=0.8, zorder=1)
    ax.scatter(*z[0].T, s=10, color="#56B4E9", zorder=2, label="start")
    ax.scatter(*z[-1].T, s=26, color="#D55E00", zorder=3, label="rescaled limit")
    if spectrum[0] == spectrum[1]:
        hull = ConvexHull(z[-1])
        ax.fill(*z[-1][hull.vertices].T, fill=False, ec="#5b6873", lw=1)
    else:
        print("hyperplanes:", int(model.measure("hyperplanes", run)))
        for value in sorted({round(float(x), 2) for x in z[-1][:, 0]}):
            ax.axvline(value, color="#E69F00", lw=1, ls="--", zorder=0)
    ax.set(title=title, xlabel="first coordinate", ylabel="second coordinate")
axes[1].legend()
