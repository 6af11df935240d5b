"""
Train on your own texts
=======================

The classifier accepts labelled texts in any language that separates words by blanks, with any number of classes. This
example generates texts on three topics from a few words each.
"""

import matplotlib.pyplot as plt
import numpy as np

import hardmax as hm
from hardmax.figures import draw_leader_histogram, draw_word_map
from hardmax.text import survey

topics = {
    "sea": "wave ship harbour sail tide storm",
    "sky": "cloud bird star moon wind storm",
    "wood": "tree moss fern oak root bird",
}
plain = ["the", "a", "and", "of", "with", "it", "was", "seen", "near", "old"]
rng = np.random.default_rng(0)
labels = rng.choice(list(topics), 400)
texts = [" ".join([*rng.choice(topics[label].split(), 4), *rng.choice(plain, 8)]) for label in labels]

model = hm.LeaderClassifier(dim=2, ngrams=1, random_state=0).fit(texts[:300], labels[:300])
print(f"accuracy on the other texts: {model.score(texts[300:], labels[300:]):.2f}")
print(model.explain("an old bird near the tree, and moss"))

# %%
# Map of all words: stars are leaders, coloured by the class of the texts in which they lead.
seen = survey(model, texts[300:])
figure, ax = plt.subplots(figsize=(7.4, 6), layout="constrained")
draw_word_map(seen, ax=ax)

# %%
# Number of texts in which each word leads.
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
draw_leader_histogram(seen, top=15, ax=ax)
