"""What is published: the same files from the same commit, complete, with metadata that an index accepts."""

from __future__ import annotations

import hashlib
import importlib.util
import re
import subprocess
import sys
import tarfile
from pathlib import Path
from types import ModuleType

import pytest

import hardmax as hm

_ROOT = Path(__file__).parents[2]
_HOME = "https://example.org/team/hardmax"


def _hook() -> ModuleType:
    pytest.importorskip("hatchling", reason="hatchling (extra release) builds the package")
    spec = importlib.util.spec_from_file_location("hatch_build", _ROOT / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_links_of_the_long_description_are_absolute() -> None:
    readme = (_ROOT / "README.md").read_text(encoding="utf-8")
    published = _hook().with_absolute_links(readme, _HOME, "1.2")
    targets = re.findall(r"\]\(([^)\s]+)\)", published) + re.findall(r"<img[^>]*src=\"([^\"]+)", published)
    assert len(targets) >= 5
    assert all(target.startswith(("https://", "#")) for target in targets), targets
    assert f"({_HOME}/raw/v1.2/docs/_static/" in published


def test_links_by_example() -> None:
    text = "![a](x.png) [b](docs/c.rst) [d](https://e.org) [f](#g) [![h](i.svg)](j.md)"
    hook = _hook()
    assert hook.with_absolute_links(text, _HOME, "1") == (
        f"![a]({_HOME}/raw/v1/x.png) [b]({_HOME}/blob/v1/docs/c.rst) [d](https://e.org) [f](#g) "
        f"[![h]({_HOME}/raw/v1/i.svg)]({_HOME}/blob/v1/j.md)"
    )
    assert hook.with_absolute_links(text, "", "1") == " b [d](https://e.org) [f](#g) "


def test_project_addresses_come_from_one_home() -> None:
    hook = _hook()
    found = hook.addresses(_HOME, "1")
    assert {"Documentation", "Source", "Issues", "Changelog"} <= set(found)
    assert all(address.startswith(_HOME) for address in found.values())
    assert hook.addresses("", "1") == {}


def _build(source: Path, folder: Path, *kinds: str) -> dict[str, str]:
    """Hash of each built file, by name."""
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder), *(f"-t{kind}" for kind in kinds)]
    done = subprocess.run(command, cwd=source, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


@pytest.mark.slow
def test_builds_are_reproducible_and_complete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("hatchling", reason="hatchling (extra release) builds the package")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1763251200")
    first = _build(_ROOT, tmp_path / "one", "sdist", "wheel")
    assert first == _build(_ROOT, tmp_path / "two", "sdist", "wheel")
    assert set(first) == {f"hardmax-{hm.__version__}.tar.gz", f"hardmax-{hm.__version__}-py3-none-any.whl"}
    with tarfile.open(tmp_path / "one" / f"hardmax-{hm.__version__}.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    unpacked = tmp_path / f"hardmax-{hm.__version__}"
    # The wheel from the sdist is the wheel from the repository.
    wheel = f"hardmax-{hm.__version__}-py3-none-any.whl"
    assert _build(unpacked, tmp_path / "three", "wheel")[wheel] == first[wheel]
    listed = subprocess.run(["git", "ls-files"], cwd=_ROOT, capture_output=True, text=True)
    if listed.returncode == 0:
        missing = [name for name in listed.stdout.splitlines() if not (unpacked / name).is_file()]
        assert [name for name in missing if not name.startswith(".ci/")] == []


@pytest.mark.slow
def test_an_index_accepts_the_files(tmp_path: Path) -> None:
    pytest.importorskip("twine", reason="twine (extra release) checks the metadata")
    pytest.importorskip("hatchling", reason="hatchling (extra release) builds the package")
    files = [str(tmp_path / name) for name in _build(_ROOT, tmp_path, "sdist", "wheel")]
    done = subprocess.run([sys.executable, "-m", "twine", "check", "--strict", *files], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
