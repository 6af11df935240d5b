"""Named array types: what the axes of every array in this library mean.

Tokens are always ``(token, coordinate)``; a batch, a layer or a time goes in front. The names are checked at run
time in the tests only (jaxtyping with beartype) and are documentation elsewhere.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import torch
from jaxtyping import Bool, Float, Int64
from typing_extensions import TypeVar  # with a default, which Python's own has from 3.13 on

ArrayLike: TypeAlias = object
"""Whatever a caller may pass for numbers: a tensor, an array, nested sequences, ints, Fractions."""

Array: TypeAlias = torch.Tensor | np.ndarray
"""What public functions give back: the kind of array that came in."""

ArrayT_co = TypeVar("ArrayT_co", bound=Array, covariant=True, default=Array)
"""The kind of array that a result holds, for type checkers: the one that came in."""

Tokens: TypeAlias = Float[torch.Tensor, "token coordinate"]
TokenBatch: TypeAlias = Float[torch.Tensor, "*batch token coordinate"]
Queries: TypeAlias = Float[torch.Tensor, "query coordinate"]
Matrix: TypeAlias = Float[torch.Tensor, "row column"]
Square: TypeAlias = Float[torch.Tensor, "coordinate coordinate"]
PerToken: TypeAlias = Float[torch.Tensor, " token"]
PerQuery: TypeAlias = Float[torch.Tensor, " query"]
Indices: TypeAlias = Int64[torch.Tensor, " _"]
Values: TypeAlias = Float[torch.Tensor, " _"]
Points: TypeAlias = Float[torch.Tensor, "_ coordinate"]
"""Any number of points: of tokens, queries or targets, where several counts meet in one function."""
Mask: TypeAlias = Bool[torch.Tensor, " token"]
