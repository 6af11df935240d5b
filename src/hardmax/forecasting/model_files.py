"""Files of fitted forecasters: a folder with safetensors and a JSON recipe, no code.

``model.safetensors`` holds everything; ``report.json`` beside it is for people and is not read back.
"""

from __future__ import annotations

import json
import os
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import FileError, InputError
from ..files import make_folder, write_text
from ..tensor_files import field, read, require, write
from .classical.files import get_path, put_path
from .data.delay_windows import Embedding
from .data.exogenous_inputs import Forcing
from .data.labels import KINDS, Labels
from .data.pod import Pod
from .data.units import Units
from .diagnostics.report import Report
from .error_growth import ErrorGrowth
from .features.feature_map import FeatureMap, monomial_count
from .features.lag_network import NAMES, LagNetwork
from .features.reservoir import Reservoir
from .fitting import FittedForecaster
from .online import get_online, put_online
from .rollout import Fade, Member, Predictor
from .search.readout_search import Candidate
from .search.selection import Finalist

KIND = "time-delayed transformer"
FILE = "model.safetensors"
_DAMAGED = "the file is damaged; save the model again"
_Arrays = dict[str, np.ndarray]
_NAMES = ("names", "inputs")
"""Fields of the labels that are tuples of names."""
_SETTINGS = (
    *(
        "delays",
        "recipe",
        "ablation",
        "pod",
        "horizon",
        "restarts",
        "seconds",
        "budget",
        "model",
        "season",
        "transform",
    ),
)
"""Parameters of the estimator that a file holds; random state and progress belong to a session."""


def save_fitted(fitted: FittedForecaster, parameters: dict[str, Any], folder: str | os.PathLike[str]) -> Path:
    """Path of ``folder`` after the model was written there; the folder is created where it does not exist.

    ``parameters`` are those of the estimator, by name.
    """
    place = make_folder(folder)
    arrays: _Arrays = {}
    recipe: dict[str, Any] = {
        "settings": {name: _plain(parameters[name]) for name in _SETTINGS},
        "dt": fitted.dt,
        "last_time": fitted.last_time,
        "seed": fitted.seed,
        "report": {"sentences": list(fitted.report.sentences), "numbers": fitted.report.numbers},
        "explained": fitted.explained_beyond_linear,
        "labels": vars(fitted.labels) | {name: list(getattr(fitted.labels, name)) for name in _NAMES},
    }
    _put_units("units", fitted.units, arrays)
    arrays["last_window"] = fitted.last_window
    if fitted.forcing is not None and fitted.last_inputs is not None:
        _put_units("forcing", fitted.forcing.units, arrays)
        arrays["last_inputs"] = fitted.last_inputs
    if fitted.pod is not None:
        arrays |= {"pod.mean": fitted.pod.mean, "pod.modes": fitted.pod.modes}
        if fitted.pod.left_over is not None:
            arrays["pod.left_over"] = fitted.pod.left_over
        recipe["pod"] = {"shape": list(fitted.pod.shape), "energy": fitted.pod.energy}
    if fitted.predictor is not None:
        recipe["predictor"] = _put_predictor(fitted.predictor, arrays)
        if fitted.kept is not None and fitted.kept.recipe is None:
            # A simple model is found again by a new search, which ``model`` and ``season`` guide.
            recipe["kept"] = [[c.family, c.label, c.noise, c.ridge] for c in fitted.kept.sources]
    if fitted.online is not None:
        recipe["online"] = put_online(fitted.online, arrays)
    write(place / FILE, KIND, recipe, arrays)
    write_text(place / "report.json", json.dumps(fitted.report.data(), indent=2) + "\n")
    return place


def _plain(value: Any) -> Any:
    """A parameter as JSON holds it: several seasons as a list of whole numbers."""
    return [int(part) for part in value] if isinstance(value, (list, tuple, np.ndarray)) else value


def read_fitted(folder: str | os.PathLike[str]) -> tuple[dict[str, Any], FittedForecaster]:
    """Parameters of the estimator and its fitted state, as saved into ``folder``."""
    path = Path(folder).expanduser()
    if not path.exists():
        raise FileError(folder, "there is no such folder", "check the name, or save a model there first")
    if path.is_dir():
        path = path / FILE
    recipe, arrays = read(path, KIND)
    try:
        parameters = field(path, recipe, "settings", dict)
        if unknown := set(parameters) - set(_SETTINGS):
            raise FileError(path, f"cannot be used (unknown settings {sorted(unknown)})", _DAMAGED)
        return parameters, _get_fitted(path, recipe, arrays)
    except FileError:
        raise
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, InputError) as error:
        raise FileError(path, f"cannot be used ({type(error).__name__}: {error})", _DAMAGED) from error


def _get_fitted(path: Path, recipe: dict[str, Any], arrays: _Arrays) -> FittedForecaster:
    words = field(path, recipe, "report", dict)
    report = Report(tuple(field(path, words, "sentences", list)), field(path, words, "numbers", dict))
    units = _get_units(path, "units", arrays)
    channels = len(units.mean)
    last_window = require(path, arrays, "last_window", (None, channels))
    forcing = last_inputs = None
    if "last_inputs" in arrays:
        forcing = Forcing(_get_units(path, "forcing", arrays))
        last_inputs = require(path, arrays, "last_inputs", (len(last_window), forcing.width))
    pod = _get_pod(path, recipe["pod"], channels, arrays) if "pod" in recipe else None
    predictor = None
    if "predictor" in recipe:
        predictor = _get_predictor(path, field(path, recipe, "predictor", dict), arrays)
        if predictor.outputs != len(units.keep):
            raise FileError(path, f"forecasts {predictor.outputs} of {len(units.keep)} channels", _DAMAGED)
        inputs = 0 if forcing is None else len(forcing.units.keep)
        if any(m.features.channels != predictor.outputs + inputs for m in predictor.all_members):
            raise FileError(path, "its parts disagree on the number of channels", _DAMAGED)
    online = None
    if predictor is not None and "online" in recipe:
        online = get_online(path, field(path, recipe, "online", dict), arrays, predictor)
    needed = 1 if predictor is None else predictor.window
    if len(last_window) < needed:
        raise FileError(path, f"holds {len(last_window)} samples, {needed} are needed", _DAMAGED)
    return FittedForecaster(
        seed=field(path, recipe, "seed", int),
        dt=float(field(path, recipe, "dt", float)),
        last_time=float(field(path, recipe, "last_time", float)),
        units=units,
        forcing=forcing,
        pod=pod,
        predictor=predictor,
        last_window=last_window,
        last_inputs=last_inputs,
        report=report,
        explained_beyond_linear=float(field(path, recipe, "explained", float)),
        budget_ended=bool(report.numbers.get("budget_ended", False)),
        labels=_get_labels(recipe.get("labels", {})),
        kept=_get_kept(recipe.get("kept"), predictor),
        online=online,
    )


def _get_kept(words: list[list[Any]] | None, predictor: Predictor | None) -> Finalist | None:
    """The selected model and how to fit it again; None in files of earlier versions, which do not say it."""
    if words is None or predictor is None:
        return None
    sources = [
        Candidate(str(family), str(label), m.features, float(noise), float(ridge), m.readouts[0], 0.0)
        for (family, label, noise, ridge), m in zip(words, predictor.members, strict=True)
    ]
    return Finalist(tuple(sources), 0.0)


def _get_labels(words: dict[str, Any]) -> Labels:
    """Labels; empty in files of earlier versions, which do not hold them."""
    labels = Labels(**(words | {key: tuple(str(name) for name in words.get(key, ())) for key in _NAMES}))
    if labels.kind not in KINDS:
        raise ValueError(f"the index kind {labels.kind!r} is not known")
    return labels


def _get_pod(path: Path, words: dict[str, Any], channels: int, arrays: _Arrays) -> Pod:
    modes = require(path, arrays, "pod.modes", (channels, None))
    mean = require(path, arrays, "pod.mean", (modes.shape[1],))
    shape = tuple(int(size) for size in words["shape"])
    if int(np.prod(shape)) != modes.shape[1]:
        raise FileError(path, f"fields of shape {shape} do not have {modes.shape[1]} points", _DAMAGED)
    left_over = require(path, arrays, "pod.left_over", mean.shape) if "pod.left_over" in arrays else None
    return Pod(mean, modes, shape, float(words["energy"]), left_over)


def _put_units(name: str, units: Units, arrays: _Arrays) -> None:
    for part in fields(units):
        if (value := getattr(units, part.name)) is not None:
            arrays[f"{name}.{part.name}"] = value


def _get_units(path: Path, name: str, arrays: _Arrays) -> Units:
    mean = require(path, arrays, f"{name}.mean", (None,))
    scale = require(path, arrays, f"{name}.scale", (len(mean),))
    if not (scale > 0).all():
        raise FileError(path, f"tensor '{name}.scale' must be positive", _DAMAGED)
    varying = require(path, arrays, f"{name}.varying", (len(mean),))
    # Transforms and bounds are optional, and absent in files of earlier versions.
    rest = {part: arrays.get(f"{name}.{part}") for part in ("shift", "lower", "upper", "counts")}
    if any(value is not None and value.shape != mean.shape for value in rest.values()):
        raise FileError(path, f"a transform or a bound of '{name}' does not fit its channels", _DAMAGED)
    return Units(mean, scale, varying, **rest)


def _put_predictor(predictor: Predictor, arrays: _Arrays) -> dict[str, Any]:
    arrays |= {"fade.middle": predictor.fade.middle, "fade.half_range": predictor.fade.half_range}
    if predictor.errors is not None:
        arrays |= {"errors.per_step": predictor.errors.per_step, "errors.limit": predictor.errors.limit}
        if predictor.errors.held_out is not None and predictor.errors.independent is not None:
            # Files hold finite numbers only: the steps after the end of the data are zero, and their number is stored.
            arrays["errors.held_out"] = np.nan_to_num(predictor.errors.held_out, nan=0.0)
            arrays["errors.lengths"] = np.isfinite(predictor.errors.held_out[:, :, 0]).sum(axis=1).astype(np.int64)
            arrays["errors.independent"] = predictor.errors.independent
        if predictor.errors.amplified is not None:
            arrays["errors.amplified"] = predictor.errors.amplified

    def put(name: str, member: Member) -> dict[str, Any]:
        arrays[f"{name}.readout"] = member.readouts[0]
        return _put_features(name, member.features, arrays)

    return {
        "outputs": predictor.outputs,
        "fade": [predictor.fade.begin, predictor.fade.end],
        "members": [put(f"member{i}", m) for i, m in enumerate(predictor.members)],
        "linear": put("linear", predictor.linear),
        "fallback": None if predictor.fade.fallback is None else put("fallback", predictor.fade.fallback),
        "attentive": None if predictor.attentive is None else put("attentive", predictor.attentive),
        "path": None if predictor.path is None else put_path("path", predictor.path, put, arrays),
    }


def _get_predictor(path: Path, recipe: dict[str, Any], arrays: _Arrays) -> Predictor:
    outputs = field(path, recipe, "outputs", int)

    def get(name: str, words: dict[str, Any]) -> Member:
        features = _get_features(path, name, words, arrays)
        _check_monomials(path, name, features, arrays)
        readout = require(path, arrays, f"{name}.readout", (features.size, outputs))
        return Member(features, readout[None])

    middle = require(path, arrays, "fade.middle", (outputs,))
    half_range = require(path, arrays, "fade.half_range", (outputs,))
    begin, end = (float(value) for value in field(path, recipe, "fade", list))
    fallback = None if recipe.get("fallback") is None else get("fallback", recipe["fallback"])
    fade = Fade(middle, half_range, fallback, begin, end)
    linear = get("linear", field(path, recipe, "linear", dict))
    members = tuple(get(f"member{i}", words) for i, words in enumerate(field(path, recipe, "members", list)))
    if not members:
        raise FileError(path, "the recipe's 'members' are none", _DAMAGED)
    attentive = None if recipe.get("attentive") is None else get("attentive", recipe["attentive"])
    words = recipe.get("path")
    simple = None if words is None else get_path(path, "path", words, get, arrays, outputs)
    return Predictor(outputs, members, linear, fade, _get_errors(path, outputs, arrays), attentive, simple)


def _get_errors(path: Path, outputs: int, arrays: _Arrays) -> ErrorGrowth | None:
    """Error growth; None in files of earlier versions, which do not hold it."""
    if "errors.per_step" not in arrays:
        return None
    per_step = require(path, arrays, "errors.per_step", (None, outputs))
    limit = require(path, arrays, "errors.limit", (outputs,))
    if not (len(per_step) and (per_step > 0).all() and (np.diff(per_step, axis=0) >= 0).all() and (limit > 0).all()):
        raise FileError(path, "the errors of its forecasts must be positive and never decrease", _DAMAGED)
    amplified = None
    if "errors.amplified" in arrays:
        amplified = require(path, arrays, "errors.amplified", (None, outputs))
        if not (len(amplified) and (amplified >= 1).all() and (np.diff(amplified, axis=0) >= 0).all()):
            raise FileError(path, "the growth of differences must be at least 1 and never decrease", _DAMAGED)
    if "errors.held_out" not in arrays:
        return ErrorGrowth(per_step, limit, amplified=amplified)
    held_out = require(path, arrays, "errors.held_out", (None, len(per_step), outputs))
    independent = require(path, arrays, "errors.independent", (len(per_step),))
    lengths = require(path, arrays, "errors.lengths", (len(held_out),))
    if not (len(lengths) and lengths.max() == len(per_step) and (lengths > 0).all() and (independent > 0).all()):
        raise FileError(path, "the held-out errors must have a number at every step", _DAMAGED)
    held_out = np.where(np.arange(len(per_step))[:, None] < lengths[:, None, None], held_out, np.nan)
    return ErrorGrowth(per_step, limit, held_out, independent, amplified)


def _put_features(name: str, features: FeatureMap, arrays: _Arrays) -> dict[str, Any]:
    words: dict[str, Any] = {"channels": features.channels, "degree": features.degree}
    for part in ("linear", "polynomial", "tokens"):
        embedding: Embedding | None = getattr(features, part)
        if embedding is None:
            continue
        words[part] = embedding.window
        arrays[f"{name}.{part}.columns"] = embedding.columns
        if embedding.matrix is not None:
            arrays[f"{name}.{part}.matrix"] = embedding.matrix
    words["token_lags"] = list(features.token_lags)
    words["networks"] = []
    for i, (network, scale) in enumerate(zip(features.networks, features.scales, strict=True)):
        about = {"kind": network.kind, "lags": network.lags, "feed_forward": network.feed_forward}
        words["networks"].append(about if network.heads == 1 else about | {"heads": network.heads})
        arrays[f"{name}.network{i}.scale"] = scale
        for part, value in network.weights.items():
            arrays[f"{name}.network{i}.{part}"] = value
    if features.reservoir is not None:
        pool = features.reservoir
        words["reservoir"] = {"leak": pool.leak, "window": pool.window}
        arrays[f"{name}.reservoir.recurrent"] = pool.recurrent
        arrays[f"{name}.reservoir.inputs"] = pool.inputs
        arrays[f"{name}.reservoir.bias"] = pool.bias
    return words


def _get_features(path: Path, name: str, words: dict[str, Any], arrays: _Arrays) -> FeatureMap:
    channels = field(path, words, "channels", int)
    embeddings = {
        part: _get_embedding(path, f"{name}.{part}", int(words[part]), channels, arrays)
        for part in ("linear", "polynomial", "tokens")
        if part in words
    }
    networks, scales = [], []
    for i, about in enumerate(field(path, words, "networks", list)):
        prefix = f"{name}.network{i}"
        if about["kind"] not in NAMES:
            raise FileError(path, f"the network kind {about['kind']!r} is not known", _DAMAGED)
        weights = {part: arrays[f"{prefix}.{part}"] for part in NAMES[about["kind"]]}
        forward, heads = bool(about["feed_forward"]), int(about.get("heads", 1))
        if heads < 1 or (heads > 1 and (about["kind"] != "shared" or weights["keys"].shape[1] % heads)):
            raise FileError(path, f"network {prefix!r} says {heads} heads", _DAMAGED)
        network = LagNetwork(about["kind"], int(about["lags"]), channels, weights, forward, heads)
        rows = len(weights["hidden"]) if network.kind == "mlp" else len(weights["positions"])
        if rows != network.lags * (channels if network.kind == "mlp" else 1):
            raise FileError(path, f"network {prefix!r} says {network.lags} lags and has weights for others", _DAMAGED)
        network(np.zeros((1, network.lags * channels)))  # wrong shapes are refused here, not in a forecast
        networks.append(network)
        scales.append(require(path, arrays, f"{prefix}.scale", (network.size,)))
    reservoir = None
    if "reservoir" in words:
        bias = require(path, arrays, f"{name}.reservoir.bias", (None,))
        reservoir = Reservoir(
            require(path, arrays, f"{name}.reservoir.recurrent", (len(bias), len(bias))),
            require(path, arrays, f"{name}.reservoir.inputs", (channels, len(bias))),
            bias,
            float(words["reservoir"]["leak"]),
            int(words["reservoir"]["window"]),
        )
    return FeatureMap(
        channels,
        **embeddings,
        degree=field(path, words, "degree", int),
        networks=tuple(networks),
        scales=tuple(scales),
        token_lags=tuple(int(lag) for lag in field(path, words, "token_lags", list)),
        reservoir=reservoir,
    )


def _check_monomials(path: Path, name: str, features: FeatureMap, arrays: _Arrays) -> None:
    """Refuse a degree that does not match the readout, before the monomials are enumerated: there may be very many."""
    coordinates = 0 if features.polynomial is None else features.polynomial.size
    rows = len(arrays.get(f"{name}.readout", ()))
    if features.degree < 1 or (
        coordinates and monomial_count(coordinates, min(features.degree, 99)) > rows + coordinates
    ):
        raise FileError(path, f"part {name!r} says degree {features.degree} and has {rows} weights", _DAMAGED)


def _get_embedding(path: Path, name: str, window: int, channels: int, arrays: _Arrays) -> Embedding:
    columns = require(path, arrays, f"{name}.columns", (None,)).astype(np.int64)
    if len(columns) == 0 or columns.min() < -window * channels or columns.max() >= 0:
        raise FileError(path, f"tensor '{name}.columns' points outside the window", _DAMAGED)
    matrix = None
    if f"{name}.matrix" in arrays:
        matrix = require(path, arrays, f"{name}.matrix", (len(columns), None))
    return Embedding(window, columns, matrix)
