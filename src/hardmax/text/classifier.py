"""The classifier: a scikit-learn estimator on raw texts and on document-term matrices."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from scipy import sparse
from scipy.special import expit, softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from ..distributed import Processes
from ..errors import InputError
from ..progress import Progress
from ..threads import one_thread
from .explaining.explanation import Explanation
from .model.files import load_model, save_model
from .model.network import Network
from .recipes import Recipe
from .training.backends import answers
from .training.fitting import fit_model
from .words.counts import weighed_table
from .words.document_endings import EndingVocabulary
from .words.documents import as_rows, warn_of_unknown
from .words.tokenisation import Tokeniser
from .words.vocabulary import Vocabulary

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
        ``"short"`` for texts of a sentence or so, whose last five words count once more and whose bias is zero;
        ``"paper"`` for the published model and its training; or a :class:`~hardmax.text.recipes.Recipe` of your own.
    ngrams, min_df, max_words
        Words and n-grams of up to so many words that occur in at least ``min_df`` texts (3 for large sets, 1 for
        small); of those the ``max_words`` that tell the classes apart best (chi2).
    token_pattern, lowercase, stop_words, lemmas, removed
        How texts are cut into words, see :class:`~hardmax.text.words.tokenisation.Tokeniser`.
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

    # What fitting finds; a model of tables has no vocabulary and no tokeniser.
    classes_: np.ndarray
    class_prior_: np.ndarray
    columns_: np.ndarray
    n_features_in_: int
    vocabulary_: Vocabulary | EndingVocabulary
    tokeniser_: Tokeniser
    seed_: int
    history_: list[dict[str, float]]
    n_iter_: int
    temperature_: float

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
        removed: Iterable[str] | None = None,
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
        self.removed = removed
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

    @one_thread()
    def fit(self, X: Any, y: Any, sample_weight: Any = None, validation: Any = None) -> LeaderClassifier:
        """Learn from texts, or from a table of non-negative counts (dense, sparse or a DataFrame), and labels.

        ``validation`` may give other documents and their labels, ``(X, y)``, to judge every epoch on; else a share of
        the rows is kept aside for that.
        """
        fit_model(self, X, y, sample_weight, validation)
        return self

    def _adopt(self, network: Network, recipe: Recipe) -> None:
        """Predict with this network, in double precision."""
        self.recipe_ = recipe
        self.network_ = network.to(torch.float64)
        self.alpha_ = float(self.network_.alpha)
        self.collapse_ = self.network_.collapse

    def _table(self, X: Any, *, warn: bool = True) -> sparse.csr_matrix:
        check_is_fitted(self, "network_")
        table = weighed_table(self, X, self.recipe_)
        if warn and hasattr(self, "vocabulary_"):
            warn_of_unknown(table)
        return table

    @one_thread()
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

    @one_thread()
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
