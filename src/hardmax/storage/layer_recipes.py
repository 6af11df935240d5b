"""Recipes of layers in files: their class by name, and their numbers; never code.

A recipe is a tree of plain values (JSON) that names the arrays of the file. Every class that can be stored is listed
here under a fixed name, and is rebuilt by calling its constructor, which checks the values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields, is_dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import torch

from ..attention import heads, moves, norms, weighting
from ..attention.attention_layer import AttentionLayer
from ..attention.base import ALL_ROWS, AbstractLayer, Block, LayerSequence
from ..attention.choice import Choice
from ..attention.feed_forward import FeedForwardLayer
from ..attention.layer import HardmaxLayer, SoftmaxLayer
from ..attention.masks import Mask
from ..dynamics.attention_flow import AttentionFlow
from ..dynamics.flows import AbstractFlow
from ..dynamics.integrators import Adaptive, FlowStep, integrator_named, name_of
from ..dynamics.modified_flows import MomentumFlow, NoisyFlow
from ..errors import InputError
from ..meanfield.flow import SphereFlow, SphereHardmaxFlow
from ..shapes import PerToken, Tokens
from .array_files import Contents, Reader

# Parts whose constructor takes exactly their fields.
_PARTS: dict[str, Any] = {
    "head": heads.Head,
    "linear bias": heads.LinearBias,
    "table bias": heads.TableBias,
    "hardmax weighting": weighting.Hardmax,
    "softmax weighting": weighting.Softmax,
    "top-k weighting": weighting.TopK,
    "sigmoid weighting": weighting.Sigmoid,
    "linear weighting": weighting.Linear,
    "exponential weighting": weighting.Exponential,
    "doubly stochastic weighting": weighting.DoublyStochastic,
    "convex step": moves.ConvexStep,
    "residual step": moves.ResidualStep,
    "no skip": moves.NoSkip,
    "implicit step": moves.ImplicitStep,
    "sphere step": moves.SphereStep,
    "layer norm": norms.LayerNorm,
    "rms norm": norms.RmsNorm,
    "unit norm": norms.UnitNorm,
    "power steps": moves.PowerSteps,
    "geometric steps": moves.GeometricSteps,
}
_NAMES = {kind: name for name, kind in _PARTS.items()}
# Arguments of an attention flow besides its mask.
_OF_ATTENTION_FLOWS = ("heads", "weighting", "shares", "sphere", "coupling")
# Deeper recipes than a layer in a block in a list of layers are not written.
_DEEPEST = 12


@dataclass(frozen=True)
class StoredLayer(AbstractLayer):
    """Description of a layer whose class is not part of this library, read from a file; it cannot be run.

    Parameters
    ----------
    name
        Name of its class.
    description
        The layer in words.
    chose
        Whether each token attended to some tokens alone.
    """

    name: str
    description: str
    chose: bool = False

    def step(self, tokens: Tokens, weights: PerToken) -> Tokens:
        raise self._without_code("run")

    def choose(self, tokens: Tokens, queries: slice = ALL_ROWS) -> Choice:
        raise self._without_code("used to find attended tokens")

    @property
    def chooses(self) -> bool:
        return self.chose

    def _without_code(self, verb: str) -> InputError:
        return InputError(
            "layer",
            self.description,
            f"cannot be {verb}: the file has the numbers of its class {self.name}, not its code",
            f"load the file with hm.load(path, layers=[{self.name}])",
        )

    def __str__(self) -> str:
        return self.description


def put_layer(contents: Contents, layer: AbstractLayer) -> None:
    """Add the recipe of a layer to the contents of a file."""
    contents.put_words("layer", _Writer(contents).layer(layer, "layer"))


def get_layer(reader: Reader, classes: Sequence[type[AbstractLayer]] = ()) -> AbstractLayer:
    """The layer that the recipe in a file describes; ``classes`` are layers of the caller's own."""
    return reader.made("layer", lambda: _Builder(reader, classes).layer(reader.words("layer"), 0))


class _Writer:
    """Recipes, with their arrays added to the contents of a file."""

    def __init__(self, contents: Contents) -> None:
        self._contents = contents

    def layer(self, layer: AbstractLayer, prefix: str) -> dict[str, object]:
        if isinstance(layer, HardmaxLayer | SoftmaxLayer):
            return self._attention(layer, prefix)
        if isinstance(layer, FeedForwardLayer):
            recipe = {"kind": "feed-forward", "eta": layer.eta, **self._arrays(prefix, U=layer.U, b=layer.b, W=layer.W)}
            more = {name: getattr(layer, name) for name in ("c", "gate", "pre_norm", "update_norm", "post_norm")}
            given = {name: self.value(part, f"{prefix}_{name}") for name, part in more.items() if part is not None}
            activation = {} if layer.activation == "relu" else {"activation": layer.activation}
            return {**recipe, **activation, **given}
        if isinstance(layer, AttentionLayer):
            names = [field.name for field in fields(layer) if field.name != "mask"]
            values = {name: self.value(getattr(layer, name), f"{prefix}_{name}") for name in names}
            return {"kind": "attention", **_sight(layer.mask), **values}
        if isinstance(layer, FlowStep) and _is_stored(layer.flow):
            flow = self._flow(layer.flow, f"{prefix}_flow")
            if isinstance(layer.flow, SphereFlow | SphereHardmaxFlow):
                return {**flow, **_discretisation(layer)}  # as in files of format 1
            return {"kind": "flow step", **_discretisation(layer), "flow": flow}
        if isinstance(layer, Block):
            inside = [self.layer(one, f"{prefix}_{k}") for k, one in enumerate(layer.layers)]
            return {"kind": "block", "layers": inside}
        if isinstance(layer, LayerSequence):
            different = [*{id(one): one for one in layer.layers}.values()]
            place = {id(one): k for k, one in enumerate(different)}
            inside = [self.layer(one, f"{prefix}_{k}") for k, one in enumerate(different)]
            return {"kind": "sequence", "layers": inside, "order": [place[id(one)] for one in layer.layers]}
        if isinstance(layer, StoredLayer):
            return {**asdict(layer), "kind": "own", "fields": None}
        if isinstance(layer, FlowStep):  # a flow of the user's own: words alone
            return {
                "kind": "own",
                "name": type(layer.flow).__name__,
                "description": str(layer),
                "chose": False,
                "fields": None,
            }
        return self._own(layer, prefix)

    def value(self, value: object, prefix: str) -> object:
        """A field of a layer as plain values."""
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if isinstance(value, Fraction):
            return {"fraction": str(value)}
        if isinstance(value, torch.Tensor | np.ndarray):
            return {"array": self._array(prefix, torch.as_tensor(value))}
        if isinstance(value, tuple | list):
            return {"list": [self.value(one, f"{prefix}_{k}") for k, one in enumerate(value)]}
        name = _NAMES.get(type(value))
        if name is None:
            raise _not_stored(value)
        names = [field.name for field in fields(_PARTS[name])]
        return {"part": name, **{one: self.value(getattr(value, one), f"{prefix}_{one}") for one in names}}

    def _attention(self, layer: HardmaxLayer | SoftmaxLayer, prefix: str) -> dict[str, object]:
        # A Fraction is stored exactly, as "p/q"; a float as a JSON number with every digit.
        alpha = str(layer.alpha) if isinstance(layer.alpha, Fraction) else self.value(layer.alpha, f"{prefix}_alpha")
        if isinstance(layer, HardmaxLayer):
            settings = {"kind": "hardmax", "alpha": alpha, "tolerance": layer.tolerance}
        else:
            settings = {"kind": "softmax", "alpha": alpha, "beta": layer.beta}
        sight = {} if layer.mask.sees_all else _sight(layer.mask)
        head = layer.heads[0]
        if len(layer.heads) == 1 and head.has_plain_scores and head.value_bias is None:
            return {**settings, **sight, **self._arrays(prefix, A=layer.A, V=layer.V)}
        several = {
            "heads": self.value(layer.heads, f"{prefix}_heads"),
            "shares": self.value(layer.shares, f"{prefix}_shares"),
        }
        return {**settings, **sight, **several, "A": None, "V": None}

    def _flow(self, flow: AbstractFlow, prefix: str) -> dict[str, object]:
        if isinstance(flow, SphereFlow | SphereHardmaxFlow):
            return {**_sphere_flow(flow), **self._arrays(prefix.removesuffix("_flow"), B=flow.B, V=flow.V)}
        if isinstance(flow, AttentionFlow):
            values = {name: self.value(getattr(flow, name), f"{prefix}_{name}") for name in _OF_ATTENTION_FLOWS}
            return {"kind": "attention flow", **_sight(flow.mask), **values}
        if isinstance(flow, NoisyFlow):
            noise = self.value(flow.noise, f"{prefix}_noise")
            return {"kind": "noisy flow", "noise": noise, "flow": self._flow(flow.flow, f"{prefix}_inside")}
        if isinstance(flow, MomentumFlow):
            settings = {"friction": flow.friction, "mass": flow.mass}
            momenta = self.value(flow.initial, f"{prefix}_momenta")
            inside = self._flow(flow.flow, f"{prefix}_inside")
            return {"kind": "momentum flow", **settings, "momenta": momenta, "flow": inside}
        raise _not_stored(flow)

    def _own(self, layer: AbstractLayer, prefix: str) -> dict[str, object]:
        """A layer of the user's own: its fields where it is a dataclass of plain values, otherwise words alone."""
        words = {"name": type(layer).__name__, "description": str(layer), "chose": layer.chooses}
        given: dict[str, object] | None = None
        kind: Any = type(layer)
        if is_dataclass(kind) and not layer.described_in_words:
            names = [field.name for field in fields(kind) if field.init]
            given = {name: self.value(getattr(layer, name), f"{prefix}_{name}") for name in names}
        return {"kind": "own", **words, "fields": given}

    def _arrays(self, prefix: str, **named: torch.Tensor | None) -> dict[str, str | None]:
        return {
            letter: None if array is None else self._array(f"{prefix}_{letter}", array)
            for letter, array in named.items()
        }

    def _array(self, name: str, array: torch.Tensor) -> str:
        self._contents.put(name, tuple(f"{name}_{axis}" for axis in ("row", "column", "page")[: array.ndim]), array)
        return name


class _Builder:
    """Layers from recipes and the arrays of a file."""

    def __init__(self, reader: Reader, classes: Sequence[type[AbstractLayer]]) -> None:
        self._reader = reader
        self._classes = {one.__name__: one for one in classes}

    def layer(self, recipe: dict[str, Any], depth: int) -> AbstractLayer:
        if depth > _DEEPEST:
            raise ValueError("layers are nested too deeply")
        build = _LAYERS.get(recipe["kind"])
        if build is None:
            raise ValueError(f"no layer is called {recipe['kind']!r}")
        return build(self, recipe, depth)

    def value(self, value: Any, depth: int) -> Any:
        if depth > _DEEPEST:
            raise ValueError("values are nested too deeply")
        if not isinstance(value, dict):
            return value
        if "fraction" in value:
            return Fraction(str(value["fraction"]))
        if "array" in value:
            return self._tensor(value["array"])
        if "list" in value:
            return tuple(self.value(one, depth + 1) for one in value["list"])
        kind = _PARTS[value["part"]]
        return kind(**{f.name: self.value(value[f.name], depth + 1) for f in fields(kind)})

    def attention(self, recipe: dict[str, Any], depth: int) -> AbstractLayer:
        alpha: Any = (
            Fraction(recipe["alpha"]) if isinstance(recipe["alpha"], str) else self.value(recipe["alpha"], depth)
        )
        settings: dict[str, Any] = {"causal": bool(recipe.get("causal", False)), "window": recipe.get("window")}
        if "heads" in recipe:
            made, shares = self.value(recipe["heads"], depth), self.value(recipe["shares"], depth)
            settings |= {"heads": made, "shares": shares}
        else:
            settings |= {"A": self._matrix(recipe, "A"), "V": self._matrix(recipe, "V")}
        if recipe["kind"] == "hardmax":
            return HardmaxLayer(alpha, tolerance=recipe["tolerance"], **settings)
        return SoftmaxLayer(alpha, beta=recipe["beta"], **settings)

    def composed(self, recipe: dict[str, Any], depth: int) -> AbstractLayer:
        names = [field.name for field in fields(AttentionLayer) if field.name != "mask"]
        values = {name: self.value(recipe[name], depth) for name in names}
        return AttentionLayer(causal=bool(recipe["causal"]), window=recipe["window"], **values)

    def feed_forward(self, recipe: dict[str, Any], depth: int) -> AbstractLayer:
        names = ("c", "gate", "pre_norm", "update_norm", "post_norm")
        more = {name: self.value(recipe[name], depth) for name in names if name in recipe}
        matrices = self._matrix(recipe, "U"), self._matrix(recipe, "b", 1), self._matrix(recipe, "W")
        return FeedForwardLayer(*matrices, recipe["eta"], activation=str(recipe.get("activation", "relu")), **more)

    def flow_step(self, recipe: dict[str, Any], depth: int) -> AbstractLayer:
        accuracy = recipe["accuracy"]
        integrator = integrator_named(str(recipe["integrator"])) if accuracy is None else Adaptive(float(accuracy))
        inside = recipe["flow"] if recipe["kind"] == "flow step" else recipe
        return FlowStep(self.flow(inside, depth + 1), float(recipe["length"]), integrator)

    def flow(self, recipe: dict[str, Any], depth: int) -> AbstractFlow:
        if depth > _DEEPEST:
            raise ValueError("flows are nested too deeply")
        kind = recipe["kind"]
        if kind == "noisy flow":
            return NoisyFlow(self.flow(recipe["flow"], depth + 1), self.value(recipe["noise"], depth))
        if kind == "momentum flow":
            inside, momenta = self.flow(recipe["flow"], depth + 1), self.value(recipe["momenta"], depth)
            return MomentumFlow(inside, recipe["friction"], recipe["mass"], momenta=momenta)
        if kind == "attention flow":
            values = {name: self.value(recipe[name], depth) for name in _OF_ATTENTION_FLOWS}
            return AttentionFlow(causal=bool(recipe["causal"]), window=recipe["window"], **values)
        B, V = self._matrix(recipe, "B"), self._matrix(recipe, "V")
        if kind == "sphere hardmax flow":
            return SphereHardmaxFlow(B, V, normalise=recipe["normalise"], tolerance=recipe["tolerance"])
        if kind != "sphere flow":
            raise ValueError(f"no flow is called {kind!r}")
        settings = {name: recipe[name] for name in ("normalise", "few_tokens", "evaluation", "precision")}
        return SphereFlow(B, V, float(recipe["beta"]), causal=bool(recipe.get("causal", False)), **settings)

    def block(self, recipe: dict[str, Any], depth: int) -> AbstractLayer:
        return Block(*(self.layer(inside, depth + 1) for inside in recipe["layers"]))

    def sequence(self, recipe: dict[str, Any], depth: int) -> AbstractLayer:
        different = [self.layer(inside, depth + 1) for inside in recipe["layers"]]
        order = recipe["order"]
        if not all(isinstance(k, int) and 0 <= k < len(different) for k in order):
            raise ValueError(f"the order of the layers names others than 0 to {len(different) - 1}")
        return LayerSequence([different[k] for k in order])

    def own(self, recipe: dict[str, Any], depth: int) -> AbstractLayer:
        name, inside = str(recipe["name"]), recipe["fields"]
        kind = self._classes.get(name)
        if kind is None or inside is None:
            return StoredLayer(name, str(recipe["description"]), bool(recipe["chose"]))
        return kind(**{key: self.value(value, depth + 1) for key, value in inside.items()})

    def _matrix(self, recipe: dict[str, Any], letter: str, axes: int = 2) -> torch.Tensor | None:
        name = recipe[letter]
        return None if name is None else torch.from_numpy(self._reader.plain(name, (None,) * axes))

    def _tensor(self, name: str) -> torch.Tensor:
        return torch.from_numpy(self._reader.plain(name, (None,) * self._reader.axes(name)))


_LAYERS: dict[str, Callable[[_Builder, dict[str, Any], int], AbstractLayer]] = {
    "hardmax": _Builder.attention,
    "softmax": _Builder.attention,
    "attention": _Builder.composed,
    "feed-forward": _Builder.feed_forward,
    "sphere flow": _Builder.flow_step,
    "sphere hardmax flow": _Builder.flow_step,
    "flow step": _Builder.flow_step,
    "block": _Builder.block,
    "sequence": _Builder.sequence,
    "own": _Builder.own,
}


def _sight(mask: Mask) -> dict[str, object]:
    """The two arguments of a layer that give this mask."""
    return {"causal": mask.causal, "window": None if mask.before is None else mask.before + 1}


def _not_stored(value: object) -> InputError:
    return InputError(
        "layer",
        f"a field of type {type(value).__name__}",
        "must hold numbers, arrays or parts of this library to be saved",
        "save the tokens alone, for example with numpy.save(path, run.tokens)",
    )


def _is_stored(flow: AbstractFlow) -> bool:
    """Whether a flow is one of this library, made of numbers alone."""
    if isinstance(flow, NoisyFlow | MomentumFlow):
        return _is_stored(flow.flow)
    if isinstance(flow, AttentionFlow):
        return type(flow.weighting) in _NAMES
    return isinstance(flow, SphereFlow | SphereHardmaxFlow)


def _discretisation(layer: FlowStep) -> dict[str, object]:
    accuracy = layer.integrator.tolerance if isinstance(layer.integrator, Adaptive) else None
    return {"length": layer.length, "integrator": name_of(layer.integrator), "accuracy": accuracy}


def _sphere_flow(flow: SphereFlow | SphereHardmaxFlow) -> dict[str, object]:
    """A flow on the sphere without its matrices."""
    if isinstance(flow, SphereHardmaxFlow):
        return {"kind": "sphere hardmax flow", "normalise": flow.normalise, "tolerance": flow.tolerance}
    return {
        "kind": "sphere flow",
        "beta": "inf" if flow.at_zero_temperature else flow.beta,  # JSON knows no infinity
        "normalise": flow.normalise,
        "few_tokens": flow.few_tokens,
        "evaluation": flow.evaluation.method,
        "precision": str(flow.evaluation.dtype).removeprefix("torch."),
        **({"causal": True} if flow.causal else {}),
    }
