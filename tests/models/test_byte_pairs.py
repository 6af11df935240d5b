"""Tokenisers in vocab.json and merges.txt: the same tokens as plain loops over the merges give; errors."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hardmax as hm
import model_files
from model_files import CONFIGS

pytest.importorskip("tokenizers")

MERGES = ["h e", "Ġ t", "Ġt he", "l l", "he ll", "hell o", "o n", "Ġ 1", "à ©", "Ġ Ġ"]
TEXT = "hello the hell on 12  the é, don't\n"
SPECIAL = {
    "gpt2": ["<|endoftext|>"],
    "roberta": ["<s>", "<pad>", "</s>", "<unk>", "<mask>"],
    "qwen2": ["<|endoftext|>", "<|im_start|>"],
}
# Splits of texts before bytes are joined, written for the letters of these tests.
GPT2 = r"'t| ?[a-zé]+| ?[0-9]+| ?[^\sa-zé0-9]+|\s+(?!\S)|\s+"
QWEN2 = r"'t|[^\r\na-zé0-9]?[a-zé]+|[0-9]| ?[^\sa-zé0-9]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"


def letters() -> dict[int, str]:
    """How bytes are written, in the words of the published code of GPT-2."""
    plain = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [byte for byte in range(256) if byte not in plain]
    return {byte: chr(byte) for byte in plain} | {byte: chr(256 + k) for k, byte in enumerate(others)}


def vocabulary(family: str) -> dict[str, int]:
    words = [*SPECIAL[family], *letters().values(), *(one.replace(" ", "") for one in MERGES)]
    return {word: k for k, word in enumerate(words)}


def joined(text: str, pattern: str) -> list[str]:
    """Tokens by plain loops: in each part of the text the first merge that applies is done, until none does."""
    ranks = {tuple(one.split(" ")): k for k, one in enumerate(MERGES)}
    found = []
    for part in re.findall(pattern, text):
        pieces = [letters()[byte] for byte in part.encode()]
        while True:
            known = [(ranks[pair], k) for k, pair in enumerate(pairwise(pieces)) if pair in ranks]
            if not known:
                break
            place = min(known)[1]
            pieces[place : place + 2] = ["".join(pieces[place : place + 2])]
        found += pieces
    return found


def write(folder: Path, family: str, **settings: Any) -> Path:
    """A tiny model whose tokeniser is in vocab.json and merges.txt."""
    numbers = vocabulary(family)
    tensors = model_files.random_tensors(family)
    words = next(name for name in tensors if re.search("wte|word_embeddings|embed_tokens", name))
    tensors[words] = np.zeros((len(numbers), model_files.D), dtype=np.float32)
    model_files.write_folder(folder, CONFIGS[family] | {"vocab_size": len(numbers)}, tensors)
    (folder / "vocab.json").write_text(json.dumps(numbers), encoding="utf-8")
    (folder / "merges.txt").write_text("#version: 0.2\n" + "\n".join(MERGES) + "\n", encoding="utf-8")
    if settings:
        (folder / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
    return folder


@pytest.mark.parametrize("family", SPECIAL)
def test_tokens_are_those_of_plain_loops(family: str, tmp_path: Path) -> None:
    model = hm.load_transformer(write(tmp_path / "model", family))
    numbers = vocabulary(family)
    expected = [numbers[one] for one in joined(TEXT, QWEN2 if family == "qwen2" else GPT2)]
    if family == "roberta":
        expected = [numbers["<s>"], *expected, numbers["</s>"]]
    found = model.tokenise(TEXT)
    assert [*found.ids] == expected
    assert found.words[:2] == (("<s>", "hello") if family == "roberta" else ("hello", " the"))
    assert sum(found.special) == (2 if family == "roberta" else 0)
    assert "".join(word for word, special in zip(found.words, found.special, strict=True) if not special).startswith(
        "hello the hell on 12  the "
    )
    assert hm.load_transformer(tmp_path / "model", tokeniser=tmp_path / "model" / "vocab.json").tokenise(TEXT) == found


def test_special_tokens_are_whole(tmp_path: Path) -> None:
    model = hm.load_transformer(write(tmp_path / "model", "roberta"))
    assert model.tokenise("hello <mask>the").words == ("<s>", "hello", "<mask>", "t", "he", "</s>")
    plain = hm.load_transformer(write(tmp_path / "plain", "gpt2"))
    assert plain.tokenise("hello<|endoftext|>").words == ("hello", "<|endoftext|>")
    begins = write(tmp_path / "begins", "gpt2", add_bos_token=True, bos_token={"content": "<|endoftext|>"})
    found = hm.load_transformer(begins).tokenise("hello")
    assert (found.words, found.special) == (("<|endoftext|>", "hello"), (True, False))
    blank = hm.load_transformer(write(tmp_path / "blank", "gpt2", add_prefix_space=True))
    assert blank.tokenise("the").words == (" the",)


def test_added_tokens_of_other_files(tmp_path: Path) -> None:
    folder = write(tmp_path / "model", "gpt2")
    last = len(vocabulary("gpt2"))
    numbers = vocabulary("gpt2")
    del numbers["Ġ1"]  # so that the embedding has room
    place = last - 3
    (folder / "vocab.json").write_text(json.dumps({word: k for k, word in enumerate(numbers)}), encoding="utf-8")
    (folder / "merges.txt").write_text("h e\r\n\r\n", encoding="utf-8")
    (folder / "added_tokens.json").write_text(json.dumps({"<new>": last - 1}))
    assert hm.load_transformer(folder).tokenise("he<new>").ids[-1] == last - 1
    (folder / "added_tokens.json").unlink()
    decoder = {str(last - 1): {"content": "<end>", "rstrip": True}, "x": {"content": "y"}, "5": 3}
    (folder / "tokenizer_config.json").write_text(json.dumps({"added_tokens_decoder": decoder}))
    assert hm.load_transformer(folder).tokenise("he<end> he").words == ("he", "<end>", "he")
    (folder / "added_tokens.json").write_text(json.dumps({"<new>": place}))
    with pytest.raises(hm.FileError, match="vocab.json: must have a number of its own, from 0, for each word"):
        hm.load_transformer(folder)


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("vocab.json", "[]", "vocab.json: must hold an object"),
        ("vocab.json", "{}", "vocab.json: must have a number of its own"),
        ("vocab.json", '{"<s>": 0, "a": "b"}', "vocab.json: must have a number of its own"),
        ("vocab.json", '{"<s>": 0, "a": -1}', "vocab.json: must have a number of its own"),
        ("vocab.json", '{"h": 0, "e": 1, "he": 2}', "vocab.json: is no vocabulary for merges.txt"),
        ("merges.txt", "h e\nthe\n", "merges.txt: has merges that are not pairs"),
        ("merges.txt", "h q\nx yz\n", "vocab.json: is no vocabulary for merges.txt"),
    ],
)
def test_errors(file: str, text: str, message: str, tmp_path: Path) -> None:
    folder = write(tmp_path / "model", "roberta")
    (folder / file).write_text(text, encoding="utf-8")
    with pytest.raises(hm.FileError, match=message):
        hm.load_transformer(folder)


def test_a_tokeniser_whose_splits_are_not_known_is_not_guessed(tmp_path: Path) -> None:
    """A Llama with vocab.json and merges.txt may split numbers or not: it takes numbers of tokens only."""
    folder = write(tmp_path / "gpt2", "gpt2")
    model_files.write_folder(tmp_path / "llama", CONFIGS["llama"], model_files.random_tensors("llama"))
    for name in ("vocab.json", "merges.txt"):
        (tmp_path / "llama" / name).write_bytes((folder / name).read_bytes())
    assert hm.load_transformer(tmp_path / "llama").tokeniser is None
    with pytest.raises(
        hm.FileError, match=r"vocab.json: needs merges.txt, and a config.json .* known are GPT2Tokenizer"
    ):
        hm.load_transformer(folder, tokeniser=tmp_path / "llama" / "vocab.json")
