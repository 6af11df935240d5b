"""Every public name resolves, and importing the package imports nothing heavy."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import hardmax as hm

_WANTED = {
    *("HardmaxLayer", "SoftmaxLayer", "FeedForwardLayer", "Block", "AbstractLayer", "Choice", "choose"),
    *("simulate", "equilibrium", "Trajectory", "Equilibrium", "Leadership", "Ties", "Outcome", "Ending"),
    *("Every", "ToDisk", "Decided", "Bound", "Assumptions", "Polytope", "leaders", "clusters"),
    *("check_assumptions", "check_theorem", "citation", "save", "load", "make_tokens", "make_matrix"),
    *("draw", "draw_tokens", "draw_panels", "draw_attention_geometry", "animate_tokens", "save_figure"),
    *("HardmaxError", "InputError", "FileError", "MissingExtraError", "__version__"),
}
_HEAVY = {"torch", "numpy", "scipy", "pandas", "matplotlib", "xarray", "zarr", "flint", "jaxtyping"}


@pytest.mark.parametrize("name", hm.__all__)
def test_every_name_resolves(name: str) -> None:
    value = getattr(hm, name)
    if callable(value):
        assert value.__name__ == name
        assert value.__doc__


def test_the_names_of_the_documentation_are_there() -> None:
    assert set(hm.__all__) >= _WANTED
    assert sorted(dir(hm)) == sorted([*hm.__all__, *hm._PACKAGES])


def test_type_checkers_see_the_same_names() -> None:
    tree = ast.parse(Path(hm.__file__).read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    seen = [
        (alias.name, node.module) for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names
    ]
    assert {name: module for name, module in seen if module} == hm._MODULE_OF
    assert sorted(name for name, module in seen if module is None) == sorted(hm._PACKAGES)


def test_packages_are_attributes_in_a_fresh_interpreter() -> None:
    code = (
        "import hardmax as hm, sys\n"
        "for name in hm._PACKAGES:\n"
        "    assert getattr(hm, name).__name__ == 'hardmax.' + name, name\n"
        "print(len(hm.datasets.four_configurations()), hm.text.__name__, hm.sweep.__name__)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("4 hardmax.text sweep\n", "")


def test_every_package_of_the_reference_is_an_attribute() -> None:
    pages = (Path(__file__).parent.parent / "docs").rglob("*.rst")
    named = {name for page in pages for name in re.findall(r"hardmax\.([a-z]+)\.", page.read_text(encoding="utf-8"))}
    folder = Path(hm.__file__).parent
    assert {name for name in named if (folder / name / "__init__.py").exists()} - {"cli", "app"} <= set(hm._PACKAGES)


def test_errors_have_one_root() -> None:
    for error in (hm.InputError, hm.FileError, hm.MissingExtraError):
        assert issubclass(error, hm.HardmaxError)


def test_unknown_names_are_attribute_errors() -> None:
    with pytest.raises(AttributeError, match="module 'hardmax' has no attribute 'softmin'"):
        _ = hm.softmin


def test_import_is_light() -> None:
    code = "import hardmax, sys; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "hardmax" in loaded
    assert _HEAVY.isdisjoint(loaded)


def test_nothing_below_the_figures_names_them():
    folder = Path(hm.__file__).parent
    below = ("attention", "dynamics", "geometry", "text", "interpolation", "forecasting", "meanfield")
    for name in below:
        for file in (folder / name).rglob("*.py"):
            assert "hardmax.figures" not in file.read_text(encoding="utf-8"), file
