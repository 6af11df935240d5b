"""
A tied model beyond its depth
=============================

All twelve layers of rxnmapper's ALBERT have the same weights, so that it can run for ever, like the systems of the
theory. Attention alone collapses the tokens of a reaction to few clusters within some layers, as the theory of pure
attention says. With the feed-forward network clusters merge slowly, over hundreds of layers.

.. code-block:: python

run = hm.continue_depth(model, reaction, 1000) clusters = hm.models.cosine_clusters(run.tokens[-1])
"""

import json
from pathlib import Path

import matplotlib.pyplot as plt

import hardmax as hm

measured = json.loads(Path("measured.json").read_text(encoding="utf-8"))
clusters = {name: {int(depth): found for depth, found in line.items()} for name, line in measured["clusters"].items()}
_, ax = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
hm.figures.draw_depth(clusters, trained=measured["trained_depth"], ax=ax)

# %%
# Clusters of six reactions together; tokens of a cluster are linked by cosines above 0.9.
for name, line in clusters.items():
    print(name, line)
