"""Explanations of scikit-learn pipelines that end in a leader classifier."""

from __future__ import annotations

from typing import Any

from ...errors import InputError
from ..classifier import LeaderClassifier
from .explanation import Explanation


def explain_pipeline(pipeline: Any, document: Any) -> Explanation:
    """Explanation of one document by the last step of a pipeline, with the feature names of the steps before it.

    Parameters
    ----------
    pipeline
        Fitted scikit-learn pipeline, such as ``make_pipeline(CountVectorizer(), LeaderClassifier())``.
    document
        One input of the pipeline, such as a text.

    Returns
    -------
    Explanation
        The leaders are columns of the table that the classifier receives, under the names of the vectoriser.

    Examples
    --------
    >>> from sklearn.feature_extraction.text import CountVectorizer
    >>> from sklearn.pipeline import make_pipeline
    >>> texts = ["a wonderful cast", "dull and dull again", "wonderful", "a dull plot"] * 5
    >>> model = make_pipeline(CountVectorizer(), LeaderClassifier(random_state=0)).fit(texts, [1, 0, 1, 0] * 5)
    >>> explain_pipeline(model, "a wonderful day").leaders[0].word
    'wonderful'
    """
    steps = getattr(pipeline, "steps", None)
    if not steps or not isinstance(steps[-1][1], LeaderClassifier):
        remedy = "pass for example make_pipeline(CountVectorizer(), LeaderClassifier())"
        raise InputError(
            "pipeline", type(pipeline).__name__, "must be a pipeline that ends in LeaderClassifier", remedy
        )
    model: LeaderClassifier = steps[-1][1]
    if len(steps) == 1:
        return model.explain(document)
    before = pipeline[:-1]
    return model.explain(before.transform([document]), names=before.get_feature_names_out())
