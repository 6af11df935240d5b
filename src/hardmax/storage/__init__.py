"""Files in and out: tables of tokens, and results as zarr or NetCDF. Files are data, never code.

Each name is imported when it is first used.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .token_tables import read_matrix as read_matrix
    from .token_tables import read_tokens as read_tokens
    from .token_tables import read_weights as read_weights
    from .token_tables import write_tokens as write_tokens
    from .trajectories import ToDisk as ToDisk
    from .trajectories import load as load
    from .trajectories import save as save

_MODULE_OF = {
    "ToDisk": "trajectories",
    "load": "trajectories",
    "read_matrix": "token_tables",
    "read_tokens": "token_tables",
    "read_weights": "token_tables",
    "save": "trajectories",
    "write_tokens": "token_tables",
}


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_import_module(f".{_MODULE_OF[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted(_MODULE_OF)
