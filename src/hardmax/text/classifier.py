"""The classifier: a scikit-learn estimator on raw texts and on document-term matrices."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import torch
from scipy import sparse
from scipy.special import expit, softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    check_is_fitted,
    check_non_negative,
    column_or_1d,
    validate_data,
)

from ..distributed import ALONE, Processes
from ..errors import InputError
from ..progress import Progress
from ..randomness import seeded
from .averaging import fit_averaged
from .counts import chi2, class_presence, damped
from .endings import EndingVocabulary
from .explanation import Explanation
from .model_files import load_model, save_model
from .network import Network
from .recipes import Recipe, recipe_with, words_with
from .starting import start_network
from .texts import as_rows, as_texts, kept_aside, labels_for, warn_of_unknown
from .trainers import answers
from .training import Rows, temperature_of
from .vocabulary import Vocabulary
from .words import Tokeniser

_LEAST_MASS, _LEAST_MASS_OF_MANY = 5.0, 100.0
# Tables with fewer entries are trained in double precision, which costs nothing there: which word leads is a discrete
# choice, and with it documents that are given twice and documents of weight two lead to the same model.
_SMALL = 100_000
PADDING = "‹padding›"


class LeaderClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    r"""Classify documents by their leader words.

    Each word starts at a learned point. Hardmax layers let every word follow the one that its score
    :math:`\langle z_i, z_j\rangle` prefers, until all have gathered at a few leaders; the decoder reads the mean
    of the final positions. So the reasons of a decision are the leaders of the document and what they gathered,
    and they add up to the logit (see :meth:`explain`).

    Settings left at None are those of the recipe.

    Parameters
    ----------
    dim
        Coordinates of a word; two for two classes, else one for each class.
    recipe
        ``"default"``; ``"accurate"`` for more accuracy from texts by triples of words, punctuation and more passes,
        with words, pairs, triples and what stands at the end on axes of their own, and by the mean of three trainings;
        ``"paper"`` for the published model and its training; or a :class:`~hardmax.text.recipes.Recipe` of your own.
    ngrams, min_df, max_words
        Words and n-grams of up to so many words that occur in at least ``min_df`` texts (3 for large sets, 1 for
        small); of those the ``max_words`` that tell the classes apart best (chi2).
    token_pattern, lowercase, stop_words, lemmas
        How texts are cut into words, see :class:`~hardmax.text.words.Tokeniser`.
    depth, alpha, learn_alpha, collapse
        Number of layers, the step towards the followed word, whether it is learned, and how much of the way words
        must have gone in the end: :math:`1-(1+\alpha)^{-K}`.
    learn_matrix
        Whether the matrix A of the score :math:`\langle A z_i, z_j\rangle` is learned; it stays positive definite.
    masses
        ``"norm"``: a word weighs its length times 1 + log count; ``"count"``: its count.
    cone, tether
        For two classes, where words may lie: at most ``cone`` times as far across the decoder's axis as along it, and
        at most ``tether`` from where their frequencies put them. So leaders are words that speak for a class, and
        nobody follows a word of the other side; ``math.inf`` lifts either.
    epochs, batch_size, learning_rate, dropout, smoothing, temperature
        Training: by Adam with word dropout, from log odds smoothed by so many documents; ``temperature`` > 0
        trains as softmax.
    class_weight
        None, ``"balanced"`` or a dictionary from class to weight.
    validation_fraction, patience
        The share of the rows kept aside for choosing the epoch and the calibration, and how many epochs without
        gain to wait.
    random_state
        A whole number, a generator or None.
    checkpoint
        A file that holds the training after every epoch; a fit that was interrupted goes on from there. Where a recipe
        takes the mean of several trainings, the second has a file beside it, whose name ends in ``-2``, and so on.
    device
        Where to train and to answer, for example ``"cuda"``; the CPU when left out. Batches and dropped words are the
        same everywhere, so models differ by rounding. Texts are read and explained on the CPU.
    processes
        The processes that share the training, see :func:`hardmax.processes`. All must be given the same documents;
        each does its part of every batch, and all end with the same model.
    progress
        True, False, or None to show progress on a terminal when it takes long; or a function that is told
        ``(stage, done, total)``, and whose errors end the fit.

    Examples
    --------
    >>> texts = ["a wonderful cast", "dull and dull again", "wonderful", "a dull plot"] * 5
    >>> model = LeaderClassifier(random_state=0).fit(texts, [1, 0, 1, 0] * 5)
    >>> model.predict(["a dull day", "the wonderful plot"])
    array([0, 1])
    """

    def __init__(
        self,
        dim: int | None = None,
        *,
        recipe: str | Recipe = "default",
        ngrams: int | None = None,
        min_df: int | None = None,
        max_words: int | None = None,
        token_pattern: str | None = None,
        lowercase: bool | None = None,
        stop_words: Any = None,
        lemmas: str | None = None,
        depth: int | None = None,
        alpha: float | None = None,
        learn_alpha: bool | None = None,
        learn_matrix: bool | None = None,
        collapse: float | None = None,
        masses: str | None = None,
        cone: float | None = None,
        tether: float | None = None,
        epochs: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        dropout: float | None = None,
        smoothing: float | None = None,
        temperature: float | None = None,
        class_weight: Any = None,
        validation_fraction: float = 0.05,
        patience: int | None = None,
        random_state: Any = None,
        checkpoint: str | os.PathLike[str] | None = None,
        device: str | None = None,
        processes: Processes | None = None,
        progress: Progress = None,
    ) -> None:
        self.dim = dim
        self.recipe = recipe
        self.ngrams = ngrams
        self.min_df = min_df
        self.max_words = max_words
        self.token_pattern = token_pattern
        self.lowercase = lowercase
        self.stop_words = stop_words
        self.lemmas = lemmas
        self.depth = depth
        self.alpha = alpha
        self.learn_alpha = learn_alpha
        self.learn_matrix = learn_matrix
        self.collapse = collapse
        self.masses = masses
        self.cone = cone
        self.tether = tether
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.dropout = dropout
        self.smoothing = smoothing
        self.temperature = temperature
        self.class_weight = class_weight
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.random_state = random_state
        self.checkpoint = checkpoint
        self.device = device
        self.processes = processes
        self.progress = progress

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None, validation: Any = None) -> LeaderClassifier:
        """Learn from texts, or from a table of non-negative counts (dense, sparse or a DataFrame), and labels.

        ``validation`` may give other documents and their labels, ``(X, y)``, to judge every epoch on; else a share of
        the rows is kept aside for that.
        """
        recipe = recipe_with(self.recipe, self.get_params())
        # Nobody but the training holds the rows, so that they go as soon as they are split.
        self._fit_network(self._rows(X, y, sample_weight, recipe), recipe, validation)
        return self

    def _rows(self, X: Any, y: Any, sample_weight: Any, recipe: Recipe) -> Rows:
        """The documents that there is something to learn from."""
        texts = as_texts(X)
        labels = labels_for(X, y, texts)
        self._forget()
        if texts is None:
            X, labels = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64)
            check_non_negative(X, type(self).__name__)
            counts = _counts(X)
        else:
            counts = self._learn_words(texts, recipe)
        check_classification_targets(labels)
        self.classes_, numbers = np.unique(labels, return_inverse=True)
        weights = self._weights(counts, numbers, sample_weight)
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
        self.class_prior_ = np.bincount(rows.labels, rows.weights, len(self.classes_)) / rows.weights.sum()
        return rows

    def _forget(self) -> None:
        for name in ("vocabulary_", "tokeniser_", "feature_names_in_", "n_features_in_", "columns_"):
            if hasattr(self, name):
                delattr(self, name)

    def _learn_words(self, texts: list[str], recipe: Recipe) -> sparse.csr_matrix:
        wanted = {
            "pattern": self.token_pattern,
            "lowercase": self.lowercase,
            "stop_words": self.stop_words,
            "lemmas": self.lemmas,
            "cut": recipe.cut,
        }
        self.tokeniser_ = Tokeniser(**words_with(self.recipe, wanted))
        min_df = recipe.min_df or (1 if len(texts) < 200 else 2 if len(texts) < 2000 else 3)
        self.vocabulary_: Vocabulary | EndingVocabulary
        if recipe.endings is None:
            self.vocabulary_, counts = Vocabulary.learn(texts, self.tokeniser_, ngrams=recipe.ngrams, min_df=min_df)
        else:
            self.vocabulary_, counts = EndingVocabulary.learn(
                texts, self.tokeniser_, ngrams=recipe.ngrams, min_df=min_df, last=recipe.endings
            )
        if len(self.vocabulary_) == 0:
            raise InputError(
                "X",
                f"{len(texts)} texts",
                f"must hold a word that occurs in at least min_df={min_df} of them",
                "pass more texts or a smaller min_df",
            )
        return counts.astype(np.float64) if counts.nnz < _SMALL else counts

    def _weights(self, counts: sparse.csr_matrix, numbers: np.ndarray, sample_weight: Any) -> np.ndarray:
        weights = _check_sample_weight(sample_weight, counts, dtype=np.float64, ensure_non_negative=True)
        if self.class_weight is not None:
            of_class = compute_class_weight(
                self.class_weight, classes=self.classes_, y=self.classes_[numbers], sample_weight=weights
            )
            weights = weights * of_class[numbers]
        return np.asarray(weights)

    def _fit_network(self, rows: Rows, recipe: Recipe, validation: Any) -> None:
        state = self.random_state
        if isinstance(state, np.random.RandomState):
            state = int(state.randint(2**31))
        elif isinstance(state, np.random.Generator):
            state = int(state.integers(2**31))
        ranks = ALONE if self.processes is None else self.processes
        seed = seeded(state).seed
        assert seed is not None  # noqa: S101 (only a generator has none, and it was drawn from above)
        self.seed_ = ranks.counts(seed)[0]  # that of the first process, where each has drawn its own
        rng = np.random.default_rng([self.seed_, 2**20])
        aside = kept_aside(rows.labels, self.validation_fraction if validation is None else 0.0, rng)
        presence, sizes = class_presence(
            _capped(rows.table), rows.labels, len(self.classes_), np.where(aside, 0.0, rows.weights)
        )
        if recipe.max_words is not None and recipe.max_words < rows.table.shape[1]:
            best = np.argsort(-chi2(presence, sizes), kind="stable")[: recipe.max_words]
            self.columns_ = np.sort(best)
            presence = presence[:, self.columns_]
            if hasattr(self, "vocabulary_"):
                self.vocabulary_ = self.vocabulary_.select(self.columns_)
        else:
            self.columns_ = np.arange(rows.table.shape[1])
        if hasattr(self, "vocabulary_"):
            self.n_features_in_ = len(self.columns_)
        if len(self.columns_) < rows.table.shape[1]:
            rows.table = rows.table[:, self.columns_]
        rows.table = self._weighed(rows.table, recipe)
        rows.weights = rows.weights / rows.weights.mean()
        training = rows.take(np.flatnonzero(~aside))
        held_out = rows.take(np.flatnonzero(aside)) if aside.any() else None
        if validation is not None:
            held_out = self._judging_rows(validation, recipe)
        groups = self.vocabulary_.groups() if hasattr(self, "vocabulary_") else np.ones(len(self.columns_), dtype=int)
        network = start_network(presence, sizes, groups, recipe, rng)
        # Words may start near the origin for want of evidence; then their length at the start is no measure.
        least = _LEAST_MASS if len(self.classes_) == 2 else _LEAST_MASS_OF_MANY
        network.resting_mass = recipe.resting_share * max(network.mean_mass(training.table, training.weights), least)
        network = network.to(torch.float64 if training.table.nnz < _SMALL else torch.float32)
        del rows
        self.history_ = fit_averaged(
            network,
            training,
            held_out,
            recipe,
            checkpoint=self.checkpoint,
            device=self.device,
            seed=self.seed_,
            patience=self.patience,
            progress=self.progress,
            ranks=ranks,
        )
        self.n_iter_ = len(self.history_)
        self.temperature_ = 1.0
        if held_out is not None:
            logits, _ = answers(network, held_out.table, self.device)
            self.temperature_ = temperature_of(logits, held_out.labels, held_out.weights)
            # From here on the logit is the logarithm of calibrated odds, and explanations add up to it.
            network.decoder /= self.temperature_
            network.bias /= self.temperature_
        self._adopt(network, recipe)

    def _judging_rows(self, validation: Any, recipe: Recipe) -> Rows:
        """Documents that were given to judge the epochs on."""
        if not isinstance(validation, (tuple, list)) or len(validation) != 2:
            shown = type(validation).__name__
            raise InputError(
                "validation", shown, "must be documents and their labels", "pass validation=(texts, labels)"
            )
        X, y = validation
        table, labels = self._weighed_table(X, recipe), column_or_1d(y)
        if len(labels) != table.shape[0]:
            raise InputError(
                "validation",
                f"{len(labels)} labels",
                f"must match the {table.shape[0]} documents",
                "pass one label for each",
            )
        strange = np.setdiff1d(labels, self.classes_)
        if len(strange):
            raise InputError(
                "validation", repr(strange[0]), "must be a class of the training labels", "leave such documents out"
            )
        rows = Rows(table, np.searchsorted(self.classes_, labels), np.ones(len(labels)))
        known = np.flatnonzero(np.diff(table.indptr) > 0)
        if len(known) == 0:
            raise InputError("validation", f"{len(labels)} documents", "must hold a known word", "pass others")
        return rows.take(known)

    def _adopt(self, network: Network, recipe: Recipe) -> None:
        """Predict with this network, in double precision."""
        self.recipe_ = recipe
        self.network_ = network.to(torch.float64)
        self.alpha_ = float(self.network_.alpha)
        self.collapse_ = self.network_.collapse

    def _weighed(self, counts: sparse.csr_matrix, recipe: Recipe) -> sparse.csr_matrix:
        """What the counts weigh, with a padding word where the recipe has one; ``counts`` itself is used up."""
        table = counts
        if recipe.cut is not None and hasattr(self, "vocabulary_"):
            missing = np.maximum(recipe.cut - np.asarray(table.sum(axis=1)).ravel(), 0)
            missing[np.diff(table.indptr) == 0] = 0  # a text without a word stays without one
            table = sparse.hstack([table, sparse.csr_matrix(missing[:, None])], format="csr")
        table.eliminate_zeros()
        if recipe.masses == "norm":
            table.data = damped(table.data)
        return table

    def _table(self, X: Any, *, warn: bool = True) -> sparse.csr_matrix:
        check_is_fitted(self, "network_")
        table = self._weighed_table(X, self.recipe_)
        if warn and hasattr(self, "vocabulary_"):
            warn_of_unknown(table)
        return table

    def _weighed_table(self, X: Any, recipe: Recipe) -> sparse.csr_matrix:
        texts = as_texts(X)
        if (texts is None) == hasattr(self, "vocabulary_"):
            learned, got = ("texts", "a table") if texts is None else ("a table of counts", "texts")
            raise InputError("X", got, f"must be {learned}, like what the model was fitted on", f"pass {learned}")
        if texts is None:
            X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
            check_non_negative(X, type(self).__name__)
            return self._weighed(_counts(X)[:, self.columns_], recipe)
        return self._weighed(self.vocabulary_.count(texts, self.tokeniser_).astype(np.float64), recipe)

    def _logits(self, table: sparse.csr_matrix) -> tuple[np.ndarray, np.ndarray]:
        logits, leaders = answers(self.network_, table, self.device)
        logits[np.diff(table.indptr) == 0] = self._prior_logits()
        return logits, leaders

    def _prior_logits(self) -> np.ndarray:
        logs = np.log(np.maximum(self.class_prior_, np.finfo(float).tiny))
        return np.asarray(logs[1:] - logs[:1] if len(logs) == 2 else logs)

    def decision_function(self, X: Any) -> np.ndarray:
        """The logits: shape (documents,) for two classes, else (documents, classes)."""
        logits, _ = self._logits(self._table(X))
        return np.asarray(logits[:, 0]) if len(self.classes_) == 2 else logits

    def predict(self, X: Any) -> np.ndarray:
        """The class of each document."""
        logits, _ = self._logits(self._table(X))
        numbers = (logits[:, 0] > 0).astype(int) if logits.shape[1] == 1 else logits.argmax(axis=1)
        return np.asarray(self.classes_[numbers])

    def predict_proba(self, X: Any) -> np.ndarray:
        """The probability of each class, shape (documents, classes); calibrated on the rows kept aside."""
        logits, _ = self._logits(self._table(X))
        if len(self.classes_) == 2:
            return np.column_stack([expit(-logits[:, 0]), expit(logits[:, 0])])
        return np.asarray(softmax(logits, axis=1))

    def count_leaders(self, X: Any) -> np.ndarray:
        """How many leaders each document has."""
        leaders: np.ndarray = self._logits(self._table(X))[1]
        return leaders

    def words(self, names: Any = None) -> list[str]:
        """The name of every word the model has, in the order of its embedding."""
        check_is_fitted(self, "network_")
        if hasattr(self, "vocabulary_"):
            own = self.vocabulary_.names()
            return [*own, PADDING] if self.recipe_.cut is not None else own
        if names is None:
            names = getattr(self, "feature_names_in_", None)
        if names is None:
            return [f"feature {column}" for column in self.columns_]
        if len(names) != self.n_features_in_:
            raise InputError("names", f"{len(names)} names", "must name every column", "pass one name for each column")
        return [str(names[column]) for column in self.columns_]

    def explain(self, document: Any, names: Any = None) -> Explanation:
        """Why one document is classified as it is: its leaders, their followers and what each contributes.

        ``document`` is a text, or one row of a table; ``names`` may name the table's columns.
        """
        check_is_fitted(self, "network_")
        table = self._table(as_rows(document), warn=False)
        if table.shape[0] != 1:
            raise InputError("document", f"{table.shape[0]} rows", "must be one document", "explain them one by one")
        return Explanation.of(
            self.network_,
            table,
            words=self.words(names),
            classes=self.classes_,
            prior_logits=self._prior_logits(),
            text=document if isinstance(document, str) else None,
            tokeniser=getattr(self, "tokeniser_", None),
            endings=self.recipe_.endings,
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to one file of data, whole or not at all."""
        check_is_fitted(self, "network_")
        save_model(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> LeaderClassifier:
        """Read a model that :meth:`save` has written."""
        model = cls()
        load_model(model, path)
        return model


def _counts(X: Any) -> sparse.csr_matrix:
    """A table of our own, each entry once."""
    table = sparse.csr_matrix(X, copy=True)
    table.sum_duplicates()
    return table


def _capped(table: sparse.csr_matrix) -> sparse.csr_matrix:
    """Presence: counts up to one."""
    return sparse.csr_matrix((np.minimum(table.data, 1.0), table.indices, table.indptr), shape=table.shape)
