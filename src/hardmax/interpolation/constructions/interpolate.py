"""Interpolation and exact classification: data sets compiled into transformers by five constructions."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any, Literal, get_args

import numpy as np
from flint import fmpq

from ...errors import InputError
from ...inputs import as_count
from ...progress import Progress, Tell, telling
from ..arithmetic.directions import Lattice, choose_direction
from ..arithmetic.numbers import ONE, power_of_two_at_most, rational, to_float, unit
from ..data import DataSet, as_list, read_data, read_vector
from ..evaluation.counts import block_bound
from ..network import Report
from ..transformer import ExactTransformer
from .identification import Identification, distinct, make_items, untouched
from .leaders import leaders, soft_leaders
from .line import Item, LineStage, line_stage
from .mean_pool import conditioned, fewest
from .paper_and_witness import paper_route, witness

Construction = Literal["leaders", "fewest", "witness", "conditioned", "paper"]
Attention = Literal["hardmax", "softmax"]

_READS_MEANS = ("fewest", "conditioned")
_MOST_WEIGHTS = 200_000_000  # a bound on memory, checked before any work


def interpolate(
    inputs: object,
    outputs: object,
    *,
    construction: Construction = "leaders",
    width: int = 4,
    attention: Attention = "hardmax",
    temperature: object = 1,
    flat: bool | None = None,
    token_level: bool = False,
    random_state: int = 0,
    progress: Progress = None,
) -> ExactTransformer:
    r"""Transformer with rational weights that maps every input set exactly to its output set.

    For N pairs of finite sets :math:`X^j, Y^j\subset\mathbb{Q}^d`, the inputs pairwise different and
    :math:`|Y^j|\le|X^j|`, the network satisfies :math:`T(X^j)=Y^j` for all j.

    Parameters
    ----------
    inputs, outputs
        One list of tokens, and one list of output points, per sequence; d coordinates each, at least two. Numbers are
        exact: ints, floats (their binary value), Fractions and strings such as ``"3/8"``. A sequence is a set of
        tokens: a repeated token counts once, here and wherever the network is evaluated.
    construction
        ``"leaders"`` (argmax attention in a few layers), ``"fewest"`` (fewest blocks, one mean-pooling layer),
        ``"witness"`` (argmax, integers and dyadics only), ``"conditioned"`` (best float accuracy), ``"paper"`` (the
        proof outlined in the paper, for comparison).
    width
        Largest number of neurons per feed-forward layer.
    attention
        ``"hardmax"``, or ``"softmax"``, which leaders, fewest and conditioned support.
    temperature
        Softmax temperature, positive and exact, however small or large: ``1e-300``, ``"1e400"`` or ``"1/3"``.
    flat
        Make the output locally constant around every token: more blocks, and more accurate in floating point. By
        default only where it is needed: conditioned, and leaders under softmax.
    token_level
        Prescribe the image of each token: ``outputs[j][i]`` is the image of ``inputs[j][i]``.
    random_state
        Seed of the search for directions that separate the tokens; the same seed gives the same network.
    progress
        True, False or None (a bar when the work turns out to be long), or a function called as
        ``progress(stage, done, total)``.

    Returns
    -------
    ExactTransformer
        Network to call, certify, save and export.

    Examples
    --------
    >>> net = interpolate([[[0, 0], [1, 0]], [[0, 0], [0, 1]]], [[[1, 1]], [[2, 2]]])
    >>> net.certify().proved
    True
    """
    _check_choice("construction", construction, get_args(Construction))
    _check_choice("attention", attention, get_args(Attention))
    width = as_count("width", width, 1)
    data = read_data(inputs, outputs, token_level=token_level)
    soft = attention == "softmax"
    heat = read_temperature(temperature) if soft else None
    if soft and construction in ("witness", "paper"):
        raise InputError(
            "construction",
            repr(construction),
            "must not need a true argmax under softmax attention",
            "use leaders, fewest or conditioned, or attention='hardmax'",
        )
    if token_level and construction == "paper":
        raise InputError(
            "construction", "'paper'", "has no token-level form", "use leaders, fewest, witness or conditioned"
        )
    if flat is None:
        flat = construction == "conditioned" or (soft and construction == "leaders")
    if soft and construction == "leaders" and not flat:
        raise InputError(
            "flat", "False", "must be true for leaders under softmax", "leave out `flat`, or use construction='fewest'"
        )
    _check_size(data, construction, width, flat)
    if data.repeats_tokens and construction in _READS_MEANS:
        warnings.warn(
            f"repeated tokens were removed: construction {construction!r} reads means, and each distinct token of a "
            "sequence counts once in them",
            stacklevel=2,
        )
    with telling("compiling", 3, progress) as tell:
        return _build(data, construction, width, heat, flat, random_state, tell)


def read_temperature(temperature: object) -> fmpq:
    """Temperature as an exact rational; raises an InputError unless it is positive."""
    remedy = "pass temperature > 0, or attention='hardmax' for its limit at zero"
    if isinstance(temperature, float) and not math.isfinite(temperature):
        raise InputError("temperature", str(temperature), "must be finite", remedy)
    heat = rational("temperature", temperature)
    if heat <= 0:
        raise InputError("temperature", str(temperature), "must be positive", remedy)
    return heat


def _check_choice(argument: str, value: object, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise InputError(argument, repr(value), "is not known", "choose one of " + ", ".join(allowed))


def _check_size(data: DataSet, construction: str, width: int, flat: bool) -> None:
    blocks = block_bound(data, construction, len(data) - 1, width, flat=flat)
    weights = blocks * min(width, 2 * data.targets + 4) * (2 * data.dimension + 1)
    if weights > _MOST_WEIGHTS:
        raise InputError(
            "inputs",
            f"{len(data):,} sequences with {data.targets:,} targets",
            f"would need up to {weights:,} weights",
            "split the data set or use construction='fewest'",
        )


def _build(
    data: DataSet,
    construction: str,
    width: int,
    heat: fmpq | None,
    flat: bool,
    random_state: int,
    tell: Tell,
) -> ExactTransformer:
    generator = np.random.default_rng(random_state)
    tell("choosing a direction", 0, 3)
    lattice = Lattice(data)
    u = choose_direction(lattice, measures=construction in _READS_MEANS, generator=generator)
    tell("separating the sequences", 1, 3)
    gain: fmpq | None = None
    if heat is not None and construction == "leaders" and len(data) > 1:
        found, items, gain = soft_leaders(lattice, u, generator, width, heat)
    else:
        found = _identify(lattice, u, construction, generator, width)
        items = _items(data, found)
    tell("sending the items to their targets", 2, 3)
    if construction == "paper":
        blocks, line = found.blocks + paper_route(data, found, width), None
    else:
        line = _best_line(data, items, found, width, flat=flat, soft=heat is not None)
        blocks = found.blocks + line.blocks
    tell("done", 3, 3)
    gap, extent = (line.gap, line.extent) if line is not None else _paper_gap(found)
    return ExactTransformer(
        data=data,
        blocks=blocks,
        construction=construction,
        width=width,
        attention="hardmax" if heat is None else "softmax",
        temperature=heat,
        report=Report(found.cuts, to_float(extent / gap), to_float(gap), flat, gain),
        notes=data.notes,
    )


def _identify(
    lattice: Lattice, u: tuple[int, ...], construction: str, generator: np.random.Generator, width: int
) -> Identification:
    if len(lattice.data) == 1:
        return untouched(u, lattice.levels(tuple(fmpq(c) for c in u)))
    if construction == "fewest":
        return fewest(lattice, u, generator, width)
    if construction == "conditioned":
        return conditioned(lattice, u, generator, width)
    if construction == "leaders":
        return leaders(lattice, u, generator, width)
    return witness(lattice, u, width)


def _items(data: DataSet, found: Identification) -> list[Item]:
    spots = [distinct(own) for own in found.positions]
    if not data.token_level:
        return make_items(data, spots)
    aligned = [sorted(range(len(own)), key=own.__getitem__) for own in found.positions]
    return make_items(data, spots, aligned)


def _best_line(
    data: DataSet, items: list[Item], found: Identification, width: int, *, flat: bool, soft: bool
) -> LineStage:
    """Line stage with the fewest blocks: where every sequence has one target, attention may collapse the sequences."""
    line = line_stage(items, found.reading, width, flat=flat)
    every_single = all(len(y) == 1 for y in data.outputs) and not data.token_level
    if every_single and not soft and not flat and not found.collapsed:
        collapsed = line_stage(items, found.reading, width, flat=flat, collapse=True)
        if len(collapsed.blocks) < len(line.blocks):
            return collapsed
    return line


def _paper_gap(found: Identification) -> tuple[fmpq, fmpq]:
    """Gap and range of the points on the axis, for the conditioning of construction P."""
    values = sorted({t for own in found.positions for t in own})
    extent = values[-1] - values[0] if len(values) > 1 else ONE
    gap = min((b - a for a, b in itertools.pairwise(values)), default=power_of_two_at_most(ONE))
    return gap, extent


def classify_exactly(inputs: object, labels: Sequence[Hashable], **options: Any) -> ExactTransformer:
    """Transformer that maps every sequence exactly to the target of its class.

    Class k of the sorted labels has the target k on the second axis, so that neighbours on the line with the same class
    share a flat piece.

    Parameters
    ----------
    inputs
        Sequences of tokens, as for :func:`interpolate`.
    labels
        One label per sequence, strings or numbers.
    **options
        Options of :func:`interpolate`, except ``outputs`` and ``token_level``.

    Returns
    -------
    ExactTransformer
        Network; ``net.predict(inputs)`` returns labels.

    Examples
    --------
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
            remedy = f"leave out `{option}`, or give outputs in place of labels"
            raise InputError(option, repr(options[option]), "has no meaning for labels", remedy)
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
