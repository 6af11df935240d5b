"""The classifier: a scikit-learn estimator for texts and for document-term matrices."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, check_non_negative, validate_data

from ..distributed import Processes
from ..errors import InputError
from ..progress import Progress
from ..threads import one_thread
from .explaining.explanation import Explanation
from .model.fitted_model import FittedModel
from .model.network import Network
from .model.prediction import class_probabilities, predict_logits
from .recipes import RECIPES, Recipe, few_documents, recipe_with, words_with
from .training.fitting import fit_model
from .words.counts import document_table
from .words.document_endings import EndingVocabulary
from .words.documents import as_rows, as_texts, labels_for, warn_of_unknown
from .words.tokenisation import CHARACTERS, EVERY_SYMBOL, Tokeniser, written_without_spaces
from .words.vocabulary import Vocabulary

PADDING = "‹padding›"


class LeaderClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    r"""Classifier of documents by their leader words.

    Each word has a learned initial position. In every hardmax layer a word moves towards the word of the largest score
    :math:`\langle z_i, z_j\rangle`, until all words have collapsed onto a few *leaders*, the words that attend to
    themselves; the decoder reads the mean of the final positions. The leaders of a document and the mass that each has
    gathered therefore explain its logit exactly (see :meth:`explain`).

    A parameter that is None has the value of the recipe.

    Parameters
    ----------
    dim
        Number of coordinates of a word; by default two for two classes, else the number of classes.
    recipe
        ``"default"``; ``"accurate"``, which is slower and more accurate: it also uses triples of words and punctuation,
        trains for more epochs, has separate coordinates for words, pairs, triples and the end of a text, and takes the
        mean of three trainings; ``"short"`` for texts of about a sentence: the last five words also count as words of
        their own, and the bias is zero; ``"paper"`` for the published model and its training; or a
        :class:`~hardmax.text.Recipe`.
    ngrams
        Largest number of words in an n-gram.
    min_df
        Least number of texts in which a word or n-gram occurs; by default 3 for many documents, 2 for few (see
        ``validation_fraction``) and 1 below 3,000.
    max_words
        Number of words and n-grams that are selected by the chi2 statistic; all by default.
    token_pattern
        Regular expression for one word, see :class:`~hardmax.text.Tokeniser`. By default texts in a script without
        spaces between words (such as Chinese, Japanese and Thai) are read as characters and pairs of characters, all
        others as words; texts that a segmenter has cut with spaces are read as words too. Of few documents (see
        ``validation_fraction``) every other symbol is a word as well, unless ``stop_words`` are given.
    lowercase
        Whether texts are converted to lower case.
    stop_words
        Words that are left out, see :class:`~hardmax.text.Tokeniser`.
    lemmas
        Language whose dictionary forms replace the words, see :class:`~hardmax.text.Tokeniser`.
    removed
        Regular expressions whose matches are deleted from the text.
    depth
        Number of layers.
    alpha
        Step size towards the attended word.
    learn_alpha
        Whether ``alpha`` is learned.
    learn_matrix
        Whether the matrix A of the score :math:`\langle A z_i, z_j\rangle` is learned; it stays positive definite.
    collapse
        Least fraction of the distance to the leader that words move in all layers, :math:`1-(1+\alpha)^{-K}`.
    masses
        ``"norm"``: the mass of a word is its length times 1 + log count; ``"count"``: its count.
    cone
        For two classes: largest ratio of the components of a word across and along the decoder's axis. Below 1 no word
        attends to a word of the other class. ``math.inf`` for no bound.
    tether
        For two classes: largest distance of a word from its initial position, so that words lead only if the classes
        differ in how often they occur. ``math.inf`` for no bound.
    epochs
        Number of epochs.
    batch_size
        Number of documents per optimiser step.
    learning_rate
        Learning rate of Adam.
    dropout
        Largest probability that a word is dropped in a training step.
    smoothing
        Number of documents that are added to each class for the initial log odds; if given, words start from them
        whatever the number of documents.
    temperature
        Temperature of softmax attention in training; 0 for hardmax.
    class_weight
        None, ``"balanced"`` or a dictionary from class to weight. Weights multiply losses; statistics of words ignore
        them. With ``"balanced"`` and few documents, rare classes are preferred as far as macro-F1 gains on folds.
    validation_fraction
        Fraction of the documents that are validation rows, on which the epoch is selected and the probabilities are
        calibrated. By default 0.05 of many documents. Few (below 10,000 of two classes, below 5,000 of more) are
        predicted in three folds instead, whose log loss chooses the start, the resting mass and how far training moves
        the words (possibly not at all, unless ``epochs`` or ``checkpoint`` is given), and whose predictions are
        calibrated, so that all of them train the model. A :class:`~hardmax.text.BaselineWarning` says if a linear model
        was more than a point more accurate on these folds.
    patience
        Number of epochs without improvement on the validation rows after which training stops.
    random_state
        A whole number, a generator or None.
    checkpoint
        File with the state of training after every epoch; an interrupted fit resumes from it. If a recipe averages
        several trainings, the second has a file beside it whose name ends in ``-2``, and so on.
    device
        Device for training and prediction, for example ``"cuda"``; the CPU by default. Batches and dropped words are
        the same on every device, so that models differ by rounding only. Texts are read and explained on the CPU.
    processes
        Processes that share the training, see :func:`hardmax.processes`. All must be given the same documents; each
        computes its part of every batch, and all have the same model in the end.
    progress
        True, False, or None to show progress on a terminal if training takes long; or a function that is called with
        ``(stage, done, total)``, whose errors end the fit.

    Examples
    --------
    >>> texts = ["a wonderful cast", "dull and dull again", "wonderful", "a dull plot"] * 5
    >>> model = LeaderClassifier(random_state=0).fit(texts, [1, 0, 1, 0] * 5)
    >>> model.predict(["a dull day", "the wonderful plot"])
    array([0, 1])
    """

    # Attributes of a fitted model; without vocabulary_ and tokeniser_ if it was fitted on a table.
    classes_: np.ndarray
    class_prior_: np.ndarray
    columns_: np.ndarray
    n_features_in_: int
    vocabulary_: Vocabulary | EndingVocabulary
    tokeniser_: Tokeniser
    recipe_: Recipe
    network_: Network
    alpha_: float
    collapse_: float
    seed_: int
    history_: list[dict[str, float]]
    n_iter_: int
    temperature_: float
    cross_validation_: dict[str, Any] | None

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
        validation_fraction: float | None = None,
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
        """Fit the model to documents with labels.

        Parameters
        ----------
        X
            Sequence of texts, or a table of non-negative counts (dense, sparse or a DataFrame).
        y
            Label of each document.
        sample_weight
            Weight of each document; one by default.
        validation
            Other documents and their labels, ``(X, y)``, on which every epoch is evaluated, instead of a fraction of
            the given ones.

        Returns
        -------
        LeaderClassifier
            The estimator itself.
        """
        recipe = recipe_with(self.recipe, self.get_params())
        texts = as_texts(X)
        labels = labels_for(y, texts)
        self._forget()
        documents: Any
        if texts is None:
            documents, labels = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64)
            check_non_negative(documents, type(self).__name__)
        else:
            documents = texts
        fitted = fit_model(
            documents,
            labels,
            recipe,
            tokeniser=None if texts is None else self._new_tokeniser(recipe, texts, labels),
            sample_weight=sample_weight,
            class_weight=self.class_weight,
            validation=None if validation is None else self._validation(validation, texts=texts is not None),
            validation_fraction=self.validation_fraction,
            patience=self.patience,
            random_state=self.random_state,
            checkpoint=self.checkpoint,
            device=self.device,
            processes=self.processes,
            progress=self.progress,
        )
        self._store(fitted)
        return self

    def _forget(self) -> None:
        """Remove the attributes that depend on the kind of documents."""
        for name in ("vocabulary_", "tokeniser_", "feature_names_in_", "n_features_in_", "columns_"):
            if hasattr(self, name):
                delattr(self, name)

    def _new_tokeniser(self, recipe: Recipe, texts: list[str], labels: np.ndarray) -> Tokeniser:
        wanted = {
            "pattern": self.token_pattern,
            "lowercase": self.lowercase,
            "stop_words": self.stop_words,
            "lemmas": self.lemmas,
            "cut": recipe.cut,
            "removed": self.removed,
        }
        settings = words_with(self.recipe, wanted)
        usual = settings.get("pattern")
        if usual is None and self.stop_words is None and few_documents(labels):
            settings["pattern"] = usual = EVERY_SYMBOL
        if self.token_pattern is None and usual in CHARACTERS and written_without_spaces(texts):
            settings["pattern"] = CHARACTERS[usual]
        return Tokeniser(**settings)

    def _store(self, fitted: FittedModel) -> None:
        """Set all attributes of a fitted model."""
        self.recipe_ = fitted.recipe
        self.network_ = fitted.network
        self.alpha_ = float(fitted.network.alpha)
        self.collapse_ = fitted.network.collapse
        self.classes_ = fitted.classes
        self.class_prior_ = fitted.class_prior
        self.columns_ = fitted.columns
        self.n_features_in_ = fitted.features
        self.seed_ = fitted.seed
        self.temperature_ = fitted.temperature
        self.history_ = fitted.history
        self.n_iter_ = len(fitted.history)
        self.cross_validation_ = fitted.cross_validation
        if fitted.vocabulary is not None and fitted.tokeniser is not None:
            self.vocabulary_ = fitted.vocabulary
            self.tokeniser_ = fitted.tokeniser
        if fitted.feature_names:
            self.feature_names_in_ = np.array(fitted.feature_names, dtype=object)

    def _documents(self, X: Any, *, texts: bool) -> Any:
        """Validated documents: a list of texts, or a table of counts with the columns of the fitted one."""
        found = as_texts(X)
        if (found is not None) != texts:
            expected, got = ("texts", "a table") if texts else ("a table of counts", "texts")
            raise InputError("X", got, f"must be {expected}, like what the model was fitted on", f"pass {expected}")
        if found is not None:
            return found
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        check_non_negative(X, type(self).__name__)
        return X

    def _validation(self, validation: Any, *, texts: bool) -> tuple[Any, Any]:
        """Validated documents and labels of the validation rows."""
        if not isinstance(validation, (tuple, list)) or len(validation) != 2:
            got = type(validation).__name__
            raise InputError("validation", got, "must be documents and their labels", "pass validation=(texts, labels)")
        return self._documents(validation[0], texts=texts), validation[1]

    def _table(self, X: Any, *, warn: bool = True) -> sparse.csr_matrix:
        """Weighted counts of documents, shape (documents, words)."""
        check_is_fitted(self, "network_")
        texts = hasattr(self, "vocabulary_")
        words = (self.vocabulary_, self.tokeniser_) if texts else (None, None)
        table = document_table(self._documents(X, texts=texts), self.recipe_, self.columns_, *words)
        if warn and texts:
            warn_of_unknown(table)
        return table

    @one_thread()
    def _logits(self, table: sparse.csr_matrix) -> tuple[np.ndarray, np.ndarray]:
        """Logits, shape (documents, outputs), and number of leaders, shape (documents,)."""
        logits, leaders = predict_logits(self.network_, table, self.device)
        logits[np.diff(table.indptr) == 0] = self._prior_logits()
        return logits, leaders

    def _prior_logits(self) -> np.ndarray:
        """Logits of the class prior, shape (outputs,), for documents without a known word."""
        logs = np.log(np.maximum(self.class_prior_, np.finfo(float).tiny))
        return np.asarray(logs[1:] - logs[:1] if len(logs) == 2 else logs)

    def decision_function(self, X: Any) -> np.ndarray:
        """Logits of each document.

        Parameters
        ----------
        X
            Documents of the kind that the model was fitted on.

        Returns
        -------
        np.ndarray
            Shape (documents,) for two classes, else (documents, classes).
        """
        logits, _ = self._logits(self._table(X))
        return np.asarray(logits[:, 0]) if len(self.classes_) == 2 else logits

    def predict(self, X: Any) -> np.ndarray:
        """Predicted class of each document.

        Parameters
        ----------
        X
            Documents of the kind that the model was fitted on.

        Returns
        -------
        np.ndarray
            Shape (documents,).
        """
        logits, _ = self._logits(self._table(X))
        numbers = (logits[:, 0] > 0).astype(int) if logits.shape[1] == 1 else logits.argmax(axis=1)
        return np.asarray(self.classes_[numbers])

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probability of each class, calibrated on the validation rows.

        Parameters
        ----------
        X
            Documents of the kind that the model was fitted on.

        Returns
        -------
        np.ndarray
            Shape (documents, classes).
        """
        logits, _ = self._logits(self._table(X))
        return class_probabilities(logits)

    def count_leaders(self, X: Any) -> np.ndarray:
        """Number of leaders of each document.

        Parameters
        ----------
        X
            Documents of the kind that the model was fitted on.

        Returns
        -------
        np.ndarray
            Shape (documents,).
        """
        leaders: np.ndarray = self._logits(self._table(X))[1]
        return leaders

    def words(self, names: Any = None) -> list[str]:
        """Names of all words of the model.

        Parameters
        ----------
        names
            Names of the columns of the table that the model was fitted on.

        Returns
        -------
        list of str
            One name per row of the embedding, in the same order.
        """
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
        """Leaders of one document, their followers, and the contribution of each to the logits.

        Parameters
        ----------
        document
            A text, or one row of a table.
        names
            Names of the columns of the table.

        Returns
        -------
        Explanation
            Exact: the contributions and the bias add up to the logits.
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
        """Write the model to a file, completely or not at all.

        Parameters
        ----------
        path
            File to write, in the safetensors format.
        """
        check_is_fitted(self, "network_")
        FittedModel(
            network=self.network_,
            recipe=self.recipe_,
            classes=self.classes_,
            class_prior=self.class_prior_,
            columns=self.columns_,
            features=int(self.n_features_in_),
            seed=self.seed_,
            temperature=self.temperature_,
            history=self.history_,
            cross_validation=self.cross_validation_,
            vocabulary=getattr(self, "vocabulary_", None),
            tokeniser=getattr(self, "tokeniser_", None),
            feature_names=tuple(str(name) for name in getattr(self, "feature_names_in_", ())),
        ).save(path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> LeaderClassifier:
        """Read a model from a file.

        Parameters
        ----------
        path
            File written by :meth:`save`.

        Returns
        -------
        LeaderClassifier
            The fitted model, with the recipe and the tokenisation of the file as parameters.
        """
        fitted = FittedModel.load(path)
        recipe = next((name for name, known in RECIPES.items() if known == fitted.recipe), fitted.recipe)
        model = cls(recipe=recipe, **_tokeniser_settings(recipe, fitted.tokeniser))
        model._store(fitted)
        return model


def _tokeniser_settings(recipe: str | Recipe, tokeniser: Tokeniser | None) -> dict[str, Any]:
    """Parameters of the classifier with which the tokeniser differs from that of the recipe."""
    if tokeniser is None:
        return {}
    usual = Tokeniser(**words_with(recipe, {}))
    changed = [
        part
        for part in ("pattern", "lowercase", "stop_words", "lemmas", "removed")
        if getattr(tokeniser, part) != getattr(usual, part)
    ]
    return {"token_pattern" if part == "pattern" else part: getattr(tokeniser, part) for part in changed}
