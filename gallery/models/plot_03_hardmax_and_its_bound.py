r"""
Hardmax and its proved bound
============================

Replacing softmax by hardmax in one row changes what is passed on by at most :math:`(1 - p_{\max})\max_j |v_j -
v_{j^*}|`. Every row of every head of MiniLM on one sentence lies below the line; rows that put nearly all weight on
one token are nearly hardmax.
"""

import json
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

measured = json.loads(Path("measured.json").read_text(encoding="utf-8"))
largest, error, bound = np.array(measured["errors"]).T
print(f"{len(error):,} rows, {int((error > bound + 1e-5).sum())} above the bound")

# %%
# Errors are relative to the mean length of the values of a head.
figure, axes = plt.subplots(figsize=(6.2, 4.6), layout="constrained")
shade = axes.scatter(np.maximum(bound, 1e-4), np.maximum(error, 1e-4), c=largest, s=6, cmap="viridis", linewidths=0)
span = np.array([1e-4, 4.0])
axes.plot(span, span, color="0.3", lw=1)
axes.text(2.2e-4, 3.2e-4, "error = bound", rotation=38, color="0.3")
axes.set(xscale="log", yscale="log", xlabel="proved bound", ylabel="error of hardmax")
figure.colorbar(shade, label="largest weight of the row")
