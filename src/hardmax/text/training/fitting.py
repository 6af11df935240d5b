"""Fit a classifier: initialisation, vocabulary selection, training and calibration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from scipy import sparse
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_non_negative, column_or_1d, validate_data

from ...distributed import ALONE, Processes
from ...errors import InputError
from ...randomness import seeded
from ..model.network import Network
from ..recipes import Recipe, recipe_with, words_with
from ..words.counts import chi2, class_presence, evidence, own_counts, weighed, weighed_table
from ..words.document_endings import EndingVocabulary
from ..words.documents import as_texts, kept_aside, labels_for
from ..words.tokenisation import Tokeniser
from ..words.vocabulary import Vocabulary
from .averaging import fit_averaged
from .backends import answers
from .loop import temperature_of
from .state import Rows

if TYPE_CHECKING:
    from ..classifier import LeaderClassifier


_SMOOTHING, _SMOOTHING_OF_MANY = 10.0, 2.0


def start_network(
    presence: np.ndarray, sizes: np.ndarray, groups: np.ndarray, recipe: Recipe, rng: np.random.Generator
) -> Network:
    """A network for words with this ``presence`` in the classes; ``groups`` numbers their groups from one on."""
    classes = len(presence)
    if recipe.cut is not None:  # the padding word, which says nothing
        presence, groups = np.hstack([presence, np.zeros((classes, 1))]), np.append(groups, 1)
    dim = recipe.dim or (classes if classes > 2 else 1 if recipe.by_length else 2)
    if recipe.start == "evidence":
        smoothing = recipe.smoothing or (_SMOOTHING if classes == 2 else _SMOOTHING_OF_MANY)
        found = evidence(presence, sizes, smoothing)
        if recipe.cut is not None:
            found[:, -1] = 0
        points, decoder = start_from_evidence(found, dim, rng, noise=recipe.noise, decoder_scale=recipe.decoder_scale)
    else:
        points = recipe.noise * rng.normal(size=(presence.shape[1], dim))
        decoder = rng.uniform(-1, 1, size=(1 if classes == 2 else classes, dim)) / np.sqrt(dim)
    if recipe.by_length:
        points, decoder = apart(points, decoder, groups)
    return Network(
        embedding=torch.from_numpy(points),
        decoder=torch.from_numpy(decoder),
        bias=torch.zeros(len(decoder), dtype=torch.float64),
        raw_alpha=torch.tensor(recipe.alpha - recipe.least_alpha, dtype=torch.float64).log(),
        least_alpha=recipe.least_alpha,
        depth=recipe.depth,
        norm_masses=recipe.masses == "norm",
        raw_factor=torch.zeros(points.shape[1], points.shape[1], dtype=torch.float64) if recipe.learn_matrix else None,
    )


def apart(points: np.ndarray, decoder: np.ndarray, groups: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same points with coordinates of their own for each group, and a decoder that reads all of these alike.

    >>> apart(np.array([[1.0], [2.0]]), np.array([[6.0]]), np.array([1, 2]))[0].tolist()
    [[1.0, 0.0], [0.0, 2.0]]
    """
    blocks = int(groups.max())
    spread = np.zeros((len(points), blocks, points.shape[1]))
    spread[np.arange(len(points)), groups - 1] = points
    return spread.reshape(len(points), -1), np.tile(decoder, (1, blocks))


def start_from_evidence(
    evidence: np.ndarray, dim: int, rng: np.random.Generator, *, noise: float, decoder_scale: float
) -> tuple[np.ndarray, np.ndarray]:
    """Embedding and decoder that start as a naive Bayes classifier.

    For two classes the evidence for the second lies along one random direction; for more classes each has its own,
    orthogonal while there is room.
    """
    directions = np.linalg.qr(rng.normal(size=(dim, dim)))[0]
    if len(evidence) == 2:
        u = np.abs(directions[:1]) if dim == 1 else directions[:1]
        start, decoder = evidence[1][:, None] * u, decoder_scale * u
    else:
        rows = directions[np.arange(len(evidence)) % dim]
        if len(evidence) > dim:
            rows = rng.normal(size=(len(evidence), dim))
            rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        start, decoder = evidence.T @ rows, decoder_scale * rows
    return start + noise * rng.normal(size=start.shape), decoder


_LEAST_MASS, _LEAST_MASS_OF_MANY = 5.0, 100.0
# Tables with fewer entries are trained in double precision, which costs nothing there: which word leads is a discrete
# choice, and with it documents that are given twice and documents of weight two lead to the same model.
_SMALL = 100_000


def fit_model(model: LeaderClassifier, X: Any, y: Any, sample_weight: Any, validation: Any) -> None:
    """Fill a model from documents and their labels; what it has learned before is forgotten."""
    recipe = recipe_with(model.recipe, model.get_params())
    # Nobody but the training holds the rows, so that they go as soon as they are split.
    _fit_network(model, _rows(model, X, y, sample_weight, recipe), recipe, validation)


def _rows(model: LeaderClassifier, X: Any, y: Any, sample_weight: Any, recipe: Recipe) -> Rows:
    """The documents that there is something to learn from."""
    texts = as_texts(X)
    labels = labels_for(y, texts)
    _forget(model)
    if texts is None:
        X, labels = validate_data(model, X, y, accept_sparse="csr", dtype=np.float64)
        check_non_negative(X, type(model).__name__)
        counts = own_counts(X)
    else:
        counts = _learn_words(model, texts, recipe)
    check_classification_targets(labels)
    model.classes_, numbers = np.unique(labels, return_inverse=True)
    weights = _weights(model, counts, numbers, sample_weight)
    rows = Rows(counts, numbers, weights)
    useful = (weights > 0) & (np.diff(counts.indptr) > 0)
    if not useful.all():
        rows = rows.take(np.flatnonzero(useful))
    if len(np.unique(rows.labels)) < 2:
        raise InputError(
            "y",
            f"{len(np.unique(rows.labels))} class",
            "must name at least two classes among the documents that hold a word and a positive weight",
            "pass documents of every class",
        )
    model.class_prior_ = np.bincount(rows.labels, rows.weights, len(model.classes_)) / rows.weights.sum()
    return rows


def _forget(model: LeaderClassifier) -> None:
    for name in ("vocabulary_", "tokeniser_", "feature_names_in_", "n_features_in_", "columns_"):
        if hasattr(model, name):
            delattr(model, name)


def _learn_words(model: LeaderClassifier, texts: list[str], recipe: Recipe) -> sparse.csr_matrix:
    wanted = {
        "pattern": model.token_pattern,
        "lowercase": model.lowercase,
        "stop_words": model.stop_words,
        "lemmas": model.lemmas,
        "cut": recipe.cut,
        "removed": model.removed,
    }
    model.tokeniser_ = Tokeniser(**words_with(model.recipe, wanted))
    min_df = recipe.min_df or (1 if len(texts) < 200 else 2 if len(texts) < 2000 else 3)
    if recipe.endings is None:
        model.vocabulary_, counts = Vocabulary.learn(texts, model.tokeniser_, ngrams=recipe.ngrams, min_df=min_df)
    else:
        model.vocabulary_, counts = EndingVocabulary.learn(
            texts, model.tokeniser_, ngrams=recipe.ngrams, min_df=min_df, last=recipe.endings
        )
    if len(model.vocabulary_) == 0:
        raise InputError(
            "X",
            f"{len(texts)} texts",
            f"must hold a word that occurs in at least min_df={min_df} of them",
            "pass more texts or a smaller min_df",
        )
    return counts.astype(np.float64) if counts.nnz < _SMALL else counts


def _weights(model: LeaderClassifier, counts: sparse.csr_matrix, numbers: np.ndarray, sample_weight: Any) -> np.ndarray:
    weights = _check_sample_weight(sample_weight, counts, dtype=np.float64, ensure_non_negative=True)
    if model.class_weight is not None:
        of_class = compute_class_weight(
            model.class_weight, classes=model.classes_, y=model.classes_[numbers], sample_weight=weights
        )
        weights = weights * of_class[numbers]
    return np.asarray(weights)


def _fit_network(model: LeaderClassifier, rows: Rows, recipe: Recipe, validation: Any) -> None:
    ranks = ALONE if model.processes is None else model.processes
    model.seed_ = _seed(model.random_state, ranks)
    rng = np.random.default_rng([model.seed_, 2**20])
    aside = kept_aside(rows.labels, model.validation_fraction if validation is None else 0.0, rng)
    presence, sizes = _choose_words(model, rows, aside, recipe)
    rows.table = weighed(rows.table, recipe, texts=hasattr(model, "vocabulary_"))
    rows.weights = rows.weights / rows.weights.mean()
    training = rows.take(np.flatnonzero(~aside))
    held_out = rows.take(np.flatnonzero(aside)) if aside.any() else None
    if validation is not None:
        held_out = _judging_rows(model, validation, recipe)
    groups = model.vocabulary_.groups() if hasattr(model, "vocabulary_") else np.ones(len(model.columns_), dtype=int)
    network = start_network(presence, sizes, groups, recipe, rng)
    # Words may start near the origin for want of evidence; then their length at the start is no measure.
    least = _LEAST_MASS if len(model.classes_) == 2 else _LEAST_MASS_OF_MANY
    network.resting_mass = recipe.resting_share * max(network.mean_mass(training.table, training.weights), least)
    network = network.to(torch.float64 if training.table.nnz < _SMALL else torch.float32)
    del rows
    model.history_ = fit_averaged(
        network,
        training,
        held_out,
        recipe,
        checkpoint=model.checkpoint,
        device=model.device,
        seed=model.seed_,
        patience=model.patience,
        progress=model.progress,
        ranks=ranks,
    )
    model.n_iter_ = len(model.history_)
    model.temperature_ = 1.0 if held_out is None else _calibrate(network, held_out, model.device)
    model._adopt(network, recipe)


def _seed(state: Any, ranks: Processes) -> int:
    """The seed asked for, or one that is drawn; that of the first process, where each has drawn its own."""
    if isinstance(state, np.random.RandomState):
        state = int(state.randint(2**31))
    elif isinstance(state, np.random.Generator):
        state = int(state.integers(2**31))
    seed = seeded(state).seed
    assert seed is not None  # noqa: S101 (only a generator has none, and it was drawn from above)
    return ranks.counts(seed)[0]


def _choose_words(
    model: LeaderClassifier, rows: Rows, aside: np.ndarray, recipe: Recipe
) -> tuple[np.ndarray, np.ndarray]:
    """Keep the columns that tell the classes apart best; their presence in the classes, and the classes' sizes."""
    presence, sizes = class_presence(
        _capped(rows.table), rows.labels, len(model.classes_), np.where(aside, 0.0, rows.weights)
    )
    if recipe.max_words is not None and recipe.max_words < rows.table.shape[1]:
        best = np.argsort(-chi2(presence, sizes), kind="stable")[: recipe.max_words]
        model.columns_ = np.sort(best)
        presence = presence[:, model.columns_]
        rows.table = rows.table[:, model.columns_]
        if hasattr(model, "vocabulary_"):
            model.vocabulary_ = model.vocabulary_.select(model.columns_)
    else:
        model.columns_ = np.arange(rows.table.shape[1])
    if hasattr(model, "vocabulary_"):
        model.n_features_in_ = len(model.columns_)
    return presence, sizes


def _capped(table: sparse.csr_matrix) -> sparse.csr_matrix:
    """Presence: counts up to one."""
    return sparse.csr_matrix((np.minimum(table.data, 1.0), table.indices, table.indptr), shape=table.shape)


def _judging_rows(model: LeaderClassifier, validation: Any, recipe: Recipe) -> Rows:
    """Documents that were given to judge the epochs on."""
    if not isinstance(validation, (tuple, list)) or len(validation) != 2:
        shown = type(validation).__name__
        raise InputError("validation", shown, "must be documents and their labels", "pass validation=(texts, labels)")
    X, y = validation
    table, labels = weighed_table(model, X, recipe), column_or_1d(y)
    if len(labels) != table.shape[0]:
        raise InputError(
            "validation",
            f"{len(labels)} labels",
            f"must match the {table.shape[0]} documents",
            "pass one label for each",
        )
    strange = np.setdiff1d(labels, model.classes_)
    if len(strange):
        raise InputError(
            "validation", repr(strange[0]), "must be a class of the training labels", "leave such documents out"
        )
    rows = Rows(table, np.searchsorted(model.classes_, labels), np.ones(len(labels)))
    known = np.flatnonzero(np.diff(table.indptr) > 0)
    if len(known) == 0:
        raise InputError("validation", f"{len(labels)} documents", "must hold a known word", "pass others")
    return rows.take(known)


def _calibrate(network: Network, held_out: Rows, device: str | None) -> float:
    """Divide the logits by the temperature of the rows kept aside, which is returned."""
    logits, _ = answers(network, held_out.table, device)
    temperature = temperature_of(logits, held_out.labels, held_out.weights)
    # From here on the logit is the logarithm of calibrated odds, and explanations add up to it.
    network.decoder /= temperature
    network.bias /= temperature
    return temperature
