"""The examples in the documentation run, and every public name is documented."""

import doctest
import re
from pathlib import Path

import pytest

import hardmax as hm

DOCS = Path(__file__).parents[1] / "docs"
PAGES = sorted(page for page in DOCS.rglob("*.rst") if not {"_build", "auto_gallery"} & set(page.parts))


@pytest.mark.parametrize("page", [p for p in PAGES if ">>>" in p.read_text(encoding="utf-8")], ids=lambda p: p.stem)
def test_examples_run(page: Path) -> None:
    assert doctest.testfile(str(page), module_relative=False, encoding="utf-8").failed == 0


def test_every_public_name_is_in_the_reference() -> None:
    reference = "\n".join(page.read_text(encoding="utf-8") for page in PAGES if page.parent.name == "reference")
    documented = {line.split("::")[1].strip() for line in reference.splitlines() if line.startswith(".. auto")}
    public = {f"hardmax.{name}" for name in hm.__all__ if not name.startswith("_")}
    assert public <= documented, f"missing from docs/reference: {sorted(public - documented)}"


def test_the_files_that_the_architecture_page_names_are_there() -> None:
    root = DOCS.parent
    page = (DOCS / "devdocs" / "architecture.rst").read_text(encoding="utf-8")
    named = set(re.findall(r"``((?:[a-z_]+/)*[a-z_]+\.(?:py|rst))``", page)) - {"page.py", "state.py", "view.py"}
    assert len(named) > 40
    missing = [name for name in named if not any((root / base / name).exists() for base in ("src/hardmax", "src", "."))]
    assert missing == []
