"""Tiny models of every architecture as files, and their forward pass in NumPy, head by head and token by token."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file
from scipy.special import erf

WORDS, D, UNITS, LAYERS, HEADS, PLACES = 30, 16, 20, 3, 4, 24
Tensors = dict[str, np.ndarray]
_ENCODER = {
    "vocab_size": WORDS,
    "hidden_size": D,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "intermediate_size": UNITS,
    "max_position_embeddings": PLACES,
    "hidden_act": "gelu",
    "layer_norm_eps": 1e-12,
}
_LLAMA = {
    **_ENCODER,
    "num_key_value_heads": 2,
    "hidden_act": "silu",
    "rms_norm_eps": 1e-5,
    "rope_theta": 100.0,
    "tie_word_embeddings": False,
}
CONFIGS: dict[str, dict[str, Any]] = {
    "bert": {"model_type": "bert", **_ENCODER},
    "roberta": {"model_type": "roberta", **_ENCODER, "pad_token_id": 1},
    "distilbert": {
        "model_type": "distilbert",
        "vocab_size": WORDS,
        "dim": D,
        "n_layers": LAYERS,
        "n_heads": HEADS,
        "hidden_dim": UNITS,
        "max_position_embeddings": PLACES,
        "activation": "relu",
    },
    "albert": {"model_type": "albert", **_ENCODER, "embedding_size": 6, "hidden_act": "gelu_new"},
    "gpt2": {
        "model_type": "gpt2",
        "vocab_size": WORDS,
        "n_embd": D,
        "n_layer": LAYERS,
        "n_head": HEADS,
        "n_inner": UNITS,
        "n_positions": PLACES,
        "activation_function": "gelu_new",
        "layer_norm_epsilon": 1e-5,
    },
    "llama": {"model_type": "llama", **_LLAMA},
    "qwen2": {"model_type": "qwen2", **_LLAMA, "tie_word_embeddings": True, "use_sliding_window": False},
    "mistral": {"model_type": "mistral", **_LLAMA, "sliding_window": 5},
}
_BERT_NAMES = (
    "attention.self.query",
    "attention.self.key",
    "attention.self.value",
    "attention.output.dense",
    "attention.output.LayerNorm",
    "intermediate.dense",
    "output.dense",
    "output.LayerNorm",
)
ENCODER_NAMES = {
    "bert": ("bert.", "encoder.layer.{}.", _BERT_NAMES),
    "roberta": ("", "encoder.layer.{}.", _BERT_NAMES),
    "distilbert": (
        "distilbert.",
        "transformer.layer.{}.",
        (
            "attention.q_lin",
            "attention.k_lin",
            "attention.v_lin",
            "attention.out_lin",
            "sa_layer_norm",
            "ffn.lin1",
            "ffn.lin2",
            "output_layer_norm",
        ),
    ),
    "albert": (
        "albert.",
        "encoder.albert_layer_groups.0.albert_layers.0.",
        (
            "attention.query",
            "attention.key",
            "attention.value",
            "attention.dense",
            "attention.LayerNorm",
            "ffn",
            "ffn_output",
            "full_layer_layer_norm",
        ),
    ),
}


def random_tensors(family: str, seed: int = 0) -> Tensors:
    """Weights by the names of published files, so large that attention is far from uniform."""
    rng = np.random.default_rng(seed)
    made: Tensors = {}

    def draw(name: str, *shape: int) -> None:
        centre = 1.0 if name.endswith("norm.weight") or "Norm.weight" in name or ".ln_" in name else 0.0
        made[name] = rng.normal(centre if name.endswith("weight") else 0.0, 0.4, shape).astype(np.float32)

    def draw_pair(name: str, rows: int, columns: int) -> None:
        draw(f"{name}.weight", rows, columns)
        draw(f"{name}.bias", rows)

    def draw_norm(name: str, size: int) -> None:
        draw(f"{name}.weight", size)
        draw(f"{name}.bias", size)

    if family in ENCODER_NAMES:
        prefix, layer, names = ENCODER_NAMES[family]
        e = CONFIGS[family].get("embedding_size", D)
        draw(f"{prefix}embeddings.word_embeddings.weight", WORDS, e)
        draw(f"{prefix}embeddings.position_embeddings.weight", PLACES, e)
        if family != "distilbert":
            draw(f"{prefix}embeddings.token_type_embeddings.weight", 2, e)
        draw_norm(f"{prefix}embeddings.LayerNorm", e)
        if family == "albert":
            draw_pair(f"{prefix}encoder.embedding_hidden_mapping_in", D, e)
        for number in range(1 if family == "albert" else LAYERS):
            start = prefix + layer.format(number)
            for name in names[:4]:
                draw_pair(start + name, D, D)
            draw_norm(start + names[4], D)
            draw_pair(start + names[5], UNITS, D)
            draw_pair(start + names[6], D, UNITS)
            draw_norm(start + names[7], D)
    elif family == "gpt2":
        draw("wte.weight", WORDS, D)
        draw("wpe.weight", PLACES, D)
        for number in range(LAYERS):
            start = f"h.{number}."
            draw_norm(f"{start}ln_1", D)
            draw_norm(f"{start}ln_2", D)
            for name, rows, columns in (
                ("attn.c_attn", D, 3 * D),
                ("attn.c_proj", D, D),
                ("mlp.c_fc", D, UNITS),
                ("mlp.c_proj", UNITS, D),
            ):
                draw(f"{start}{name}.weight", rows, columns)
                draw(f"{start}{name}.bias", columns)
            made[f"{start}attn.bias"] = np.tril(np.ones((1, 1, PLACES, PLACES), dtype=np.float32))
        draw_norm("ln_f", D)
    else:
        keys = D // HEADS * CONFIGS[family]["num_key_value_heads"]
        draw("model.embed_tokens.weight", WORDS, D)
        for number in range(LAYERS):
            start = f"model.layers.{number}."
            for name, rows in (("q_proj", D), ("k_proj", keys), ("v_proj", keys), ("o_proj", D)):
                draw(f"{start}self_attn.{name}.weight", rows, D)
                if family == "qwen2" and name != "o_proj":
                    draw(f"{start}self_attn.{name}.bias", rows)
            draw(f"{start}mlp.gate_proj.weight", UNITS, D)
            draw(f"{start}mlp.up_proj.weight", UNITS, D)
            draw(f"{start}mlp.down_proj.weight", D, UNITS)
            draw(f"{start}input_layernorm.weight", D)
            draw(f"{start}post_attention_layernorm.weight", D)
        draw("model.norm.weight", D)
        if not CONFIGS[family]["tie_word_embeddings"]:
            draw("lm_head.weight", WORDS, D)
    return made


def write_folder(
    folder: Path, config: Mapping[str, Any], tensors: Mapping[str, np.ndarray], layout: str = "whole"
) -> Path:
    """Folder of a model: weights in one file, in two shards, or in the format of torch."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    weights = {name: torch.from_numpy(np.ascontiguousarray(one)) for name, one in tensors.items()}
    if layout == "whole":
        save_file(weights, folder / "model.safetensors")
    elif layout in ("torch", "old torch"):
        torch.save(weights, folder / "pytorch_model.bin", _use_new_zipfile_serialization=layout == "torch")
    else:
        names = sorted(weights)
        parts = {"model-1.safetensors": names[::2], "model-2.safetensors": names[1::2]}
        for file, some in parts.items():
            save_file({name: weights[name] for name in some}, folder / file)
        places = {name: file for file, some in parts.items() for name in some}
        (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}), encoding="utf-8")
    return folder


_GGUF_NAMES = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    # GPT-2
    "wte": "token_embd",
    "wpe": "position_embd",
    "ln_1": "attn_norm",
    "ln_2": "ffn_norm",
    "attn.c_attn": "attn_qkv",
    "attn.c_proj": "attn_output",
    "mlp.c_fc": "ffn_up",
    "mlp.c_proj": "ffn_down",
    "ln_f": "output_norm",
    # BERT
    "bert.embeddings.word_embeddings": "token_embd",
    "bert.embeddings.position_embeddings": "position_embd",
    "bert.embeddings.token_type_embeddings": "token_types",
    "bert.embeddings.LayerNorm": "token_embd_norm",
    "attention.self.query": "attn_q",
    "attention.self.key": "attn_k",
    "attention.self.value": "attn_v",
    "attention.output.dense": "attn_output",
    "attention.output.LayerNorm": "attn_output_norm",
    "intermediate.dense": "ffn_up",
    "output.dense": "ffn_down",
    "output.LayerNorm": "layer_output_norm",
}
_LAYER = re.compile(r"(?:model\.layers|h|bert\.encoder\.layer)\.(\d+)\.(.*)")


def gguf_tensors(family: str, tensors: Mapping[str, np.ndarray]) -> Tensors:
    """Tensors by their names in GGUF files, with queries and keys of Llama in the order of neighbours.

    Matrices of GPT-2 are transposed, and its causal mask is left out, as in published files.
    """
    found = {}
    for name, tensor in tensors.items():
        stem, _, end = name.rpartition(".")
        if stem.endswith(".attn"):
            continue  # the mask of GPT-2
        layer = _LAYER.fullmatch(stem)
        part = stem if layer is None else layer[2]
        if family not in ("qwen2", "bert", "gpt2") and part in ("self_attn.q_proj", "self_attn.k_proj"):
            heads = HEADS if part.endswith("q_proj") else CONFIGS[family]["num_key_value_heads"]
            tensor = tensor.reshape(heads, 2, -1, *tensor.shape[1:]).swapaxes(1, 2).reshape(tensor.shape)
        if part.rpartition(".")[2] in ("c_attn", "c_proj", "c_fc"):
            tensor = tensor.T
        found[("" if layer is None else f"blk.{layer[1]}.") + f"{_GGUF_NAMES[part]}.{end}"] = tensor
    return found


def write_gguf(path: Path, family: str, tensors: Mapping[str, np.ndarray], **fields: Any) -> Path:
    """GGUF file of a model of this family."""
    import gguf

    config = CONFIGS[family]
    writer = gguf.GGUFWriter(path, family if family in ("qwen2", "bert", "gpt2") else "llama")
    writer.add_context_length(PLACES)
    writer.add_embedding_length(D)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(UNITS)
    writer.add_head_count(HEADS)
    if family in ("bert", "gpt2"):
        writer.add_layer_norm_eps(config.get("layer_norm_eps") or config["layer_norm_epsilon"])
    else:
        writer.add_head_count_kv(config["num_key_value_heads"])
        writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
        writer.add_rope_freq_base(config["rope_theta"])
    if family == "bert":
        writer.add_causal_attention(False)
    if config.get("sliding_window"):
        writer.add_sliding_window(config["sliding_window"])
    _add_fields(writer, fields)
    return _write(writer, path, gguf_tensors(family, tensors))


def write_gguf_parts(folder: Path, family: str, tensors: Mapping[str, np.ndarray], count: int = 3) -> list[Path]:
    """The files of a split model: the first has the settings, and every one some of the tensors."""
    import gguf

    folder.mkdir(parents=True, exist_ok=True)
    names = [*tensors]
    paths = [folder / f"tiny-{k + 1:05d}-of-{count:05d}.gguf" for k in range(count)]
    for k, path in enumerate(paths):
        own = {name: tensors[name] for name in names[k::count]}
        number = {"split__no": k, "split__count": count}
        if k == 0:
            write_gguf(path, family, own, **number)
        else:
            writer = gguf.GGUFWriter(path, "")
            _add_fields(writer, number)
            _write(writer, path, gguf_tensors(family, own))
    return paths


def _add_fields(writer: Any, fields: Mapping[str, Any]) -> None:
    """Add fields to a GGUF file; two underscores in a name stand for a point."""
    for name, value in fields.items():
        full = name.replace("__", ".")
        if isinstance(value, list):
            writer.add_array(full, value)
        elif isinstance(value, bool):
            writer.add_bool(full, value)
        elif isinstance(value, int):
            writer.add_uint32(full, value)
        else:
            writer.add_string(full, value)


def _write(writer: Any, path: Path, tensors: Mapping[str, np.ndarray]) -> Path:
    for name, tensor in tensors.items():
        writer.add_tensor(name, np.ascontiguousarray(tensor))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


Rule = Callable[[np.ndarray], np.ndarray]
"""Weights of the tokens that a row sees, from their scores."""


def softmax(scores: np.ndarray) -> np.ndarray:
    """Softmax of one row."""
    powers = np.exp(scores - scores.max())
    return powers / powers.sum()


def _hardmax(scores: np.ndarray) -> np.ndarray:
    best = scores >= scores.max() - 1e-12 * max(1.0, abs(scores).max())
    return best / best.sum()


def _top(k: int) -> Rule:
    def weights(scores: np.ndarray) -> np.ndarray:
        least = np.sort(scores)[::-1][: min(k, len(scores))][-1]
        kept = scores >= least - 1e-12 * max(1.0, abs(scores).max())
        return softmax(np.where(kept, scores, -np.inf))

    return weights


RULES: dict[str, Rule] = {
    "softmax": softmax,
    "hardmax": _hardmax,
    "top-3": _top(3),
    "beta=2.5": lambda scores: softmax(2.5 * scores),
    "uniform": lambda scores: np.full(len(scores), 1 / len(scores)),
    "zero": lambda scores: np.zeros(len(scores)),
}


def _normed(x: np.ndarray, gain: np.ndarray, bias: np.ndarray, epsilon: float) -> np.ndarray:
    centred = x - x.mean(axis=1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + epsilon) * gain + bias


def _rms(x: np.ndarray, gain: np.ndarray, epsilon: float) -> np.ndarray:
    return x / np.sqrt((x**2).mean(axis=1, keepdims=True) + epsilon) * gain


_ACTIVATIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "gelu": lambda x: x * (1 + erf(x / math.sqrt(2))) / 2,
    "gelu_new": lambda x: x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2,
    "relu": lambda x: np.maximum(x, 0),
    "silu": lambda x: x / (1 + np.exp(-x)),
}


def _turned(vectors: np.ndarray, base: float) -> np.ndarray:
    """Vectors of one head, turned by their places: coordinate j with j + half the width."""
    done = vectors.copy()
    width = vectors.shape[1]
    for place, vector in enumerate(vectors):
        for j in range(width // 2):
            angle = place * base ** (-2 * j / width)
            left, right = vector[j], vector[j + width // 2]
            done[place, j] = left * math.cos(angle) - right * math.sin(angle)
            done[place, j + width // 2] = left * math.sin(angle) + right * math.cos(angle)
    return done


def _attention(
    queries: np.ndarray,
    keys: np.ndarray,
    values: np.ndarray,
    heads: int,
    key_heads: int,
    rules: Mapping[int, Rule],
    *,
    causal: bool,
    window: int | None = None,
    base: float | None = None,
) -> np.ndarray:
    """What each head reads, side by side, shape (tokens, heads * width)."""
    width = queries.shape[1] // heads
    mixed = np.zeros_like(queries)
    for head in range(heads):
        own = slice(head * width, (head + 1) * width)
        shared = head // (heads // key_heads)
        theirs = slice(shared * width, (shared + 1) * width)
        q, k, v = queries[:, own], keys[:, theirs], values[:, theirs]
        if base is not None:
            q, k = _turned(q, base), _turned(k, base)
        for i in range(len(q)):
            last = i + 1 if causal else len(q)
            first = 0 if window is None else max(0, i + 1 - window)
            scores = np.array([q[i] @ k[j] / math.sqrt(width) for j in range(first, last)])
            mixed[i, own] = rules.get(head, softmax)(scores) @ v[first:last]
    return mixed


def states(
    config: Mapping[str, Any],
    tensors: Mapping[str, np.ndarray],
    ids: list[int],
    rules: Mapping[int, Rule] | None = None,
) -> list[np.ndarray]:
    """Tokens at every depth, and last the tokens after the final normalisation, in float64."""
    get = {name: one.astype(np.float64) for name, one in tensors.items()}
    family = config["model_type"]
    if family in ENCODER_NAMES:
        return _encoder(config, get, ids, rules or {})
    return (_gpt2 if family == "gpt2" else _llama)(config, get, ids, rules or {})


def _encoder(config: Mapping[str, Any], get: Tensors, ids: list[int], rules: Mapping[int, Rule]) -> list[np.ndarray]:
    family = config["model_type"]
    prefix, layer, names = ENCODER_NAMES[family]
    count = config.get("num_hidden_layers") or config["n_layers"]
    heads = config.get("num_attention_heads") or config["n_heads"]
    act = _ACTIVATIONS[config.get("hidden_act") or config["activation"]]
    start = f"{prefix}embeddings."
    first = config["pad_token_id"] + 1 if family == "roberta" else 0
    x = get[f"{start}word_embeddings.weight"][ids]
    x = x + get[f"{start}position_embeddings.weight"][first : first + len(ids)]
    if family != "distilbert":
        x = x + get[f"{start}token_type_embeddings.weight"][0]
    x = _normed(x, get[f"{start}LayerNorm.weight"], get[f"{start}LayerNorm.bias"], 1e-12)

    def linear(x: np.ndarray, name: str) -> np.ndarray:
        return x @ get[f"{name}.weight"].T + get[f"{name}.bias"]

    if family == "albert":
        x = linear(x, f"{prefix}encoder.embedding_hidden_mapping_in")
    found = [x]
    for number in range(count):
        at = prefix + layer.format(number)
        q, k, v, out, norm, up, down, last = (at + name for name in names)
        mixed = _attention(linear(x, q), linear(x, k), linear(x, v), heads, heads, rules, causal=False)
        y = _normed(x + linear(mixed, out), get[f"{norm}.weight"], get[f"{norm}.bias"], 1e-12)
        x = _normed(y + linear(act(linear(y, up)), down), get[f"{last}.weight"], get[f"{last}.bias"], 1e-12)
        found.append(x)
    return [*found, x]


def _gpt2(config: Mapping[str, Any], get: Tensors, ids: list[int], rules: Mapping[int, Rule]) -> list[np.ndarray]:
    heads, d, act = config["n_head"], config["n_embd"], _ACTIVATIONS[config["activation_function"]]
    x = get["wte.weight"][ids] + get["wpe.weight"][: len(ids)]
    found = [x]
    for number in range(config["n_layer"]):
        at = f"h.{number}."
        y = _normed(x, get[f"{at}ln_1.weight"], get[f"{at}ln_1.bias"], 1e-5)
        fused = y @ get[f"{at}attn.c_attn.weight"] + get[f"{at}attn.c_attn.bias"]
        mixed = _attention(fused[:, :d], fused[:, d : 2 * d], fused[:, 2 * d :], heads, heads, rules, causal=True)
        x = x + mixed @ get[f"{at}attn.c_proj.weight"] + get[f"{at}attn.c_proj.bias"]
        y = _normed(x, get[f"{at}ln_2.weight"], get[f"{at}ln_2.bias"], 1e-5)
        y = act(y @ get[f"{at}mlp.c_fc.weight"] + get[f"{at}mlp.c_fc.bias"])
        x = x + y @ get[f"{at}mlp.c_proj.weight"] + get[f"{at}mlp.c_proj.bias"]
        found.append(x)
    return [*found, _normed(x, get["ln_f.weight"], get["ln_f.bias"], 1e-5)]


def _llama(config: Mapping[str, Any], get: Tensors, ids: list[int], rules: Mapping[int, Rule]) -> list[np.ndarray]:
    heads, keys, epsilon = config["num_attention_heads"], config["num_key_value_heads"], config["rms_norm_eps"]
    x = get["model.embed_tokens.weight"][ids]
    found = [x]
    for number in range(config["num_hidden_layers"]):
        at = f"model.layers.{number}."
        y = _rms(x, get[f"{at}input_layernorm.weight"], epsilon)
        q, k, v = (
            y @ get[f"{at}self_attn.{name}.weight"].T + get.get(f"{at}self_attn.{name}.bias", np.zeros(()))
            for name in ("q_proj", "k_proj", "v_proj")
        )
        mixed = _attention(
            q, k, v, heads, keys, rules, causal=True, window=config.get("sliding_window"), base=config["rope_theta"]
        )
        x = x + mixed @ get[f"{at}self_attn.o_proj.weight"].T
        y = _rms(x, get[f"{at}post_attention_layernorm.weight"], epsilon)
        gate = _ACTIVATIONS["silu"](y @ get[f"{at}mlp.gate_proj.weight"].T)
        x = x + (gate * (y @ get[f"{at}mlp.up_proj.weight"].T)) @ get[f"{at}mlp.down_proj.weight"].T
        found.append(x)
    return [*found, _rms(x, get["model.norm.weight"], epsilon)]


def unembedding(config: Mapping[str, Any], tensors: Mapping[str, np.ndarray]) -> np.ndarray:
    """Weights of the scores of the next token, in float64."""
    names = ("lm_head.weight", "model.embed_tokens.weight", "wte.weight")
    return next(tensors[name] for name in names if name in tensors).astype(np.float64)
