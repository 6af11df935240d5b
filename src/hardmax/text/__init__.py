"""Text classification whose reasons are the leader words of a document.

Each name is imported when it is first used, so that a part that needs little is had for little.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .classifier import LeaderClassifier as LeaderClassifier
    from .explaining.explanation import Explanation as Explanation
    from .words.tokenisation import Tokeniser as Tokeniser
    from .words.vocabulary import Vocabulary as Vocabulary

_MODULE_OF = {
    "Explanation": "explaining.explanation",
    "LeaderClassifier": "classifier",
    "Tokeniser": "words.tokenisation",
    "Vocabulary": "words.vocabulary",
}


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_import_module(f".{_MODULE_OF[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted(_MODULE_OF)
