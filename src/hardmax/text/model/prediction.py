"""Logits, probabilities and number of leaders of many documents, on the CPU or on a device."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import numpy as np
import torch
from scipy import sparse
from scipy.special import expit, softmax

from ...errors import InputError
from ...inputs import as_device
from ..words.counts import batch
from .device_batches import FlatBatch
from .device_forward import logits_and_follows
from .network import Network

# Documents per batch on the CPU: small enough that a batch stays in the cache.
_DOCUMENTS_AT_ONCE = 256
# Words per batch on a device: their positions, masses and choices take some hundred megabytes.
_WORDS_AT_ONCE = 2**22


def is_accelerator(device: str | None) -> bool:
    """Whether ``device`` is other than the CPU, which has code of its own."""
    return device is not None and torch.device(device).type != "cpu"


@contextmanager
def working_on(device: torch.device, table: sparse.csr_matrix) -> Iterator[None]:
    """Make ``device`` the current one; running out of memory there becomes an InputError with the size of ``table``."""
    # Kernels and CUDA graphs use the current GPU, which need not be the requested one.
    current = torch.cuda.device(device) if device.type == "cuda" else nullcontext()
    try:
        with current:
            yield
    except torch.OutOfMemoryError as error:
        size = table.nnz * (table.indices.itemsize + table.data.itemsize) / 1e9
        raise InputError(
            "device",
            repr(str(device)),
            f"has too little memory for these documents, which take {size:.2g} GB, and for the computation",
            "leave it out to work on the CPU, or pass a smaller batch_size, fewer words (max_words) or fewer documents",
        ) from error


def predict_logits(network: Network, table: sparse.csr_matrix, device: str | None) -> tuple[np.ndarray, np.ndarray]:
    """Logits, shape (documents, outputs), and number of leaders, shape (documents,), for a network on the CPU.

    ``table`` holds weighted counts, shape (documents, words). ``device`` is the device to compute on.
    """
    place = as_device(device)
    if not is_accelerator(device):
        return cpu_logits(network, table)
    with working_on(place, table):
        return device_logits(network.to(place), table)


@torch.no_grad()
def cpu_logits(network: Network, table: sparse.csr_matrix) -> tuple[np.ndarray, np.ndarray]:
    """Logits, shape (documents, outputs), and number of leaders, shape (documents,), on the CPU."""
    logits = np.empty((table.shape[0], network.bias.shape[0]))
    leaders = np.zeros(table.shape[0], dtype=np.int64)
    for begin in range(0, table.shape[0], _DOCUMENTS_AT_ONCE):
        some = slice(begin, min(begin + _DOCUMENTS_AT_ONCE, table.shape[0]))
        documents = batch(table[some])
        found, path = network.forward(documents)
        logits[some] = found.numpy()
        leaders[some] = np.bincount(documents.document[path.leaders], minlength=documents.size)
    return logits, leaders


@torch.no_grad()
def device_logits(network: Network, table: sparse.csr_matrix) -> tuple[np.ndarray, np.ndarray]:
    """Logits, shape (documents, outputs), and number of leaders, shape (documents,), on the network's device.

    Equal to those of :func:`cpu_logits` up to rounding.
    """
    words = network.embedding
    logits, leaders = np.empty((table.shape[0], len(network.bias))), np.zeros(table.shape[0], dtype=np.int64)
    borders = np.searchsorted(table.indptr, np.arange(0, table.nnz + 1, _WORDS_AT_ONCE))
    for first, stop in zip(borders, [*borders[1:], table.shape[0]], strict=True):
        if first == stop:
            continue
        documents = FlatBatch.of(table[first:stop], words.device, words.dtype)
        found, follows = logits_and_follows(network, documents, words.index_select(0, documents.columns))
        leads = (follows == torch.arange(len(follows), device=follows.device)).long()
        counts = found.new_zeros(documents.size).long().index_add(0, documents.document, leads)
        logits[first:stop] = found.cpu().numpy()
        leaders[first:stop] = counts.cpu().numpy()
    return logits, leaders


def class_probabilities(logits: np.ndarray) -> np.ndarray:
    """Probability of each class, shape (documents, classes), from logits of shape (documents, outputs).

    Two classes have one logit, that of the second.

    >>> class_probabilities(np.array([[0.0]])).tolist()
    [[0.5, 0.5]]
    """
    if logits.shape[1] == 1:
        return np.column_stack([expit(-logits[:, 0]), expit(logits[:, 0])])
    return np.asarray(softmax(logits, axis=1))
