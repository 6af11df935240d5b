"""Layers as recipes: JSON that says what to build, with the matrices as arrays beside it."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import torch

from ..attention.layer import AbstractLayer, Block, FeedForwardLayer, HardmaxLayer, SoftmaxLayer
from ..dynamics.flows import AbstractFlow, FlowStep
from ..dynamics.integrators import Adaptive, integrator_named, name_of
from ..errors import InputError
from ..meanfield.flow import SphereFlow, SphereHardmaxFlow
from .contents import Contents, Reader


def put_layer(contents: Contents, layer: AbstractLayer) -> None:
    """Add the recipe of a layer to the contents of a file."""
    contents.put_words("layer", _recipe(contents, layer, "layer"))


def get_layer(reader: Reader) -> AbstractLayer:
    """The layer that the recipe in a file describes."""
    return reader.made("layer", lambda: _build(reader, reader.words("layer")))


def _recipe(contents: Contents, layer: AbstractLayer, prefix: str) -> dict[str, object]:
    def matrices(**named: torch.Tensor | None) -> dict[str, str | None]:
        names: dict[str, str | None] = {}
        for letter, matrix in named.items():
            names[letter] = None if matrix is None else f"{prefix}_{letter}"
            if matrix is not None:
                axes = tuple(f"{prefix}_{letter}_{axis}" for axis in ("row", "column")[: matrix.ndim])
                contents.put(f"{prefix}_{letter}", axes, matrix)
        return names

    if isinstance(layer, HardmaxLayer):
        # A Fraction is kept exact, as "p/q"; a float is a JSON number, which keeps every digit.
        alpha = str(layer.alpha) if isinstance(layer.alpha, Fraction) else layer.alpha
        settings = {"kind": "hardmax", "alpha": alpha, "tolerance": layer.tolerance}
        return {**settings, **matrices(A=layer.A, V=layer.V)}
    if isinstance(layer, SoftmaxLayer):
        settings = {"kind": "softmax", "alpha": layer.alpha, "beta": layer.beta}
        return {**settings, **matrices(A=layer.A, V=layer.V)}
    if isinstance(layer, FeedForwardLayer):
        return {"kind": "feed-forward", "eta": layer.eta, **matrices(U=layer.U, b=layer.b, W=layer.W)}
    if isinstance(layer, FlowStep) and isinstance(layer.flow, SphereFlow | SphereHardmaxFlow):
        return {**_flow_recipe(layer, layer.flow), **matrices(B=layer.flow.B, V=layer.flow.V)}
    if isinstance(layer, Block):
        inside = [_recipe(contents, one, f"{prefix}_{k}") for k, one in enumerate(layer.layers)]
        return {"kind": "block", "layers": inside}
    raise InputError(
        "layer",
        type(layer).__name__,
        "must be a layer of this library to be saved",
        "save the tokens alone, for example with numpy.save(path, run.tokens)",
    )


def _build(reader: Reader, recipe: dict[str, Any]) -> AbstractLayer:
    def matrix(letter: str, axes: int = 2) -> torch.Tensor | None:
        name = recipe[letter]
        return None if name is None else torch.from_numpy(reader.plain(name, (None,) * axes))

    kind = recipe["kind"]
    if kind == "hardmax":
        alpha = Fraction(recipe["alpha"]) if isinstance(recipe["alpha"], str) else recipe["alpha"]
        return HardmaxLayer(alpha, matrix("A"), V=matrix("V"), tolerance=recipe["tolerance"])
    if kind == "softmax":
        return SoftmaxLayer(recipe["alpha"], matrix("A"), beta=recipe["beta"], V=matrix("V"))
    if kind == "feed-forward":
        return FeedForwardLayer(matrix("U"), matrix("b", 1), matrix("W"), recipe["eta"])
    if kind in ("sphere flow", "sphere hardmax flow"):
        return _flow_step(recipe, matrix("B"), matrix("V"))
    if kind == "block":
        return Block(*(_build(reader, inside) for inside in recipe["layers"]))
    raise ValueError(f"no layer is called {kind!r}")


def _flow_recipe(layer: FlowStep, flow: SphereFlow | SphereHardmaxFlow) -> dict[str, object]:
    """A flow on the sphere without its matrices, and how it was discretised."""
    accuracy = layer.integrator.tolerance if isinstance(layer.integrator, Adaptive) else None
    recipe: dict[str, object] = {"length": layer.length, "integrator": name_of(layer.integrator), "accuracy": accuracy}
    if isinstance(flow, SphereHardmaxFlow):
        return {"kind": "sphere hardmax flow", **recipe, "normalise": flow.normalise, "tolerance": flow.tolerance}
    return {
        "kind": "sphere flow",
        **recipe,
        "beta": "inf" if flow.at_zero_temperature else flow.beta,  # JSON knows no infinity
        "normalise": flow.normalise,
        "few_tokens": flow.few_tokens,
        "evaluation": flow.evaluation.method,
        "precision": str(flow.evaluation.dtype).removeprefix("torch."),
    }


def _flow_step(recipe: dict[str, Any], B: torch.Tensor | None, V: torch.Tensor | None) -> FlowStep:
    accuracy = recipe["accuracy"]
    integrator = integrator_named(recipe["integrator"]) if accuracy is None else Adaptive(float(accuracy))
    flow: AbstractFlow
    if recipe["kind"] == "sphere hardmax flow":
        flow = SphereHardmaxFlow(B, V, normalise=recipe["normalise"], tolerance=recipe["tolerance"])
    else:
        settings = {name: recipe[name] for name in ("normalise", "few_tokens", "evaluation", "precision")}
        flow = SphereFlow(B, V, float(recipe["beta"]), **settings)
    return FlowStep(flow, float(recipe["length"]), integrator)
