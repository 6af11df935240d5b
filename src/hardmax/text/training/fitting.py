"""Fit a model to documents: vocabulary, selection of words, initial network, training and calibration."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import torch
from scipy import sparse
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, column_or_1d

from ...distributed import ALONE, Processes
from ...errors import InputError
from ...progress import Progress
from ...randomness import seeded
from ..model.fitted_model import FittedModel
from ..model.network import TINY, Network, initial_network, network_from_weights
from ..model.prediction import cpu_logits, predict_logits
from ..recipes import Recipe, few_documents
from ..words.counts import LabelledDocuments, chi2, class_presence, copied_counts, document_table, weighted_counts
from ..words.document_endings import EndingVocabulary
from ..words.documents import validation_mask
from ..words.tokenisation import CHARACTERS, Tokeniser
from ..words.vocabulary import Vocabulary
from .calibration import Calibration, calibration_temperature
from .cross_fitting import Choice, cross_fit
from .linear_models import LinearModel
from .network_training import train_averaged

Documents: TypeAlias = Sequence[str] | sparse.csr_matrix | np.ndarray
"""Texts, or a table of non-negative counts."""

# Least mean mass of a document in the definition of the resting mass: words without evidence
# may start near the origin, and then their initial length is no measure. For two classes, and for more.
_LEAST_MASS, _LEAST_MASS_OF_MANY = 5.0, 100.0
# Tables with fewer entries are trained in double precision, which costs little there: the leader is a discrete choice,
# and in double precision duplicated documents and documents of weight two lead to the same model.
_SMALL = 100_000
# Fraction of many documents on which epochs and temperature are evaluated.
_FRACTION = 0.05
# Factor of the features of an n-gram for each word beyond the first. One half had the best mean accuracy over 32
# development sets of 150 to 1,000 documents, among 1, 1/2 and 1/4.
_SCALE_OF_LONGER = 0.5
# The scale is one number, for which some hundred rows suffice.
_ROWS_FOR_SCALE = 200


def fit_model(
    documents: Documents,
    labels: np.ndarray,
    recipe: Recipe,
    *,
    tokeniser: Tokeniser | None,
    sample_weight: Any = None,
    class_weight: Any = None,
    validation: tuple[Documents, Any] | None = None,
    validation_fraction: float | None = 0.0,
    patience: int | None = None,
    random_state: Any = None,
    checkpoint: str | os.PathLike[str] | None = None,
    device: str | None = None,
    processes: Processes | None = None,
    progress: Progress = None,
) -> FittedModel:
    """The model fitted to documents with labels; ``tokeniser`` is None for a table of counts.

    Epochs and calibration are evaluated on ``validation``, documents with labels, or on a fraction of the rows. If the
    fraction is None, few rows are cross-fitted instead, so that all of them train the model.
    """
    vocabulary: Vocabulary | EndingVocabulary | None = None
    if tokeniser is None:
        counts = copied_counts(documents)
    else:
        vocabulary, counts = _learn_words(documents, tokeniser, recipe, few=few_documents(labels))  # type: ignore[arg-type]
    features = counts.shape[1]
    classes, rows = _useful_rows(counts, labels, sample_weight, class_weight)
    del counts
    prior = np.bincount(rows.labels, rows.weights, len(classes)) / rows.weights.sum()
    processes = ALONE if processes is None else processes
    seed = _seed(random_state, processes)
    rng = np.random.default_rng([seed, 2**20])
    asked, recipe = recipe, _with_start(recipe, few=few_documents(rows.labels))
    folds = recipe.start == "regression" and validation is None and validation_fraction is None
    fraction = _FRACTION if validation_fraction is None else validation_fraction
    mask = validation_mask(rows.labels, 0.0 if folds or validation is not None else fraction, rng)
    columns, presence, sizes = _select_columns(rows, mask, len(classes), recipe.max_words)
    table = rows.table if len(columns) == features else rows.table[:, columns]
    if vocabulary is not None:
        if len(columns) < features:
            vocabulary = vocabulary.select(columns)
        features = len(columns)
    table = weighted_counts(table, recipe, texts=vocabulary is not None)
    # Within limits, because regularisation has no meaning for weights of any size.
    size, counted = (float(np.clip(part.mean(), 1e-2, 1e2)) for part in (rows.weights, rows.counted))
    multiplicity = counted * rows.counted / rows.counted.mean()
    rows = LabelledDocuments(table, rows.labels, rows.weights / rows.weights.mean(), multiplicity)
    del table
    training = rows.take(np.flatnonzero(~mask))
    held_out = rows.take(np.flatnonzero(mask)) if mask.any() else None
    del rows  # before training, because the table may be large
    if validation is not None:
        held_out = _validation_rows(*validation, classes, recipe, columns, vocabulary, tokeniser)
    groups = np.ones(len(columns), dtype=int) if vocabulary is None else vocabulary.groups()
    choice = Choice()
    if recipe.start == "regression":
        networks = _Networks(groups, recipe, seed, device, processes)
        deviations = _deviations(vocabulary, tokeniser, recipe)
        options: dict[str, Any] = {"deviations": deviations, "intercept": recipe.learn_bias, "weight": size}
        if folds:
            # Epochs and a checkpoint are asked for by those who want training.
            always = recipe.epochs is not None or checkpoint is not None
            balanced = isinstance(class_weight, str) and class_weight == "balanced"
            asked_for: dict[str, Any] = {"always_train": always, "balanced": balanced}
            choice = cross_fit(training, len(classes), networks, **options, **asked_for, device=device, seed=seed)
        model = LinearModel.fit(training, len(classes), choice.start.kind, **options)
        (network,) = networks.start(training, model, choice.start.mass_power, (choice.start.resting,))
    else:
        network = initial_network(presence, sizes, groups, recipe, rng)
        least = _LEAST_MASS if len(classes) == 2 else _LEAST_MASS_OF_MANY
        mass = max(network.mean_mass(training.table, training.weights), least)
        network = replace(network, resting_mass=recipe.resting_share * mass)
    network = network.to(torch.float64 if training.table.nnz < _SMALL else torch.float32)
    history: list[dict[str, float]] = []
    if choice.trained:
        history = train_averaged(
            network,
            training,
            held_out,
            _for_power(recipe, network.mass_power),
            checkpoint=checkpoint,
            device=device,
            seed=seed,
            patience=patience,
            progress=progress,
            processes=processes,
        )
    temperature = _calibrate(network, choice.calibration, held_out, device)
    return FittedModel(
        network=network.to(torch.float64),
        recipe=asked,
        classes=classes,
        class_prior=prior,
        columns=columns,
        features=features,
        seed=seed,
        temperature=temperature,
        history=history,
        vocabulary=vocabulary,
        tokeniser=tokeniser,
        cross_validation=None if choice.report is None else choice.report.data(),
    )


def _deviations(
    vocabulary: Vocabulary | EndingVocabulary | None, tokeniser: Tokeniser | None, recipe: Recipe
) -> np.ndarray | None:
    """Scale of the features of each column of the linear models, shape (columns,); None if all have the same.

    Pairs of characters are the words of scripts without spaces, and are not scaled down.
    """
    if vocabulary is None or tokeniser is None or tokeniser.pattern in CHARACTERS.values():
        return None
    found = _SCALE_OF_LONGER ** (vocabulary.lengths() - 1.0)
    return found if recipe.cut is None else np.append(found, 1.0)  # the padding word


def _with_start(recipe: Recipe, *, few: bool) -> Recipe:
    """The recipe with the start that is usual for few or many documents."""
    start = recipe.start or ("regression" if few and recipe.smoothing is None else "evidence")
    twice = start == "regression" and recipe.epochs is None
    return replace(recipe, start=start, learning_rate=(2 if twice else 1) * recipe.learning_rate)


def _for_power(recipe: Recipe, mass_power: float) -> Recipe:
    """The recipe with smaller steps if masses change faster than positions."""
    return replace(recipe, learning_rate=recipe.learning_rate / np.sqrt(mass_power))


@dataclass(frozen=True)
class _Networks:
    """Networks that start from linear models, and their training without a checkpoint."""

    groups: np.ndarray
    recipe: Recipe
    seed: int
    device: str | None
    processes: Processes

    def start(
        self, rows: LabelledDocuments, model: LinearModel, mass_power: float, resting: tuple[float, ...]
    ) -> list[Network]:
        """Networks before training, one for each multiple of the resting mass, that differ in it and in scale only.

        Their logits are scaled like those of the model on these rows.
        """
        rng = np.random.default_rng([self.seed, 2**23])
        network = network_from_weights(model.weights, model.bias, self.groups, self.recipe, rng, mass_power)
        mass = network.document_masses(rows.table)
        usual = self.recipe.resting_share * float(np.average(mass, weights=rows.weights))
        network = replace(network, resting_mass=usual)
        some = np.arange(0, len(rows.labels), max(1, len(rows.labels) // _ROWS_FOR_SCALE))
        own = cpu_logits(network, rows.table[some])[0] - network.bias.numpy()
        wanted = model.logits(rows.table[some]) - model.bias
        if own.shape[1] > 1:  # only differences between classes matter
            own, wanted = (part - part.mean(axis=1, keepdims=True) for part in (own, wanted))
        weights, mass = rows.weights[some, None], mass[some, None]
        found = []
        for multiple in resting:
            divided = own * np.maximum(usual + mass, TINY) / np.maximum(multiple * usual + mass, TINY)
            square = float((weights * divided * divided).sum())
            scale = float((weights * divided * wanted).sum()) / max(square, TINY)
            decoder = network.decoder * (scale if scale > 0 else self.recipe.decoder_scale)
            found.append(replace(network, decoder=decoder, resting_mass=multiple * usual))
        return found

    def train(self, network: Network, rows: LabelledDocuments) -> None:
        """Train the network on these rows in place, once even if the recipe averages several trainings."""
        train_averaged(
            network,
            rows,
            None,
            replace(_for_power(self.recipe, network.mass_power), averaged=1),
            checkpoint=None,
            device=self.device,
            seed=self.seed,
            patience=None,
            progress=False,
            processes=self.processes,
        )


def _learn_words(
    texts: Sequence[str], tokeniser: Tokeniser, recipe: Recipe, *, few: bool
) -> tuple[Vocabulary | EndingVocabulary, sparse.csr_matrix]:
    """Vocabulary of the texts, and their counts."""
    # A higher threshold saves memory where there are many texts; with few texts every word is needed.
    min_df = recipe.min_df or (1 if len(texts) < 3_000 else 2 if few else 3)
    vocabulary: Vocabulary | EndingVocabulary
    if recipe.endings is None:
        vocabulary, counts = Vocabulary.learn(texts, tokeniser, ngrams=recipe.ngrams, min_df=min_df)
    else:
        vocabulary, counts = EndingVocabulary.learn(
            texts, tokeniser, ngrams=recipe.ngrams, min_df=min_df, last=recipe.endings
        )
    if len(vocabulary) == 0:
        raise InputError(
            "X",
            f"{len(texts)} texts",
            f"must hold a word that occurs in at least min_df={min_df} of them",
            "pass more texts or a smaller min_df",
        )
    return vocabulary, counts.astype(np.float64) if counts.nnz < _SMALL else counts


def _useful_rows(
    counts: sparse.csr_matrix, labels: np.ndarray, sample_weight: Any, class_weight: Any
) -> tuple[np.ndarray, LabelledDocuments]:
    """Classes, and the documents with a word and a positive weight."""
    check_classification_targets(labels)
    classes, numbers = np.unique(labels, return_inverse=True)
    weights = _check_sample_weight(sample_weight, counts, dtype=np.float64, ensure_non_negative=True)
    multiplicity = weights
    if class_weight is not None:
        of_class = compute_class_weight(class_weight, classes=classes, y=classes[numbers], sample_weight=weights)
        weights = weights * of_class[numbers]
    rows = LabelledDocuments(counts, numbers, np.asarray(weights), multiplicity)
    useful = (weights > 0) & (np.diff(counts.indptr) > 0)
    if not useful.all():
        rows = rows.take(np.flatnonzero(useful))
    found = len(np.unique(rows.labels))
    if found < 2:
        raise InputError(
            "y",
            f"{found} class",
            "must name at least two classes among the documents that hold a word and a positive weight",
            "pass documents of every class",
        )
    return classes, rows


def _seed(state: Any, processes: Processes) -> int:
    """The given seed, or a random one; if processes draw different ones, that of the first process."""
    if isinstance(state, np.random.RandomState):
        state = int(state.randint(2**31))
    elif isinstance(state, np.random.Generator):
        state = int(state.integers(2**31))
    seed = seeded(state).seed
    assert seed is not None  # noqa: S101 (only a generator has none, and it was replaced above)
    return processes.counts(seed)[0]


def _select_columns(
    rows: LabelledDocuments, mask: np.ndarray, classes: int, most: int | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Columns with the largest chi2 statistic, at most ``most``, with their presence in the classes and class sizes."""
    table = rows.table
    capped = sparse.csr_matrix((np.minimum(table.data, 1.0), table.indices, table.indptr), shape=table.shape)
    presence, sizes = class_presence(capped, rows.labels, classes, np.where(mask, 0.0, rows.counted))
    if most is None or most >= table.shape[1]:
        return np.arange(table.shape[1]), presence, sizes
    columns = np.sort(np.argsort(-chi2(presence, sizes), kind="stable")[:most])
    return columns, presence[:, columns], sizes


def _validation_rows(
    documents: Documents,
    y: Any,
    classes: np.ndarray,
    recipe: Recipe,
    columns: np.ndarray,
    vocabulary: Vocabulary | EndingVocabulary | None,
    tokeniser: Tokeniser | None,
) -> LabelledDocuments:
    """The given validation documents that hold a known word."""
    table, labels = document_table(documents, recipe, columns, vocabulary, tokeniser), column_or_1d(y)
    if len(labels) != table.shape[0]:
        raise InputError(
            "validation",
            f"{len(labels)} labels",
            f"must match the {table.shape[0]} documents",
            "pass one label for each",
        )
    unknown = np.setdiff1d(labels, classes)
    if len(unknown):
        raise InputError(
            "validation", repr(unknown[0]), "must be a class of the training labels", "leave such documents out"
        )
    rows = LabelledDocuments(table, np.searchsorted(classes, labels), np.ones(len(labels)))
    known = np.flatnonzero(np.diff(table.indptr) > 0)
    if len(known) == 0:
        raise InputError("validation", f"{len(labels)} documents", "must hold a known word", "pass others")
    return rows.take(known)


def _calibrate(
    network: Network, found: Calibration | None, validation: LabelledDocuments | None, device: str | None
) -> float:
    """Temperature by which the logits of the network are divided from now on, in place.

    It is that of the folds, with a shift, or one from validation rows, or 1. The logit is then the logarithm of
    calibrated odds, and explanations add up to it.
    """
    temperature = 1.0 if found is None else found.temperature
    if validation is not None:
        logits, _ = predict_logits(network, validation.table, device)
        temperature = calibration_temperature(logits, validation.labels, validation.weights)
    network.decoder /= temperature
    network.bias /= temperature
    if found is not None and validation is None:
        network.bias += torch.from_numpy(found.shift).to(network.bias.dtype)
    return temperature
