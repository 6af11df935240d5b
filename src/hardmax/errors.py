"""Every error of ours: one root, and messages that name the argument, the value and the remedy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager


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
        from .extras import how_to_install

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
