"""Code blocks of the documentation and of the README, in the order of the page."""

from __future__ import annotations

import doctest
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
_MADE = {"_build", "auto_gallery", "auto_tutorials", "generated", "examples", "_templates", "tutorials"}
PAGES = [
    page
    for page in sorted(DOCS.rglob("*.rst"))
    if not _MADE & set(page.relative_to(DOCS).parts) and page.name != "sg_execution_times.rst"
]
NOT_RUN = ".. not run: "
"""Comment above a code block that cannot run in a test; the rest of the line is the reason."""
_OPTIONS = doctest.NORMALIZE_WHITESPACE


@dataclass(frozen=True)
class CodeBlock:
    """A block of Python, or of commands."""

    line: int
    language: str
    text: str
    reason: str
    """Why the block is not run; empty for one that is."""


def _indented(lines: list[str], start: int) -> tuple[str, int]:
    """The indented text from a line on, without its indentation, and the line behind it."""
    end = start
    while end < len(lines) and (not lines[end].strip() or lines[end].startswith(" ")):
        end += 1
    return re.sub(r"^ {3}", "", "\n".join(lines[start:end]), flags=re.MULTILINE).strip("\n") + "\n", end


def rst_blocks(text: str) -> list[CodeBlock]:
    """Code blocks and doctests of a page in reStructuredText."""
    lines, found, reason, k = text.splitlines(), [], "", 0
    while k < len(lines):
        line = lines[k]
        directive = re.fullmatch(r"\.\. code-block:: (\w+)", line)
        if line.startswith(NOT_RUN):
            reason = line.removeprefix(NOT_RUN)
        if directive:
            body, end = _indented(lines, k + 1)
            body = re.sub(r"\A(:\w+:.*\n)+\n", "", body)
            found.append(CodeBlock(k + 1, directive[1], body, reason))
            reason, k = "", end
        elif line.startswith(">>> "):
            end = k
            while end < len(lines) and lines[end].strip():
                end += 1
            found.append(CodeBlock(k + 1, "pycon", "\n".join(lines[k:end]) + "\n", ""))
            k = end
        else:
            k += 1
    return found


def markdown_blocks(text: str) -> list[CodeBlock]:
    """Fenced code of a page in Markdown; a block that begins with a prompt is a doctest."""
    found = []
    for match in re.finditer(r"^```(\w+)\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL):
        language = "pycon" if match[1] == "python" and match[2].startswith(">>> ") else match[1]
        found.append(CodeBlock(text[: match.start()].count("\n") + 1, language, match[2], ""))
    return found


def blocks_of(page: Path) -> list[CodeBlock]:
    """Code blocks of a page."""
    text = page.read_text(encoding="utf-8")
    return markdown_blocks(text) if page.suffix == ".md" else rst_blocks(text)


def run_page(page: Path) -> tuple[int, list[str]]:
    """How many blocks were run, in one namespace, and what went wrong: wrong output or an exception, with its line."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    count, wrong = 0, []
    for block in blocks_of(page):
        if block.reason or block.language not in ("python", "pycon"):
            continue
        count += 1
        if block.language == "pycon":
            test = doctest.DocTestParser().get_doctest(block.text, namespace, page.name, str(page), block.line - 1)
            said: list[str] = []
            # The parser copies the names; the page goes on with those that the block has made.
            doctest.DocTestRunner(optionflags=_OPTIONS, verbose=False).run(test, out=said.append, clear_globs=False)
            namespace.update(test.globs)
            wrong += said
        else:
            code = compile("\n" * block.line + block.text, str(page), "exec")
            try:
                exec(code, namespace)  # noqa: S102  the code of our own pages
            except Exception as error:
                wrong.append(f"{page.name}, line {block.line}: {type(error).__name__}: {error}")
                break
    return count, wrong
