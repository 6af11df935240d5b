"""Layers that differ along depth, as one object."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..errors import InputError
from ..scalars import shown
from ..shapes import PerToken, Tokens
from .base import ALL_ROWS, FIRST, AbstractLayer, Context
from .choice import Choice


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
