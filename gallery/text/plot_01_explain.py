"""
Why is this review favourable?
==============================

The words of a review start at learned points of the plane and follow each other until a few leaders have gathered all
the others. The decoder reads the mean, so what each leader gathered is its contribution, and the contributions add up
to the answer.
"""

import matplotlib.pyplot as plt

from hardmax.text.pretrained import shipped_model

model = shipped_model()
review = (
    "The first half hour is dull and the plot is hardly new. But then the two leads take over, and they are wonderful: "
    "funny, warm and true to life. One of the best films of the year, and well worth a second visit!"
)
why = model.explain(review)
print(why)

# %%
# Every word on its way to its leader. The dashed line is where the decoder is undecided; the diamond is the mean that
# it reads.
figure, ax = plt.subplots(figsize=(7.4, 6), layout="constrained")
why.draw(ax=ax)

# %%
# Nothing is left over: bias and contributions are the logit, to rounding.
total = why.bias[0] + sum(leader.contribution[0] for leader in why.leaders)
print(f"sum of the parts {total:.12f}, logit {why.logits[0]:.12f}")
