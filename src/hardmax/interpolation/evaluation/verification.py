"""Verification of a saved network from the data and the weights in its files."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors

from ...progress import Progress
from ..blocks import stacked
from ..export.files import JSON_NAME, TENSORS_NAME, NetworkReader, json_path, read_network
from ..network import CompiledNetwork
from .certificate import Certificate, certify
from .counts import count_blocks


def verify(path: str | os.PathLike[str], *, workers: int = 1, progress: Progress = None) -> Certificate:
    """Certificate of a saved network, proved from its data and its weights; nothing else in the files is trusted.

    Parameters
    ----------
    path
        Folder that :meth:`ExactTransformer.save` wrote, or its ``network.json``.
    workers
        Number of processes that share the sequences.
    progress
        True, False, None (a bar when the work turns out to be long), or a function called as
        ``progress(stage, done, total)``.

    Returns
    -------
    Certificate
        True in a boolean context when everything was proved; otherwise it names the sequences that fail and the claims
        of the files that do not hold.
    """
    source = json_path(Path(path))
    network, record = read_network(source)
    counts = count_blocks(network)
    problems = []
    reader = NetworkReader(source)
    claimed = reader.get(record["data"], "data.sha256", str)
    if claimed != network.data.digest():
        problems.append("the data are not those the file was made for (their hash differs)")
    for name, actual in (
        ("blocks", len(network.blocks)),
        ("parameters", counts.parameters),
        ("published_bound", counts.published),
    ):
        value = reader.get(record["claims"], f"claims.{name}", int)
        if value != actual:
            problems.append(f"the file claims {name} = {value}, it is {actual}")
    problems += _tensor_problems(source.parent / TENSORS_NAME, network, reader.get(record, "tensors_sha256", str))
    return certify(network, workers=workers, progress=progress, problems=tuple(problems))


def _tensor_problems(path: Path, network: CompiledNetwork, claimed_hash: str) -> list[str]:
    try:
        content = path.read_bytes()
        tensors = load_tensors(content)
    except FileNotFoundError:
        return [f"{path.name} is missing"]
    except (SafetensorError, OSError, ValueError, KeyError) as error:
        return [f"{path.name} cannot be read ({error})"]
    expected = stacked(network.blocks, network.dimension)
    problems = []
    for name, array in expected.items():
        found = tensors.get(name)
        if found is None or found.shape != array.shape or found.dtype != array.dtype:
            problems.append(f"{path.name}: {name} is missing or has another shape")
        elif not np.array_equal(found, array):
            block = int(np.argwhere((found != array).reshape(len(array), -1).any(axis=1))[0, 0])
            problems.append(f"{path.name}: {name} of block {block} is not the rounded exact weight")
    if hashlib.sha256(content).hexdigest() != claimed_hash:
        problems.append(f"{path.name} is not the file that {JSON_NAME} names (its hash differs)")
    return problems
