r"""Rotary position embeddings: coordinates of queries and keys are turned in pairs, by angles that depend on the place.

The pair with number j of the token at place t is turned by :math:`t\,\theta_j`, with
:math:`\theta_j = \mathrm{base}^{-2j/w}`, so that scores depend on the distance of two tokens.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ..attention.heads import as_vector
from ..errors import InputError
from ..shapes import ArrayLike, Values


@dataclass(frozen=True, eq=False, init=False)
class Rotary:
    """Rotation of queries and keys by their places.

    Parameters
    ----------
    frequencies
        Angle per place of each pair of coordinates, shape (pairs,). Coordinates beyond the last pair stay as they are.
    interleaved
        Whether a pair is made of neighbours (2j, 2j + 1), as in GGUF files of Llama, or of (j, j + pairs), as in
        folders of Hugging Face.
    """

    frequencies: Values
    interleaved: bool

    def __init__(self, frequencies: ArrayLike, interleaved: bool = False) -> None:
        found = as_vector("frequencies", frequencies)
        if found is None or len(found) == 0:
            raise InputError("frequencies", "none", "must be one number per pair", "pass Rotary.of_base(10000.0, 64)")
        object.__setattr__(self, "frequencies", found)
        object.__setattr__(self, "interleaved", bool(interleaved))

    @staticmethod
    def of_base(base: float, width: int, interleaved: bool = False) -> Rotary:
        """Rotation whose frequencies are powers of a base.

        Parameters
        ----------
        base
            Base of the frequencies, for example 10000.
        width
            Number of coordinates that are turned, even.
        interleaved
            How coordinates are paired.

        Returns
        -------
        Rotary
            With ``width / 2`` frequencies.
        """
        exponents = torch.arange(0, width, 2, dtype=torch.float64) / width
        return Rotary(float(base) ** -exponents, interleaved)

    def turned(self, vectors: torch.Tensor, first: int = 0) -> torch.Tensor:
        """Queries or keys turned by their places, shape (..., tokens, width).

        Parameters
        ----------
        vectors
            Shape (..., tokens, width).
        first
            Place of the first token.

        Returns
        -------
        Tensor
            The same shape and dtype.
        """
        pairs = len(self.frequencies)
        # Angles in float64: at place 1e4 those of float32 are wrong by 1e-3.
        places = torch.arange(first, first + vectors.shape[-2], dtype=torch.float64, device=vectors.device)
        angles = places[:, None] * self.frequencies.to(vectors.device)
        cosine, sine = angles.cos().to(vectors.dtype), angles.sin().to(vectors.dtype)
        turning, rest = vectors[..., : 2 * pairs], vectors[..., 2 * pairs :]
        if self.interleaved:
            even, odd = turning[..., 0::2], turning[..., 1::2]
            done = torch.stack([even * cosine - odd * sine, even * sine + odd * cosine], dim=-1).flatten(-2)
        else:
            left, right = turning[..., :pairs], turning[..., pairs:]
            done = torch.cat([left * cosine - right * sine, left * sine + right * cosine], dim=-1)
        return torch.cat([done, rest], dim=-1) if rest.shape[-1] else done
