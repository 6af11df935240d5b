"""Texts to begin with, written for this page."""

EXAMPLES: dict[str, tuple[str, str]] = {
    "cast": (
        "A dull plot, a wonderful cast",
        "The plot is dull and the ending is a mess, but what a wonderful cast! Every scene with the two sisters is "
        "funny, warm and beautifully played, and the music stays with you. Flawed, and still one of the best evenings "
        "I have had this year.",
    ),
    "waste": (
        "A waste of two hours",
        "Two hours of my life that I will not get back. The dialogue is terrible, the effects look cheap, and nobody "
        "seems to know why they are in this film. I wanted to like it. It is boring from the first minute, and the "
        "worst thing I have seen in years.",
    ),
    "quiet": (
        "A quiet masterpiece",
        "A small, quiet film about a lighthouse keeper and his daughter. Nothing much happens, and it is perfect: "
        "superb acting, stunning pictures of the sea, and a last scene that is moving without a single word. "
        "Highly recommended.",
    ),
    "mixed": (
        "Neither here nor there",
        "It starts well and then forgets where it wanted to go. Some jokes are great, others fall flat. The children "
        "loved it; I looked at my watch. Not bad, not good.",
    ),
    "irony": (
        "Irony is hard",
        "Oh, brilliant. Another film in which a brilliant detective brilliantly solves a case that a child could "
        "solve. I laughed, though not where I was meant to.",
    ),
}
"""Name in an address, title, text."""
