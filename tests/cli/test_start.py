"""The command itself: help, version, and the exit status of errors."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

import hardmax
from hardmax.cli import simulate
from hardmax.cli.app import _Guarded, app
from hardmax.datasets import LAWS, MATRICES
from hardmax.errors import InputError

_HEAVY = {"torch", "numpy", "scipy", "pandas", "matplotlib", "xarray", "zarr", "flint", "jaxtyping"}


def _hardmax(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "hardmax", *arguments], capture_output=True, text=True, **options)


@pytest.mark.parametrize(
    "command", [[], ["demo"], ["simulate"], ["doctor"], ["reproduce"], ["reproduce", "clustering"]]
)
def test_help_teaches(command: list[str]) -> None:
    result = CliRunner().invoke(app, [*command, "--help"])
    assert result.exit_code == 0
    if command != ["reproduce"]:
        examples = [line for line in result.stdout.splitlines() if line.startswith(" hardmax ")]
        assert 2 <= len(examples) <= 4


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys\nfrom hardmax.__main__ import main\n"
        "sys.argv = ['hardmax', 'simulate', '--help']\n"
        "try:\n    main()\nexcept SystemExit:\n    print('LOADED', *sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = result.stdout.partition("LOADED")[2].split()
    assert "hardmax.cli.app" in loaded
    assert _HEAVY.isdisjoint(loaded)


def test_help_names_every_law_and_matrix() -> None:
    assert tuple(LAWS) == simulate.LAWS
    assert tuple(MATRICES) == simulate.MATRICES


def test_version() -> None:
    result = _hardmax("--version")
    assert (result.returncode, result.stdout) == (0, f"hardmax {hardmax.__version__}\n")


def test_no_command_shows_the_help() -> None:
    result = CliRunner().invoke(app, [])
    assert "Usage" in result.output
    assert "demo" in result.output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["simulat"], ["simulat"]),
        (["simulate", "--colour"], ["--colour"]),
        (["simulate", "a.csv", "b.csv"], ["b.csv"]),
        (["doctor", "--json=yes"], ["--json"]),
    ],
)
def test_usage_errors_have_status_2(arguments: list[str], words: list[str]) -> None:
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    for word in words:
        assert word in result.stderr


def _app_that(raises: BaseException) -> typer.Typer:
    broken = typer.Typer(cls=_Guarded, pretty_exceptions_enable=False)

    @broken.callback()
    def top() -> None:
        pass

    @broken.command()
    def fail() -> None:
        raise raises

    return broken


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (
            InputError("alpha", -1, "must be\npositive", "pass 0.5"),
            2,
            "error: alpha must be positive, got -1: pass 0.5\n",
        ),
        (MemoryError("8 GB"), 2, "error: there is not enough memory (8 GB): use fewer tokens, or keep fewer layers\n"),
        (KeyboardInterrupt(), 130, "interrupted; nothing half-written was left behind\n"),
    ],
)
def test_expected_failures_are_one_line(error: BaseException, status: int, said: str) -> None:
    result = CliRunner().invoke(_app_that(error), ["fail"])
    assert (result.exit_code, result.stdout, result.stderr) == (status, "", said)


def test_bugs_keep_their_traceback() -> None:
    result = CliRunner().invoke(_app_that(ZeroDivisionError("a bug")), ["fail"])
    assert isinstance(result.exception, ZeroDivisionError)


def test_a_closed_pipe_is_quiet(tmp_path: Path) -> None:
    """`hardmax simulate --json | head`, with a reader that leaves at once."""
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as pipe:
        command = [sys.executable, "-m", "hardmax", "simulate", "--n", "5", "--json"]
        result = subprocess.run(command, stdout=pipe, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    assert (result.returncode, result.stderr) == (141, "")
