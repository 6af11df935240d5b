"""Damaged and hostile model files give errors of this library only, within bounded time and memory."""

from __future__ import annotations

import json
import resource
import shutil
import struct
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import hardmax as hm
import model_files
from model_files import CONFIGS

_NUMBERS = [0, -1, 1, 2, 3, 2**31, 2**63, 10**30, 1e308, -1.5, float("nan"), float("inf")]
_VALUES = [*_NUMBERS, None, True, False, "", "gelu", "\0", "../x", [], {}, [1, 2], {"a": 1}, "relative_key", "9" * 5000]


def mutated_bytes(data: bytes, rng: np.random.Generator, first: int = 0, last: int | None = None) -> bytes:
    """Some bytes of a part of the data changed, removed, repeated or cut off."""
    last = len(data) if last is None else min(last, len(data))
    found = bytearray(data)
    kind = rng.integers(5)
    place = int(rng.integers(first, max(first + 1, last)))
    if kind == 0:
        for _ in range(int(rng.integers(1, 6))):
            found[int(rng.integers(first, max(first + 1, last)))] = int(rng.integers(256))
    elif kind == 1:
        del found[place : place + int(rng.integers(1, 40))]
    elif kind == 2:
        found[place:place] = found[place : place + int(rng.integers(1, 40))]
    elif kind == 3:
        del found[place:]
    else:
        size = int(rng.choice([1, 2, 4, 8]))
        extreme = [0, 1, 2**7, 2**15, 2**31, 2**31 - 1, 2**63 - 1, 2**64 - 1][int(rng.integers(8))]
        found[place : place + size] = extreme.to_bytes(8, "little")[:size]
    return bytes(found)


def mutated_json(value: object, rng: np.random.Generator) -> object:
    """One entry, at any depth, removed or replaced by something else."""
    if isinstance(value, dict) and value and rng.random() < 0.9:
        name = str(rng.choice(sorted(value)))
        kind = rng.random()
        if kind < 0.2:
            return {key: one for key, one in value.items() if key != name}
        return value | {name: mutated_json(value[name], rng)}
    if isinstance(value, list) and value and rng.random() < 0.9:
        k = int(rng.integers(len(value)))
        return [*value[:k], mutated_json(value[k], rng), *value[k + 1 :]]
    return _VALUES[int(rng.integers(len(_VALUES)))]


def write_tokeniser(folder: Path, words: int = model_files.WORDS) -> None:
    """A byte-level tokeniser with as many tokens as the tiny models have."""
    tokenizers = pytest.importorskip("tokenizers")
    letters = [*"abcdefghijklmnopqrstuvwxyz", "Ġ", "he", "th"][:words]
    inner = tokenizers.Tokenizer(
        tokenizers.models.BPE({letter: k for k, letter in enumerate(letters)}, [("h", "e"), ("t", "h")])
    )
    inner.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.save(str(folder / "tokenizer.json"))


def _folder(family: str, layout: str) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        model_files.write_folder(folder, CONFIGS[family], model_files.random_tensors(family), layout)
        if family == "llama":
            write_tokeniser(folder)
        else:
            prefix = "##" if family == "bert" else ""
            words = ["[CLS]", "[SEP]", "[UNK]", *(prefix + letter for letter in "abcdef"), *"abcdef"]
            (folder / "vocab.txt").write_text("\n".join(dict.fromkeys(words)), encoding="utf-8")
        if family == "bert":
            modules = [{"path": "", "type": "x.Transformer"}, {"path": "1_Pooling", "type": "x.Pooling"}]
            (folder / "modules.json").write_text(json.dumps(modules))
            (folder / "1_Pooling").mkdir(exist_ok=True)
            (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode_mean_tokens": true}')
        if family == "gpt2":
            words = [*"abcdefghijklmnopqrstuvwxyz", "Ġ", "he", "th", "<|endoftext|>"]
            (folder / "vocab.json").write_text(json.dumps({word: k for k, word in enumerate(words)}))
            (folder / "merges.txt").write_text("#version: 0.2\nh e\nt h\n")
            added = {"29": {"content": "<|endoftext|>", "lstrip": False}}
            settings = {"add_bos_token": True, "bos_token": "<|endoftext|>", "added_tokens_decoder": added}
            (folder / "tokenizer_config.json").write_text(json.dumps(settings))
        return folder

    return write


def _gguf(family: str) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        folder.mkdir()
        words = [*"abcdefghijklmnopqrstuvwxyz", "Ġ", "he", "th", "<s>"]
        if family == "bert":
            words = ["[UNK]", "[CLS]", "[SEP]", "▁a", "▁the", *"bcdefghijklmnopqrstuvwxyz"]
        return model_files.write_gguf(
            folder / "tiny.gguf",
            family,
            model_files.random_tensors(family),
            tokenizer__ggml__model="bert" if family == "bert" else "gpt2",
            tokenizer__ggml__pre="smollm",
            tokenizer__ggml__tokens=words,
            tokenizer__ggml__token_type=[1] * 29 + [3],
            tokenizer__ggml__merges=["h e", "t h"],
            tokenizer__ggml__bos_token_id=29,
            tokenizer__ggml__add_bos_token=True,
        )

    return write


SOURCES = {
    "bert": _folder("bert", "whole"),
    "albert": _folder("albert", "torch"),
    "old albert": _folder("albert", "old torch"),
    "llama": _folder("llama", "shards"),
    "gguf": _gguf("llama"),
    "gpt2": _folder("gpt2", "whole"),
    "bert gguf": _gguf("bert"),
}


def damage(path: Path, rng: np.random.Generator) -> Path:
    """One file of a model changed, in its header more often than among its weights."""
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    files = [file for file in files if file.is_file()]
    file = files[int(rng.integers(len(files)))]
    data = file.read_bytes()
    if file.suffix == ".json" and rng.random() < 0.7:
        file.write_text(json.dumps(mutated_json(json.loads(data), rng)), encoding="utf-8", errors="replace")
        return file
    if file.suffix == ".safetensors":
        size = struct.unpack("<Q", data[:8])[0]
        if rng.random() < 0.6:
            header = json.dumps(mutated_json(json.loads(data[8 : 8 + size]), rng)).encode()
            file.write_bytes(struct.pack("<Q", len(header)) + header + data[8 + size :])
            return file
        first, last = 0, 8 + size
    else:
        first, last = 0, 2500 if file.suffix == ".gguf" else len(data)
    file.write_bytes(mutated_bytes(data, rng, first, last if rng.random() < 0.8 else None))
    return file


def survives(path: Path) -> str:
    """Name of the error of this library that a model gives, or "loaded"."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model = hm.load_transformer(path)
            model([1, 2, 3][: model.longest])
            if model.tokeniser is not None:
                model("a he the")
    except hm.HardmaxError as error:
        return type(error).__name__
    return "loaded"


def run_damage(number: int, folder: Path, seed: int) -> dict[str, int]:
    """What came of so many damaged models."""
    rng = np.random.default_rng(seed)
    originals = {name: write(folder / f"{name} original") for name, write in SOURCES.items()}
    for original in originals.values():
        assert survives(original) == "loaded"
    found: dict[str, int] = {}
    names = [*SOURCES]
    for k in range(number):
        original = originals[names[k % len(names)]]
        copy = folder / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        if original.is_dir():
            shutil.copytree(original, copy)
            path = copy
        else:
            copy.mkdir()
            path = Path(shutil.copy(original, copy))
        damage(path, rng)
        outcome = survives(path)
        found[outcome] = found.get(outcome, 0) + 1
    return found


def test_damaged_files_give_our_errors(tmp_path: Path) -> None:
    found = run_damage(200, tmp_path, seed=1)
    assert sum(found.values()) == 200
    assert found["FileError"] > 80


@pytest.mark.slow
def test_2000_damaged_files_give_our_errors(tmp_path: Path) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = run_damage(2000, tmp_path, seed=2)
    print(found)
    assert sum(found.values()) == 2000
    assert found["FileError"] > 800
    # Kilobytes: a bad file must not make anything large.
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 500_000
