"""Stops of the tour: the words that decide about a review."""

from __future__ import annotations

from ..figures import figure_bytes
from ..figures.text_layers import draw_layers
from ..text.shipped import shipped_model
from .report import Section
from .tables import Table

_REVIEW = (
    "A dull plot and a wooden lead, two hours too long; and yet it is saved by a wonderful cast, a superb score and "
    "one great scene near the end that I will not forget."
)


def show_reasons(section: Section) -> None:
    """A review classified by the small model that comes with the package, and why."""
    model = shipped_model()
    why = model.explain(_REVIEW)
    rows = [
        (
            leader.word,
            ", ".join(why.words[place] for place in leader.followers[:6]) or None,
            leader.share,
            float(leader.contribution[0]),
        )
        for leader in why.leaders
    ]
    total = float(why.logits[0])
    section.text(
        "Here the tokens are words. A classifier has learned where they start; in every layer each word of a review "
        "follows the word that it scores highest, until all have gathered at a few leaders, and a linear decoder reads "
        "their mean. So the leaders are the reasons of the answer, and what they contribute adds up to it exactly."
    ).text(f"“{_REVIEW}”").numbers(
        {
            "answer": str(why.prediction),
            "probability": round(float(why.probabilities.max()), 3),
            "words of the model": len(model.words()),
            "leaders of this review": len(why.leaders),
        }
    ).picture(
        figure_bytes(draw_layers(why), dpi=110),
        "The words of the review at three layers. Star: leader; dashed: the boundary of the decoder; diamond: the mean "
        "that it reads.",
    ).table(
        Table(
            "What decides",
            ("leader", "followed by", "share of the mass", "contribution"),
            rows,
            f"The contributions and the bias {float(why.bias[0]):.4f} add up to the logit {total:.4f}.",
        )
    ).code(
        'model = hm.LeaderClassifier().fit(texts, labels)\nprint(model.explain("…"))\n\n'
        'hardmax sentiment explain "A dull plot, saved by a wonderful cast."'
    )
