"""Training of a network on the CPU, on a device or on padded batches, and the mean of several trainings.

Trainings from a common start end near one another, so that the mean of their parameters is a model as well, and one
that depends less on the order of the documents and on the dropped words.
"""

from __future__ import annotations

import math
import os
from pathlib import Path

import numpy as np
import torch

from ...distributed import ALONE, Processes
from ...errors import InputError
from ...inputs import as_device
from ...progress import Progress, Tell, Ticker
from ..model import prediction
from ..model.device_batches import DeviceDocuments
from ..model.network import Network
from ..recipes import Recipe
from ..words.counts import LabelledDocuments
from .checkpoints import Checkpoint, TrainingState, fingerprint
from .device import DeviceTrainer
from .loop import CpuTrainer, Resume, Save, Trainer, number_of_epochs, train
from .padded import train_padded


def train_averaged(
    network: Network,
    rows: LabelledDocuments,
    validation: LabelledDocuments | None,
    recipe: Recipe,
    *,
    checkpoint: str | os.PathLike[str] | None,
    device: str | None,
    seed: int,
    patience: int | None,
    progress: Progress,
    processes: Processes,
) -> list[dict[str, float]]:
    """Records of all epochs of ``recipe.averaged`` trainings; the network becomes their mean in place.

    Each training has a checkpoint of its own: the first at the given path, the others beside it.
    """
    runs, history = recipe.averaged, []
    start = {name: part.detach().clone() for name, part in network.parameters().items()}
    total = {name: torch.zeros_like(part) for name, part in start.items()}
    parts = [rows] if validation is None else [rows, validation]
    documents = len(rows.labels)
    steps = number_of_epochs(recipe, documents, len(network.bias)) * math.ceil(documents / recipe.batch_size)
    shown = progress if processes.first else False
    # One progress bar for all trainings; a single training shows its own.
    with Ticker("training", runs * steps, progress=shown if runs > 1 else False) as ticker:
        for run in range(runs):
            own_seed = seed if run == 0 else int(np.random.default_rng([seed, run, 2**21]).integers(2**31))
            path = None if checkpoint is None else _path_of_run(checkpoint, run)
            file = Checkpoint(path, "" if path is None else fingerprint(parts, recipe, own_seed))
            _fill(network, start)
            state = train_network(
                network,
                rows,
                validation,
                recipe,
                device=device,
                seed=own_seed,
                patience=patience,
                progress=shown if runs == 1 or shown is False else _progress_after(ticker, run * steps),
                resume=file.resume,
                save=file.save if processes.first else _save_nothing,
                processes=processes,
            )
            ticker.reach((run + 1) * steps)  # a training may stop early
            history += [{"run": run + 1, **record} for record in state.history] if runs > 1 else state.history
            for name, part in network.parameters().items():
                total[name] += part
    _fill(network, {name: part / runs for name, part in total.items()})
    return history


def train_network(
    network: Network,
    rows: LabelledDocuments,
    validation: LabelledDocuments | None,
    recipe: Recipe,
    *,
    device: str | None,
    seed: int,
    patience: int | None,
    progress: Progress,
    resume: Resume,
    save: Save,
    processes: Processes = ALONE,
) -> TrainingState:
    """State after one training of the network in place, on ``device`` and with the attention of the recipe."""
    place = as_device(device)
    if processes.count > 1 and (prediction.is_accelerator(device) or recipe.temperature > 0):
        raise InputError(
            "processes",
            processes.count,
            "can share only training with hardmax attention on the CPU",
            "leave out device and temperature, or train in one process",
        )
    epochs = number_of_epochs(recipe, len(rows.labels), len(network.bias))
    with prediction.working_on(place, rows.table):
        if recipe.temperature > 0:
            copy = network.to(place)
            state = train_padded(
                copy,
                _single_precision(rows, place),
                None if validation is None else _single_precision(validation, place),
                recipe,
                epochs=epochs,
                seed=seed,
                patience=patience,
                progress=progress,
                resume=resume,
                save=save,
            )
            trained = copy.parameters()
        else:
            trainer: Trainer
            if prediction.is_accelerator(device):
                trainer = DeviceTrainer(network, rows, validation, recipe, seed=seed, device=place)
            else:
                trainer = CpuTrainer(network, rows, validation, recipe, seed=seed, processes=processes)
            state = train(
                trainer,
                epochs=epochs,
                steps=math.ceil(len(rows.labels) / recipe.batch_size),
                validation_rows=0 if validation is None else len(validation.labels),
                patience=patience,
                progress=progress,
                resume=resume,
                save=save,
            )
            trained = trainer.parameters
    _fill(network, trained)
    return state


def _single_precision(rows: LabelledDocuments, device: torch.device) -> DeviceDocuments:
    return DeviceDocuments.of(rows.table, rows.labels, rows.weights, device, torch.float32)


def _fill(network: Network, values: dict[str, torch.Tensor]) -> None:
    """Copy the values into the parameters of the same names."""
    own = network.parameters()
    for name, part in values.items():
        own[name].requires_grad_(False).copy_(part)


def _path_of_run(checkpoint: str | os.PathLike[str], run: int) -> Path:
    """The given path for the first training; with a number after the stem for the others."""
    path = Path(checkpoint)
    return path if run == 0 else path.with_name(f"{path.stem}-{run + 1}{path.suffix}")


def _progress_after(ticker: Ticker, before: float) -> Tell:
    """Progress function of one training, which reports to the ticker of all trainings."""

    def tell(stage: str, done: float, total: float | None) -> None:
        ticker.reach(before + done, stage)

    return tell


def _save_nothing(tensors: dict[str, torch.Tensor], state: TrainingState) -> None:
    """Only the first process writes the checkpoint."""
