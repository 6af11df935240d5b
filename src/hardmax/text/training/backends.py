"""Which way a model is trained and asked: on sparse rows, here or on a device, or with documents side by side."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import numpy as np
import torch
from scipy import sparse

from ...distributed import ALONE, Processes
from ...errors import InputError
from ...progress import Progress
from ..model.network import Network
from ..model.softmax_forward import Shelf
from ..recipes import Recipe
from .device import DeviceTrainer, answers_on
from .loop import RowsTrainer, Trainer, logits_and_leaders, number_of_epochs, train
from .padded import DenseRows, train_dense
from .state import Rows, State


def fit_network(
    network: Network,
    rows: Rows,
    held_out: Rows | None,
    recipe: Recipe,
    *,
    device: str | None,
    seed: int,
    patience: int | None,
    progress: Progress,
    resume: Callable[[dict[str, torch.Tensor]], State],
    keep: Callable[[dict[str, torch.Tensor], State], None],
    ranks: Processes = ALONE,
) -> State:
    """Train the network in place; several processes share the work on sparse rows."""
    place = usable_device(device or "cpu")
    if ranks.count > 1 and (_elsewhere(device) or recipe.temperature > 0):
        raise InputError(
            "processes",
            ranks.count,
            "can share only the training as hardmax on sparse rows on the CPU",
            "leave out device and temperature, or train in one process",
        )
    epochs = number_of_epochs(recipe, len(rows.labels), len(network.bias))
    with _current(place), _room_on(place, rows.table):
        if recipe.temperature > 0:
            parameters = {name: part.detach().to(place, copy=True) for name, part in network.parameters().items()}
            state = train_dense(
                parameters,
                _on_device(rows, place),
                None if held_out is None else _on_device(held_out, place),
                recipe,
                epochs=epochs,
                seed=seed,
                resting_mass=network.resting_mass,
                patience=patience,
                progress=progress,
                resume=resume,
                keep=keep,
            )
        else:
            trainer: Trainer
            if _elsewhere(device):
                trainer = DeviceTrainer(network, rows, held_out, recipe, seed=seed, device=place)
            else:
                trainer = RowsTrainer(network, rows, held_out, recipe, seed=seed, ranks=ranks)
            state = train(
                trainer,
                epochs=epochs,
                steps=math.ceil(len(rows.labels) / recipe.batch_size),
                held_out=0 if held_out is None else len(held_out.labels),
                patience=patience,
                progress=progress,
                resume=resume,
                keep=keep,
            )
            parameters = trainer.parameters
    own = network.parameters()
    for name, part in parameters.items():
        own[name].requires_grad_(False).copy_(part)
    return state


def answers(network: Network, table: sparse.csr_matrix, device: str | None) -> tuple[np.ndarray, np.ndarray]:
    """Logits of all documents, and how many leaders each has."""
    place = usable_device(device or "cpu")
    if not _elsewhere(device):
        return logits_and_leaders(network, table)
    with _current(place), _room_on(place, table):
        return answers_on(place, network, table)


def _elsewhere(device: str | None) -> bool:
    """Whether the work is done elsewhere than on the CPU, which has a way of its own."""
    return device is not None and torch.device(device).type != "cpu"


def _current(device: str) -> AbstractContextManager[object]:
    """Where kernels and recordings go: to the current GPU, which need not be the one asked for."""
    return torch.cuda.device(device) if device.startswith("cuda") else nullcontext()


@contextmanager
def _room_on(device: str, table: sparse.csr_matrix) -> Iterator[None]:
    """A device that is short of memory is refused with the size of what it should have held."""
    try:
        yield
    except torch.OutOfMemoryError as error:
        size = table.nnz * (table.indices.itemsize + table.data.itemsize) / 1e9
        raise InputError(
            "device",
            repr(device),
            f"has too little memory for these documents, which take {size:.2g} GB, and what is computed from them",
            "leave it out to work on the CPU, or pass a smaller batch_size, fewer words (max_words) or fewer documents",
        ) from error


def usable_device(name: str) -> str:
    """The device by this name, if work can be done there."""
    try:
        torch.zeros(1, device=name)
    except (RuntimeError, AssertionError, TypeError) as error:
        raise InputError(
            "device",
            repr(name),
            f"cannot be used here ({str(error).splitlines()[0]})",
            'pass "cuda" where torch has a GPU, or leave it out',
        ) from error
    return name


def _on_device(rows: Rows, device: str) -> DenseRows:
    table = rows.table
    return DenseRows(
        Shelf.of(table.indptr, table.indices, table.data, device),
        torch.from_numpy(rows.labels).to(device),
        torch.from_numpy(rows.weights).to(device, torch.float32),
    )
