r"""
Noise against attention
=======================

Tokens on the circle attract each other by attention, and noise of amplitude :math:`\sigma` drives them apart. Below the
critical noise a cluster survives, above it tokens spread over the circle. The uniform law loses its stability where

.. math:: \sigma_c^2 = \frac{2}{\beta}\,\frac{I_{d/2}(\beta)}{I_{d/2-1}(\beta)},

derived in :doc:`/devdocs/noise`.
"""

# sphinx_gallery_capture_repr = ()

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import iv

import hardmax as hm

beta = 2.0
flow = hm.SphereFlow(beta=beta, evaluation="circle", few_tokens="ignore")
tokens = hm.circle_quantiles(1000, lambda angle: 1 + np.cos(angle) / 2).points
critical = np.sqrt(2 / beta * iv(1, beta) / iv(0, beta))


def run_with(noise):
    return hm.simulate(
        tokens, hm.NoisyFlow(flow, noise), time=25.0, step=0.25, integrator="noise-splitting", random_state=0
    )


levels = critical * np.array([0.3, 0.55, 0.75, 0.9, 1.1, 1.3])
runs = {noise: run_with(noise) for noise in levels}

# %%
# Stationary laws are known: the drift is the gradient of the logarithm of what a token attends to, so
# :math:`\rho \propto (e^{\beta\cos} * \rho)^{2/(\beta\sigma^2)}`, which a fixed-point iteration solves on a grid. The
# mean token of the runs, averaged over the second half of the time, lies on that curve.

angles = np.linspace(0, 2 * np.pi, 128, endpoint=False)
kernel = np.fft.rfft(np.exp(beta * np.cos(angles)))


def orders_of_stationary_laws(noises):
    laws = np.tile(1 + 0.5 * np.cos(angles), (len(noises), 1))
    for _ in range(2000):
        heard = np.fft.irfft(kernel * np.fft.rfft(laws), 128)
        laws = (heard / heard.max(axis=1, keepdims=True)) ** (2 / (beta * noises[:, None] ** 2))
        laws /= laws.sum(axis=1, keepdims=True)
    return abs(laws @ np.exp(1j * angles))


def measured(run):
    lengths = np.linalg.norm(run.tokens.mean(axis=1), axis=1)
    return lengths[len(lengths) // 2 :].mean()


figure, axes = plt.subplots(1, 3, figsize=(12, 3.8), layout="constrained", width_ratios=[1, 1, 1.1])
for ax, noise in ((axes[0], levels[2]), (axes[1], levels[4])):
    edges = np.linspace(-np.pi, np.pi, 61)
    states = runs[noise].tokens
    counts = [np.histogram(np.arctan2(state[:, 1], state[:, 0]), edges)[0] for state in states[1:]]
    ax.pcolormesh(runs[noise].times, edges, np.transpose(counts), cmap="viridis", vmax=90, rasterized=True)
    ax.set_title(rf"$\sigma = {noise / critical:.2f}\,\sigma_c$", loc="left")
    ax.set_xlabel("time")
axes[0].set_ylabel("angle: number of tokens")
grid = critical * np.linspace(0.2, 1.35, 60)
axes[2].plot(grid / critical, orders_of_stationary_laws(grid), color="#0072B2", label="stationary law")
axes[2].plot(levels / critical, [measured(runs[s]) for s in levels], "o", color="#D55E00", label="1000 tokens")
axes[2].set_xlabel(r"noise $\sigma / \sigma_c$")
axes[2].set_ylabel("length of the mean token")
axes[2].spines[["top", "right"]].set_visible(False)
axes[2].legend(frameon=False)
