"""GGUF files: settings, vocabulary, tokeniser and weights, which may be quantised, in one file.

The header is read here, with bounds, because files may be damaged or hostile: every length is checked against the file
before anything is allocated. The package ``gguf`` turns quantised weights into numbers.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ..errors import FileError, HardmaxError, MissingExtraError
from ..scalars import shown
from .stored import DAMAGED, Settings, Weights, require_memory
from .tokenisers import (
    MOST_WORDS,
    OTHER_TOKENISER,
    AbstractTokeniser,
    LibraryTokeniser,
    byte_pairs,
    is_lower,
    the_library,
    word_pieces,
)

# Headers of published models have at most some 10 MB, mostly the vocabulary.
_MOST_HEADER = 2**27
_MOST_ENTRIES = 2**24
_MOST_TENSORS = 2**16
_VERSIONS = (2, 3)
_DEFAULT_ALIGNMENT = 32
_STRING, _ARRAY = 8, 9
# struct formats of scalars by their number in the format.
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
# Settings by the names of folders, from those of GGUF behind "llama." or the name of another architecture.
_NAMES = {
    "embedding_length": "hidden_size",
    "block_count": "num_hidden_layers",
    "feed_forward_length": "intermediate_size",
    "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads",
    "attention.key_length": "head_dim",
    "attention.layer_norm_epsilon": "layer_norm_eps",
    "attention.layer_norm_rms_epsilon": "rms_norm_eps",
    "attention.causal": "is_decoder",
    "attention.sliding_window": "sliding_window",
    "context_length": "max_position_embeddings",
    "rope.freq_base": "rope_theta",
    "rope.dimension_count": "rope_dimension_count",
}
_GPT2_NAMES = {
    "embedding_length": "n_embd",
    "block_count": "n_layer",
    "feed_forward_length": "n_inner",
    "attention.head_count": "n_head",
    "attention.layer_norm_epsilon": "layer_norm_epsilon",
    "context_length": "n_positions",
}
# How embeddings are made of tokens, by the number in the format; without a number, or with 0, by their mean.
_POOLINGS = {None: "mean", 0: "mean", 1: "mean", 2: "first"}
# Names of the files of a split model, of which the first has the settings.
_PART = re.compile(r"(.*-)(\d{5})(-of-(\d{5})\.gguf)")
_MOST_PARTS = 1024


@dataclass(frozen=True, eq=False)
class GgufFile:
    """Contents of a GGUF file."""

    path: Path
    fields: dict[str, Any]
    """Settings and tables by their names in the file."""
    weights: Weights

    @property
    def architecture(self) -> str:
        """Architecture that the file names."""
        found = self.fields.get("general.architecture")
        if not isinstance(found, str):
            raise FileError(self.path, "does not name its architecture", DAMAGED)
        return found

    @property
    def settings(self) -> Settings:
        """Settings by the names that folders use."""
        start = f"{self.architecture}."
        names = _GPT2_NAMES if self.architecture == "gpt2" else _NAMES
        found = {new: self.fields[start + old] for old, new in names.items() if start + old in self.fields}
        if self.fields.get(f"{start}expert_count"):
            problem = "is a mixture of experts, which is not supported"
            raise FileError(self.path, problem, "pass a model with one feed-forward network per layer")
        kind = self.fields.get(f"{start}rope.scaling.type")
        if kind not in (None, "none"):
            found["rope_scaling"] = {"type": kind, "factor": self.fields.get(f"{start}rope.scaling.factor")}
        found["vocab_size"] = self.weights.rows("token_embd.weight") or None
        found["tie_word_embeddings"] = "output.weight" not in self.weights.shapes
        return Settings(self.path, found, {new: start + old for old, new in names.items()})

    @property
    def pooling(self) -> str:
        """How the last tokens of a text become one point: ``"mean"`` or ``"first"``."""
        kind = self.fields.get(f"{self.architecture}.pooling_type")
        if not isinstance(kind, (int, type(None))) or kind not in _POOLINGS:
            problem = f"asks for the pooling of number {shown(kind)}, which is not supported"
            raise FileError(self.path, problem, 'pass pooling="mean"')
        return _POOLINGS[kind]


def read_gguf(path: Path, dtype: torch.dtype) -> GgufFile:
    """Settings and weights of a GGUF file; weights are read on access."""
    try:
        from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType
        from gguf.quants import dequantize
    except ImportError:
        raise MissingExtraError("gguf", "models", "reading GGUF files") from None
    header = _header(path)
    parts = _parts(path, header[0])
    fields = header[0]
    places: dict[str, tuple[tuple[int, ...], Any, int, int, np.ndarray]] = {}
    for number, part in enumerate(parts):
        own, table, start, data = header if part == path else _header(part)
        if len(parts) > 1 and (own.get("split.no"), own.get("split.count")) != (number, len(parts)):
            raise FileError(part, f"is not part {number + 1} of {len(parts)}", DAMAGED)
        fields = own if number == 0 else fields
        for name, (dimensions, kind, offset) in table.items():
            try:
                quantised = GGMLQuantizationType(kind)
                block, width = GGML_QUANT_SIZES[quantised]
            except (ValueError, KeyError):
                raise FileError(part, f"the tensor {name!r} has numbers of the unknown type {kind}", DAMAGED) from None
            count = math.prod(dimensions)
            if dimensions and dimensions[0] % block:
                raise FileError(part, f"the tensor {name!r} does not have whole blocks of {block} numbers", DAMAGED)
            if name in places:
                raise FileError(part, f"has the tensor {name!r} of another part", DAMAGED)
            first, size = start + offset, count // block * width
            if first + size > len(data):
                raise FileError(part, f"ends before the tensor {name!r}", "the file is not complete; get it again")
            # The first length of the format is the last axis of the array.
            places[name] = dimensions[::-1], quantised, first, size, data
    shapes = {name: place[0] for name, place in places.items()}
    require_memory(path, shapes.values(), dtype)

    def read(name: str) -> torch.Tensor:
        shape, quantised, first, size, data = places[name]
        try:
            raw = np.asarray(data[first : first + size])
            if quantised in (GGMLQuantizationType.F32, GGMLQuantizationType.F16, GGMLQuantizationType.F64):
                numbers = raw.view({0: "<f4", 1: "<f2"}.get(int(quantised), "<f8")).reshape(shape)
            else:
                # Rows of bytes: the last axis is that of the blocks.
                numbers = dequantize(raw.reshape(*shape[:-1], -1), quantised).reshape(shape)
            return torch.from_numpy(np.array(numbers, dtype=np.float64 if numbers.itemsize == 8 else np.float32))
        except Exception as error:
            problem = f"the tensor {name!r} of type {quantised.name} cannot be read ({shown(str(error))})"
            raise FileError(path, problem, "pass a model with another quantisation, such as Q8_0") from error

    return GgufFile(path, fields, Weights(path, shapes, read, dtype))


def gguf_architecture(path: Path) -> str | None:
    """Architecture that a GGUF file names, None where it is not a GGUF file; reads the first fields only."""
    try:
        with path.open("rb") as file:
            cursor = _Cursor(path, np.frombuffer(file.read(2**16), dtype=np.uint8))
        _, fields = cursor.start()
        for _ in range(min(fields, 32)):
            name, value = cursor.field()
            if name == "general.architecture":
                return str(value)
    except (OSError, FileError):
        return None
    return None


def _parts(path: Path, fields: dict[str, Any]) -> list[Path]:
    """Files of the model that this file belongs to, in order; most models have one file."""
    count = fields.get("split.count", 0)
    if not isinstance(count, int) or not 0 <= count <= _MOST_PARTS:
        raise FileError(path, f"is said to be one of {shown(count)} parts", DAMAGED)
    if count < 2:
        return [path]
    named = _PART.fullmatch(path.name)
    if named is None or int(named[4]) != count:
        problem = f"is one of the {count} files of a model, and its name does not say which"
        raise FileError(path, problem, f"name the files as they were published: name-00001-of-{count:05d}.gguf …")
    found = [path.with_name(f"{named[1]}{k + 1:05d}{named[3]}") for k in range(count)]
    missing = next((one for one in found if not one.is_file()), None)
    if missing is not None:
        problem = f"is one of {count} parts, and {missing.name!r} is not beside it"
        raise FileError(path, problem, "get all parts into one folder, or join them with llama-gguf-split --merge")
    return found


Table = dict[str, tuple[tuple[int, ...], int, int]]


def _header(path: Path) -> tuple[dict[str, Any], Table, int, np.ndarray]:
    """Fields, tensors (lengths, type, offset), start of the weights, and the bytes of the file."""
    try:
        if path.stat().st_size == 0:
            raise FileError(path, "is empty", DAMAGED)
        data = np.memmap(path, dtype=np.uint8, mode="r")
    except FileError:
        raise
    except (OSError, ValueError) as error:
        raise FileError(path, f"cannot be read ({error})", "check its permissions") from error
    cursor = _Cursor(path, data)
    tensors, fields = cursor.start()
    found: dict[str, Any] = {}
    for _ in range(fields):
        name, value = cursor.field()
        if name in found:
            raise FileError(path, f"has the field {shown(name)} twice", DAMAGED)
        found[name] = value
    table: Table = {}
    for _ in range(tensors):
        name = cursor.string()
        axes = cursor.scalar("I")
        if axes > 4:
            raise FileError(path, f"the tensor {shown(name)} has {axes} axes", DAMAGED)
        dimensions = tuple(cursor.scalar("Q") for _ in range(axes))
        if name in table:
            raise FileError(path, f"has the tensor {shown(name)} twice", DAMAGED)
        table[name] = dimensions, cursor.scalar("I"), cursor.scalar("Q")
    alignment = found.get("general.alignment", _DEFAULT_ALIGNMENT)
    if not isinstance(alignment, int) or not 0 < alignment <= 2**20 or alignment & (alignment - 1):
        raise FileError(path, f"has an alignment of {shown(alignment)}, which must be a power of two", DAMAGED)
    return found, table, -(-cursor.offset // alignment) * alignment, data


class _Cursor:
    """Place in the header of a file, which moves on as it is read."""

    def __init__(self, path: Path, data: np.ndarray) -> None:
        self._path = path
        self._bytes = memoryview(data[:_MOST_HEADER])  # type: ignore[arg-type]
        self._entries = 0
        self.offset = 0

    def start(self) -> tuple[int, int]:
        """Number of tensors and of fields, after the magic number and the version."""
        if bytes(self._take(4)) != b"GGUF":
            raise FileError(self._path, "is not a GGUF file", "pass a GGUF file, or a folder with a config.json")
        version = self.scalar("I")
        if version not in _VERSIONS:
            problem = f"has version {version} of GGUF, or the byte order of another kind of machine"
            raise FileError(self._path, problem, "convert the model again, to version 3 with the usual byte order")
        tensors, fields = self.scalar("Q"), self.scalar("Q")
        if tensors > _MOST_TENSORS or fields > _MOST_TENSORS:
            raise FileError(self._path, f"says that it has {tensors} tensors and {fields} fields", DAMAGED)
        return tensors, fields

    def field(self) -> tuple[str, Any]:
        """Name and value of the next field."""
        name = self.string()
        return name, self._value(self.scalar("I"))

    def scalar(self, kind: str) -> Any:
        """Next number."""
        return struct.unpack("<" + kind, self._take(struct.calcsize("<" + kind)))[0]

    def string(self) -> str:
        """Next text; bytes that are not UTF-8 are replaced."""
        return bytes(self._take(self.scalar("Q"))).decode("utf-8", errors="replace")

    def _take(self, size: int) -> memoryview:
        if size > len(self._bytes) - self.offset:
            raise FileError(self._path, "ends within its header", "the file is not complete; get it again")
        self.offset += size
        return self._bytes[self.offset - size : self.offset]

    def _value(self, kind: int) -> Any:
        if kind == _STRING:
            return self.string()
        if kind in _SCALARS:
            return self.scalar(_SCALARS[kind])
        if kind != _ARRAY:
            raise FileError(self._path, f"has a field of the unknown type {kind}", DAMAGED)
        inner, length = self.scalar("I"), self.scalar("Q")
        self._entries += length
        if self._entries > _MOST_ENTRIES:
            raise FileError(self._path, f"has tables of {self._entries} entries", DAMAGED)
        if inner == _STRING:
            return [self.string() for _ in range(length)]
        if inner not in _SCALARS:
            raise FileError(self._path, f"has a table of the unsupported type {inner}", DAMAGED)
        size = struct.calcsize("<" + _SCALARS[inner])
        return list(struct.unpack(f"<{length}{_SCALARS[inner]}", self._take(length * size)))


# Number of the kind of control tokens, such as [CLS], which no text has.
_CONTROL = 3


def gguf_tokeniser(path: Path, fields: Mapping[str, Any]) -> AbstractTokeniser | None:
    """Tokeniser from the tables of a GGUF file; None where it has none."""
    model = fields.get("tokenizer.ggml.model")
    if model is None or model == "no_vocab":
        return None
    words = _table(path, fields, "tokens", str)
    kinds = _table(path, fields, "token_type", int) or [1] * len(words)
    if not 0 < len(words) <= MOST_WORDS or len(kinds) != len(words):
        raise FileError(path, f"has {len(words)} words and {len(kinds)} kinds of words", DAMAGED)
    split = fields.get("tokenizer.ggml.pre", "default")
    library = the_library()
    try:
        if model == "gpt2":
            numbers = {word: k for k, word in enumerate(words)}
            inner = byte_pairs(library, path, numbers, _table(path, fields, "merges", str), split)
        elif model == "bert":
            pieces = [_word_piece(word, kind) for word, kind in zip(words, kinds, strict=True)]
            return LibraryTokeniser(word_pieces(library, pieces, is_lower(pieces)), "plain")
        elif model == "llama":
            inner = _scored_pairs(library, fields, words, _table(path, fields, "scores", float))
        else:
            raise FileError(path, f"has a tokeniser of kind {shown(model)}, which is not supported", OTHER_TOKENISER)
        inner.add_special_tokens([word for word, kind in zip(words, kinds, strict=True) if kind == _CONTROL and word])
    except BaseException as error:
        if isinstance(error, (KeyboardInterrupt, SystemExit, HardmaxError)):
            raise
        raise FileError(path, f"has no usable tokeniser ({shown(str(error))})", DAMAGED) from error
    begin = fields.get("tokenizer.ggml.bos_token_id")
    begins = fields.get("tokenizer.ggml.add_bos_token", model == "llama" or split == "llama-bpe")
    first = (begin,) if begins is True and isinstance(begin, int) and 0 <= begin < len(words) else ()
    return LibraryTokeniser(inner, "bytes" if model == "gpt2" else "blanks", first)


def _word_piece(word: str, kind: int) -> str:
    """Word of WordPiece as BERT writes it: GGUF files mark the beginnings of words, not their other parts."""
    if kind == _CONTROL or (word.startswith("[") and word.endswith("]")):
        return word
    return word.removeprefix("▁") if word.startswith("▁") else f"##{word}"


def _scored_pairs(library: Any, fields: Mapping[str, Any], words: list[str], scores: list[float]) -> Any:
    """Byte pairs of SentencePiece: two tokens are joined where their sum is a token, those of high score first."""
    numbers = {word: k for k, word in enumerate(words)}
    found = [
        (-scores[k], k, (word[:cut], word[cut:]))
        for k, word in enumerate(words)
        if k < len(scores)
        for cut in range(1, min(len(word), 64))
        if word[:cut] in numbers and word[cut:] in numbers
    ]
    merges = [pair for _, _, pair in sorted(found)]
    unknown = fields.get("tokenizer.ggml.unknown_token_id", 0)
    word = words[unknown] if isinstance(unknown, int) and 0 <= unknown < len(words) else None
    inner = library.Tokenizer(
        library.models.BPE(numbers, merges, unk_token=word, fuse_unk=True, byte_fallback=True, ignore_merges=False)
    )
    steps = [library.normalizers.Replace(" ", "▁")]
    if fields.get("tokenizer.ggml.add_space_prefix", True) is True:
        steps.insert(0, library.normalizers.Prepend("▁"))
    inner.normalizer = library.normalizers.Sequence(steps)
    return inner


def _table(path: Path, fields: Mapping[str, Any], name: str, kind: type) -> list[Any]:
    found = fields.get(f"tokenizer.ggml.{name}", [])
    if not isinstance(found, list) or not all(isinstance(one, kind) for one in found):
        raise FileError(path, f"has a table of {name} that cannot be used", DAMAGED)
    return found
