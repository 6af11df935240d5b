"""The README does what it says: its example runs, its commands exist, its files are there."""

import doctest
import re
from pathlib import Path

import pytest
from typer.main import get_command

import hardmax as hm
from hardmax.cli.app import app

_ROOT = Path(__file__).parent.parent
_TEXT = (_ROOT / "README.md").read_text(encoding="utf-8")


def _blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", _TEXT, flags=re.DOTALL)


def test_the_example_gives_this_output() -> None:
    (example,) = _blocks("python")
    parsed = doctest.DocTestParser().get_doctest(example, {}, "README.md", "README.md", 0)
    assert doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(parsed).failed == 0


def test_every_command_and_option_exists() -> None:
    commands = [line for block in _blocks("console") for line in block.splitlines() if line.startswith("$ hardmax")]
    assert len(commands) >= 5
    root = get_command(app)
    for line in commands:
        words = line.removeprefix("$ hardmax ").partition("#")[0].split()
        command = root
        while words and words[0] in getattr(command, "commands", {}):
            command = command.commands[words.pop(0)]
        assert command is not root, line
        known = {option for parameter in command.params for option in parameter.opts}
        assert {word for word in words if word.startswith("-")} <= known, line


def test_every_make_target_exists() -> None:
    targets = re.findall(r"^\$ make (\w+)", _TEXT, flags=re.MULTILINE)
    makefile = (_ROOT / "Makefile").read_text(encoding="utf-8")
    assert {"demo", "test", "bench"} <= set(targets)
    for target in targets:
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target


def test_every_name_is_public() -> None:
    part = _TEXT.partition("## What it offers")[2].partition("## The command line")[0]
    names = set(re.findall(r"`([A-Za-z_]+)[`(]", part))
    assert len(names) > 20
    assert names <= set(hm.__all__)


@pytest.mark.parametrize("path", sorted(set(re.findall(r"\]\((?!https?:)([^)#]+)\)", _TEXT))))
def test_every_file_that_is_linked_is_there(path: str) -> None:
    assert (_ROOT / path).exists()


def test_every_capability_has_a_picture() -> None:
    part = _TEXT.partition("## What it offers")[2].partition("## The command line")[0]
    cards = [line for line in part.splitlines() if line.startswith("| ![")]
    assert len(cards) == 7
    assert all("utorial](docs/tutorials/" in card for card in cards)


def test_every_figure_of_the_comparison_is_on_the_page_of_its_command() -> None:
    part = _TEXT.partition("## Measured")[2].partition("An ablation")[0]
    rows = [line.strip("| ").split(" | ") for line in part.splitlines() if line.startswith("| ")][2:]
    assert len(rows) >= 4
    benchmarks = (_ROOT / "docs" / "benchmarks.rst").read_text(encoding="utf-8")
    for what, *measured, command in rows:
        name = re.fullmatch(r"`(?:python -m benchmarks|hardmax reproduce) ([\w-]+)`", command)
        assert name, command
        stored = _ROOT / "benchmarks" / "results" / f"{name[1]}.json"
        paper = _ROOT / "docs" / "papers" / f"{name[1]}.rst"
        assert f"benchmarks {name[1]}\n" in benchmarks or f".. benchmark:: {name[1]}\n" in benchmarks or paper.is_file()
        sources = [benchmarks] + [path.read_text(encoding="utf-8") for path in (stored, paper) if path.is_file()]
        for figure in re.findall(r"\d[\d,.]*\d", " ".join([what, *measured])):
            more = "" if "." in figure else r"(?!\d)"  # the source may have more decimals
            found = re.compile(rf"(?<![\d.,]){re.escape(figure)}{more}")
            assert any(found.search(source) for source in sources), f"{what}: {figure}"
