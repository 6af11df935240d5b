"""Errors of the library with the options of a command in place of Python's arguments.

Errors keep the argument that they are about, and their remedies name settings as Python spells them: ``pass d=2``, or
a name in backticks. A command has options instead, so ``d must be 2, got 3: pass d=2`` is shown as ``--dim must be 2,
got 3: pass --dim 2``. Translated are the argument of the error, settings, bounds such as ``n > 0``, names with an
underscore, and the names of the API below.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from ..errors import FileError, HardmaxError, InputError, with_settings

# Arguments of the library by the parameter that stands for them where a command has no parameter of the same name.
_PARAMETER_OF = {
    "A": "matrix",
    "attention": "softmax",
    "beta": "softmax",
    "checkpoint_path": "checkpoint",
    "d": "dim",
    "delays": "window",
    "inputs": "data",
    "irregular": "resample",
    "law": "random",
    "n_jobs": "jobs",
    "name": "matrix",
    "outputs": "data",
    "progress": "quiet",
    "random_state": "seed",
    "require_assumptions": "theorem",
    "start": "seed",
    "temperature": "softmax",
    "time": "time_column",
    "times": "time_column",
    "tolerance": "exact",
    "u": "inputs",
    "validation_fraction": "test_share",
}

# Settings whose value has an option of its own.
_OPTION_OF_SETTING = {
    ("attention", "hardmax"): ("--softmax", "no --softmax"),
    ("attention", "softmax"): ("--softmax", "--softmax TAU"),
    ("irregular", "resample"): ("--resample", "--resample"),
    ("tolerance", "exact"): ("--exact", "--exact"),
}

# Names of the API, with or without their arguments: the option that a command must have, and what it offers for them.
_OPTION_OF_NAME = {
    "Every": ("--keep", "every:10"),
    "HardmaxLayer": ("--softmax", "no --softmax"),
    "ToDisk": ("--save", "--save run.zarr"),
    "numpy.eye": ("--matrix", "identity"),
    "simulate": ("--depth", "--depth K"),
}
_CALL = re.compile(rf"(?<![\w.])({'|'.join(map(re.escape, _OPTION_OF_NAME))})\b(\([^)]*\))?")
_TRANSPOSE = re.compile(r"\b(\w+)\.T\b")
_RELATIONS = {">": "above", ">=": "at least", "<": "below", "<=": "at most"}


def flags_of(parameters: Iterable[Any]) -> dict[str, str]:
    """The option for each argument of the library, for a command with these parameters of typer's."""
    own = {p.name: next(iter([o for o in p.opts if o.startswith("--")]), "") for p in parameters if p.name}
    flags = {name: flag for name, flag in own.items() if flag}
    aliases = {name: flags[other] for name, other in _PARAMETER_OF.items() if name not in own and other in flags}
    return {**aliases, **flags}


def in_flags(error: HardmaxError, flags: Mapping[str, str]) -> HardmaxError:
    """The same error with options for arguments.

    >>> flags = {"d": "--dim", "law": "--random"}
    >>> print(in_flags(InputError("d", 3, "must be 2", 'pass d=2, or law="sphere"'), flags))
    --dim must be 2, got 3: pass --dim 2, or --random sphere
    """
    if isinstance(error, InputError):
        about = error.argument
        return error.rephrased(flags.get(about, about), lambda words: _translated(words, flags, about))
    if isinstance(error, FileError):
        return error.rephrased(lambda words: _translated(words, flags))
    return error


def _translated(words: str, flags: Mapping[str, str], about: str = "") -> str:
    known = set(flags.values())

    def setting(name: str, value: str | None) -> str | None:
        if name not in flags:
            return None
        if value is None:
            return flags[name]
        needed, option = _OPTION_OF_SETTING.get((name, value.strip("\"'")), ("", ""))
        return option if needed in known else _setting(flags[name], value, known)

    if not flags:
        return words
    words = _TRANSPOSE.sub(r"\1 transposed", with_settings(words, setting))
    words = _CALL.sub(lambda found: _of_name(found[1], known) or found[0], words)
    words = re.sub(f"{_name(flags)} ([<>]=?) ", lambda found: f"{flags[found[1]]} {_RELATIONS[found[2]]} ", words)
    # Other names may be ordinary words or, like A, names of the mathematics.
    bare = [name for name in flags if "_" in name or (name == about and len(name) == 1 and name.islower())]
    return re.sub(rf"{_name(bare)}\b", lambda found: flags[found[1]], words) if bare else words


def _name(names: Iterable[str]) -> str:
    """A pattern for one of ``names`` as a word of its own."""
    return rf"(?<![\w-])({'|'.join(sorted(map(re.escape, names), key=len, reverse=True))})"


def _of_name(name: str, known: set[str]) -> str | None:
    needed, option = _OPTION_OF_NAME[name]
    return option if needed in known else None


def _setting(flag: str, value: str, known: set[str]) -> str:
    """An option with its value as it is typed: without quotes, brackets, and the blanks of a list."""
    if value in ("True", "…", ""):
        return flag
    if value in ("False", "None"):
        return f"no {flag}"
    called = _CALL.fullmatch(value)
    option = _of_name(called[1], known) if called else None
    if option is not None:
        return option if option.startswith("--") else f"{flag} {option}"
    quoted = value.startswith(('"', "'"))
    return f"{flag} {value.strip(chr(34) + chr(39)) if quoted else value.strip('[]()').replace(', ', ',')}"
