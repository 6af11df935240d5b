"""
Leaders of a sentence
=====================

In MiniLM, an encoder of sentences, each token of one head attends mostly to one other token. Tokens that several
others attend to are leaders (stars); the special tokens and the first one take attention whatever they say and are
counted apart as sinks (squares).

.. code-block:: python

model = hm.load_transformer("path/to/all-MiniLM-L6-v2") who = hm.models.attention_targets(model, sentence) layer, head
= who.leading_head()
"""

import json
from pathlib import Path

import hardmax as hm

measured = json.loads(Path("measured.json").read_text(encoding="utf-8"))
found = measured["leaders"]
print(measured["sentence"])
print(f"head {found['layer']}.{found['head']}")

# %%
# A line from each token to the token that it attends to most; its width is the weight.
hm.figures.draw_who_attends(found["words"], found["targets"], found["weights"], sinks=found["sinks"])
