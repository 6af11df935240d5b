"""Runs, limits and layers in files: zarr (a folder, or one ``.zip``) and netCDF, chosen by the suffix.

Everything that a run holds comes back equal: tokens, layers, weights, who leads and who follows, the outcome,
and the layer itself, rebuilt from its recipe. The files open in xarray too, with named axes.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch

from ..attention.layer import AbstractLayer, Block, FeedForwardLayer, HardmaxLayer, SoftmaxLayer
from ..dynamics.equilibrium import Equilibrium
from ..dynamics.flows import AbstractFlow
from ..dynamics.integrators import Adaptive, FlowStep, integrator_named, name_of
from ..dynamics.trajectory import Trajectory
from ..errors import FileError, InputError
from ..files import PathLike
from ..meanfield.flow import SphereFlow, SphereHardmaxFlow
from ..meanfield.limit import LowTemperatureLimit
from ..meanfield.phases import Phases
from . import result_parts
from .array_files import read_netcdf, read_zarr, write_netcdf, write_zarr
from .contents import Contents, Reader
from .result_parts import limit_contents, phases_contents, read_limit, read_phases


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


_ZARR = (".zarr", ".zip")
_NETCDF = (".nc", ".nc4", ".h5")
SAVEABLE = (*_ZARR, *_NETCDF)
"""The suffixes of files that hold a whole run."""


Saved: TypeAlias = Trajectory | Equilibrium | Phases | LowTemperatureLimit
"""What one file can hold."""


def save(value: Saved, path: PathLike) -> None:
    """Save a run, a limit or phases: ``.zarr`` (a folder), ``.zip`` (zarr in one file) or ``.nc`` (netCDF).

    The file appears whole or not at all; an older one of that name stays until then.
    """
    suffix = saveable_suffix(path, "saved")
    if isinstance(value, Trajectory):
        contents = _trajectory_contents(value)
    elif isinstance(value, Equilibrium):
        contents = _equilibrium_contents(value)
    elif isinstance(value, Phases):
        contents = phases_contents(value)
    elif isinstance(value, LowTemperatureLimit):
        contents = limit_contents(value)
    else:
        kind = f"a {type(value).__name__}"  # type: ignore[unreachable]
        remedy = (
            "save what simulate, equilibrium, phases or low_temperature_limit gave back; models and networks have a "
            "method save of their own, tables a method to_pandas"
        )
        problem = "must be a Trajectory, an Equilibrium, Phases or a LowTemperatureLimit"
        raise InputError("value", kind, problem, remedy)
    write = write_zarr if suffix in _ZARR else write_netcdf
    write(path, contents)


def load(path: PathLike) -> Saved:
    """What :func:`save` or :class:`ToDisk` put into a file."""
    suffix = saveable_suffix(path, "loaded")
    path = Path(path).expanduser()
    if not path.exists():
        raise FileError(path, "there is no such file", "check the name and the folder")
    reader = Reader(path, read_zarr(path) if suffix in _ZARR else read_netcdf(path))
    content = reader.text("content")
    read = _READERS.get(content)
    if read is None:
        raise reader.bad("content", f"is {content!r}, not one of {', '.join(map(repr, _READERS))}")
    return read(reader)


def saveable_suffix(path: PathLike, verb: str) -> str:
    """The suffix of a file that can hold a run, refused when it cannot."""
    suffix = Path(path).suffix.lower()
    if suffix not in SAVEABLE:
        problem = f"runs cannot be {verb} as {suffix or 'a file without suffix'}"
        others = (
            "; models and networks are loaded by LeaderClassifier.load, load_forecaster and ExactTransformer.load"
            if verb == "loaded"
            else ""
        )
        raise FileError(path, problem, f"use {', '.join(SAVEABLE)}{others}")
    return suffix


def put_story(contents: Contents, run: Trajectory) -> None:
    """Add everything about a run but its tokens and layers."""
    put_layer(contents, run.layer)
    result_parts.put_outcome(contents, run.outcome)
    result_parts.put_weights(contents, run.weights)
    result_parts.put_assumptions(contents, run.assumptions)
    if run.times is not None:
        contents.put("time", ("layer",), run.times)
    if run.leadership is not None:
        result_parts.put_leadership(contents, run.leadership)


def _trajectory_contents(run: Trajectory) -> Contents:
    contents = Contents.of("trajectory", run.tokens)
    contents.put("tokens", ("layer", "token", "coordinate"), run.tokens)
    contents.put("layer", ("layer",), np.asarray(run.layers, dtype=np.int64))
    put_story(contents, run)
    return contents


def _equilibrium_contents(limit: Equilibrium) -> Contents:
    contents = Contents.of("equilibrium", limit.positions)
    contents.attributes["layers"] = limit.layers
    contents.put("positions", ("token", "coordinate"), limit.positions)
    put_layer(contents, limit.layer)
    result_parts.put_outcome(contents, limit.outcome)
    result_parts.put_weights(contents, limit.weights)
    result_parts.put_assumptions(contents, limit.assumptions)
    result_parts.put_leadership(contents, limit.leadership)
    return contents


def _read_trajectory(reader: Reader) -> Trajectory:
    layers = reader.plain("layer", (None,), "i")
    tokens = reader.numbers("tokens", (len(layers), None, None))
    count = tokens.shape[1]
    known = "assumptions" in reader.contents.attributes
    return Trajectory(
        tokens=tokens,
        layers=layers,
        outcome=result_parts.get_outcome(reader),
        layer=get_layer(reader),
        times=reader.plain("time", (len(layers),)) if reader.has("time") else None,
        weights=result_parts.get_weights(reader, count),
        leadership=result_parts.get_leadership(reader, count) if reader.has("follows") else None,
        assumptions=result_parts.get_assumptions(reader) if known else None,
    )


def _read_equilibrium(reader: Reader) -> Equilibrium:
    positions = reader.numbers("positions", (None, None))
    count = positions.shape[0]
    layer = get_layer(reader)
    if not isinstance(layer, HardmaxLayer):
        raise reader.bad("layer", f"is {layer}, not a hardmax layer")
    return Equilibrium(
        positions=positions,
        leadership=result_parts.get_leadership(reader, count),
        layers=reader.whole("layers"),
        outcome=result_parts.get_outcome(reader),
        assumptions=result_parts.get_assumptions(reader),
        layer=layer,
        weights=result_parts.get_weights(reader, count),
    )


_READERS: dict[str, Callable[[Reader], Saved]] = {
    "trajectory": _read_trajectory,
    "equilibrium": _read_equilibrium,
    "phases": read_phases,
    "low-temperature limit": read_limit,
}
