"""Interventions: a model with another attention rule in some heads, and the effect on its result.

Every intervention is run beside its control, in which the same heads pass on nothing. Encoders are judged by the cosine
of their embeddings with those of the unchanged model, causal models by their perplexity. Layers before the first
changed one are computed once for all interventions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch.nn import functional

from ...errors import InputError
from ...scalars import shown
from ..rules import as_indices, as_rule
from ..tokenisers import Tokenised, batches
from ..transformer import Transformer

EVERY_HEAD = "every head"
EVERY_LAYER = "every layer"
# Tokens of a batch, padding included: their units in the feed-forward network take some 50 MB.
_MOST_TOKENS = 8192

Pair = tuple[int, int]


@dataclass(frozen=True)
class Intervention:
    """Another attention rule in some heads of a model.

    Parameters
    ----------
    rule
        ``"hardmax"``, ``"top-4"``, ``"beta=2"``, ``"uniform"``, ``"zero"`` or a weighting such as ``TopK(4)``.
    layers
        Number of a layer, or several; all when left out.
    heads
        Number of a head, or several, in each of these layers; or pairs (layer, head). All heads when left out.
    each
        ``"head"`` for one intervention per head, ``"layer"`` for one per layer; None for all of them at once.

    Examples
    --------
    >>> Intervention("top-4", layers=[0, 1])
    Intervention(rule='top-4', layers=(0, 1), heads=None, each=None)
    """

    rule: object
    layers: int | Sequence[int] | None = None
    heads: int | Sequence[int] | Sequence[Pair] | None = None
    each: str | None = None

    def __post_init__(self) -> None:
        as_rule(self.rule)
        for name in ("layers", "heads"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, (int, np.integer)):
                if isinstance(value, str) or not isinstance(value, (Sequence, np.ndarray)) or len(value) == 0:
                    raise InputError(name, shown(value), "must be a number or a list of them", f"leave out `{name}`")
                entries = [tuple(int(k) for k in one) if np.ndim(one) else one for one in value]
                object.__setattr__(self, name, tuple(entries))
        if self.each not in (None, "head", "layer"):
            raise InputError("each", shown(self.each), 'must be "head" or "layer"', "leave out `each`")

    def scopes(self, model: Transformer) -> list[tuple[Pair, ...]]:
        """Heads that each run of the intervention changes, as pairs (layer, head).

        Parameters
        ----------
        model
            The model that is changed.

        Returns
        -------
        list of tuples
            One entry per run.
        """
        layers, heads = as_indices("layers", self.layers, len(model.layers)), self.heads
        if isinstance(heads, tuple) and any(isinstance(one, tuple) for one in heads):
            pairs = [self._pair(one, model) for one in heads]
        else:
            found = as_indices("heads", heads, model.heads)
            pairs = [(layer, head) for layer in layers for head in found]
        pairs = sorted(set(pairs))
        if self.each == "head":
            return [(pair,) for pair in pairs]
        if self.each == "layer":
            return [tuple(one for one in pairs if one[0] == layer) for layer in sorted({one[0] for one in pairs})]
        return [tuple(pairs)]

    def _pair(self, one: object, model: Transformer) -> Pair:
        if not isinstance(one, tuple) or len(one) != 2 or self.layers is not None:
            problem, remedy = "must be numbers, or pairs (layer, head) without `layers`", "pass heads=[(0, 2), (1, 8)]"
            raise InputError("heads", shown(one), problem, remedy)
        return as_indices("layers", one[0], len(model.layers))[0], as_indices("heads", one[1], model.heads)[0]


def as_interventions(interventions: object) -> list[Intervention]:
    """Interventions of an argument: names of rules, ``"every head"``, ``"every layer"``, and interventions."""
    if isinstance(interventions, (str, Intervention)):
        interventions = [interventions]
    if not isinstance(interventions, Sequence):
        remedy = 'pass for example ["hardmax", "top-32", "every head"]'
        raise InputError("interventions", shown(interventions), "must be a list of attention rules", remedy)
    found = []
    for one in interventions:
        if isinstance(one, Intervention):
            found.append(one)
        elif one == EVERY_HEAD:
            found.append(Intervention("hardmax", each="head"))
        elif one == EVERY_LAYER:
            found.append(Intervention("hardmax", each="layer"))
        else:
            as_rule(one, "interventions")
            found.append(Intervention(one))
    return found


@dataclass(frozen=True)
class Run:
    """One changed model: a rule, and the heads that have it."""

    rule: object
    scope: tuple[Pair, ...]

    @property
    def name(self) -> str:
        """Name of the rule."""
        return self.rule if isinstance(self.rule, str) else str(self.rule)

    @property
    def first(self) -> int:
        """First changed layer."""
        return self.scope[0][0]

    @property
    def control(self) -> Run:
        """Control of this run: the same heads without attention."""
        return Run("zero", self.scope)

    def changed(self, model: Transformer) -> Transformer:
        """The changed model."""
        by_layer: dict[int, list[int]] = {}
        for layer, head in self.scope:
            by_layer.setdefault(layer, []).append(head)
        everywhere = len(self.scope) == len(model.layers) * model.heads
        if everywhere:
            return model.with_attention(self.rule)
        for layer, heads in by_layer.items():
            model = model.with_attention(self.rule, layer, heads)
        return model

    def where(self, model: Transformer) -> str:
        """The changed heads in words: ``model``, ``layer 3``, ``head 0.2`` or ``5 heads``."""
        layers = sorted({one[0] for one in self.scope})
        if len(self.scope) == len(model.layers) * model.heads:
            return "model"
        if len(self.scope) == len(layers) * model.heads:
            return f"layer {layers[0]}" if len(layers) == 1 else f"layers {', '.join(map(str, layers))}"
        return f"head {self.scope[0][0]}.{self.scope[0][1]}" if len(self.scope) == 1 else f"{len(self.scope)} heads"


class Store(Protocol):
    """Interface of the storage of finished parts."""

    def load(self, name: str) -> dict[str, np.ndarray] | None: ...

    def save(self, name: str, arrays: dict[str, np.ndarray]) -> None: ...


def parts(texts: Sequence[Tokenised]) -> list[list[int]]:
    """Texts of similar length that are evaluated together, as indices."""
    return batches(texts, _MOST_TOKENS)


def results(
    model: Transformer, texts: Sequence[Tokenised], runs: Sequence[Run], store: Store, tick: Callable[[str], None]
) -> tuple[np.ndarray, np.ndarray]:
    """Result of every run on every text, shape (runs, texts), and that of the unchanged model, shape (texts,).

    Parameters
    ----------
    model
        The unchanged model.
    texts
        Tokenised texts.
    runs
        Changed models.
    store
        Storage of the results of batches.
    tick
        Called after each run of a batch.

    Returns
    -------
    tuple of ndarray
        Cosines with the unchanged embedding for encoders (1 for the unchanged model), and for causal models the sums of
        negative log-likelihoods.
    """
    found, unchanged = np.full((len(runs), len(texts)), np.nan), np.full(len(texts), np.nan)
    for number, batch in enumerate(parts(texts)):
        part = _Batch(model, [texts[k] for k in batch])
        for layer, base in part.states():
            if layer == len(model.layers):
                break
            mine = [k for k, run in enumerate(runs) if run.first == layer]
            if not mine:
                continue
            name = f"batch-{number:05d}-layer-{layer:03d}"
            done = store.load(name)
            if done is None:
                rows = []
                for k in mine:
                    rows.append(part.result(part.finish(runs[k].changed(model), base, layer)))
                    tick(f"{runs[k].name}, {runs[k].where(model)}")
                done = {"results": np.stack(rows)}
                store.save(name, done)
            else:
                for k in mine:
                    tick(f"{runs[k].name}, {runs[k].where(model)}")
            found[np.ix_(mine, batch)] = done["results"]
        unchanged[batch] = part.unchanged()
    return found, unchanged


class _Batch:
    """Texts evaluated together, padded to one length."""

    def __init__(self, model: Transformer, texts: Sequence[Tokenised]) -> None:
        self._model, self._texts = model, texts
        ids, self._padding = model.padded(texts)
        with torch.no_grad():
            self._start = model.embedding(ids)
            self._last = self.finish(model, self._start, 0)
            self._embedded = None if model.causal else self._embeddings(self._last)

    def states(self) -> Iterator[tuple[int, torch.Tensor]]:
        """Tokens of the unchanged model before each layer, and after the last one."""
        state = self._start
        for number, layer in enumerate(self._model.layers):
            yield number, state
            with torch.no_grad():
                state = layer.forward(state, self._padding)
        yield len(self._model.layers), state

    def finish(self, model: Transformer, state: torch.Tensor, layer: int) -> torch.Tensor:
        """Tokens after the last layer, from those before one of the layers."""
        with torch.no_grad():
            for one in model.layers[layer:]:
                state = one.forward(state, self._padding)
            return state if model.final_norm is None else model.final_norm(state)

    def unchanged(self) -> np.ndarray:
        return np.ones(len(self._texts)) if self._embedded is not None else self.result(self._last)

    def result(self, last: torch.Tensor) -> np.ndarray:
        """Result of each text from its last tokens, shape (texts,)."""
        with torch.no_grad():
            if self._embedded is None:
                return np.array([self._model.loss(*pair) for pair in zip(self._texts, self._rows(last), strict=True)])
            return functional.cosine_similarity(self._embeddings(last), self._embedded).cpu().numpy()

    def _rows(self, last: torch.Tensor) -> list[torch.Tensor]:
        """Tokens of each text without padding."""
        return [last[row, : len(text)] for row, text in enumerate(self._texts)]

    def _embeddings(self, last: torch.Tensor) -> torch.Tensor:
        # In float64: differences between a cosine and 1 are what is measured.
        return self._model.pooled([one.to(torch.float64) for one in self._rows(last)])
