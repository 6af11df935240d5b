"""Simple models as JSON and tensors, and back; each part is checked when it is read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import FileError
from ...tensor_files import field, require
from ..protocol import FloatArray
from ..rollout import Fade, Member, PathModel
from .arima import LONGEST_SEASON, Arima, Arma, covariances, window_length
from .counts import Counts
from .decomposition import Decomposition, Logarithm, SeasonalDifference, SeasonalTrend
from .rules import Analogue, Drift, Mean, Median, Rollout, SeasonalNaive, Smoothing

_DAMAGED = "the file is damaged; save the model again"
_DEEPEST = 6
"""Models within models at most: counts by a mean of decompositions of logarithms with rollouts have five."""
_MOST_COEFFICIENTS = 200
"""Coefficients of an ARIMA at most, seasonal ones multiplied out: its search reaches 64."""
_Arrays = dict[str, np.ndarray]
_Put = Callable[[str, Member], dict[str, Any]]
_Get = Callable[[str, dict[str, Any]], Member]
_Whole = Callable[[str], int]


def put_path(name: str, model: PathModel, put: _Put, arrays: _Arrays) -> dict[str, Any]:
    """Description of a model for JSON; its arrays are added to ``arrays``, its members written by ``put``."""

    def inner(part: PathModel, index: int = 0) -> dict[str, Any]:
        return put_path(f"{name}.{index}", part, put, arrays)

    match model:
        case SeasonalNaive():
            return {"kind": "seasonal-naive", "season": model.season}
        case Drift():
            return {"kind": "drift", "length": model.length}
        case Median():
            return {"kind": "median", "length": model.length}
        case Smoothing():
            arrays[f"{name}.weights"] = model.weights
            return {"kind": "smoothing", "season": model.season, "length": model.length}
        case Arima():
            return _put_arima(name, model, arrays)
        case Analogue():
            arrays[f"{name}.library"] = model.library
            whole = {"length": model.length, "neighbours": model.neighbours, "chunk": model.chunk}
            return {"kind": "analogue", "anchored": model.anchored, "spacing": model.spacing, **whole}
        case SeasonalTrend():
            parts = model.decomposition
            return {
                "kind": "seasonal-trend",
                "seasons": list(parts.seasons),
                "length": parts.length,
                "stiffness": parts.stiffness,
                "memory": None if np.isinf(parts.memory) else parts.memory,
                "damping": parts.damping,
                "inner": None if model.inner is None else inner(model.inner),
            }
        case SeasonalDifference():
            return {"kind": "seasonal-difference", "season": model.season, "inner": inner(model.inner)}
        case Logarithm():
            arrays |= {f"{name}.shift": model.shift, f"{name}.low": model.low}
            return {"kind": "logarithm", "inner": inner(model.inner)}
        case Counts():
            arrays |= {f"{name}.zero": model.zero, f"{name}.unit": model.unit}
            return {"kind": "counts", "inner": inner(model.inner)}
        case Mean():
            if model.weights is not None:
                arrays[f"{name}.weights"] = np.array(model.weights)
            means = [inner(part, i) for i, part in enumerate(model.parts)]
            return {"kind": "mean", "parts": means, "trimmed": model.trimmed}
        case Rollout():
            return _put_rollout(name, model, put, arrays)
    raise TypeError(f"{type(model).__name__} has no file format")


def _put_arima(name: str, model: Arima, arrays: _Arrays) -> dict[str, Any]:
    channels = []
    for place, part in enumerate(model.models):
        arrays |= {f"{name}.ar{place}": part.ar, f"{name}.ma{place}": part.ma}
        counts = {"differences": part.differences, "seasonal_differences": part.seasonal_differences}
        channels.append({**counts, "season": part.season, "mean": part.mean})
    return {"kind": "arima", "length": model.length, "channels": channels}


def _put_rollout(name: str, model: Rollout, put: _Put, arrays: _Arrays) -> dict[str, Any]:
    words: dict[str, Any] = {
        "kind": "rollout",
        "members": [put(f"{name}.member{i}", member) for i, member in enumerate(model.members)],
    }
    if model.fade is not None:
        arrays |= {f"{name}.middle": model.fade.middle, f"{name}.half_range": model.fade.half_range}
        fallback = model.fade.fallback
        words["fade"] = [model.fade.begin, model.fade.end]
        words["fallback"] = None if fallback is None else put(f"{name}.fallback", fallback)
    return words


def get_path(
    path: Path, name: str, words: dict[str, Any], get: _Get, arrays: _Arrays, outputs: int, depth: int = 0
) -> PathModel:
    """The model that :func:`put_path` described; ``get`` reads its members."""
    if depth > _DEEPEST:
        raise FileError(path, f"model {name!r} contains too many others", _DAMAGED)

    def inner(part: dict[str, Any], index: int = 0) -> PathModel:
        return get_path(path, f"{name}.{index}", part, get, arrays, outputs, depth + 1)

    def whole(key: str, least: int = 1) -> int:
        value = int(field(path, words, key, int))
        if value < least:
            raise FileError(path, f"{key!r} of model {name!r} is {value}", _DAMAGED)
        return value

    kind = field(path, words, "kind", str)
    match kind:
        case "seasonal-naive":
            return SeasonalNaive(outputs, whole("season"))
        case "drift":
            return Drift(outputs, whole("length"))
        case "median":
            return Median(outputs, whole("length"))
        case "smoothing":
            weights = require(path, arrays, f"{name}.weights", (4,))
            return Smoothing(outputs, whole("season"), whole("length"), weights)
        case "arima":
            return _get_arima(path, name, words, arrays, outputs, whole)
        case "analogue":
            return _get_analogue(path, name, words, arrays, outputs, whole)
        case "seasonal-trend":
            below = words.get("inner")
            return SeasonalTrend(outputs, _get_decomposition(words, whole), None if below is None else inner(below))
        case "seasonal-difference":
            return SeasonalDifference(outputs, whole("season"), inner(field(path, words, "inner", dict)))
        case "logarithm":
            shift = require(path, arrays, f"{name}.shift", (outputs,))
            low = _positive(path, f"{name}.low", require(path, arrays, f"{name}.low", (outputs,)))
            return Logarithm(outputs, shift, low, inner(field(path, words, "inner", dict)))
        case "counts":
            zero, unit = (require(path, arrays, f"{name}.{key}", (outputs,)) for key in ("zero", "unit"))
            if not (unit >= 0).all():
                raise FileError(path, f"the counts of model {name!r} have sizes {unit.tolist()}", _DAMAGED)
            return Counts(outputs, zero, unit, inner(field(path, words, "inner", dict)))
        case "mean":
            parts = field(path, words, "parts", list)
            if not parts:
                raise FileError(path, f"model {name!r} is a mean of none", _DAMAGED)
            means = tuple(inner(part, i) for i, part in enumerate(parts))
            # Files of earlier versions hold means with equal weights, or with one weight per model, not trimmed.
            trimmed = field(path, words, "trimmed", (int, float)) if "trimmed" in words else 0.0
            if not 0 <= trimmed < 0.5:
                raise FileError(path, f"the mean {name!r} is trimmed by {trimmed}, not by less than a half", _DAMAGED)
            return Mean(means, _get_weights(path, f"{name}.weights", arrays, len(parts)), float(trimmed))
        case "rollout":
            return _get_rollout(path, name, words, get, arrays, outputs)
    raise FileError(path, f"the kind {kind!r} of model {name!r} is not known", _DAMAGED)


def _get_weights(path: Path, name: str, arrays: _Arrays, models: int) -> FloatArray | None:
    """Weights of a mean, shape (models,) or (models, steps); None where the file holds none."""
    if name not in arrays:
        return None
    shape = (models,) if arrays[name].ndim == 1 else (models, None)
    weights = require(path, arrays, name, shape)
    if weights.size == 0:
        raise FileError(path, f"tensor {name!r} holds no weights", _DAMAGED)
    return _positive(path, name, weights)


def _get_arima(path: Path, name: str, words: dict[str, Any], arrays: _Arrays, outputs: int, whole: _Whole) -> Arima:
    length = whole("length")
    channels = field(path, words, "channels", list)
    if len(channels) != outputs:
        raise FileError(path, f"model {name!r} has {len(channels)} channels instead of {outputs}", _DAMAGED)
    models = []
    for place, part in enumerate(channels):
        if not isinstance(part, dict):
            raise FileError(path, f"channel {place} of model {name!r} is {part!r}", _DAMAGED)
        counts = [field(path, part, key, int) for key in ("differences", "seasonal_differences", "season")]
        ar, ma = (require(path, arrays, f"{name}.{key}{place}", (None,)).astype(np.float64) for key in ("ar", "ma"))
        differences, seasonal_differences, season = counts
        model = Arma(ar, ma, differences, seasonal_differences, season, float(field(path, part, "mean", (int, float))))
        if not _is_arima(model, length):
            raise FileError(path, f"channel {place} of model {name!r} is no ARIMA of {length} samples", _DAMAGED)
        models.append(model)
    return Arima(outputs, length, tuple(models))


def _is_arima(model: Arma, length: int) -> bool:
    """Whether a description from a file is a model that windows of this length can be forecast with."""
    counts = (model.differences, model.seasonal_differences)
    bounded = min(counts) >= 0 and sum(counts) <= 2 and 1 <= model.season <= LONGEST_SEASON
    sizes = max(len(model.ar), len(model.ma)) <= _MOST_COEFFICIENTS
    if not bounded or not sizes or not model.shortest <= length <= window_length(LONGEST_SEASON):
        return False
    try:
        variance = covariances(model.ar, model.ma)[0][0]
    except np.linalg.LinAlgError:
        return False
    return bool(np.isfinite([variance, model.mean]).all() and variance > 0)


def _get_analogue(
    path: Path, name: str, words: dict[str, Any], arrays: _Arrays, outputs: int, whole: _Whole
) -> Analogue:
    library = require(path, arrays, f"{name}.library", (None, outputs))
    spacing = whole("spacing") if "spacing" in words else 1  # files of earlier versions do not hold it
    sizes = (whole("length"), whole("neighbours"), bool(words["anchored"]), whole("chunk"), spacing)
    model = Analogue(outputs, library, *sizes)
    if len(library) < model.length + model.chunk:
        raise FileError(path, f"the library of model {name!r} has {len(library)} samples", _DAMAGED)
    return model


def _get_decomposition(words: dict[str, Any], whole: _Whole) -> Decomposition:
    memory = words["memory"]
    return Decomposition(
        tuple(int(season) for season in words["seasons"]),
        whole("length"),
        float(words["stiffness"]),
        np.inf if memory is None else float(memory),
        float(words["damping"]),
    )


def _get_rollout(path: Path, name: str, words: dict[str, Any], get: _Get, arrays: _Arrays, outputs: int) -> Rollout:
    described = field(path, words, "members", list)
    if not described:
        raise FileError(path, f"model {name!r} has no members", _DAMAGED)
    members = tuple(get(f"{name}.member{i}", part) for i, part in enumerate(described))
    if "fade" not in words:
        return Rollout(members)
    begin, end = (float(value) for value in field(path, words, "fade", list))
    middle = require(path, arrays, f"{name}.middle", (outputs,))
    half_range = _positive(path, f"{name}.half_range", require(path, arrays, f"{name}.half_range", (outputs,)))
    below = words.get("fallback")
    fallback = None if below is None else get(f"{name}.fallback", below)
    return Rollout(members, Fade(middle, half_range, fallback, begin, end))


def _positive(path: Path, name: str, values: FloatArray) -> FloatArray:
    if not (values > 0).all():
        raise FileError(path, f"tensor {name!r} must be positive", _DAMAGED)
    return values
