"""Tokenisers: their interface, those of the package ``tokenizers``, and vocabularies without parts of words."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import FileError, HardmaxError, InputError, MissingExtraError
from ..scalars import shown
from .folders import CONFIG, bounded_text, file_in, json_object
from .stored import DAMAGED


@dataclass(frozen=True)
class Tokenised:
    """A text as tokens."""

    ids: tuple[int, ...]
    """Number of each token in the vocabulary."""
    words: tuple[str, ...]
    """Each token as it is read, special tokens such as ``[CLS]`` included."""
    special: tuple[bool, ...]
    """True for tokens that the tokeniser added, such as ``[CLS]``."""

    def __len__(self) -> int:
        return len(self.ids)


def batches(texts: Sequence[Tokenised], most: int) -> list[list[int]]:
    """Indices of texts of similar length that are evaluated together, at most ``most`` tokens with their padding.

    >>> batches([Tokenised((0,) * n, ("",) * n, (False,) * n) for n in (2, 5, 3)], 8)
    [[1], [2, 0]]
    """
    order = sorted(range(len(texts)), key=lambda k: -len(texts[k]))
    found = []
    while order:
        size = max(1, most // len(texts[order[0]]))
        found.append(order[:size])
        order = order[size:]
    return found


class AbstractTokeniser(ABC):
    """Interface of a tokeniser."""

    @abstractmethod
    def tokenise(self, text: str) -> Tokenised:
        """Tokens of a text, with the special tokens that the model expects.

        Parameters
        ----------
        text
            Any text.

        Returns
        -------
        Tokenised
            Numbers and words.
        """

    @abstractmethod
    def word(self, token: int) -> str:
        """Token with this number, as it is read.

        Parameters
        ----------
        token
            Number in the vocabulary.

        Returns
        -------
        str
            The word, or part of a word.
        """

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of tokens in the vocabulary."""


# The largest published tokeniser files have some 30 MB.
_MOST_TOKENISER = 2**27
MOST_WORDS = 2**22
"""Largest number of words of a vocabulary that is read."""
_MOST_LETTERS = 1000
OTHER_TOKENISER = "pass `tokeniser`, the path of a tokenizer.json of the same model"
"""Remedy where a tokeniser cannot be used."""
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
# How texts are split for the byte pairs of vocab.json and merges.txt, by the architecture or the name of the tokeniser.
_BYTE_PAIR_KINDS = {
    "gpt2": "gpt2",
    "GPT2Tokenizer": "gpt2",
    "roberta": "roberta",
    "RobertaTokenizer": "roberta",
    "qwen2": "qwen2",
    "Qwen2Tokenizer": "qwen2",
}


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
    """Tokeniser in a folder: tokenizer.json, else vocab.txt, else vocab.json with merges.txt; None where there is none.

    Byte pairs of vocab.json are read for architectures whose splitting of texts is known, and None for others.
    """
    path = file_in(folder, "tokenizer.json")
    if path is not None:
        return tokeniser_file(path)
    path = file_in(folder, "vocab.txt")
    if path is not None:
        return vocabulary_file(path, _object(folder, "tokenizer_config.json"))
    return _byte_pairs_in(folder)


def _byte_pairs_in(folder: Path) -> AbstractTokeniser | None:
    path = file_in(folder, "vocab.json")
    if path is None or file_in(folder, "merges.txt") is None:
        return None
    settings = _object(folder, "tokenizer_config.json")
    named = _object(folder, CONFIG).get("model_type") or str(settings.get("tokenizer_class", "")).removesuffix("Fast")
    kind = _BYTE_PAIR_KINDS.get(named) if isinstance(named, str) else None
    return None if kind is None else _byte_pair_files(path, kind, settings)


def tokeniser_file(path: Path) -> AbstractTokeniser:
    """Tokeniser in a file tokenizer.json, vocab.txt, or vocab.json with the other files beside it."""
    if path.suffix == ".txt":
        return vocabulary_file(path, {})
    if path.name == "vocab.json":
        found = _byte_pairs_in(path.parent)
        if found is None:
            problem = "needs merges.txt, and a config.json or tokenizer_config.json of a known tokeniser, beside it"
            raise FileError(path, problem, f"known are {', '.join(sorted(_BYTE_PAIR_KINDS))}")
        return found
    text = bounded_text(path, _MOST_TOKENISER)
    library = the_library()
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
    if not 0 < len(words) <= MOST_WORDS:
        raise FileError(path, f"has {len(words)} words", DAMAGED)
    if max(map(len, words)) > _MOST_LETTERS:
        raise FileError(path, f"has a word of {max(map(len, words))} letters", DAMAGED)
    if not any(word.startswith("##") for word in words):
        return GreedyTokeniser.of(words)
    lower = settings.get("do_lower_case", is_lower(words))
    missing = next((word for word in ("[CLS]", "[SEP]", "[UNK]") if word not in words), None)
    if missing or not isinstance(lower, bool):
        what = f"has no word {missing}" if missing else f"has do_lower_case={shown(lower)} beside it"
        raise FileError(path, what, DAMAGED)
    library = the_library()
    try:
        return LibraryTokeniser(word_pieces(library, words, lower), "plain")
    except BaseException as error:
        if isinstance(error, (KeyboardInterrupt, SystemExit)):
            raise
        raise FileError(path, f"is no vocabulary ({shown(str(error))})", DAMAGED) from error


def word_pieces(library: Any, words: Sequence[str], lower: bool) -> Any:
    """Tokeniser of BERT: parts of words begin with ``##``."""
    numbers = {word: k for k, word in enumerate(words)}
    inner = library.Tokenizer(library.models.WordPiece(numbers, unk_token="[UNK]"))  # noqa: S106 (no password)
    inner.normalizer = library.normalizers.BertNormalizer(lowercase=lower)
    inner.pre_tokenizer = library.pre_tokenizers.BertPreTokenizer()
    inner.post_processor = library.processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[(word, numbers[word]) for word in ("[CLS]", "[SEP]")]
    )
    inner.add_special_tokens([word for word in ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]") if word in numbers])
    return inner


def _byte_pair_files(path: Path, kind: str, settings: Mapping[str, Any]) -> AbstractTokeniser:
    """Tokeniser from vocab.json and the merges.txt beside it, with the special tokens of other files."""
    numbers = json_object(path, _MOST_TOKENISER)
    special = _added_tokens(path.parent, numbers, settings)
    merges = path.with_name("merges.txt")
    lines = bounded_text(merges, _MOST_TOKENISER).split("\n")
    lines = lines[1:] if lines[0].startswith("#version") else lines
    numbers |= {word: number for word, (number, _) in special.items()}
    places = [*numbers.values()]
    sound = all(isinstance(one, int) and not isinstance(one, bool) and 0 <= one < MOST_WORDS for one in places)
    if not places or not sound or len({*places}) < len(places):
        raise FileError(path, "must have a number of its own, from 0, for each word", DAMAGED)
    library = the_library()
    try:
        pairs = [one.removesuffix("\r") for one in lines if one.strip()]
        split, blank = "qwen2" if kind == "qwen2" else "gpt2", settings.get("add_prefix_space") is True
        inner = byte_pairs(library, merges, numbers, pairs, split, blank)
        inner.add_special_tokens(
            [library.AddedToken(word, special=True, **sides) for word, (_, sides) in special.items()]
        )
        if kind == "roberta":
            inner.post_processor = library.processors.TemplateProcessing(
                single="<s> $A </s>", special_tokens=[(word, numbers[word]) for word in ("<s>", "</s>")]
            )
        elif kind == "qwen2":
            inner.normalizer = library.normalizers.NFC()
    except BaseException as error:
        if isinstance(error, (KeyboardInterrupt, SystemExit, HardmaxError)):
            raise
        raise FileError(path, f"is no vocabulary for {merges.name} ({shown(str(error))})", DAMAGED) from error
    begin = numbers.get(_content(settings.get("bos_token", "<|endoftext|>")))
    first = (begin,) if settings.get("add_bos_token") is True and kind == "gpt2" and begin is not None else ()
    return LibraryTokeniser(inner, "bytes", first)


def _added_tokens(
    folder: Path, known: Mapping[str, Any], settings: Mapping[str, Any]
) -> dict[str, tuple[int, dict[str, bool]]]:
    """Tokens that no text is split into: number, and whether blanks before and after belong to each."""
    found: dict[str, tuple[int, dict[str, bool]]] = {}
    listed = settings.get("added_tokens_decoder", {})
    for number, token in listed.items() if isinstance(listed, dict) else ():
        if isinstance(token, dict) and number.isdecimal() and len(number) < 10 and _content(token):
            found[_content(token)] = int(number), {side: token.get(side) is True for side in ("lstrip", "rstrip")}
    for word, number in _object(folder, "added_tokens.json").items():
        found.setdefault(word, (number, {}))
    for word in ("<s>", "<pad>", "</s>", "<unk>", "<mask>", "<|endoftext|>"):
        if word in known:
            # Published tokenisers of RoBERTa take the blank before a mask into it.
            found.setdefault(word, (known[word], {"lstrip": word == "<mask>"}))
    return found


def _content(token: object) -> str:
    """Text of a token that is written as a text or as an object."""
    found = token.get("content") if isinstance(token, dict) else token
    return found if isinstance(found, str) else ""


def _object(folder: Path, name: str) -> dict[str, Any]:
    """Object in a JSON file of a folder, empty where there is no such file."""
    path = file_in(folder, name)
    return {} if path is None else json_object(path)


def byte_pairs(
    library: Any, path: Path, numbers: Mapping[str, int], merges: list[str], split: object, blank: bool = False
) -> Any:
    """Tokeniser that joins pairs of letters, which stand for bytes, in the order of ``merges``.

    ``split`` names how texts are cut before, and ``blank`` puts a blank before a text (GPT-2 only).
    """
    pairs = [tuple(one.split(" ", 1)) for one in merges]
    if any(len(pair) != 2 for pair in pairs):
        raise FileError(path, "has merges that are not pairs", DAMAGED)
    inner = library.Tokenizer(library.models.BPE(dict(numbers), pairs))
    before = library.pre_tokenizers
    if split in _GPT2_SPLITS:
        inner.pre_tokenizer = before.ByteLevel(add_prefix_space=blank)
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
        raise FileError(path, f"splits texts by {shown(split)}; known are {known}", OTHER_TOKENISER)
    return inner


def is_lower(words: Sequence[str]) -> bool:
    """Whether a vocabulary has no capital letters, special tokens apart."""
    return not any(word != word.lower() for word in words if not (word.startswith("[") and word.endswith("]")))


def the_library() -> Any:
    """The package ``tokenizers``; an error says how to install it."""
    try:
        import tokenizers
    except ImportError:
        raise MissingExtraError("tokenizers", "models", "the tokeniser of this model") from None
    return tokenizers
