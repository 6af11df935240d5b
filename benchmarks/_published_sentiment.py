"""Train the published sentiment model as published, on any device, and write down every epoch.

``python -m benchmarks._published_sentiment --data imdb.csv.xz --output FOLDER --dims 2 4 8 16 --device cuda`` trains
one model after another on the first 70 % of the file and judges every epoch on the last 30 %, as the paper does; the
best of the judged epochs is what the paper reports.
"""

from __future__ import annotations

import argparse
import bz2
import csv
import gzip
import json
import lzma
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import sparse

from hardmax.text.model.device_batches import DeviceDocuments
from hardmax.text.model.network import Network
from hardmax.text.recipes import RECIPES, words_with
from hardmax.text.training.checkpoints import TrainingState
from hardmax.text.training.padded import train_padded
from hardmax.text.words.tokenisation import Tokeniser

PUBLISHED = {2: 0.791, 4: 0.823, 8: 0.850, 16: 0.882}
_OPEN: dict[str, Any] = {".xz": lzma.open, ".gz": gzip.open, ".bz2": bz2.open}


def reviews(path: Path) -> tuple[list[str], np.ndarray]:
    """Texts and labels of a CSV file with the columns text and label, packed or not."""
    csv.field_size_limit(10**8)
    with _OPEN.get(path.suffix, open)(path, "rt", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return [row["text"] for row in rows], np.array([int(row["label"]) for row in rows])


def table(words: list[list[str]], training: int, cut: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """The arrays of a sparse table, and how many columns it has; only words of the training texts have one.

    The last column is the padding word, which fills every text up to ``cut`` words.
    """
    number: dict[str, int] = {}
    for text in words[:training]:
        for word in text:
            number.setdefault(word, len(number))
    padding = len(number)
    starts, columns, counts = [0], [], []
    for text in words:
        found = Counter(number[word] for word in text if word in number)
        missing = cut - sum(found.values())
        if missing > 0:
            found[padding] = missing
        columns += found.keys()
        counts += found.values()
        starts.append(len(columns))
    return np.array(starts), np.array(columns), np.array(counts), padding + 1


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks._published_sentiment", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="CSV with the columns text and label")
    parser.add_argument("--output", type=Path, required=True, help="folder for the histories")
    parser.add_argument("--dims", type=int, nargs="+", default=list(PUBLISHED))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--rows", type=int, help="only so many rows of the file")
    parser.add_argument("--temperature", type=float, help="0 trains as hardmax")
    parser.add_argument("--alpha", type=float, default=RECIPES["paper"].alpha, help="where alpha starts")
    parser.add_argument("--lowercase", action="store_true", help="without capitals, unlike the paper")
    parser.add_argument("--minutes", type=float, default=1e9, help="stop after so long")
    asked = parser.parse_args()
    asked.output.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    texts, labels = reviews(asked.data)
    texts, labels = texts[: asked.rows], labels[: asked.rows]
    training = int(0.7 * len(texts))
    recipe = replace(RECIPES["paper"], epochs=asked.epochs, alpha=asked.alpha)
    if asked.temperature is not None:
        recipe = replace(recipe, temperature=asked.temperature)
    tokeniser = Tokeniser(**words_with("paper", {"cut": recipe.cut, "lowercase": asked.lowercase}))
    starts, columns, counts, width = table([tokeniser(text) for text in texts], training, recipe.cut or 0)
    print(f"{len(texts):,} reviews, {width:,} words, read in {time.monotonic() - began:.0f} s", flush=True)
    cut = starts[training]
    parts = [
        _rows(starts[: training + 1], columns[:cut], counts[:cut], labels[:training], asked.device),
        _rows(starts[training:] - cut, columns[cut:], counts[cut:], labels[training:], asked.device),
    ]
    for seed in asked.seeds:
        for dim in asked.dims:
            rng = np.random.default_rng([seed, dim])
            start = {
                "embedding": recipe.noise * rng.normal(size=(width, dim)),
                "decoder": rng.uniform(-1, 1, size=(1, dim)) / np.sqrt(dim),
                "bias": np.zeros(1),
                "raw_alpha": np.log(np.array(recipe.alpha)),
            }
            parameters = {
                name: torch.tensor(part, dtype=torch.float32, device=asked.device) for name, part in start.items()
            }
            network = Network(
                **parameters,
                least_alpha=recipe.least_alpha,
                depth=recipe.depth,
                norm_masses=recipe.masses == "norm",
            )
            _train(network, parts, replace(recipe, dim=dim), seed, asked.output, began, asked.minutes * 60)


def _rows(
    starts: np.ndarray, columns: np.ndarray, counts: np.ndarray, labels: np.ndarray, device: str
) -> DeviceDocuments:
    counted = sparse.csr_matrix((counts, columns, starts))
    return DeviceDocuments.of(counted, labels, np.ones(len(labels)), torch.device(device), torch.float32)


def _train(
    network: Network,
    parts: list[DeviceDocuments],
    recipe: Any,
    seed: int,
    folder: Path,
    began: float,
    limit: float,
) -> None:
    start = time.monotonic()

    def save(_: dict[str, torch.Tensor], state: TrainingState) -> None:
        now = state.history[-1]
        done = {
            "dim": recipe.dim,
            "seed": seed,
            "temperature": recipe.temperature,
            "alpha": recipe.alpha,
            "published": PUBLISHED.get(recipe.dim),
            "best": max(record["held_out_accuracy"] for record in state.history),
            "seconds": time.monotonic() - start,
            "history": state.history,
        }
        name = f"d{recipe.dim}-seed{seed}-T{recipe.temperature:g}-alpha{recipe.alpha:g}.json"
        (folder / name).write_text(json.dumps(done) + "\n")
        print(
            f"d = {recipe.dim}, seed {seed}, epoch {state.epoch}: loss {now['loss']:.4f}, "
            f"test accuracy {now['held_out_accuracy']:.4f} (hardmax {now['held_out_hardmax_accuracy']:.4f}), "
            f"best {done['best']:.4f}, alpha {now['alpha']:.3f}, {done['seconds']:.0f} s",
            flush=True,
        )
        if time.monotonic() - began > limit:
            raise _TimeIsUpError

    try:
        train_padded(
            network,
            *parts,
            recipe,
            epochs=recipe.epochs,
            seed=seed,
            progress=False,
            resume=lambda _: TrainingState(),
            save=save,
        )
    except _TimeIsUpError:
        print(f"d = {recipe.dim}, seed {seed}: stopped, the time is up", flush=True)


class _TimeIsUpError(Exception):
    """The limit that was asked for has been reached."""


if __name__ == "__main__":
    main()
