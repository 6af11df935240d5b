"""A fitted model as a file, and back."""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ...errors import FileError, InputError
from ...tensor_files import field, read, require, write
from ..recipes import RECIPES, Recipe, words_with
from ..words.document_endings import PREFIX, EndingVocabulary
from ..words.tokenisation import Tokeniser
from ..words.vocabulary import Vocabulary
from .network import Network

if TYPE_CHECKING:
    from ..classifier import LeaderClassifier

KIND = "leader classifier"
_DAMAGED = "the file is damaged; write it again"


def save_model(model: LeaderClassifier, path: str | os.PathLike[str]) -> None:
    """Write the model; classes must be texts or numbers."""
    classes = model.classes_.tolist()
    if not all(isinstance(name, (str, int, float, bool)) for name in classes):
        raise InputError("classes", repr(classes), "must be texts or numbers to be saved", "fit with such labels")
    arrays = {name: _shortest(part.numpy()) for name, part in model.network_.parameters().items() if part.ndim > 0}
    recipe: dict[str, Any] = {
        "recipe": asdict(model.recipe_),
        "raw_alpha": float(model.network_.raw_alpha),
        "resting_mass": model.network_.resting_mass,
        "classes": classes,
        "class_type": model.classes_.dtype.str if model.classes_.dtype.kind != "O" else "object",
        "prior": model.class_prior_.tolist(),
        "features": int(model.n_features_in_),
        "seed": model.seed_,
        "temperature": model.temperature_,
        "history": model.history_,
        "names": [str(name) for name in getattr(model, "feature_names_in_", ())],
    }
    if hasattr(model, "vocabulary_"):
        recipe |= {"vocabulary": model.vocabulary_.recipe(), "tokeniser": model.tokeniser_.recipe()}
        arrays |= model.vocabulary_.arrays()
    else:
        arrays["columns"] = model.columns_
    write(path, KIND, recipe, arrays)


def load_model(model: LeaderClassifier, path: str | os.PathLike[str]) -> None:
    """Fill an empty model from a file."""
    header, arrays = read(path, KIND)
    try:
        recipe = Recipe(**field(path, header, "recipe", dict))
    except (TypeError, InputError) as error:
        raise FileError(path, f"the recipe cannot be used ({error})", _DAMAGED) from error
    classes = field(path, header, "classes", list)
    if len(classes) < 2:
        raise FileError(path, f"the recipe's 'classes' are {classes!r}", _DAMAGED)
    outputs = 1 if len(classes) == 2 else len(classes)
    embedding = require(path, arrays, "embedding", (None, None))
    words, dim = embedding.shape
    network = Network(
        embedding=torch.from_numpy(embedding),
        decoder=torch.from_numpy(require(path, arrays, "decoder", (outputs, dim))),
        bias=torch.from_numpy(require(path, arrays, "bias", (outputs,))),
        raw_alpha=torch.tensor(float(field(path, header, "raw_alpha", float)), dtype=torch.float64),
        least_alpha=recipe.least_alpha,
        depth=recipe.depth,
        norm_masses=recipe.masses == "norm",
        resting_mass=float(field(path, header, "resting_mass", float)),
        raw_factor=torch.from_numpy(require(path, arrays, "raw_factor", (dim, dim))) if recipe.learn_matrix else None,
    )
    model.classes_ = _classes(path, classes, field(path, header, "class_type", str))
    model.class_prior_ = np.array(field(path, header, "prior", list), dtype=float)
    if model.class_prior_.shape != (len(classes),):
        raise FileError(path, f"the recipe has {len(model.class_prior_)} priors for {len(classes)} classes", _DAMAGED)
    model.n_features_in_ = field(path, header, "features", int)
    model.seed_ = field(path, header, "seed", int)
    model.temperature_ = float(field(path, header, "temperature", float))
    model.history_ = field(path, header, "history", list)
    model.n_iter_ = len(model.history_)
    if "vocabulary" in header:
        _restore_words(model, path, header, arrays, words - (recipe.cut is not None))
    else:
        model.columns_ = require(path, arrays, "columns", (words,)).astype(np.int64)
        if field(path, header, "names", list):
            model.feature_names_in_ = np.array(header["names"], dtype=object)
    model._adopt(network, recipe)
    _take_up_settings(model, recipe)


def _take_up_settings(model: LeaderClassifier, recipe: Recipe) -> None:
    """The recipe and the way of cutting words become settings again, so that a clone or another fit keeps to them."""
    model.recipe = next((name for name, known in RECIPES.items() if known == recipe), recipe)
    if not hasattr(model, "tokeniser_"):
        return
    usual = Tokeniser(**words_with(model.recipe, {}))
    for part in ("pattern", "lowercase", "stop_words", "lemmas", "removed"):
        if getattr(model.tokeniser_, part) != getattr(usual, part):
            setattr(model, "token_pattern" if part == "pattern" else part, getattr(model.tokeniser_, part))


def _shortest(numbers: np.ndarray) -> np.ndarray:
    """In single precision where nothing is lost by it, as after training in single precision."""
    short = numbers.astype(np.float32)
    return short if np.array_equal(short, numbers) else numbers


def _restore_words(
    model: LeaderClassifier, path: object, header: dict[str, Any], arrays: dict[str, np.ndarray], columns: int
) -> None:
    kept = field(path, header, "vocabulary", dict)
    anywhere = _vocabulary(path, kept, arrays)
    vocabulary: Vocabulary | EndingVocabulary = anywhere
    if "endings" in kept:
        known = field(path, kept, "endings", dict)
        own = {name.removeprefix(PREFIX): part for name, part in arrays.items() if name.startswith(PREFIX)}
        vocabulary = EndingVocabulary(anywhere, _vocabulary(path, known, own), field(path, known, "last", int))
    if len(vocabulary) != columns:
        raise FileError(path, f"the vocabulary names {len(vocabulary)} of the {columns} embedded words", _DAMAGED)
    model.vocabulary_ = vocabulary
    model.columns_ = np.arange(columns)
    try:
        model.tokeniser_ = Tokeniser(**field(path, header, "tokeniser", dict))
    except (TypeError, InputError) as error:
        raise FileError(path, f"the recipe's 'tokeniser' cannot be used ({error})", _DAMAGED) from error


def _vocabulary(path: object, kept: dict[str, Any], arrays: dict[str, np.ndarray]) -> Vocabulary:
    """What a vocabulary was, if its parts fit together."""
    words, lengths = field(path, kept, "words", list), field(path, kept, "lengths", list)
    require(path, arrays, "words.column", (len(words),))
    sizes = [len(words), *lengths]
    for n, length in enumerate(lengths, start=2):
        for part, limit in (("prefix", sizes[n - 2]), ("last", len(words)), ("column", sum(sizes))):
            found = require(path, arrays, f"grams{n}.{part}", (length,))
            if len(found) and (found.min() < -1 or found.max() >= limit):
                raise FileError(path, f"tensor 'grams{n}.{part}' points outside the vocabulary", _DAMAGED)
    vocabulary = Vocabulary.restore(words, lengths, arrays)
    used = np.concatenate([vocabulary.columns, *(level.column for level in vocabulary.longer)])
    if not np.array_equal(np.sort(used[used >= 0]), np.arange(len(vocabulary))):
        raise FileError(path, "the vocabulary does not name each of its words once", _DAMAGED)
    return vocabulary


def _classes(path: object, names: list[Any], kind: str) -> np.ndarray:
    try:
        return np.array(names, dtype=object if kind == "object" else np.dtype(kind))
    except (TypeError, ValueError) as error:
        raise FileError(path, f"the recipe's 'classes' are not of type {kind!r}", _DAMAGED) from error
