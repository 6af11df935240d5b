"""Text classification whose reasons are the leader words of a document.

Each name is imported when it is first used, so that a part that needs little is had for little.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .classifier import LeaderClassifier as LeaderClassifier
    from .explanation import Explanation as Explanation
    from .vocabulary import Vocabulary as Vocabulary
    from .words import Tokeniser as Tokeniser

_MODULE_OF = {
    "Explanation": "explanation",
    "LeaderClassifier": "classifier",
    "Tokeniser": "words",
    "Vocabulary": "vocabulary",
}


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_import_module(f".{_MODULE_OF[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted(_MODULE_OF)
