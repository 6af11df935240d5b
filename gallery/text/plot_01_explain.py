"""
Explain the sentiment of a review
=================================

The words of a review start at learned positions in the plane, and each moves towards the word that it attends to, until
all have collapsed onto a few leaders. The decoder reads the mean of the final positions, so the logit is the sum of the
bias and the contributions of the leaders.
"""

import matplotlib.pyplot as plt

from hardmax.text import shipped_model

model = shipped_model()
review = (
    "The first half hour is dull and the plot is hardly new. But then the two leads take over, and they are wonderful: "
    "funny, warm and true to life. One of the best films of the year, and well worth a second visit!"
)
why = model.explain(review)
print(why)

# %%
# The path of each word to its leader. The dashed line is the decision boundary; the diamond is the mean that the
# decoder reads.
figure, ax = plt.subplots(figsize=(7.4, 6), layout="constrained")
why.draw(ax=ax)

# %%
# Bias and contributions add up to the logit, up to rounding.
total = why.bias[0] + sum(leader.contribution[0] for leader in why.leaders)
print(f"sum of the parts {total:.12f}, logit {why.logits[0]:.12f}")
