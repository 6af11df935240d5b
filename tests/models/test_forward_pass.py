"""Loaded models against a forward pass in NumPy: every architecture, file layout, dtype and attention rule."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import hardmax as hm
import model_files
from model_files import CONFIGS, RULES

_IDS = [3, 17, 5, 5, 29, 8, 11, 3, 20, 14]
_CAUSAL = ("gpt2", "llama", "qwen2", "mistral")


def tiny(family: str, folder: Path, dtype: str = "float64") -> tuple[hm.Transformer, model_files.Tensors]:
    """A loaded tiny model, and its weights."""
    tensors = model_files.random_tensors(family)
    return hm.load_transformer(model_files.write_folder(folder, CONFIGS[family], tensors), dtype=dtype), tensors


def all_states(model: hm.Transformer, ids: list[int]) -> list[np.ndarray]:
    """Tokens at every depth, and those after the final normalisation."""
    return [*(one.numpy() for one in model.states(model.tokenise(ids))), np.asarray(model(ids))]


@pytest.mark.parametrize("family", CONFIGS)
@pytest.mark.parametrize("layout", ["whole", "shards", "torch", "old torch"])
def test_every_architecture(family: str, layout: str, tmp_path: Path) -> None:
    tensors = model_files.random_tensors(family)
    folder = model_files.write_folder(tmp_path / "a model", CONFIGS[family], tensors, layout)
    expected = model_files.states(CONFIGS[family], tensors, _IDS)
    for dtype, error in (("float64", 1e-12), ("float32", 2e-5)):
        model = hm.load_transformer(folder, dtype=dtype)
        assert (model.family, model.name, model.causal) == (family, "a model", family in _CAUSAL)
        found = all_states(model, _IDS)
        assert found[0].dtype == np.dtype(dtype)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, atol=error * np.abs(other).max())
        if model.causal:
            logits = expected[-1] @ model_files.unembedding(CONFIGS[family], tensors).T
            np.testing.assert_allclose(model.logits(_IDS), logits, atol=error * np.abs(logits).max())


@pytest.mark.parametrize("family", ["bert", "gpt2", "llama", "qwen2", "mistral"])
def test_gguf_files_compute_what_folders_do(family: str, tmp_path: Path) -> None:
    pytest.importorskip("gguf")
    tensors = model_files.random_tensors(family)
    model = hm.load_transformer(model_files.write_gguf(tmp_path / "tiny.gguf", family, tensors), dtype="float64")
    expected = model_files.states(CONFIGS[family], tensors, _IDS)
    # Settings of a GGUF file are rounded to float32.
    for one, other in zip(all_states(model, _IDS), expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-7 * np.abs(other).max())
    folder = hm.load_transformer(model_files.write_folder(tmp_path / "tiny", CONFIGS[family], tensors), dtype="float64")
    assert model.longest == folder.longest
    if model.causal:
        np.testing.assert_allclose(model.logits(_IDS), folder.logits(_IDS), rtol=1e-6)
    else:
        np.testing.assert_allclose(model.embed(_IDS), folder.embed(_IDS), rtol=1e-6)
    rotary = model.layers[0].attention.rotary
    assert (rotary is None) == (family in ("bert", "gpt2"))
    assert rotary is None or rotary.interleaved == (family != "qwen2")
    assert model.layers[0].window == CONFIGS[family].get("sliding_window")


@pytest.mark.parametrize("family", CONFIGS)
def test_a_batch_equals_its_texts(family: str, tmp_path: Path) -> None:
    model, _ = tiny(family, tmp_path)
    texts = [_IDS, _IDS[:1], _IDS[3:7], [*_IDS, *_IDS], _IDS[::-1]]
    for text, one in zip(texts, model(texts), strict=True):
        np.testing.assert_allclose(one, model(text), atol=1e-12)
    # Zero tokens of padding must not be attended to under other rules either.
    for rule in ("hardmax", "top-3", "uniform"):
        changed = model.with_attention(rule, heads=[0, 2])
        for text, one in zip(texts, changed(texts), strict=True):
            np.testing.assert_allclose(one, changed(text), atol=1e-12)


@pytest.mark.parametrize("family", ["bert", "albert", "gpt2", "llama", "mistral"])
@pytest.mark.parametrize("rule", RULES)
def test_every_rule_on_single_heads(family: str, rule: str, tmp_path: Path) -> None:
    model, tensors = tiny(family, tmp_path)
    for heads in ([1], [0, 1, 2, 3]):
        expected = model_files.states(CONFIGS[family], tensors, _IDS, dict.fromkeys(heads, RULES[rule]))
        found = all_states(model.with_attention(rule, heads=heads), _IDS)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-11 * np.abs(other).max())
    # One layer alone: the first state after it differs from that of the model, those before do not.
    changed = all_states(model.with_attention(rule, layers=1, heads=2), _IDS)
    same = [bool((one == other).all()) for one, other in zip(changed, all_states(model, _IDS), strict=True)]
    assert same == [True] * 5 if rule == "softmax" else same == [True, True, False, False, False]


def test_repeated_tokens_tie(tmp_path: Path) -> None:
    tensors = model_files.random_tensors("bert")
    tensors["bert.embeddings.position_embeddings.weight"][:] = 0
    model = hm.load_transformer(model_files.write_folder(tmp_path, CONFIGS["bert"], tensors), dtype="float64")
    ids = [4, 9, 4, 4, 2, 9, 2, 4, 9, 1]
    rules = dict.fromkeys(range(model_files.HEADS), RULES["hardmax"])
    expected = model_files.states(CONFIGS["bert"], tensors, ids, rules)
    for one, other in zip(all_states(model.with_attention("hardmax"), ids), expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-11)


@pytest.mark.parametrize("family", CONFIGS)
def test_a_run_is_the_model(family: str, tmp_path: Path) -> None:
    model, _ = tiny(family, tmp_path)
    run = hm.simulate(model.tokens(_IDS), model.layers)
    for one, other in zip(run.tokens, all_states(model, _IDS)[:-1], strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12)
    assert model.tied == (family == "albert")


@pytest.mark.parametrize("family", ["bert", "distilbert", "albert", "gpt2"])
@pytest.mark.parametrize("rule", ["softmax", "hardmax", "top-3"])
def test_a_layer_in_parts_of_the_library(family: str, rule: str, tmp_path: Path) -> None:
    model, _ = tiny(family, tmp_path)
    layer = model.layers[1].with_rule(rule)
    tokens = torch.from_numpy(model.tokens(_IDS))
    np.testing.assert_allclose(layer.block()(tokens), layer(tokens), atol=1e-11)
    with pytest.raises(hm.InputError, match="several rules"):
        model.layers[1].with_rule("hardmax", [1]).block()


def test_rotary_layers_have_no_parts_in_the_library(tmp_path: Path) -> None:
    model, _ = tiny("llama", tmp_path)
    with pytest.raises(hm.InputError, match="rotary positions"):
        model.layers[0].block()


@pytest.mark.parametrize("family", ["bert", "llama"])
def test_masses_count_as_copies(family: str, tmp_path: Path) -> None:
    model, _ = tiny(family, tmp_path)
    layer = model.layers[0]
    tokens = torch.from_numpy(model.tokens(_IDS))
    twice = layer.step(tokens, torch.full((len(_IDS),), 2.0, dtype=torch.float64))
    np.testing.assert_allclose(twice, layer(tokens), atol=1e-12)
    mass = torch.ones(len(_IDS), dtype=torch.float64)
    mass[2] = 3.0
    if family == "bert":
        copies = torch.cat([tokens, tokens[2:3], tokens[2:3]])
        np.testing.assert_allclose(layer.step(tokens, mass), layer(copies)[: len(_IDS)], atol=1e-12)
    else:
        assert not torch.allclose(layer.step(tokens, mass), layer(tokens))


def test_rxnmapper_against_numpy() -> None:
    found = [one.path for one in hm.models.installed_models() if one.name == "rxnmapper"]
    if not found:
        pytest.skip("needs the package rxnmapper")
    model = hm.load_transformer(found[0], dtype="float64")
    assert model.tied
    assert (len(model.layers), model.heads, model.dimension) == (12, 8, 256)
    import json

    config = json.loads((found[0] / "config.json").read_text())
    weights = torch.load(found[0] / "pytorch_model.bin", weights_only=True, map_location="cpu")
    text = model.tokenise("CC(C)S.Fc1cccnc1F.O=C([O-])[O-].[K+]>>CC(C)Sc1ncccc1F")
    assert text.words[:6] == ("[CLS]", "C", "C", "(", "C", ")")
    assert text.words[-4:] == ("c", "1", "F", "[SEP]")
    assert (text.special[0], text.special[1], text.special[-1]) == (True, False, True)
    expected = model_files.states(config, {name: one.numpy() for name, one in weights.items()}, list(text.ids))
    for one, other in zip(all_states(model, list(text.ids)), expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-11)


def _published_llama3(base: float, width: int, ropes: dict[str, float]) -> list[float]:
    """Angles of Llama 3.1, wavelength by wavelength as published."""
    found = []
    for j in range(width // 2):
        angle = base ** (-2 * j / width)
        wavelength = 2 * np.pi / angle
        before = ropes["original_max_position_embeddings"]
        low, high = ropes["low_freq_factor"], ropes["high_freq_factor"]
        if wavelength < before / high:
            found.append(angle)
        elif wavelength > before / low:
            found.append(angle / ropes["factor"])
        else:
            smooth = (before / wavelength - low) / (high - low)
            found.append((1 - smooth) * angle / ropes["factor"] + smooth * angle)
    return found


def test_scaled_rotary_angles(tmp_path: Path) -> None:
    # Heads of 32 coordinates, so that all three ranges of wavelengths occur.
    ropes = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 64}
    config = CONFIGS["llama"] | {"head_dim": 32, "rope_theta": 500.0}
    tensors = model_files.random_tensors("llama")
    rng = np.random.default_rng(3)
    for name in [name for name in tensors if "self_attn" in name]:
        rows = 64 if "k_proj" in name or "v_proj" in name else 128
        shape = (16, 128) if "o_proj" in name else (rows, 16)
        tensors[name] = rng.normal(size=shape).astype(np.float32)
    plain = [500.0 ** (-2 * j / 32) for j in range(16)]
    for name, scaling, expected in (
        ("plain", None, plain),
        ("linear", {"rope_type": "linear", "factor": 4.0}, [angle / 4 for angle in plain]),
        ("llama3", {"rope_type": "llama3", **ropes}, _published_llama3(500.0, 32, ropes)),
    ):
        for key in ("rope_scaling", "rope_parameters"):
            folder = model_files.write_folder(tmp_path / name / key, config | {key: scaling}, tensors)
            rotary = hm.load_transformer(folder).layers[0].attention.rotary
            assert rotary is not None
            np.testing.assert_allclose(rotary.frequencies, expected, rtol=1e-12)
    assert len({round(a / b, 6) for a, b in zip(expected, plain, strict=True)}) > 3
