r"""Layers: pure functions from tokens to the next tokens, and sequences of layers that differ along depth.

A layer is called with tokens of shape ``(..., tokens, d)``, a tensor or a NumPy array, and returns the same kind of
array, with the same dtype and device. Gradients flow through tensors: the argmax has no gradient, the mean of the
selected tokens has.

Functions that analyse a run use properties of its layer, not its class: ``chooses`` (each token attends to some tokens
only), ``stays_in_hull``, ``stochastic``, ``has_leaders`` and ``why_no_limit``.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
import torch

from ..errors import InputError
from ..inputs import as_tokens, as_weights
from ..scalars import shown
from ..shapes import Array, ArrayLike, PerToken, Tokens
from ..threads import one_thread
from .choice import Choice

ALL_ROWS = slice(None)


@dataclass(frozen=True)
class Context:
    """Place of a layer in a run, passed to :meth:`hardmax.AbstractLayer.step_at`."""

    index: int = 0
    """Number of the layer, from 0."""
    generator: torch.Generator | None = None
    """Generator seeded by ``simulate(random_state=…)``, on the CPU; None where the layer is not stochastic."""
    labels: torch.Tensor | None = None
    """Fixed label per token, shape (tokens,) or (tokens, k), from ``simulate(labels=…)``; None where there are none."""


FIRST = Context()
"""Context of a layer that is called outside a run."""


class AbstractLayer(ABC):
    """Interface of a layer: a map from tokens to the next tokens, implemented by :meth:`step`."""

    @abstractmethod
    def step(self, tokens: Tokens, weights: PerToken) -> Tokens:
        """Tokens after one layer, shape (tokens, d).

        Parameters
        ----------
        tokens
            Validated float64 tensor of shape (tokens, d).
        weights
            Positive weight per token, float64, shape (tokens,).

        Returns
        -------
        Tensor
            Float64 tensor of shape (tokens, d).
        """

    def step_of(self, rows: slice, tokens: Tokens, weights: PerToken) -> Tokens:
        """Some rows of the tokens after one layer; layers override it where that saves work.

        Parameters
        ----------
        rows
            Rows to return.
        tokens
            All tokens, float64, shape (tokens, d).
        weights
            Positive weight per token, float64, shape (tokens,).

        Returns
        -------
        Tensor
            ``step(tokens, weights)[rows]``.
        """
        return self.step(tokens, weights)[rows]

    def step_at(self, tokens: Tokens, weights: PerToken, context: Context, rows: slice = ALL_ROWS) -> Tokens:
        """Some rows of the tokens after one layer, given the place of the layer in a run.

        Layers that depend on their index, on labels of the tokens or on random numbers override it.

        Parameters
        ----------
        tokens
            All tokens, float64, shape (tokens, d).
        weights
            Positive weight per token, float64, shape (tokens,).
        context
            Number of the layer in the run, generator, labels.
        rows
            Rows to return; all when left out.

        Returns
        -------
        Tensor
            Float64 tensor of shape (rows, d).
        """
        return self.step(tokens, weights) if rows == ALL_ROWS else self.step_of(rows, tokens, weights)

    def at(self, index: int) -> AbstractLayer:
        """The layer with this number in a run: itself, unless layers differ along depth.

        Parameters
        ----------
        index
            Number of the layer, from 0.

        Returns
        -------
        AbstractLayer
            Layer that maps the tokens at layer ``index`` to those at ``index + 1``.
        """
        return self

    @property
    def stochastic(self) -> bool:
        """Whether the layer draws random numbers from the generator of its context."""
        return False

    @property
    def dimension(self) -> int | None:
        """Number of coordinates of the tokens that the layer takes; None where it takes any."""
        return None

    @property
    def described_in_words(self) -> bool:
        """Whether files of a run describe the layer in words alone: a trained layer has millions of weights."""
        return False

    @property
    def stays_in_hull(self) -> bool:
        """Whether every token moves to a convex combination of the tokens."""
        return False

    def choose(self, tokens: Tokens, queries: slice = ALL_ROWS) -> Choice:
        """Tokens that each token attends to alone: the sets C_i. A layer that overrides this has leaders.

        Parameters
        ----------
        tokens
            Float64 tensor of shape (tokens, d).
        queries
            Rows of the tokens that are queries; all when left out.

        Returns
        -------
        Choice
            The set C_i of each query, in the order of the rows. :meth:`hardmax.Choice.of` makes one from indices or
            from a matrix of booleans.
        """
        raise InputError(
            "layer", str(self), "does not choose: it attends to every token", "pass a layer with a method choose"
        )

    @property
    def chooses(self) -> bool:
        """Whether each token attends to some tokens alone, so that there are leaders and followers."""
        return type(self).choose is not AbstractLayer.choose

    @property
    def has_leaders(self) -> bool:
        """Whether a token that attends to itself alone leads: tokens move towards the tokens that they attend to."""
        return self.chooses

    def choose_heads(self, tokens: Tokens, queries: slice = ALL_ROWS) -> tuple[Choice, ...]:
        """Tokens that each token attends to, for each head.

        Parameters
        ----------
        tokens
            Float64 tensor of shape (tokens, d).
        queries
            Rows of the tokens that are queries; all when left out.

        Returns
        -------
        tuple of Choice
            One per head.
        """
        return (self.choose(tokens, queries),)

    @property
    def why_no_limit(self) -> str | None:
        """Reason why the limit of infinite depth has no closed form; None where :func:`hardmax.equilibrium` has one."""
        return "has no closed form"

    @overload
    def __call__(  # type: ignore[overload-overlap]  # all but tensors come back as NumPy arrays
        self, tokens: torch.Tensor, weights: ArrayLike | None = None
    ) -> torch.Tensor: ...

    @overload
    def __call__(self, tokens: ArrayLike, weights: ArrayLike | None = None) -> np.ndarray: ...

    @one_thread()
    def __call__(self, tokens: ArrayLike, weights: ArrayLike | None = None) -> Array:
        """Tokens after one layer, with the shape, kind, dtype and device of the input.

        Parameters
        ----------
        tokens
            Array or tensor of shape (..., tokens, d); entries of a batch do not attend to each other.
        weights
            Positive weight per token, shape (tokens,); all equal when left out.

        Returns
        -------
        array or tensor
            Shape (..., tokens, d).
        """
        tensor, kind = as_tokens(tokens, batch=True)
        mass = as_weights(weights, tensor.shape[-2], tensor.device)
        flat = tensor.to(torch.float64).reshape(math.prod(tensor.shape[:-2]), *tensor.shape[-2:])
        if len(flat) == 0:
            # Refuses coordinates that do not fit the layer.
            self._step_alone(flat.new_zeros(tensor.shape[-2:]), mass)
            return kind.give_back(flat.reshape(tensor.shape))
        moved = torch.stack([self._step_alone(one, mass) for one in flat]).reshape(tensor.shape)
        return kind.give_back(moved)

    def _step_alone(self, tokens: Tokens, weights: PerToken) -> Tokens:
        if self.stochastic:
            raise InputError(
                "layer", str(self), "draws random numbers", "run it with hm.simulate(tokens, layer, random_state=0)"
            )
        return self.step_at(tokens, weights, FIRST)


@dataclass(frozen=True, eq=False, init=False)
class Block(AbstractLayer):
    """Several layers applied one after the other and counted as one layer.

    Parameters
    ----------
    *layers
        Layers in the order in which they are applied.
    """

    layers: tuple[AbstractLayer, ...]

    def __init__(self, *layers: AbstractLayer) -> None:
        if not layers or not all(isinstance(layer, AbstractLayer) for layer in layers):
            raise InputError("layers", repr(layers)[:60], "must be one or more layers", "Block(HardmaxLayer(), …)")
        object.__setattr__(self, "layers", layers)

    def step(self, tokens: Tokens, weights: PerToken) -> Tokens:
        return self.step_at(tokens, weights, FIRST)

    def step_at(self, tokens: Tokens, weights: PerToken, context: Context, rows: slice = ALL_ROWS) -> Tokens:
        for layer in self.layers:
            tokens = layer.step_at(tokens, weights, context)
        return tokens[rows]

    @property
    def dimension(self) -> int | None:
        return next((layer.dimension for layer in self.layers if layer.dimension is not None), None)

    @property
    def stochastic(self) -> bool:
        return any(layer.stochastic for layer in self.layers)

    @property
    def stays_in_hull(self) -> bool:
        return all(layer.stays_in_hull for layer in self.layers)

    def __str__(self) -> str:
        return "; then ".join(str(layer) for layer in self.layers)


@dataclass(frozen=True, eq=False, init=False)
class LayerSequence(AbstractLayer):
    """Layers of a run, one after the other: the layer with number t is ``layers[t]``.

    Called by itself it applies its first layer; :func:`hardmax.simulate` applies all of them in turn.

    Parameters
    ----------
    layers
        Layers in the order in which they are applied.

    Examples
    --------
    >>> import hardmax as hm
    >>> run = hm.simulate([[1.0], [4.0]], [hm.HardmaxLayer(alpha=1.0), hm.HardmaxLayer(alpha=2.0)])
    >>> run.tokens[:, 0, 0]
    array([1. , 2.5, 3.5])
    """

    layers: tuple[AbstractLayer, ...]

    def __init__(self, layers: Sequence[AbstractLayer]) -> None:
        made = tuple(layers)
        wrong = [layer for layer in made if not isinstance(layer, AbstractLayer)]
        if not made or wrong:
            value = shown(wrong[0]) if wrong else "an empty list"
            raise InputError("layer", value, "must be a list of layers", "[HardmaxLayer(0.5), HardmaxLayer(0.2)]")
        object.__setattr__(self, "layers", made)

    def at(self, index: int) -> AbstractLayer:
        # The last state of a run has no layer after it; its choices are those of the last layer.
        return self.layers[min(index, len(self.layers) - 1)]

    def step(self, tokens: Tokens, weights: PerToken) -> Tokens:
        return self.step_at(tokens, weights, FIRST)

    def step_at(self, tokens: Tokens, weights: PerToken, context: Context, rows: slice = ALL_ROWS) -> Tokens:
        return self.at(context.index).step_at(tokens, weights, context, rows)

    @property
    def dimension(self) -> int | None:
        return next((layer.dimension for layer in self.layers if layer.dimension is not None), None)

    @property
    def stochastic(self) -> bool:
        return any(layer.stochastic for layer in self.layers)

    @property
    def stays_in_hull(self) -> bool:
        return all(layer.stays_in_hull for layer in self.layers)

    @property
    def chooses(self) -> bool:
        return all(layer.chooses for layer in self.layers)

    @property
    def has_leaders(self) -> bool:
        return all(layer.has_leaders for layer in self.layers)

    def choose(self, tokens: Tokens, queries: slice = ALL_ROWS) -> Choice:
        return self.at(0).choose(tokens, queries)

    def choose_heads(self, tokens: Tokens, queries: slice = ALL_ROWS) -> tuple[Choice, ...]:
        return self.at(0).choose_heads(tokens, queries)

    @property
    def why_no_limit(self) -> str | None:
        return "is a finite list of layers, which has no limit of infinite depth"

    def __str__(self) -> str:
        kinds = [*dict.fromkeys(str(layer) for layer in self.layers)]
        more = f"; … {len(kinds)} kinds" if len(kinds) > 2 else ""
        return f"{len(self.layers)} layers: {'; '.join(kinds[:2])}{more}"


def layers_of(rule: Callable[[int], AbstractLayer], depth: int) -> LayerSequence:
    """The first ``depth`` layers of a rule that gives the layer with each number.

    >>> import hardmax as hm
    >>> len(layers_of(lambda t: hm.HardmaxLayer(alpha=1 / (t + 1)), 3).layers)
    3
    """
    made = []
    for index in range(max(depth, 1)):
        layer = rule(index)
        if not isinstance(layer, AbstractLayer):
            raise InputError(
                "layer",
                f"{shown(layer)} for layer {index}",
                "must give a layer for every number",
                "pass for example lambda t: HardmaxLayer(alpha=1 / (t + 1))",
            )
        made.append(layer)
    return LayerSequence(made)
