"""
A review, layer by layer
========================

Positions of the words at the start, after one layer and at the end. Stars are the leaders of the review, the diamond is
the mean that the decoder reads, and the dashed line is the decision boundary.
"""

# sphinx_gallery_thumbnail_number = 1

from hardmax.figures import draw_layers
from hardmax.text import shipped_model

model = shipped_model()
review = (
    "A dull plot and a wooden lead, two hours too long; and yet it is saved by a wonderful cast, a superb score and "
    "one great scene near the end that I will not forget."
)
why = model.explain(review)
figure = draw_layers(why)
print(why.sentence())

# %%
# The explanation includes the layer at which each leader emerges.
for leader in why.leaders:
    print(f"{leader.word!r} leads from layer {leader.emerged_at} on and gathers {leader.share:.0%} of the mass")

# %%
# ``hardmax.figures.animate_explanation(why, "review.gif")`` writes an animation.
