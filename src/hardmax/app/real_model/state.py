"""Settings of the Real model page, what is computed from them, and the Python code of the current view."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import hardmax as hm

from ...errors import InputError
from ...figures.transformers import Targets, WordPaths, word_paths
from ...models.attention_targets import AttentionTargets
from ...models.loading import BREAD, FILM, REACTIONS
from ...models.transformer import TextOrIds
from ...progress import Tell
from ..page import choice, whole
from .shelf import Offer

MOST_CHARACTERS = 2_000
MOST_TOKENS = 256
"""Tokens of a text on the page; more could not be told apart in its pictures."""
# Layers and heads that an address may name; those of the model bound them again.
_MOST_NUMBER = 10_000

EXAMPLES: dict[str, tuple[str, str]] = {
    "film": ("A film review", FILM),
    "bread": ("A man and his bread", BREAD),
    "capital": ("The capital of France", "The capital of France is"),
    "reaction": ("A chemical reaction (for rxnmapper)", REACTIONS[0]),
}
REACTION = EXAMPLES["reaction"][1]
# How tokenisers write what they do not know.
_UNKNOWN = frozenset({"[UNK]", "<unk>", "<UNK>", "[unk]"})
FACTORS = {**{f"{2 ** (k / 2):.3g}": 2 ** (k / 2) for k in range(-4, 11)}, "hardmax": np.inf}
"""Factors on the inverse temperature by the name in an address: from 0.25 to 32, and hardmax."""


@dataclass(frozen=True)
class RealModelState:
    """Everything that a link brings back."""

    model: str = ""
    """Name of the model; empty for the first one on offer."""
    text: str = EXAMPLES["film"][1]
    layer: int = 0
    head: int = 0
    factor: str = "1"
    unit: str = ""
    """``yes`` or ``no``: draw tokens at unit length; empty for what suits the model."""

    @staticmethod
    def from_query(query: Mapping[str, str], text: str | None = None) -> RealModelState:
        """The state of an address and its text; invalid values are ignored or clipped."""
        return RealModelState(
            model=query.get("model", "")[:200],
            text=RealModelState().text if text is None else text,
            layer=whole(query, "layer", 0, 0, _MOST_NUMBER),
            head=whole(query, "head", 0, 0, _MOST_NUMBER),
            factor=choice(query, "factor", "1", FACTORS),
            unit=choice(query, "unit", "", ("yes", "no")),
        )

    def to_query(self) -> dict[str, str]:
        """The state for an address without its text; defaults are left out."""
        own = RealModelState()
        return {
            name: str(getattr(self, name))
            for name in ("model", "layer", "head", "factor", "unit")
            if getattr(self, name) != getattr(own, name)
        }

    def changed(self, **values: Any) -> RealModelState:
        """The state with other values."""
        return replace(self, **values)

    @property
    def rule(self) -> str:
        """The attention rule of the temperature."""
        return "softmax" if self.factor == "1" else "hardmax" if self.factor == "hardmax" else f"beta={self.factor}"


# What a random control reads: words and signs, numbered in the order of their first appearance.
_WORD = r"\w+|[^\w\s]"


def text_of(offer: Offer, model: hm.models.Transformer, text: str) -> tuple[TextOrIds, tuple[str, ...]]:
    """What the model is given (a text, or the numbers of its tokens) and the words that are shown, after checks."""
    if len(text) > MOST_CHARACTERS:
        problem = f"is longer than the {MOST_CHARACTERS:,} characters that are read here"
        raise InputError("text", f"{len(text):,} characters", problem, "shorten it, or use the library for all of it")
    if offer.control or model.tokeniser is None:
        words = tuple(re.findall(_WORD, text.lower()))
        numbers = {word: number for number, word in enumerate(dict.fromkeys(words))}
        given: TextOrIds = [numbers[word] for word in words]
        if not words:
            raise InputError("text", repr(text[:20]), "has no word", "type a text with at least one word")
    else:
        given, words = text, model.tokenise(text).words
    if len(words) > MOST_TOKENS:
        problem = f"is longer than the {MOST_TOKENS} tokens that are shown here"
        raise InputError("text", f"{len(words)} tokens", problem, "shorten it, or use the library for all of it")
    return given, words


@dataclass(frozen=True)
class Effect:
    """What the model says under one attention rule."""

    rule: str
    cosine: float | None
    """Cosine of the embedding with that of the model as trained, for encoders."""
    perplexity: float | None
    """For causal models and texts of at least two tokens."""
    following: tuple[tuple[str, float], ...]
    """The five likeliest next tokens of a causal model with their probabilities."""


@dataclass(frozen=True, eq=False)
class Computed:
    """The run of a model on a text at a temperature."""

    state: RealModelState
    offer: Offer
    model: hm.models.Transformer
    """As trained."""
    given: TextOrIds
    words: tuple[str, ...]
    run: hm.Trajectory[np.ndarray]
    who: AttentionTargets
    placed: WordPaths
    effects: tuple[Effect, ...]
    """As trained, at the temperature where it differs, and without attention."""
    same: float
    """Share of rows, over layers, heads and tokens, that attend most to the same token as in the model as trained."""

    @property
    def layers(self) -> int:
        """Number of layers."""
        return len(self.model.layers)

    @property
    def unknown(self) -> int:
        """Number of tokens that the tokeniser does not know."""
        return sum(word in _UNKNOWN for word in self.words)

    def attention_layer(self, layer: int) -> int:
        """Layer whose attention is shown beside the tokens at ``layer``; the last layer also after the last one."""
        return min(layer, self.layers - 1)

    def targets(self, layer: int, head: int) -> Targets:
        """What the tokens of a head attend to."""
        k = self.attention_layer(layer)
        return Targets.of(self.who.targets[k, head], self.who.sinks)


def run_key(state: RealModelState) -> tuple[str, str, str]:
    """What a run depends on."""
    return state.model, state.text, state.factor


def unit_length(state: RealModelState, model: hm.models.Transformer) -> bool:
    """Whether tokens are drawn at unit length: by default where layers normalise what they read."""
    return model.layers[0].pre_norm if state.unit == "" else state.unit == "yes"


def seconds(model: hm.models.Transformer, state: RealModelState) -> float:
    """Rough time of a computation, to decide whether it runs in the background."""
    # Measured on one core: 6 multiplications per weight and token in all passes together, 10^10 a second, and the
    # conversion of weights to float64, 2.5 * 10^8 a second.
    tokens = min(MOST_TOKENS, 1 + len(state.text) // 3)
    size = model.parameters - model.embedding.words.numel()
    size = size * len(model.layers) if model.tied else size
    return size * (6 * tokens / 1e10 + 1 / 2.5e8)


def compute(
    state: RealModelState, offer: Offer, model: hm.models.Transformer, known: Computed | None, tell: Tell
) -> Computed:
    """The run of a state; that of ``known`` is used again where it is the same."""
    if known is not None and run_key(known.state) == run_key(state):
        placed = word_paths(known.run, unit_length=unit_length(state, model))
        return replace(known, state=state, placed=placed)
    given, words = text_of(offer, model, state.text)
    changed = model.with_attention(state.rule)
    run = hm.simulate(changed.tokens(given), changed.layers, progress=tell)
    tell("who attends to whom", 0, None)
    who = hm.models.attention_targets(changed, given)
    plain = who if state.rule == "softmax" else hm.models.attention_targets(model, given)
    same = float((who.targets == plain.targets).mean())
    tell("controls", 0, None)
    effects = _effects(model, dict.fromkeys(("softmax", state.rule, "zero")), given)
    placed = word_paths(run, unit_length=unit_length(state, model))
    return Computed(state, offer, model, given, words, run, who, placed, effects, same)


def _effects(model: hm.models.Transformer, rules: Iterable[str], given: TextOrIds) -> tuple[Effect, ...]:
    if model.causal:
        return tuple(_effect_on_next_token(model, rule, given) for rule in rules)
    points = {rule: model.with_attention(rule).embed(given).astype(np.float64) for rule in rules}
    trained = points["softmax"]
    with np.errstate(invalid="ignore"):  # an embedding of length zero has no cosine
        cosines = {
            rule: float(trained @ point / np.float64(np.linalg.norm(trained) * np.linalg.norm(point)))
            for rule, point in points.items()
        }
    return tuple(Effect(rule, cosine, None, ()) for rule, cosine in cosines.items())


def _effect_on_next_token(model: hm.models.Transformer, rule: str, given: TextOrIds) -> Effect:
    logits = model.with_attention(rule).logits(given).astype(np.float64)
    ids = model.tokenise(given).ids
    logs = logits - logits.max(axis=1, keepdims=True)
    logs -= np.log(np.exp(logs).sum(axis=1, keepdims=True))
    best = np.argsort(-logs[-1], kind="stable")[:5]
    name = (lambda k: f"token {k}") if model.tokeniser is None else model.tokeniser.word
    following = tuple((name(int(k)), float(np.exp(logs[-1, k]))) for k in best)
    perplexity = float(np.exp(-logs[np.arange(len(ids) - 1), ids[1:]].mean())) if len(ids) > 1 else None
    return Effect(rule, None, perplexity, following)


def code(state: RealModelState, offer: Offer, model: hm.models.Transformer | None) -> str:
    """Python that computes and draws the current view."""
    lines = ["import hardmax as hm", "", offer.code, "print(model)", f"text = {state.text!r}"]
    given = "text"
    if offer.control or (model is not None and model.tokeniser is None):
        lines.insert(0, "import re\n")
        lines += [
            f"words = re.findall({_WORD!r}, text.lower())  # a random model has no tokeniser",
            "numbers = {word: number for number, word in enumerate(dict.fromkeys(words))}",
            "ids = [numbers[word] for word in words]",
        ]
        given = "ids"
    else:
        lines.append("words = model.tokenise(text).words")
    lines += ["", f"changed = model.with_attention({state.rule!r})  # in every layer and head"]
    lines += [
        f"run = hm.simulate(changed.tokens({given}), changed.layers)  # the tokens after every layer",
        f"who = hm.models.attention_targets(changed, {given})",
    ]
    depth = 0 if model is None else len(model.layers)
    layer, k = min(state.layer, depth), min(state.layer, max(depth - 1, 0))
    head = min(state.head, max(0 if model is None else model.heads - 1, 0))
    lines += [f"print(who.heads({k}).to_string(index=False))  # one row per head of layer {k}", ""]
    rules = [*dict.fromkeys(("softmax", state.rule, "zero"))]  # zero attention is the control
    lines.append(
        f"for rule in {rules}:  # as trained, at this temperature, and without attention as a control"
        if len(rules) > 2
        else f"for rule in {rules}:  # as trained, and without attention as a control"
    )
    if model is not None and model.causal:
        lines.append(f"    print(rule, 'perplexity', model.with_attention(rule).perplexity({given}))")
    else:
        lines.insert(1 if lines[0] == "import hardmax as hm" else 2, "import numpy as np")
        lines += [
            f"    points = np.stack([model.embed({given}), model.with_attention(rule).embed({given})])",
            "    print(rule, 'cosine', points[0] @ points[1] / np.linalg.norm(points, axis=1).prod())",
        ]
    lines += [
        "",
        "figure = hm.figures.new_figure(12, 6)",
        "left, right = figure.subplots(1, 2, width_ratios=[3, 2])",
        f"follows, weights = who.targets[{k}, {head}], who.weights[{k}, {head}]  # layer {k}, head {head}",
        "hm.figures.draw_word_paths(",
        f"    run, words, {layer}, follows=follows, sinks=who.sinks, "
        f"unit_length={model is not None and unit_length(state, model)}, ax=left",
        ")",
        "hm.figures.draw_who_attends(words, follows, weights, sinks=who.sinks, ax=right)",
        'hm.save_figure(figure, "words.png")',
    ]
    return "\n".join(lines) + "\n"


def draw(computed: Computed, state: RealModelState) -> Any:
    """The figure that the code draws."""
    k, head = computed.attention_layer(state.layer), min(state.head, computed.model.heads - 1)
    follows, weights, sinks = computed.who.targets[k, head], computed.who.weights[k, head], computed.who.sinks
    figure = hm.figures.new_figure(12, 6)
    left, right = figure.subplots(1, 2, width_ratios=[3, 2])
    unit = unit_length(state, computed.model)
    layer = min(state.layer, computed.layers)
    hm.figures.draw_word_paths(
        computed.run, computed.words, layer, follows=follows, sinks=sinks, unit_length=unit, ax=left
    )
    hm.figures.draw_who_attends(computed.words, follows, weights, sinks=sinks, ax=right)
    return figure
