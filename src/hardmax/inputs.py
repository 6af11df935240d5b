"""Checked array arguments: to tensors, and results back to the kind of array that was passed."""

from __future__ import annotations

import numbers
from dataclasses import dataclass

import numpy as np
import torch

from .errors import InputError
from .scalars import as_count as as_count
from .scalars import as_number as as_number
from .scalars import as_positive as as_positive
from .scalars import shown
from .shapes import Array, ArrayLike, PerToken, Square, TokenBatch


@dataclass(frozen=True)
class Kind:
    """Kind of array that was passed: results are returned as the same kind, dtype and device."""

    is_numpy: bool
    dtype: torch.dtype
    device: torch.device

    def give_back(self, tensor: torch.Tensor) -> Array:
        """``tensor`` as an array of this kind, same shape; integers and booleans keep their dtype."""
        if tensor.is_floating_point():
            tensor = tensor.to(self.dtype)
        return tensor.detach().cpu().numpy() if self.is_numpy else tensor.to(self.device)


def as_tensor(argument: str, value: ArrayLike) -> tuple[torch.Tensor, Kind]:
    """Floating-point tensor of an array of real numbers of any kind, same shape, and that kind; may hold NaN."""
    if isinstance(value, torch.Tensor):
        if value.dtype not in (torch.float32, torch.float64):
            if value.is_complex() or value.dtype == torch.bool:
                raise InputError(argument, f"dtype {value.dtype}", "must hold real numbers", "convert it to float64")
            value = value.to(torch.float64)
        return value, Kind(False, value.dtype, value.device)
    if hasattr(value, "points") and hasattr(value, "weights"):  # a measure: its weights must not be lost
        kind = f"a {type(value).__name__}"
        raise InputError(argument, kind, "must be an array", "pass its .points, and its .weights as weights=")
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        where = tuple(int(k) for k in np.argwhere(np.ma.getmaskarray(value))[0])
        remedy = "remove or impute what is masked; .filled(…) gives a plain array"
        raise InputError(argument, f"a masked value at index {where}", "must not be masked", remedy)
    try:
        array = np.asarray(value)
    except (TypeError, ValueError):
        remedy = "every row needs the same length"
        raise InputError(argument, shown(value), "must be an array of real numbers", remedy) from None
    try:
        if array.dtype == object:
            array = np.vectorize(_number, otypes=[np.float64])(array)
        elif array.dtype.kind not in "iuf":
            raise TypeError(f"it holds {array.dtype}")
    except (TypeError, ValueError, OverflowError) as error:
        remedy = f"pass rows of numbers, or a NumPy array, tensor or table of them ({error})"
        raise InputError(argument, shown(value), "must be an array of real numbers", remedy) from None
    if array.dtype not in (np.float32, np.float64):
        array = array.astype(np.float64)
    if not array.flags.writeable or any(stride < 0 for stride in array.strides):
        array = array.copy()
    tensor = torch.from_numpy(np.ascontiguousarray(array))
    return tensor, Kind(True, tensor.dtype, tensor.device)


def plain(array: Array | np.ndarray) -> np.ndarray:
    """NumPy array of the same numbers, same shape, from any device."""
    return array.detach().cpu().numpy() if isinstance(array, torch.Tensor) else np.asarray(array)


def as_device(device: str | torch.device | None) -> torch.device:
    """Device of this name, the CPU for None; raises an InputError where tensors cannot be allocated on it.

    >>> as_device(None)
    device(type='cpu')
    """
    try:
        found = torch.device("cpu" if device is None else device)
        torch.zeros(1, device=found)
    except (RuntimeError, AssertionError, TypeError) as error:
        problem = f"cannot be used here ({str(error).splitlines()[0]})"
        remedy = 'pass "cuda" where torch has a GPU, or leave it out'
        raise InputError("device", shown(device), problem, remedy) from error
    return found


def _number(value: object) -> float:
    if isinstance(value, numbers.Real):
        return float(value)
    if hasattr(value, "toarray"):
        raise TypeError("a sparse matrix: pass its .toarray()")
    raise TypeError(f"{shown(value)} is not a number")


def _require_finite(argument: str, tensor: torch.Tensor, remedy: str) -> None:
    # One pass for the usual case: finite numbers whose sum overflows are checked one by one.
    if tensor.numel() == 0 or bool(torch.isfinite(tensor.sum())) or bool(torch.isfinite(tensor).all()):
        return
    where = tuple(int(i) for i in torch.nonzero(~torch.isfinite(tensor))[0])
    raise InputError(argument, f"{tensor[where].item()} at index {where}", "must be finite", remedy)


def as_tokens(value: ArrayLike, *, batch: bool = False, argument: str = "tokens") -> tuple[TokenBatch, Kind]:
    """Finite tokens, shape (token, coordinate), with leading batch axes where ``batch`` is true, and their kind."""
    tensor, kind = as_tensor(argument, value)
    shape = tuple(tensor.shape)
    if tensor.ndim < 2 or (tensor.ndim > 2 and not batch):
        wanted = "(..., token, coordinate)" if batch else "(token, coordinate)"
        remedy = (
            "n points on a line are tokens of shape (n, 1): use tokens[:, None]"
            if tensor.ndim == 1
            else "run one set of tokens at a time"
        )
        raise InputError(argument, f"shape {shape}", f"must have shape {wanted}", remedy)
    if shape[-2] == 0 or shape[-1] == 0:
        raise InputError(argument, f"shape {shape}", "must not be empty", "pass at least one token of one coordinate")
    _require_finite(argument, tensor, "remove or impute the tokens that are NaN or infinite")
    return tensor, kind


def as_square(argument: str, value: ArrayLike, dimension: int | None = None) -> Square:
    """Finite square matrix, shape (d, d), float64."""
    tensor, _ = as_tensor(argument, value)
    shape = tuple(tensor.shape)
    if tensor.ndim != 2 or shape[0] != shape[1] or shape[0] == 0:
        raise InputError(argument, f"shape {shape}", "must be a square matrix", "pass d rows of d numbers")
    if dimension is not None and shape[0] != dimension:
        raise InputError(
            argument,
            f"shape {shape}",
            f"must be {dimension} x {dimension} to match the tokens",
            "tokens are (token, coordinate); transpose them if the axes are swapped",
        )
    _require_finite(argument, tensor, "remove the entries that are NaN or infinite")
    return tensor.to(torch.float64)


def as_score_matrix(name: str, matrix: ArrayLike | None, Q: ArrayLike | None, K: ArrayLike | None) -> Square | None:
    """Score matrix, shape (d, d): as given, or K^T Q; None stands for the identity."""
    if Q is None and K is None:
        return None if matrix is None else as_square(name, matrix)
    if matrix is not None:
        raise InputError(name, f"{name} and Q, K", "must not be given together with Q and K", f"pass {name} or Q and K")
    if Q is None or K is None:
        missing, given = ("Q", "K") if Q is None else ("K", "Q")
        raise InputError(missing, None, f"must come together with {given}", f"pass both Q and K, or {name} = K^T Q")
    query, key = as_tensor("Q", Q)[0].to(torch.float64), as_tensor("K", K)[0].to(torch.float64)
    if query.ndim != 2 or query.shape != key.shape:
        raise InputError(
            "Q, K",
            f"shapes {tuple(query.shape)} and {tuple(key.shape)}",
            "must be matrices of the same shape (head, coordinate)",
            "scores are <Q z_i, K z_j>",
        )
    return as_square("K^T Q", key.T @ query)


def as_weights(value: ArrayLike | None, tokens: int, device: torch.device, argument: str = "weights") -> PerToken:
    """Positive weights, shape (token,), float64; ones where ``value`` is None."""
    if value is None:
        return torch.ones(tokens, dtype=torch.float64, device=device)
    tensor, _ = as_tensor(argument, value)
    if tuple(tensor.shape) != (tokens,):
        raise InputError(
            argument,
            f"shape {tuple(tensor.shape)}",
            f"must have shape ({tokens},)",
            "pass one weight per token",
        )
    _require_finite(argument, tensor, "pass finite weights")
    if bool((tensor <= 0).any()):
        raise InputError(argument, float(tensor.min()), "must be positive", "leave out tokens that should not count")
    return tensor.to(device=device, dtype=torch.float64)
