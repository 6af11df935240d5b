"""Tokenisers in the tables of GGUF files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import FileError, HardmaxError
from ..scalars import shown
from .stored import DAMAGED
from .tokeniser import AbstractTokeniser
from .tokenisers import MOST_WORDS, OTHER_TOKENISER, LibraryTokeniser, byte_pairs, is_lower, the_library, word_pieces

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
