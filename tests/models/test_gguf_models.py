"""GGUF files of split models, and of encoders with their own tokenisers and pooling."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import hardmax as hm
import model_files
from model_files import CONFIGS

pytest.importorskip("gguf")

_IDS = [3, 17, 5, 5, 29]


@pytest.fixture
def parts(tmp_path: Path) -> list[Path]:
    return model_files.write_gguf_parts(tmp_path / "parts", "llama", model_files.random_tensors("llama"))


def test_a_split_model_is_read_from_any_of_its_files(parts: list[Path]) -> None:
    expected = model_files.states(CONFIGS["llama"], model_files.random_tensors("llama"), _IDS)[-1]
    for path in parts:
        model = hm.load_transformer(path, dtype="float64")
        np.testing.assert_allclose(model(_IDS), expected, atol=1e-6)


def test_errors_of_split_models(parts: list[Path], tmp_path: Path) -> None:
    shutil.copy(parts[1], tmp_path / "tiny.gguf")
    with pytest.raises(hm.FileError, match=r"one of the 3 files of a model, and its name does not say which: name the"):
        hm.load_transformer(tmp_path / "tiny.gguf")
    third = parts[2].read_bytes()
    shutil.copy(parts[1], parts[2])
    with pytest.raises(hm.FileError, match=r"00003-of-00003.gguf: is not part 3 of 3"):
        hm.load_transformer(parts[0])
    parts[2].write_bytes(third)
    parts[1].unlink()
    with pytest.raises(hm.FileError, match=r"'tiny-00002-of-00003.gguf' is not beside it: .*llama-gguf-split --merge"):
        hm.load_transformer(parts[0])
    path = model_files.write_gguf(tmp_path / "x.gguf", "llama", {}, split__count=10**6)
    with pytest.raises(hm.FileError, match="is said to be one of 1000000 parts"):
        hm.load_transformer(path)


def test_a_tensor_in_two_parts_is_refused(parts: list[Path]) -> None:
    tensors = model_files.random_tensors("llama")
    first = {name: tensors[name] for name in [*tensors][::3]} | {[*tensors][1]: tensors[[*tensors][1]]}
    model_files.write_gguf(parts[0], "llama", first, split__no=0, split__count=3)
    with pytest.raises(hm.FileError, match=r"00002-of-00003.gguf: has the tensor 'blk.*' of another part"):
        hm.load_transformer(parts[0])


WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "film", "##s", "a", ",", "é"]


def test_words_of_an_encoder(tmp_path: Path) -> None:
    """The same tokens as from the vocabulary of a folder; GGUF files mark the beginnings of words instead."""
    pytest.importorskip("tokenizers")
    tensors = model_files.random_tensors("bert")
    folder = model_files.write_folder(tmp_path / "model", CONFIGS["bert"], tensors)
    marked = [word if word[0] == "[" else word[2:] if word.startswith("##") else f"▁{word}" for word in WORDS]
    for words in (WORDS, [*WORDS, "Film"]):  # without and with capital letters
        (folder / "vocab.txt").write_text("\n".join(words), encoding="utf-8")
        fields = {
            "tokenizer__ggml__model": "bert",
            "tokenizer__ggml__tokens": [*marked, "▁Film"][: len(words)],
            "tokenizer__ggml__token_type": [3 if word[0] == "[" else 1 for word in words],
        }
        path = model_files.write_gguf(tmp_path / "x.gguf", "bert", tensors, **fields)
        one, other = hm.load_transformer(folder), hm.load_transformer(path)
        for text in ("A FILMS, x", "Film films é", "a[SEP]a"):
            assert other.tokenise(text) == one.tokenise(text)
        assert other.tokenise("a films").words == ("[CLS]", "a", "film", "##s", "[SEP]")
    unknown = {"tokenizer__ggml__model": "bert", "tokenizer__ggml__tokens": ["▁a", "b"]}
    path = model_files.write_gguf(tmp_path / "x.gguf", "bert", tensors, **unknown)
    with pytest.raises(hm.FileError, match="has no usable tokeniser"):
        hm.load_transformer(path)


def test_pooling_of_an_encoder(tmp_path: Path) -> None:
    tensors = model_files.random_tensors("bert")
    found = {}
    for kind in (0, 1, 2, 3):
        path = model_files.write_gguf(tmp_path / f"{kind}.gguf", "bert", tensors, bert__pooling_type=kind)
        if kind < 3:
            found[kind] = hm.load_transformer(path).pooling
    assert found == {0: "mean", 1: "mean", 2: "first"}
    with pytest.raises(
        hm.FileError, match='asks for the pooling of number 3, which is not supported: pass pooling="mean"'
    ):
        hm.load_transformer(path)
    assert hm.load_transformer(path, pooling="mean").pooling == "mean"


def test_settings_are_named_as_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "x.gguf"
    model_files.write_gguf(path, "gpt2", model_files.random_tensors("gpt2"))
    # A number of heads that does not divide the 16 coordinates, in place.
    name = b"gpt2.attention.head_count"
    data = path.read_bytes()
    place = data.index(name) + len(name) + 4
    path.write_bytes(data[:place] + (3).to_bytes(4, "little") + data[place + 4 :])
    with pytest.raises(hm.FileError, match=r"'gpt2.attention.head_count' is 3, and must divide the 16 coordinates"):
        hm.load_transformer(path)
