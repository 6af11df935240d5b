"""The tours of all pages and the glossary: the words that ``static/guide.js`` shows.

A stop of a tour points at what is called ``at`` on the page: the title of a card, the label of a field or a button.
"""

from __future__ import annotations

import json

Stop = tuple[str, str]
"""What it points at (empty for the page as a whole), and the words."""

TOURS: dict[str, tuple[Stop, ...]] = {
    "": (
        ("Tokens are points, layers are time", "The explorer shows attention as motion: tokens are points that move."),
        ("Leaders and followers", "Each card opens a page at one example. This one is a good first."),
        ("Why is this review positive?", "Texts, tables and tokens of your own can be brought to every page."),
        ("Tokens", "The pages are up here, in the same order everywhere."),
        ("Dark", "A dark theme for talks in dark rooms. It is remembered on this machine."),
    ),
    "tokens": (
        ("", "Every dot is a token. In each layer it moves towards the tokens that it attends to."),
        (
            "Leaders",
            "A token that attends to itself is a leader (★). Others follow: they have the colour of their leader.",
        ),
        ("Play", "Play the layers. Drag a dot first: outwards, and it may become a leader."),
        ("Attention", "Softmax at a temperature instead of hardmax, another step, another score matrix A."),
        (
            "Show the Python code",
            "The code of what you see, ready to run. The address of the page keeps the view, too.",
        ),
    ),
    "text": (
        ("Your text", "Type a review, or pick an example. The answer changes while you type."),
        ("Answer", "The class, its probability, and the words that make it, as a sentence."),
        ("Leaders and followers", "Point at a word to see it in every picture. Click it to strike it out."),
        ("What each leader contributes", "The answer is exactly this sum: no approximation."),
        ("Words move towards their leaders", "Play the layers: words gather at the few that lead them."),
    ),
    "networks": (
        (
            "Drawing board",
            "Each colour is a sequence: filled marks are its tokens, rings are its targets. Click to add some.",
        ),
        ("One sequence per line", "The same data as text. Numbers such as 3/8 are taken exactly."),
        ("Compile", "Weights are computed, not trained, and the result is proved in exact arithmetic."),
        ("Tokens on their way through the blocks", "Play the blocks: every sequence ends in its own rings."),
        ("Certificate", "The proof, with a hash of the data. Download the network to check it elsewhere."),
    ),
    "forecasting": (
        ("Series", "Choose a system, or upload a CSV: one row per time, one column per channel."),
        ("Model", "Choose how far ahead, and how many seconds the search may take."),
        ("Fit and forecast", "Models are compared on samples they have not seen, and the best bounded one is kept."),
        (
            "Past and future",
            "The forecast in blue with its intervals (shaded), beside the true future where it is known.",
        ),
        ("Backtest and baselines", "Forecasts of known samples, beside simple models: is the model worth it?"),
    ),
    "meanfield": (
        ("", "Many tokens on a circle or a sphere, as one density that moves."),
        ("Tokens", "Play: tokens gather at the dashed circles, stay for a while, and may leave."),
        ("Tokens and temperature", "A larger β makes attention sharper, and the first phase faster."),
        ("Phases", "The distance to each expected limit, by time: three phases on three time scales."),
        ("Measured and expected", "What the theory says, beside what this run has measured."),
    ),
    "models": (
        ("Model", "Models of attention from the literature, each with its parameters."),
        ("Tokens", "Play the run. Tokens keep the colour of where they began."),
        ("Run", "How long, from which random start, and with trails or without."),
        ("Equation and numbers", "The equation, what its paper expects, and what this run gives."),
        ("Show the Python code", "The same model in Python, with the same numbers."),
    ),
    "real_model": (
        ("Model", "A trained transformer of this machine, or one with random weights for comparison."),
        ("Text", "Type a sentence and run the model."),
        ("Words in the layers", "The words as points after each layer."),
        ("Who attends to whom", "One head: a line from each word to the word that it attends to most."),
        ("Temperature and view", "Sharpen attention up to hardmax and see what changes."),
    ),
}
"""Five stops for each page, by its name; the home page has the empty one."""

GLOSSARY: dict[str, str] = {
    "leader": "A token that attends to itself: others may follow it, and it stays where it is.",
    "follower": "A token that attends to another one and moves towards it.",
    "hardmax": "Attention to the token with the largest score alone (softmax at temperature zero).",
    "softmax": "Attention to all tokens, with weights that grow exponentially with their scores.",
    "temperature": "How evenly attention is spread: at high temperature over all tokens, at zero on the best one.",
    "inverse temperature": "β, one over the temperature: the larger, the sharper attention is.",
    "logit": "The score of a class before it becomes a probability: positive for more than one half.",
    "decoder": "The last step of a classifier: a direction along which the mean of the words is read.",
    "bias": "The part of a logit that does not depend on the text.",
    "margin": "How far the best score is ahead of the next: the smaller, the easier a choice is turned.",
    "lead of a best score": "How far the best score is ahead of the next (its margin).",
    "pre-activation": "The input of a neuron; where it is zero, the neuron switches.",
    "block": "One layer of a transformer: attention, then a feed-forward step.",
    "published bound": "The number of blocks that the theorem of the paper needs at most.",
    "exact rationals": "Fractions of whole numbers: nothing is rounded, so that equality is a proof.",
    "float64": "The usual numbers of a computer, with about 16 digits.",
    "TD-TF": "Time-delayed transformer: the model of this page. It predicts the next sample from the last few.",
    "TD-DMD": "Time-delayed dynamic mode decomposition: a linear model of the last few samples.",
    "NG-RC": "Next-generation reservoir computing: a polynomial model of the last few samples.",
    "persistence": "The simplest forecast: the last sample again and again.",
    "seasonal naive": "The forecast that repeats the last season.",
    "analogue": "The forecast that continues as the most similar stretch of the past did.",
    "spread": "The expected error of a forecast that many steps ahead (root mean square), from held-out samples.",
    "coverage": "The share of true values that fall into an interval; it should be the nominal one.",
    "intervals": "Ranges around a forecast that hold the true value with a given probability, from held-out samples.",
    "backtest": "Forecasts of samples that are known but were held out, to measure the errors.",
    "standard deviations": "Errors as multiples of the typical variation of the data: 1 is as bad as their mean.",
    "eigenvalues": "Growth and rotation of a linear model per step: inside the unit circle its modes fade.",
    "unit circle": "Eigenvalues inside it belong to modes that fade, outside to modes that grow.",
    "lags": "The samples before the latest one.",
    "lag": "How many samples before the latest one.",
    "phase portrait": "Two channels against each other, without time: an attractor shows its shape.",
    "season": "A pattern that comes back after a fixed number of samples, such as a week.",
    "W₂": "Wasserstein distance: how far the mass of one density must be moved to become another (root mean square).",
    "mean field": "The limit of infinitely many tokens: they are a density that moves.",
    "metastable": "A state that lasts long but not for ever.",
    "token": "A point: a word, a sample, or any vector that attention moves.",
    "attends to": "Gives weight to: under hardmax, to the token with the largest score.",
}
"""Terms of the field in a sentence each; longer terms are looked for first."""


def guide_of(slug: str) -> str:
    """The tour of a page and the glossary as JSON that can stand in a script of a page."""
    stops = [{"at": at, "words": words} for at, words in TOURS.get(slug, ())]
    return json.dumps({"page": slug, "stops": stops, "glossary": GLOSSARY}).replace("<", "\\u003c")
