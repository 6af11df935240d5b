"""Text classification that is explained by the leader words of a document.

Names are imported on first use, because the classifier loads torch and scikit-learn.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .classifier import LeaderClassifier as LeaderClassifier
    from .evaluation import Faithfulness as Faithfulness
    from .evaluation import Quality as Quality
    from .evaluation import faithfulness as faithfulness
    from .evaluation import quality as quality
    from .explaining.corpus_statistics import Survey as Survey
    from .explaining.corpus_statistics import survey as survey
    from .explaining.explanation import Counterfactual as Counterfactual
    from .explaining.explanation import Explanation as Explanation
    from .explaining.explanation import Leader as Leader
    from .explaining.explanation import Reason as Reason
    from .explaining.pipelines import explain_pipeline as explain_pipeline
    from .pretrained import shipped_model as shipped_model
    from .recipes import Recipe as Recipe
    from .training.cross_fitting import BaselineWarning as BaselineWarning
    from .words.documents import NoKnownWordWarning as NoKnownWordWarning
    from .words.tokenisation import Tokeniser as Tokeniser
    from .words.vocabulary import Vocabulary as Vocabulary

_MODULE_OF = {
    "BaselineWarning": "training.cross_fitting",
    "Counterfactual": "explaining.explanation",
    "Explanation": "explaining.explanation",
    "Faithfulness": "evaluation",
    "Leader": "explaining.explanation",
    "LeaderClassifier": "classifier",
    "NoKnownWordWarning": "words.documents",
    "Quality": "evaluation",
    "Reason": "explaining.explanation",
    "Recipe": "recipes",
    "Survey": "explaining.corpus_statistics",
    "Tokeniser": "words.tokenisation",
    "Vocabulary": "words.vocabulary",
    "explain_pipeline": "explaining.pipelines",
    "faithfulness": "evaluation",
    "quality": "evaluation",
    "shipped_model": "pretrained",
    "survey": "explaining.corpus_statistics",
}


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_import_module(f".{_MODULE_OF[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted(_MODULE_OF)
