"""The probe: texts through a model, with measurements, interventions and their controls, as a report."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from ... import tensor_files
from ...errors import FileError, InputError
from ...files import PathLike, make_folder
from ...progress import Progress, Ticker
from ...randomness import seeded
from ...scalars import shown
from ..tokenisers import Tokenised
from ..transformer import TextOrIds, Transformer
from .interventions import Intervention, Run, as_interventions, parts, results
from .report import ProbeReport, as_frame, empty
from .rows import FACTORS
from .tables import Tables, weights_table
from .texts import HEAD_SUMS, LAYER_SUMS, TextRecord, text_record


def probe(
    model: Transformer,
    texts: TextOrIds | Sequence[TextOrIds],
    *,
    interventions: str | Intervention | Sequence[str | Intervention] = (),
    heads: bool = True,
    random_state: int | np.random.Generator | None = 0,
    checkpoint: PathLike | None = None,
    progress: Progress = None,
) -> ProbeReport:
    """Report on a model and texts: temperatures, leaders, sinks, collapse, hypotheses on weights, and interventions.

    Every figure has its chance level or its control beside it. Memory grows with the number of tokens of a text, not
    with its square.

    Parameters
    ----------
    model
        From :func:`hardmax.load_transformer`.
    texts
        Texts, or lists of numbers of tokens; each of at least two tokens.
    interventions
        Attention rules that replace softmax: ``"hardmax"``, ``"top-32"``, ``"beta=2"``, ``"uniform"``, ``"zero"`` in
        every head at once, :class:`Intervention` in some of them, ``"every head"`` and ``"every layer"`` for hardmax in
        each head or layer alone. Each is run beside its control, zero in the same heads. Verdicts need
        ``"every head"``.
    heads
        Whether attention is measured. False leaves out the tables of heads and leaders, and is faster.
    random_state
        Seed of the random tokens and weights of the chance levels.
    checkpoint
        Folder of finished parts: a run that was stopped continues from there, with the same result.
    progress
        True, False, None (shown where the work takes long), or a function called with ``(stage, done, total)``.

    Returns
    -------
    ProbeReport
        Sentences and tables.

    Examples
    --------
    >>> import hardmax as hm
    >>> model = hm.models.random_transformer(layers=2, heads=2, d=8, vocabulary=20, random_state=0)
    >>> report = hm.probe(model, [[3, 1, 4, 1, 5], [9, 2, 6]], interventions=["hardmax"])
    >>> len(report.heads), report.interventions["rule"].tolist()
    (4, ['hardmax'])
    """
    if not isinstance(model, Transformer):
        raise InputError("model", shown(model), "must be a transformer", "load one with hm.load_transformer(folder)")
    found = _tokenised(model, texts)
    seed = seeded(random_state)
    number = int(seed.generator.integers(2**31)) if seed.seed is None else seed.seed
    asked = [Run(one.rule, scope) for one in as_interventions(interventions) for scope in one.scopes(model)]
    runs = [*dict.fromkeys(run for one in asked for run in (one, one.control))]
    if runs and model.causal and model.unembedding is None:
        raise InputError("model", model.name, "has no scores of the next token", "leave out `interventions`")
    store = _Store(checkpoint, lambda: _fingerprint(model, found, number, heads, runs))
    total = len(found) * (len(model.layers) + 1) + len(runs) * len(parts(found))
    records = []
    with Ticker("probe", total, progress=progress) as ticker:
        for k, text in enumerate(found):
            records.append(_record(model, text, (number, k), heads, store, ticker))
        effects = _effects(model, found, asked, runs, store, ticker)
    sums = Tables(model, found, records)
    by_head = sums.heads(effects) if heads else as_frame("heads", empty("heads"))
    return ProbeReport(
        model=model.name,
        description=repr(model),
        causal=model.causal,
        texts=len(found),
        tokens=sum(len(one) for one in found),
        random_state=number,
        heads=by_head,
        layers=sums.layers(),
        leaders=sums.leaders() if heads else as_frame("leaders", empty("leaders")),
        weights=weights_table(model, by_head, number),
        interventions=effects,
        by_text=sums.by_text(),
    )


def _tokenised(model: Transformer, texts: object) -> list[Tokenised]:
    if isinstance(texts, str):
        texts = [texts]
    if not isinstance(texts, (Sequence, np.ndarray)):
        raise InputError("texts", shown(texts), "must be a list of texts", 'pass ["a text", "another one"]')
    if len(texts) and isinstance(texts[0], (int, np.integer)):
        texts = [texts]
    if len(texts) == 0:
        raise InputError("texts", "an empty list", "must have at least one text", 'pass ["a text"]')
    found = []
    for k, text in enumerate(texts):
        try:
            one = model.tokenise(text)
        except InputError as error:
            raise InputError(f"texts[{k}]", error.value, error.problem, error.marked_remedy) from None
        if len(one) < 2:
            raise InputError(f"texts[{k}]", "1 token", "must have at least two tokens", "pass a longer text")
        found.append(one)
    return found


class _Store:
    """Finished parts of the work in a folder, each written whole or not at all; without a folder nothing is stored."""

    _KIND = "part of a probe"

    def __init__(self, folder: PathLike | None, fingerprint: object) -> None:
        self._folder = None if folder is None else make_folder(folder)
        self._fingerprint = "" if folder is None else str(fingerprint() if callable(fingerprint) else fingerprint)

    def load(self, name: str) -> dict[str, np.ndarray] | None:
        """Arrays of a part, or None where it is not finished."""
        if self._folder is None or not self._file(name).exists():
            return None
        header, arrays = tensor_files.read(self._file(name), self._KIND)
        if header.get("fingerprint") != self._fingerprint:
            problem = "belongs to another model, other texts, interventions or settings"
            raise FileError(self._file(name), problem, "remove the folder, or pass another checkpoint")
        return arrays

    def save(self, name: str, arrays: dict[str, np.ndarray]) -> None:
        """Write a part."""
        if self._folder is not None:
            tensor_files.write(self._file(name), self._KIND, {"fingerprint": self._fingerprint}, arrays)

    def _file(self, name: str) -> Path:
        return Path(str(self._folder), f"{name}.safetensors")


def _fingerprint(model: Transformer, texts: list[Tokenised], seed: int, heads: bool, runs: list[Run]) -> str:
    """Hash of everything that must be equal for a run to be continued, the weights of the model included."""
    digest = hashlib.blake2b(digest_size=16)
    names = [(run.name, run.scope) for run in runs]
    digest.update(repr((repr(model), [one.ids for one in texts], seed, heads, names)).encode())
    seen: set[int] = set()

    def add(part: object) -> None:
        if isinstance(part, torch.Tensor):
            if part.data_ptr() not in seen:
                seen.add(part.data_ptr())
                digest.update(np.ascontiguousarray(part.detach().cpu().numpy()).tobytes())
        elif isinstance(part, tuple):
            for one in part:
                add(one)
        elif is_dataclass(part) and id(part) not in seen:
            seen.add(id(part))
            for field in fields(part):
                add(getattr(part, field.name))
        else:
            digest.update(repr(part).encode() if isinstance(part, (str, int, float, bool)) else b"-")

    for part in (model.embedding, model.layers, model.final_norm, model.unembedding):
        add(part)
    return digest.hexdigest()


def _record(
    model: Transformer, text: Tokenised, seed: tuple[int, int], heads: bool, store: _Store, ticker: Ticker
) -> TextRecord:
    name, note = f"text-{seed[1]:06d}", f"text {seed[1]}"
    arrays = store.load(name)
    if arrays is None:
        found = text_record(model, text, seed, heads, lambda: ticker.advance(note=note))
        store.save(name, found.arrays())
        return found
    depth, tokens = len(model.layers), len(text)
    shapes: dict[str, tuple[int | None, ...]] = {
        "heads": (depth, model.heads, len(HEAD_SUMS)),
        "sharpened": (depth, model.heads, len(FACTORS)),
        "layers": (depth + 1, len(LAYER_SUMS)),
        **dict.fromkeys(("leads", "followers", "received"), (tokens,)),
    }
    ticker.advance(depth + 1, note)
    for key, shape in shapes.items():
        if key not in arrays or arrays[key].shape != shape:
            raise FileError(name, f"has no array {key!r} of shape {shape}", "remove the checkpoint and run again")
    return TextRecord(**{key: arrays[key] for key in shapes})


def _effects(
    model: Transformer, texts: list[Tokenised], asked: list[Run], runs: list[Run], store: _Store, ticker: Ticker
) -> pd.DataFrame:
    """Table of interventions."""
    if not asked:
        return as_frame("interventions", empty("interventions"))
    found, unchanged = results(model, texts, runs, store, lambda note: ticker.advance(note=note))
    predicted = sum(len(one) - 1 for one in texts)

    def value(rows: np.ndarray) -> float:
        # Beyond 700 nats per token the perplexity leaves float64.
        return float(np.exp(min(700.0, rows.sum() / predicted))) if model.causal else float(rows.mean())

    def effect(one: float) -> float:
        return one / baseline - 1 if model.causal else 1 - one

    baseline = value(unchanged)
    at = {run: k for k, run in enumerate(runs)}
    values = [value(found[at[run]]) for run in asked]
    zeros = [value(found[at[run.control]]) for run in asked]
    single = [run.scope[0] if len(run.scope) == 1 else None for run in asked]
    layers = [{pair[0] for pair in run.scope} for run in asked]
    return as_frame(
        "interventions",
        {
            "rule": [run.name for run in asked],
            "where": [run.where(model) for run in asked],
            "layer": [next(iter(one)) if len(one) == 1 else None for one in layers],
            "head": [None if one is None else one[1] for one in single],
            "heads": [len(run.scope) for run in asked],
            "texts": [len(texts)] * len(asked),
            "tokens": [sum(len(one) for one in texts)] * len(asked),
            "measure": ["perplexity" if model.causal else "cosine"] * len(asked),
            "value": values,
            "baseline": [baseline] * len(asked),
            "zero": zeros,
            "effect": [effect(one) for one in values],
            "zero_effect": [effect(one) for one in zeros],
        },
    )
