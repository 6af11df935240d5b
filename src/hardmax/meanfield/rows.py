r"""Attention by rows of scores: every pair, in tiles that stay in the cache.

The mean attended by a query q is :math:`\sum_j w_j e^{\langle q, y_j\rangle} y_j` over the same sum without y.
Numerator and denominator are sums over j, so tiles of keys can be added up if all are scaled alike. Keys are unit
vectors, so :math:`\langle q, y_j\rangle \le |q|` is known before any score is: :math:`-|q|` enters the product as one
more coordinate and no pass over the scores looks for their largest. Where that bound is so far above the scores that
the sum underflows, the row is done again with its true maximum.

With a symmetric positive semi-definite score matrix and tokens that are both queries and keys, the scaled kernel
:math:`\exp(l_{ij} - l_{ii}/2 - l_{jj}/2) \le 1` is symmetric: each exponential then serves two rows.
"""

from __future__ import annotations

import numpy as np

from ..threads import in_order

_TILE_ROWS, _TILE_KEYS = 512, 256  # 1 MB in float64: two tiles fit the second-level cache of today's cores
_SQUARE_TILE = 320
_SQUARE_TILE_OF_MANY_COORDINATES = 192
_DENSE_ENTRIES = 1 << 20
_DEEPEST = 650.0


def _augmented(keys: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Columns ``w y`` and ``w``: one product gives numerators and denominator."""
    return np.concatenate([keys * weights[:, None], weights[:, None]], axis=1)


def exponential(exponents: np.ndarray, deep: bool) -> None:
    """Exponential in place; ``deep`` where some entries may be far below zero.

    Results that underflow take the processor many times longer, so in float64 they are lifted to 1e-282; no sum that
    is trusted notices (see ``_smallest_sum``).
    """
    if deep and exponents.dtype == np.float64:
        np.maximum(exponents, -_DEEPEST, out=exponents)
    np.exp(exponents, out=exponents)


def _smallest_sum(dtype: np.dtype) -> float:
    # Below this, terms that count may have been lost to underflow.
    return 1e-250 if dtype == np.float64 else float(np.finfo(dtype).tiny / np.finfo(dtype).eps)


def rows_mean(queries: np.ndarray, keys: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Mean that each query attends to, shape (queries, d), for unit keys; ``weights`` have largest value one."""
    bound = np.sqrt(np.einsum("ij,ij->i", queries, queries))
    shifted = np.concatenate([queries, -bound[:, None]], axis=1)
    columns = np.ascontiguousarray(np.concatenate([keys, np.ones_like(keys[:, :1])], axis=1).T)
    values = _augmented(keys, weights)
    deep = bool(2 * bound.max() > _DEEPEST)

    def sums(top: int) -> np.ndarray:
        block = shifted[top : top + _TILE_ROWS]
        buffer = np.empty(_TILE_ROWS * _TILE_KEYS, queries.dtype)
        part = np.zeros((len(block), values.shape[1]), queries.dtype)
        for left in range(0, len(keys), _TILE_KEYS):
            column = columns[:, left : left + _TILE_KEYS]
            kernel = buffer[: len(block) * column.shape[1]].reshape(len(block), -1)
            np.matmul(block, column, out=kernel)
            exponential(kernel, deep)
            part += kernel @ values[left : left + _TILE_KEYS]
        return part

    # On one thread: the exponential of each pair, and both products.
    took = len(queries) * len(keys) * (5e-9 + 2e-10 * keys.shape[1])
    total = np.concatenate([*in_order(sums, range(0, len(queries), _TILE_ROWS), seconds=took)])
    return _divided(total, queries, keys, weights)


def _divided(total: np.ndarray, queries: np.ndarray, keys: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Means from sums and their last column, the sum of the kernel; rows whose sum underflowed are done again."""
    low = np.flatnonzero(~(total[:, -1] > _smallest_sum(queries.dtype)))
    total[low, -1] = 1.0
    mean: np.ndarray = total[:, :-1] / total[:, -1:]
    if len(low):
        mean[low] = rows_mean_in_log_domain(queries[low], keys, weights)
    return mean


def rows_mean_in_log_domain(queries: np.ndarray, keys: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Mean that each query attends to, with the maximum of each row, for any keys: slower, and never underflows."""
    with np.errstate(divide="ignore"):
        mass = np.log(weights)
    values = np.concatenate([keys, np.ones_like(keys[:, :1])], axis=1)
    mean = np.empty((len(queries), keys.shape[1]), queries.dtype)
    rows = max(1, _DENSE_ENTRIES // len(keys))
    for top in range(0, len(queries), rows):
        kernel = queries[top : top + rows] @ keys.T
        kernel += mass
        kernel -= kernel.max(axis=1, keepdims=True)
        exponential(kernel, True)
        total = kernel @ values
        mean[top : top + rows] = total[:, :-1] / total[:, -1:]
    return mean


def symmetric_range(tokens: np.ndarray, scores: np.ndarray) -> float:
    """Range of half the scores of tokens with themselves: the symmetric kernel spans this many e-folds."""
    own = 0.5 * np.einsum("ij,ij->i", tokens @ scores.T, tokens)
    return float(own.max() - own.min())


def symmetric_mean(tokens: np.ndarray, scores: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Mean that each token attends to, shape (tokens, d), for symmetric positive semi-definite ``scores``."""
    own = 0.5 * np.einsum("ij,ij->i", tokens @ scores.T, tokens)
    one = np.ones_like(tokens[:, :1])
    queries = np.concatenate([tokens @ scores.T, -own[:, None], one], axis=1)
    columns = np.ascontiguousarray(np.concatenate([tokens, one, -own[:, None]], axis=1).T)
    values = _augmented(tokens, weights * np.exp(own - own.max()))
    total = np.zeros_like(values)
    side = _SQUARE_TILE if tokens.shape[1] < 8 else _SQUARE_TILE_OF_MANY_COORDINATES
    buffer = np.empty(side**2, tokens.dtype)
    deep = bool(4 * own.max() > _DEEPEST)  # |x - y|^2 is at most 4
    for top in range(0, len(tokens), side):
        rows = slice(top, min(top + side, len(tokens)))
        block = queries[rows]
        for left in range(top, len(tokens), side):
            across = slice(left, min(left + side, len(tokens)))
            kernel = buffer[: len(block) * (across.stop - left)].reshape(len(block), -1)
            np.matmul(block, columns[:, across], out=kernel)
            exponential(kernel, deep)
            total[rows] += kernel @ values[across]
            if left != top:
                total[across] += kernel.T @ values[rows]
    return _divided(total, tokens @ scores.T, tokens, weights)
