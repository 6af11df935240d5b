r"""
Classify texts with explanations
================================

The classifier of this library places every word at a learned point. The words of a text attend to each other by
hardmax attention until they have collapsed onto a few of them, the *leaders*, and a linear decoder reads the mean.
A prediction is therefore a sum of contributions of a few words. In this lesson we explain a prediction of a model that
ships with the library, train a model on texts of our own, and measure it with scikit-learn.
"""

# %%
# A pretrained model
# ------------------
#
# The shipped model was trained on film reviews.

import tempfile
from pathlib import Path

import numpy as np

import hardmax as hm

model = hm.text.shipped_model()
review = "The plot is hardly new and the first half hour is dull, but the two leads are wonderful, funny and warm."
why = model.explain(review)
print(why)

# %%
# Each leader is a word of the text, with the words that follow it and its contribution. Bias and contributions add
# up to the logit, which a post-hoc explanation (LIME, SHAP) does not guarantee:

total = why.bias[0] + sum(leader.contribution[0] for leader in why.leaders)
print(f"sum {total:.10f}, logit {why.logits[0]:.10f}")

# %%
# The path of each word to its leader. The dashed line is the decision boundary.

axes = why.draw()

# %%
# Contributions describe the model. The effect of deleting a word on the prediction is a different quantity, which is
# also computed exactly:

for reason in why.reasons(3):
    print(f"without {reason.word!r} the logit would change by {-reason.effect[0]:+.2f}")
print(why.counterfactual())

# %%
# Train on your own texts
# -----------------------
#
# Here are 300 short reports on three topics, made from a few words each.

topics = {
    "sea": "wave ship harbour sail tide storm",
    "sky": "cloud bird star moon wind storm",
    "wood": "tree moss fern oak root bird",
}
plain = ["the", "a", "and", "of", "with", "it", "was", "seen", "near", "old"]
rng = np.random.default_rng(0)
labels = rng.choice(list(topics), 300)
texts = [" ".join([*rng.choice(topics[label].split(), 4), *rng.choice(plain, 8)]) for label in labels]

# %%
# :class:`hardmax.LeaderClassifier` is a scikit-learn estimator: ``fit``, ``predict``, ``predict_proba``, ``score``.

own = hm.LeaderClassifier(ngrams=1, random_state=0).fit(texts[:200], labels[:200])
print("accuracy on the other 100 texts:", own.score(texts[200:], labels[200:]))
print(own.explain("an old bird near the tree, and moss"))

# %%
# Report two more numbers with an accuracy: the number of leaders per text, and how far words have moved onto them (0
# is a model that averages words, 1 is full collapse). A model that does not cluster can be more accurate, but
# has no short explanation.

print("leaders per text:", own.count_leaders(texts[200:]).mean(), "collapse:", round(own.collapse_, 3))

# %%
# Compare with a baseline
# -----------------------
#
# On a few hundred texts a linear model is often as good. Report the comparison with every result.

from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

baseline = make_pipeline(TfidfVectorizer(), LogisticRegression(C=10.0)).fit(texts[:200], labels[:200])
print("TF-IDF with logistic regression:", baseline.score(texts[200:], labels[200:]))

# %%
# All words at once
# -----------------
#
# The map of all words: stars are words that lead, in the colour of the class of the texts in which they do.

seen = hm.text.survey(own, texts[200:])
axes = hm.figures.draw_word_map(seen)

# %%
# Save and load
# -------------
#
# The file holds numbers and words and no code.

path = Path(tempfile.mkdtemp()) / "topics.safetensors"  # any path of yours
own.save(path)
again = hm.LeaderClassifier.load(path)
print(again.predict(["the tide and a ship"]))

# %%
# Where to go next
# ----------------
#
# - :doc:`/howto/classify-texts`: recipes, other languages, many classes, the command line.
# - :doc:`/papers/sentiment`: measured accuracies on 50,000 film reviews, beside the published ones and TF-IDF.
# - :doc:`/devdocs/text`: the model in formulas.
