"""Tokens, matrices, time series and documents: from named laws, from the papers, or from files.

Corpora and documents are imported when they are first used: they need pandas.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING

from .airfoil import TypicalSection as TypicalSection
from .airfoil import airfoil as airfoil
from .chaotic import chaotic_series as chaotic_series
from .chaotic import chaotic_systems as chaotic_systems
from .chaotic import lorenz63 as lorenz63
from .configurations import Configuration as Configuration
from .configurations import four_configurations as four_configurations
from .configurations import half_space_example as half_space_example
from .configurations import paper_configurations as paper_configurations
from .cylinder_wake import Wake as Wake
from .cylinder_wake import cylinder_wake as cylinder_wake
from .random_tokens import LAWS as LAWS
from .random_tokens import MATRICES as MATRICES
from .random_tokens import make_matrix as make_matrix
from .random_tokens import make_tokens as make_tokens
from .series import Series as Series
from .series_files import read_series as read_series
from .signals import sinusoids as sinusoids
from .signals import spiral as spiral

if TYPE_CHECKING:
    from .corpora import download_imdb as download_imdb
    from .corpora import movie_reviews as movie_reviews
    from .corpora import read_imdb_archive as read_imdb_archive
    from .corpora import sentences_of as sentences_of
    from .corpora import topics as topics
    from .corpora import train_and_test as train_and_test
    from .corpora import with_sentences as with_sentences
    from .corpora import write_documents as write_documents
    from .documents import Documents as Documents
    from .documents import read_documents as read_documents

_MODULE_OF = {
    "Documents": "documents",
    "download_imdb": "corpora",
    "movie_reviews": "corpora",
    "read_documents": "documents",
    "read_imdb_archive": "corpora",
    "sentences_of": "corpora",
    "topics": "corpora",
    "train_and_test": "corpora",
    "with_sentences": "corpora",
    "write_documents": "corpora",
}


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_import_module(f".{_MODULE_OF[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted([*_MODULE_OF, *(name for name in globals() if not name.startswith("_"))])
