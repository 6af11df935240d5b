"""One layer: the tokens that each token attends to, and where they move it.

The layers are exported by :mod:`hardmax`; this package exports the exact search for the largest scores and the index of
keys that can be appended. Each name is imported when it is first used.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .best_keys import BestKeys as BestKeys
    from .best_keys import TopKeys as TopKeys
    from .index import LeaderIndex as LeaderIndex
    from .search import attended as attended
    from .search import attended_in as attended_in
    from .search.pool import outer_points as outer_points

_MODULE_OF = {
    "BestKeys": "best_keys",
    "LeaderIndex": "index",
    "TopKeys": "best_keys",
    "attended": "search",
    "attended_in": "search",
    "outer_points": "search.pool",
}


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_import_module(f".{_MODULE_OF[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted(_MODULE_OF)
