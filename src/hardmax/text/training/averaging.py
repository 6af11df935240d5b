"""Training several times from the same start, and the mean of where that leads.

From a common start the trainings end near one another, so that the mean of their parameters is a model as well, and one
that depends less on the order of the documents and on the words dropped.
"""

from __future__ import annotations

import math
import os
from pathlib import Path

import numpy as np
import torch

from ...distributed import Processes
from ...progress import Progress, Tell, Ticker
from ..model.network import Network
from ..recipes import Recipe
from .backends import fit_network
from .checkpoints import Checkpoint, fingerprint
from .loop import number_of_epochs
from .state import Rows, State


def fit_averaged(
    network: Network,
    rows: Rows,
    held_out: Rows | None,
    recipe: Recipe,
    *,
    checkpoint: str | os.PathLike[str] | None,
    device: str | None,
    seed: int,
    patience: int | None,
    progress: Progress,
    ranks: Processes,
) -> list[dict[str, float]]:
    """Train the network in place, ``recipe.averaged`` times; the records of all epochs.

    Each training keeps a checkpoint of its own, the first where it was asked for and the others beside it.
    """
    runs, history = recipe.averaged, []
    start = {name: part.detach().clone() for name, part in network.parameters().items()}
    total = {name: torch.zeros_like(part) for name, part in start.items()}
    parts = [rows] if held_out is None else [rows, held_out]
    documents = len(rows.labels)
    steps = number_of_epochs(recipe, documents, len(network.bias)) * math.ceil(documents / recipe.batch_size)
    shown = progress if ranks.first else False
    # One bar for all: it stays hidden where a single training shows its own.
    with Ticker("training", runs * steps, progress=shown if runs > 1 else False) as ticker:
        for run in range(runs):
            own_seed = seed if run == 0 else int(np.random.default_rng([seed, run, 2**21]).integers(2**31))
            path = None if checkpoint is None else _own_file(checkpoint, run)
            kept = Checkpoint(path, "" if path is None else fingerprint(parts, recipe, own_seed))
            _fill(network, start)
            done = fit_network(
                network,
                rows,
                held_out,
                recipe,
                device=device,
                seed=own_seed,
                patience=patience,
                progress=shown if runs == 1 or shown is False else _part_of(ticker, run * steps),
                resume=kept.resume,
                keep=kept.keep if ranks.first else _keep_nothing,
                ranks=ranks,
            )
            ticker.reach((run + 1) * steps)  # a training may end early
            history += [{"run": run + 1, **record} for record in done.history] if runs > 1 else done.history
            for name, part in network.parameters().items():
                total[name] += part
    _fill(network, {name: part / runs for name, part in total.items()})
    return history


def _fill(network: Network, values: dict[str, torch.Tensor]) -> None:
    for name, part in network.parameters().items():
        part.copy_(values[name])


def _own_file(checkpoint: str | os.PathLike[str], run: int) -> Path:
    """The file of a training: the one asked for, then the same with its number at the end of the stem."""
    path = Path(checkpoint)
    return path if run == 0 else path.with_name(f"{path.stem}-{run + 1}{path.suffix}")


def _part_of(ticker: Ticker, before: float) -> Tell:
    """Whoever is told of the progress is told of all trainings as one, with so much done before this one."""

    def tell(stage: str, done: float, total: float | None) -> None:
        ticker.reach(before + done, stage)

    return tell


def _keep_nothing(tensors: dict[str, torch.Tensor], state: State) -> None:
    """The first process writes the checkpoint."""
