r"""Certificates of equilibria: limits in exact rationals, with all that an independent program needs to check them.

The format and the theorems behind it are in ``docs/howto/check-a-proof.rst``. ``verify/verify.py`` and
``verify/verify.html`` check such files without this library.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TypeAlias

import torch
from flint import fmpq, fmpq_mat

from ..attention.layer import HardmaxLayer
from ..attention.normal_form import distinct
from ..attention.rational import Rational, Rows, rational, rational_rows
from ..errors import InputError
from ..files import PathLike, write_text
from ..inputs import as_count, as_tokens, as_weights
from ..outcomes import counted
from ..progress import Progress, Ticker
from ..shapes import ArrayLike, PerToken
from .exact import ExactProcess
from .process_setup import refuse_swapped_axes

ExactPoint: TypeAlias = tuple[Fraction, ...]

# Increased when files of an earlier version can no longer be checked by the same program.
FORMAT = 1


@dataclass(frozen=True)
class TokenFate:
    """Proved facts about one distinct token: the tokens it attends to from some layer on, and its limit."""

    token: int
    """Index of the token, the first of those that are equal to it."""
    kind: str
    """Argument of the proof: ``"leader"``, ``"follower"``, ``"tie"``, ``"last"`` or ``"zero"``."""
    decided_at: int
    """Layer from which on the set of attended tokens is constant."""
    attends_to: tuple[int, ...]
    """Attended tokens from that layer on, ascending, each the first of those that are equal to it."""
    margin: Fraction | None
    """Lead of their score over the next score at that layer; None where all tokens are attended to."""
    limit: ExactPoint
    """Limit of the token, d rationals."""


@dataclass(frozen=True)
class EquilibriumCertificate:
    """Limit of every token in exact rationals, with the layer, the attended tokens and the margin of each decision."""

    tokens: tuple[ExactPoint, ...]
    """Tokens, d rationals each."""
    A: tuple[ExactPoint, ...]
    """Score matrix, d rows of d rationals."""
    alpha: Fraction
    """Step size."""
    weights: tuple[Fraction, ...] | None
    """Weight per token; None where all are equal."""
    layers: int
    """Layer at which the last token was decided."""
    fates: tuple[TokenFate, ...]
    """Proved facts about each distinct token, in the order of the tokens."""

    @property
    def leaders(self) -> tuple[int, ...]:
        """Indices of the tokens that attend to themselves alone, ascending."""
        return tuple(fate.token for fate in self.fates if fate.kind == "leader")

    def to_dict(self) -> dict[str, object]:
        """Content of the file as plain values; rationals are strings such as ``"-3/8"``.

        Returns
        -------
        dict
            One entry per field of the format.
        """
        return {
            "format": FORMAT,
            "kind": "equilibrium",
            "d": len(self.A),
            "A": [_texts(row) for row in self.A],
            "alpha": str(self.alpha),
            "tokens": [_texts(z) for z in self.tokens],
            "weights": None if self.weights is None else _texts(self.weights),
            "layers": self.layers,
            "leaders": list(self.leaders),
            "fates": [
                {
                    "token": fate.token,
                    "kind": fate.kind,
                    "decided_at": fate.decided_at,
                    "attends_to": list(fate.attends_to),
                    "margin": None if fate.margin is None else str(fate.margin),
                    "limit": _texts(fate.limit),
                }
                for fate in self.fates
            ],
        }

    def save(self, path: PathLike) -> Path:
        """File to which the certificate was written as JSON.

        Parameters
        ----------
        path
            File name, usually with the ending ``.json``.

        Returns
        -------
        Path
            The file.
        """
        return write_text(path, json.dumps(self.to_dict()) + "\n")

    def __str__(self) -> str:
        limits = len({fate.limit for fate in self.fates})
        return (
            f"Certificate of an equilibrium: {counted(len(self.tokens), 'token')}, "
            f"{counted(len(self.leaders), 'leader')}, {counted(limits, 'limit point')}, decided by layer {self.layers}"
        )

    def __repr__(self) -> str:
        return f"<{self}>"


def equilibrium_certificate(
    tokens: ArrayLike,
    layer: HardmaxLayer | None = None,
    *,
    weights: ArrayLike | None = None,
    max_layers: int = 10_000,
    progress: Progress = None,
) -> EquilibriumCertificate:
    """Certificate of the limit of every token, in exact rational arithmetic.

    Tokens, A, alpha and weights are taken at their exact values, whatever the tolerance of the layer. The certificate
    is checked by ``verify/verify.py`` and ``verify/verify.html``, which share no code with this library.

    Parameters
    ----------
    tokens
        Shape (tokens, d), at most 2000 distinct ones.
    layer
        A :class:`HardmaxLayer` with one head, the identity as value matrix, all tokens in sight and one step size.
        ``HardmaxLayer(alpha=0.5)`` when left out.
    weights
        Positive weight per token, shape (tokens,); all equal when left out.
    max_layers
        Largest number of layers to run.
    progress
        Progress bar: True, False, or None (only when the run takes long and there is a terminal); or a function called
        as ``progress(stage, done, total)``.

    Returns
    -------
    EquilibriumCertificate
        Limits, attended tokens and margins as rationals.

    Examples
    --------
    >>> certificate = equilibrium_certificate([[2.0, 0.0], [0.5, 0.125], [-1.0, 0.25]])
    >>> certificate.leaders, certificate.fates[1].limit, certificate.fates[1].margin
    ((0, 2), (Fraction(2, 1), Fraction(0, 1)), Fraction(47, 64))
    """
    layer = HardmaxLayer() if layer is None else layer
    if not isinstance(layer, HardmaxLayer) or not layer.is_basic or layer.why_no_limit is not None:
        raise InputError(
            "layer",
            str(layer),
            "must be a HardmaxLayer with one head, the identity as value matrix, all tokens in sight and one step size",
            "certificates are for this layer only; equilibrium and simulate take others",
        )
    max_layers = as_count("max_layers", max_layers)
    tensor, _ = as_tokens(tokens)
    tensor = tensor.detach().to("cpu", torch.float64)
    refuse_swapped_axes(tensor, layer.dimension is not None)
    mass = as_weights(weights, len(tensor), tensor.device)
    A = layer.score_matrix(tensor).to(torch.float64)
    found = distinct(tensor, mass)
    # Weights of repeated tokens are summed exactly, not as floats.
    process = ExactProcess(found.points, _summed(found.point_of, mass, len(found.points)), A, layer.alpha_at(0))
    names = found.first.tolist()
    fates: dict[int, TokenFate] = {}
    with Ticker("layers until decided", progress=progress) as ticker:
        _record(process, rational_rows(A), names, fates)
        while not (process.done or process.settled) and process.layer < max_layers:
            process.move()
            _record(process, rational_rows(A), names, fates)
            ticker.advance(note=f"{len(process.active)} undecided")
    if not process.done:
        raise InputError(
            "tokens",
            f"{counted(len(process.active), 'token')} undecided after {process.layer} layers",
            "must all be decided for a certificate",
            "raise max_layers, or see the outcome of equilibrium with tolerance='exact'",
        )
    return EquilibriumCertificate(
        tokens=_exact(rational_rows(tensor)),
        A=_exact(rational_rows(A)),
        alpha=_fraction(rational(layer.alpha_at(0))),
        weights=None if weights is None else tuple(_fraction(rational(w)) for w in mass.tolist()),
        layers=process.layer,
        fates=tuple(fates[i] for i in range(len(names))),
    )


def _summed(point_of: torch.Tensor | None, mass: PerToken, count: int) -> PerToken | list[Rational]:
    if point_of is None:
        return mass
    total = [fmpq(0)] * count
    for point, weight in zip(point_of.tolist(), mass.tolist(), strict=True):
        total[point] += rational(weight)
    return total


def _record(process: ExactProcess, A: Rows, names: list[int], fates: dict[int, TokenFate]) -> None:
    """Add the points that were decided at the present layer, with their margins."""
    new = [i for i in process.kinds if i not in fates]
    if not new:
        return
    points, limits = process.exact_positions(process.layer), process.exact_limit()
    scores = (fmpq_mat([points[i] for i in new]) * fmpq_mat(A).transpose() * fmpq_mat(points).transpose()).tolist()
    for i, row in zip(new, scores, strict=True):
        best = max(row)
        rest = [score for score in row if score != best]
        fates[i] = TokenFate(
            token=names[i],
            kind=process.kinds[i],
            decided_at=process.layer,
            attends_to=tuple(names[j] for j in process.attends_to[i]),
            margin=_fraction(best - max(rest)) if rest else None,
            limit=tuple(map(_fraction, limits[i])),
        )


def _fraction(value: Rational) -> Fraction:
    return Fraction(int(value.p), int(value.q))


def _exact(rows: Rows) -> tuple[ExactPoint, ...]:
    return tuple(tuple(map(_fraction, row)) for row in rows)


def _texts(values: tuple[Fraction, ...]) -> list[str]:
    return [str(value) for value in values]
