"""
Leaders of a sentence
=====================

In MiniLM, an encoder of sentences, each token of one head attends mostly to one other token. Tokens that several
others attend to are leaders (stars); the special tokens and the first one receive attention regardless of their
content and are counted separately as sinks (squares).

.. code-block:: python

   model = hm.load_transformer("path/to/all-MiniLM-L6-v2")
   who = hm.models.attention_targets(model, sentence)
   layer, head = who.leading_head()
"""

import json
from pathlib import Path

import matplotlib.pyplot as plt

import hardmax as hm

measured = json.loads(Path("measured.json").read_text(encoding="utf-8"))
found = measured["leaders"]
print(measured["sentence"])
print(f"head {found['layer']}.{found['head']}")

# %%
# Over all 72 heads: how often each word is what another token attends to most, sinks apart. The dashed line is chance.
words = measured["followers"]
_, ax = plt.subplots(figsize=(6.4, 3.2), layout="constrained")
ax.barh(words["word"][::-1], words["followers"][::-1], color="C0")
ax.axvline(words["followers_chance"][0], color="0.4", ls="--", lw=1)
ax.set_xlabel("rows whose argmax is this word")

# %%
# One head: a line from each token to the token that it attends to most; its width is the weight.
_, ax = plt.subplots(figsize=(5.6, 6.4), layout="constrained")
hm.figures.draw_who_attends(found["words"], found["targets"], found["weights"], sinks=found["sinks"], ax=ax)
