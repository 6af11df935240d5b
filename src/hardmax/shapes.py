"""Named array types: the meaning of the axes of every array in this library.

Tokens have shape ``(tokens, d)``; axes of a batch, layers or times come first. The names are checked at run time in the
tests only (jaxtyping with beartype).
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import torch
from jaxtyping import Bool, Float, Int64
from typing_extensions import TypeVar  # with a default, which Python's own has from 3.13 on

ArrayLike: TypeAlias = object
"""Accepted as numbers: a tensor, an array, nested sequences, ints, Fractions."""

Array: TypeAlias = torch.Tensor | np.ndarray
"""Returned by public functions: the kind of array that was passed."""

ArrayT_co = TypeVar("ArrayT_co", bound=Array, covariant=True, default=Array)
"""Kind of the arrays of a result, for type checkers: that of the arguments."""

Tokens: TypeAlias = Float[torch.Tensor, "token coordinate"]
States: TypeAlias = Float[torch.Tensor, "token state"]
"""Tokens with the extra coordinates that they carry, such as momenta."""
TokenBatch: TypeAlias = Float[torch.Tensor, "*batch token coordinate"]
Queries: TypeAlias = Float[torch.Tensor, "query coordinate"]
Matrix: TypeAlias = Float[torch.Tensor, "row column"]
Square: TypeAlias = Float[torch.Tensor, "coordinate coordinate"]
PerToken: TypeAlias = Float[torch.Tensor, " token"]
PerQuery: TypeAlias = Float[torch.Tensor, " query"]
Indices: TypeAlias = Int64[torch.Tensor, " _"]
Values: TypeAlias = Float[torch.Tensor, " _"]
Points: TypeAlias = Float[torch.Tensor, "_ coordinate"]
"""Any number of points: tokens, queries or targets, where a function has arrays of several lengths."""
Projected: TypeAlias = Float[torch.Tensor, "_ _"]
"""Queries or keys: any number of rows, with as many coordinates as the head that made them has."""
Mask: TypeAlias = Bool[torch.Tensor, " token"]
