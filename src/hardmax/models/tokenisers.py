"""Tokenisers of published models: those of the package ``tokenizers``, and vocabularies without parts of words."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import FileError, HardmaxError, InputError, MissingExtraError
from ..scalars import shown
from .folders import bounded_text, file_in, json_object
from .stored import DAMAGED
from .tokeniser import AbstractTokeniser, Tokenised

# The largest published tokeniser files have some 30 MB.
_MOST_TOKENISER = 2**27
_MOST_WORDS = 2**22
_MOST_LETTERS = 1000
# How GPT-2 writes bytes as letters: printable ones as themselves, the others from number 256 on.
_PRINTABLE = [*range(33, 127), *range(161, 173), *range(174, 256)]
_BYTES = {chr(byte): byte for byte in _PRINTABLE} | {
    chr(256 + k): byte for k, byte in enumerate(byte for byte in range(256) if byte not in _PRINTABLE)
}
_BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>")
# Splits of a text before byte pairs are joined: the published patterns of Llama 3 and Qwen2, by their names in GGUF.
_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}DIGITS| ?[^\s\p{L}\p{N}]+[\r\n]*|"
    r"\s*[\r\n]+|\s+(?!\S)|\s+"
)
_PATTERNS = {"qwen2": _SPLIT.replace("DIGITS", ""), "llama-bpe": _SPLIT.replace("DIGITS", "{1,3}")}
_GPT2_SPLITS = ("default", "gpt-2", "gpt2")
_SMOLLM_SPLITS = ("smollm",)


@dataclass(frozen=True, eq=False)
class LibraryTokeniser(AbstractTokeniser):
    """Tokeniser of the package ``tokenizers``."""

    inner: Any
    """The tokeniser itself, without cutting and padding."""
    kind: str
    """Spelling of tokens: ``"bytes"`` (letters stand for bytes), ``"blanks"`` (▁ for blanks) or ``"plain"``."""
    first: tuple[int, ...] = ()
    """Tokens put before every text, where the tokeniser itself does not."""

    def tokenise(self, text: str) -> Tokenised:
        try:
            found = self.inner.encode(text)
        except BaseException as error:
            if isinstance(error, (KeyboardInterrupt, SystemExit)):
                raise
            raise InputError(
                "text", shown(text), f"cannot be tokenised ({shown(str(error))})", "use another text or tokeniser"
            ) from error
        ids = (*self.first, *found.ids)
        added = (*(True for _ in self.first), *(bool(one) for one in found.special_tokens_mask))
        return Tokenised(ids, tuple(self.word(one) for one in ids), added)

    def word(self, token: int) -> str:
        found = self.inner.id_to_token(token) if 0 <= token < 2**32 else None
        if found is None:
            return str(token)
        if self.kind == "bytes" and all(letter in _BYTES for letter in found):
            return bytes(_BYTES[letter] for letter in found).decode("utf-8", errors="replace")
        if self.kind == "blanks":
            byte = _BYTE_TOKEN.fullmatch(found)
            return bytes([int(byte[1], 16)]).decode("utf-8", errors="replace") if byte else found.replace("▁", " ")
        return str(found)

    @property
    def size(self) -> int:
        return 1 + max(self.inner.get_vocab(with_added_tokens=True).values(), default=-1)


@dataclass(frozen=True, eq=False)
class GreedyTokeniser(AbstractTokeniser):
    """Tokeniser that takes the longest known token at each place, for vocabularies without parts of words.

    Such are vocabularies of molecules, where a text has no blanks. What is not known becomes ``[UNK]``: one letter, or
    a group in square brackets as a whole.
    """

    words: tuple[str, ...]
    """Vocabulary in order."""
    numbers: Mapping[str, int]
    """Number of each word."""
    lengths: tuple[int, ...]
    """Numbers of letters that words have, the largest first."""

    @staticmethod
    def of(words: Sequence[str]) -> GreedyTokeniser:
        """Tokeniser with these words in order."""
        lengths = sorted({len(word) for word in words if word}, reverse=True)
        return GreedyTokeniser(tuple(words), {word: k for k, word in enumerate(words)}, tuple(lengths))

    def tokenise(self, text: str) -> Tokenised:
        unknown = self.numbers.get("[UNK]")
        ids, place = [], 0
        while place < len(text):
            if text[place].isspace():
                place += 1
                continue
            size = next((size for size in self.lengths if text[place : place + size] in self.numbers), None)
            if size is not None:
                ids.append(self.numbers[text[place : place + size]])
            elif unknown is None:
                problem = f"has the letter {text[place]!r}, which is not in the vocabulary"
                raise InputError("text", shown(text), problem, "use texts like those of the model's training")
            else:
                ids.append(unknown)
                end = text.find("]", place) if text[place] == "[" else -1
                size = 1 if end < 0 else end + 1 - place
            place += size
        before = [self.numbers[word] for word in ("[CLS]",) if word in self.numbers]
        after = [self.numbers[word] for word in ("[SEP]",) if word in self.numbers]
        every = (*before, *ids, *after)
        special = (*(True for _ in before), *(False for _ in ids), *(True for _ in after))
        return Tokenised(every, tuple(self.words[one] for one in every), special)

    def word(self, token: int) -> str:
        return self.words[token] if 0 <= token < len(self.words) else str(token)

    @property
    def size(self) -> int:
        return len(self.words)


def read_tokeniser(folder: Path) -> AbstractTokeniser | None:
    """Tokeniser in a folder: tokenizer.json, or else vocab.txt; None where there is neither."""
    path = file_in(folder, "tokenizer.json")
    if path is not None:
        return tokeniser_file(path)
    path = file_in(folder, "vocab.txt")
    if path is None:
        return None
    settings = file_in(folder, "tokenizer_config.json")
    return vocabulary_file(path, {} if settings is None else json_object(settings))


def tokeniser_file(path: Path) -> AbstractTokeniser:
    """Tokeniser in a file tokenizer.json or vocab.txt."""
    if path.suffix == ".txt":
        return vocabulary_file(path, {})
    text = bounded_text(path, _MOST_TOKENISER)
    library = _library()
    try:
        inner = library.Tokenizer.from_str(text)
        inner.no_truncation()
        inner.no_padding()
        parts = json.loads(text)
        kinds = json.dumps([parts.get("pre_tokenizer"), parts.get("decoder"), parts.get("normalizer")])
    except BaseException as error:
        if isinstance(error, (KeyboardInterrupt, SystemExit)):
            raise
        raise FileError(path, f"is not a tokeniser ({shown(str(error))})", DAMAGED) from error
    kind = "bytes" if '"ByteLevel"' in kinds else "blanks" if "▁" in kinds or "\\u2581" in kinds else "plain"
    return LibraryTokeniser(inner, kind)


def vocabulary_file(path: Path, settings: Mapping[str, Any]) -> AbstractTokeniser:
    """Tokeniser from the words of a file vocab.txt, one per line; parts of words begin with ``##``."""
    words = bounded_text(path, _MOST_TOKENISER).split("\n")
    words = [word.removesuffix("\r") for word in (words if words[-1] else words[:-1])]
    if not 0 < len(words) <= _MOST_WORDS:
        raise FileError(path, f"has {len(words)} words", DAMAGED)
    if max(map(len, words)) > _MOST_LETTERS:
        raise FileError(path, f"has a word of {max(map(len, words))} letters", DAMAGED)
    if not any(word.startswith("##") for word in words):
        return GreedyTokeniser.of(words)
    plain = (word for word in words if not (word.startswith("[") and word.endswith("]")))
    lower = settings.get("do_lower_case", not any(word != word.lower() for word in plain))
    missing = next((word for word in ("[CLS]", "[SEP]", "[UNK]") if word not in words), None)
    if missing or not isinstance(lower, bool):
        what = f"has no word {missing}" if missing else f"has do_lower_case={shown(lower)} beside it"
        raise FileError(path, what, DAMAGED)
    library = _library()
    numbers = {word: k for k, word in enumerate(words)}
    try:
        inner = library.Tokenizer(library.models.WordPiece(numbers, unk_token="[UNK]"))  # noqa: S106 (no password)
        inner.normalizer = library.normalizers.BertNormalizer(lowercase=lower)
        inner.pre_tokenizer = library.pre_tokenizers.BertPreTokenizer()
        inner.post_processor = library.processors.TemplateProcessing(
            single="[CLS] $A [SEP]", special_tokens=[(word, numbers[word]) for word in ("[CLS]", "[SEP]")]
        )
        inner.add_special_tokens([word for word in ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]") if word in numbers])
    except BaseException as error:
        if isinstance(error, (KeyboardInterrupt, SystemExit)):
            raise
        raise FileError(path, f"is no vocabulary ({shown(str(error))})", DAMAGED) from error
    return LibraryTokeniser(inner, "plain")


def gguf_tokeniser(path: Path, fields: Mapping[str, Any]) -> AbstractTokeniser | None:
    """Tokeniser from the tables of a GGUF file; None where it has none."""
    model = fields.get("tokenizer.ggml.model")
    if model is None or model == "no_vocab":
        return None
    words = _table(path, fields, "tokens", str)
    kinds = _table(path, fields, "token_type", int) or [1] * len(words)
    if not 0 < len(words) <= _MOST_WORDS or len(kinds) != len(words):
        raise FileError(path, f"has {len(words)} words and {len(kinds)} kinds of words", DAMAGED)
    split = fields.get("tokenizer.ggml.pre", "default")
    library = _library()
    try:
        if model == "gpt2":
            inner = _byte_pairs(library, path, words, _table(path, fields, "merges", str), split)
        elif model == "llama":
            inner = _scored_pairs(library, fields, words, _table(path, fields, "scores", float))
        else:
            raise FileError(path, f"has a tokeniser of kind {shown(model)}, which is not supported", _OTHER)
        # Kind 3 of the format: control tokens, which no text has.
        inner.add_special_tokens([word for word, kind in zip(words, kinds, strict=True) if kind == 3 and word])
    except BaseException as error:
        if isinstance(error, (KeyboardInterrupt, SystemExit, HardmaxError)):
            raise
        raise FileError(path, f"has no usable tokeniser ({shown(str(error))})", DAMAGED) from error
    begin = fields.get("tokenizer.ggml.bos_token_id")
    begins = fields.get("tokenizer.ggml.add_bos_token", model == "llama" or split == "llama-bpe")
    first = (begin,) if begins is True and isinstance(begin, int) and 0 <= begin < len(words) else ()
    return LibraryTokeniser(inner, "bytes" if model == "gpt2" else "blanks", first)


_OTHER = "pass `tokeniser`, the path of a tokenizer.json of the same model"


def _byte_pairs(library: Any, path: Path, words: list[str], merges: list[str], split: object) -> Any:
    pairs = [tuple(one.split(" ", 1)) for one in merges]
    if any(len(pair) != 2 for pair in pairs):
        raise FileError(path, "has merges that are not pairs", DAMAGED)
    inner = library.Tokenizer(library.models.BPE({word: k for k, word in enumerate(words)}, pairs))
    before = library.pre_tokenizers
    if split in _GPT2_SPLITS:
        inner.pre_tokenizer = before.ByteLevel(add_prefix_space=False)
    elif split in _SMOLLM_SPLITS:
        inner.pre_tokenizer = before.Sequence(
            [before.Digits(individual_digits=True), before.ByteLevel(add_prefix_space=False)]
        )
    elif split in _PATTERNS:
        inner.pre_tokenizer = before.Sequence(
            [
                before.Split(library.Regex(_PATTERNS[str(split)]), "isolated"),
                before.ByteLevel(add_prefix_space=False, use_regex=False),
            ]
        )
    else:
        known = ", ".join((*_GPT2_SPLITS[:2], *_SMOLLM_SPLITS, *_PATTERNS))
        raise FileError(path, f"splits texts by {shown(split)}; known are {known}", _OTHER)
    return inner


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


def _library() -> Any:
    try:
        import tokenizers
    except ImportError:
        raise MissingExtraError("tokenizers", "models", "the tokeniser of this model") from None
    return tokenizers
