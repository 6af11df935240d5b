"""Exact classification: every sequence gets a label, and the targets are chosen for you."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from flint import fmpq

from ..errors import InputError
from .construction import interpolate
from .data import as_list, read_vector
from .network import ExactTransformer
from .numbers import to_floats, unit
from .rationals import Progress
from .running import floats, images, read_sequence


def classify_exactly(inputs: object, labels: Sequence[Hashable], **options: Any) -> ExactTransformer:
    """Build a transformer that sends every sequence to the target of its class, exactly.

    Class k of the sorted labels has the target k on the second axis, so neighbours on the line that share a class
    share a flat piece. ``options`` are those of :func:`interpolate`; ``net.predict(inputs)`` gives labels back.

    >>> net = classify_exactly([[[0, 0], [1, 0]], [[0, 0], [0, 1]], [[1, 1]]], ["cat", "dog", "cat"])
    >>> net.certify().proved, net.predict([[[0, 0], [0, 1]]])
    (True, ['dog'])
    """
    names = as_list("labels", labels, "pass one label per sequence")
    documents = as_list("inputs", inputs)
    if len(names) != len(documents):
        raise InputError(
            "labels",
            f"{len(names)} labels",
            f"must be one per input, {len(documents)}",
            "pair every input with its label",
        )
    for option in ("token_level", "outputs"):
        if option in options:
            raise InputError(option, repr(options[option]), "has no meaning for labels", "use hardmax.interpolate")
    for j, name in enumerate(names):
        if not isinstance(name, Hashable):
            raise InputError(f"labels[{j}]", repr(name), "must be one label", "pass strings or numbers, one per input")
    try:
        classes = sorted(set(names))  # type: ignore[type-var]
    except TypeError:
        classes = list(dict.fromkeys(names))
    if not documents or not as_list("inputs[0]", documents[0]):
        raise InputError("inputs", "nothing", "must not be empty", "pass at least one sequence of tokens")
    dimension = len(read_vector("inputs[0][0]", as_list("inputs[0]", documents[0])[0]))
    if dimension < 2:
        raise InputError("inputs", "d = 1", "must have at least two coordinates", "append a zero to every token")
    targets = {name: unit(dimension, 1, fmpq(k)) for k, name in enumerate(classes)}
    network = interpolate(documents, [[targets[name]] for name in names], **options)
    return replace(network, classes=tuple(classes), class_targets=tuple(targets[c] for c in classes))


def predict(network: ExactTransformer, inputs: object, progress: Progress = None) -> list[object]:
    """The class whose target is nearest to the mean over the distinct tokens of the output."""
    if network.classes is None:
        raise InputError(
            "network", repr(network), "has no classes", "make it with hardmax.classify_exactly, or call net(sequence)"
        )
    entries = as_list("inputs", inputs)
    # Each distinct token counts once in the mean of the output, as it does in every layer.
    sequences = [tuple(dict.fromkeys(read_sequence(network, f"inputs[{j}]", entry))) for j, entry in enumerate(entries)]
    targets = to_floats(network.class_targets, network.dimension)
    chosen = []
    for output in images(network, sequences, progress):
        distance = np.abs(targets - floats(output).mean(axis=0)).max(axis=1)
        chosen.append(network.classes[int(distance.argmin())])
    return chosen
