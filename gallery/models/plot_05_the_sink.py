"""
The sink of a causal model
==========================

In SmolLM2, a causal model of 30 layers, most tokens attend most to the first token, regardless of its content. In the
middle layers it is also many times longer than the others. The theory of causal hardmax has a first token that never
moves and that others follow; here the first token receives attention that is not needed elsewhere.
"""

import json
from pathlib import Path

import matplotlib.pyplot as plt

import hardmax as hm

measured = json.loads(Path("measured.json").read_text(encoding="utf-8"))
layers = measured["causal_layers"]
_, axes = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
axes.plot(layers["layer"], layers["sink_share"], color="C0", label="first token is the argmax, share of rows")
axes.plot(layers["layer"], layers["mean_cosine_rest"], color="C1", label="mean cosine of the other tokens")
axes.set(xlabel="layer", ylim=(0, 1.05))
longer = axes.twinx()
longer.semilogy(layers["layer"], layers["norm_ratio"], color="0.45", ls="--")
longer.set_ylabel("length of the longest token over the median (dashed)", color="0.45")
axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), frameon=False, ncols=2, fontsize=8)

# %%
# One head of layer 24: nearly every line ends at the first token.
found = measured["sink"]
first = 36
_, ax = plt.subplots(figsize=(5.6, 8.4), layout="constrained")
some = [min(target, first) for target in found["targets"][:first]]
hm.figures.draw_who_attends(found["words"][:first], some, found["weights"][:first], sinks=found["sinks"][:first], ax=ax)

# %%
# Perplexity of the text under other rules, beside the unchanged model and the control without attention.
for rule, value, baseline, zero in zip(
    *(measured["causal_rules"][k] for k in ("rule", "value", "baseline", "zero")), strict=True
):
    print(f"{rule}: {value} (unchanged {baseline}, zero {zero})")
