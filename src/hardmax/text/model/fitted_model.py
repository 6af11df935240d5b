"""The result of a fit, as a value and as a file."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch

from ...errors import FileError, InputError
from ...tensor_files import field, read, require, write
from ..recipes import Recipe
from ..words.document_endings import PREFIX, EndingVocabulary
from ..words.tokenisation import Tokeniser
from ..words.vocabulary import Vocabulary
from .network import Network

KIND = "leader classifier"
_DAMAGED = "the file is damaged; write it again"


@dataclass(frozen=True)
class FittedModel:
    """A trained network with the words and classes that it belongs to."""

    network: Network
    """In double precision."""
    recipe: Recipe
    classes: np.ndarray
    class_prior: np.ndarray
    """Frequency of each class in training, shape (classes,)."""
    columns: np.ndarray
    """Selected columns of a table of counts; all columns of the vocabulary for texts."""
    features: int
    """Number of columns that documents have before selection."""
    seed: int
    temperature: float
    """Number by which the logits were divided for calibration."""
    history: list[dict[str, float]]
    vocabulary: Vocabulary | EndingVocabulary | None = None
    """None if the model was fitted on a table."""
    tokeniser: Tokeniser | None = None
    """None if the model was fitted on a table."""
    feature_names: tuple[str, ...] = ()
    """Names of the columns of a table, if it had names."""
    cross_validation: dict[str, Any] | None = None
    """Accuracy on folds of the training rows beside that of a linear baseline; None if there were no folds."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file; classes must be strings or numbers."""
        classes = self.classes.tolist()
        if not all(isinstance(name, (str, int, float, bool)) for name in classes):
            raise InputError("classes", repr(classes), "must be texts or numbers to be saved", "fit with such labels")
        parameters = self.network.parameters()
        arrays = {name: _shortest(part.numpy()) for name, part in parameters.items() if part.ndim > 0}
        header: dict[str, Any] = {
            "recipe": asdict(self.recipe),
            "raw_alpha": float(self.network.raw_alpha),
            "resting_mass": self.network.resting_mass,
            "mass_power": self.network.mass_power,
            "classes": classes,
            "class_type": self.classes.dtype.str if self.classes.dtype.kind != "O" else "object",
            "prior": self.class_prior.tolist(),
            "features": self.features,
            "seed": self.seed,
            "temperature": self.temperature,
            "history": self.history,
            "names": list(self.feature_names),
            "cross_validation": self.cross_validation,
        }
        if self.vocabulary is not None and self.tokeniser is not None:
            header |= {"vocabulary": self.vocabulary.recipe(), "tokeniser": self.tokeniser.recipe()}
            arrays |= self.vocabulary.arrays()
        else:
            arrays["columns"] = self.columns
        write(path, KIND, header, arrays)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> FittedModel:
        """Read a model from a file; a FileError names what is damaged in it."""
        header, arrays = read(path, KIND)
        try:
            recipe = Recipe(**field(path, header, "recipe", dict))
        except (TypeError, InputError) as error:
            raise FileError(path, f"the recipe cannot be used ({error})", _DAMAGED) from error
        names = field(path, header, "classes", list)
        if len(names) < 2:
            raise FileError(path, f"the recipe's 'classes' are {names!r}", _DAMAGED)
        network = _network(path, header, arrays, recipe, outputs=1 if len(names) == 2 else len(names))
        words = len(network.embedding)
        classes = _classes(path, names, field(path, header, "class_type", str))
        prior = np.array(field(path, header, "prior", list), dtype=float)
        if prior.shape != (len(names),):
            raise FileError(path, f"the recipe has {len(prior)} priors for {len(names)} classes", _DAMAGED)
        found: dict[str, Any] = {
            "features": field(path, header, "features", int),
            "seed": field(path, header, "seed", int),
            "temperature": float(field(path, header, "temperature", float)),
            "history": field(path, header, "history", list),
            # Files of earlier versions have none.
            "cross_validation": header.get("cross_validation") and field(path, header, "cross_validation", dict),
        }
        if "vocabulary" in header:
            columns = np.arange(words - (recipe.cut is not None))
            found |= {
                "vocabulary": _any_vocabulary(path, header, arrays, len(columns)),
                "tokeniser": _tokeniser(path, header),
            }
        else:
            columns = require(path, arrays, "columns", (words,)).astype(np.int64)
            found["feature_names"] = tuple(field(path, header, "names", list))
        return FittedModel(network.to(torch.float64), recipe, classes, prior, columns, **found)


def _network(
    path: object, header: dict[str, Any], arrays: dict[str, np.ndarray], recipe: Recipe, outputs: int
) -> Network:
    embedding = require(path, arrays, "embedding", (None, None))
    dim = embedding.shape[1]
    return Network(
        embedding=torch.from_numpy(embedding),
        decoder=torch.from_numpy(require(path, arrays, "decoder", (outputs, dim))),
        bias=torch.from_numpy(require(path, arrays, "bias", (outputs,))),
        raw_alpha=torch.tensor(float(field(path, header, "raw_alpha", float)), dtype=torch.float64),
        least_alpha=recipe.least_alpha,
        depth=recipe.depth,
        norm_masses=recipe.masses == "norm",
        resting_mass=float(field(path, header, "resting_mass", float)),
        # Files of earlier versions have none.
        mass_power=float(field(path, header, "mass_power", float)) if "mass_power" in header else 1.0,
        raw_factor=torch.from_numpy(require(path, arrays, "raw_factor", (dim, dim))) if recipe.learn_matrix else None,
    )


def _shortest(numbers: np.ndarray) -> np.ndarray:
    """The same numbers in single precision if that is exact, as after training in single precision."""
    short = numbers.astype(np.float32)
    return short if np.array_equal(short, numbers) else numbers


def _tokeniser(path: object, header: dict[str, Any]) -> Tokeniser:
    try:
        return Tokeniser(**field(path, header, "tokeniser", dict))
    except (TypeError, InputError) as error:
        raise FileError(path, f"the recipe's 'tokeniser' cannot be used ({error})", _DAMAGED) from error


def _any_vocabulary(
    path: object, header: dict[str, Any], arrays: dict[str, np.ndarray], columns: int
) -> Vocabulary | EndingVocabulary:
    """The vocabulary of a file, if it has as many columns as there are embedded words."""
    stored = field(path, header, "vocabulary", dict)
    anywhere = _vocabulary(path, stored, arrays)
    vocabulary: Vocabulary | EndingVocabulary = anywhere
    if "endings" in stored:
        known = field(path, stored, "endings", dict)
        own = {name.removeprefix(PREFIX): part for name, part in arrays.items() if name.startswith(PREFIX)}
        vocabulary = EndingVocabulary(anywhere, _vocabulary(path, known, own), field(path, known, "last", int))
    if len(vocabulary) != columns:
        raise FileError(path, f"the vocabulary names {len(vocabulary)} of the {columns} embedded words", _DAMAGED)
    return vocabulary


def _vocabulary(path: object, stored: dict[str, Any], arrays: dict[str, np.ndarray]) -> Vocabulary:
    """A vocabulary, if its parts fit together."""
    words, lengths = field(path, stored, "words", list), field(path, stored, "lengths", list)
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
