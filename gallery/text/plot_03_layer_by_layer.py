"""
A review, layer by layer
========================

The same words at the start, after one layer and at the end, and as a film. Stars are the leaders of the review; the
diamond is the mean that the decoder reads, the dashed line where it is undecided.
"""

# sphinx_gallery_thumbnail_number = 1

from hardmax.figures.text_layers import draw_layers
from hardmax.text.pretrained import shipped_model

model = shipped_model()
review = (
    "A dull plot and a wooden lead, two hours too long; and yet it is saved by a wonderful cast, a superb score and "
    "one great scene near the end that I will not forget."
)
why = model.explain(review)
figure = draw_layers(why)
print(why.sentence())

# %%
# Which layer decides whom a word follows is part of the explanation: most words know their leader at once.
for leader in why.leaders:
    print(f"{leader.word!r} leads from layer {leader.emerged_at} on and gathers {leader.share:.0%} of the mass")

# %%
# ``hardmax.figures.text_layers.animate_explanation(why, "review.gif")`` writes the film.
