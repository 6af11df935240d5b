"""Small made-up texts: opinions in fixed words, and topics."""

from __future__ import annotations

import numpy as np

GOOD = ["wonderful", "superb", "charming", "moving", "great", "lovely", "brilliant", "delightful"]
BAD = ["dull", "awful", "boring", "dreadful", "lifeless", "clumsy", "tedious", "stupid"]
PLAIN = ["the", "a", "film", "plot", "cast", "scene", "story", "and", "with", "of", "music", "camera", "it", "was"]
TOPICS = {
    "sea": ["wave", "ship", "harbour", "sail", "tide"],
    "sky": ["cloud", "bird", "star", "moon", "wind"],
    "wood": ["tree", "moss", "fern", "oak", "root"],
}


def opinions(count: int, seed: int = 0) -> tuple[list[str], np.ndarray]:
    """Texts with mostly good or mostly bad words among plain ones; label 1 is good."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.arange(count) % 2)
    texts = []
    for label in labels:
        strong, weak = (GOOD, BAD) if label else (BAD, GOOD)
        words = [*rng.choice(strong, 3), *rng.choice(weak, 1), *rng.choice(PLAIN, 12)]
        texts.append(" ".join(rng.permutation(words)))
    return texts, labels


def topics(count: int, seed: int = 0) -> tuple[list[str], np.ndarray]:
    """Texts about three topics."""
    rng = np.random.default_rng(seed)
    names = rng.permutation(np.array(sorted(TOPICS))[np.arange(count) % 3])
    return [" ".join([*rng.choice(TOPICS[name], 4), *rng.choice(PLAIN, 8)]) for name in names], names
