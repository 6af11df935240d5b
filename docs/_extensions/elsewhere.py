"""Links from types of other packages to their documentation, from a table: the build asks the network for nothing."""

from __future__ import annotations

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

_PYTHON = "https://docs.python.org/3/library/"
_MATPLOTLIB = "https://matplotlib.org/stable/api/"
_PANDAS = "https://pandas.pydata.org/docs/reference/api/"
_PLACES = {
    "bool": f"{_PYTHON}functions.html#bool",
    "bytes": f"{_PYTHON}stdtypes.html#bytes",
    "dict": f"{_PYTHON}stdtypes.html#dict",
    "float": f"{_PYTHON}functions.html#float",
    "int": f"{_PYTHON}functions.html#int",
    "list": f"{_PYTHON}stdtypes.html#list",
    "str": f"{_PYTHON}stdtypes.html#str",
    "tuple": f"{_PYTHON}stdtypes.html#tuple",
    "None": f"{_PYTHON}constants.html#None",
    "collections.abc.Callable": f"{_PYTHON}collections.abc.html#collections.abc.Callable",
    "collections.abc.Iterable": f"{_PYTHON}collections.abc.html#collections.abc.Iterable",
    "collections.abc.Mapping": f"{_PYTHON}collections.abc.html#collections.abc.Mapping",
    "collections.abc.Sequence": f"{_PYTHON}collections.abc.html#collections.abc.Sequence",
    "fractions.Fraction": f"{_PYTHON}fractions.html#fractions.Fraction",
    "pathlib.Path": f"{_PYTHON}pathlib.html#pathlib.Path",
    "matplotlib.animation.FuncAnimation": f"{_MATPLOTLIB}_as_gen/matplotlib.animation.FuncAnimation.html",
    "matplotlib.axes.Axes": f"{_MATPLOTLIB}_as_gen/matplotlib.axes.Axes.html",
    "matplotlib.figure.Figure": f"{_MATPLOTLIB}figure_api.html#matplotlib.figure.Figure",
    "numpy.ndarray": "https://numpy.org/doc/stable/reference/generated/numpy.ndarray.html",
    "pandas.DataFrame": f"{_PANDAS}pandas.DataFrame.html",
    "pandas.Series": f"{_PANDAS}pandas.Series.html",
    "torch.Tensor": "https://pytorch.org/docs/stable/tensors.html#torch.Tensor",
    "torch.nn.Module": "https://pytorch.org/docs/stable/generated/torch.nn.Module.html",
    "xarray.DataArray": "https://docs.xarray.dev/en/stable/generated/xarray.DataArray.html",
    "xarray.Dataset": "https://docs.xarray.dev/en/stable/generated/xarray.Dataset.html",
}
# Names under which annotations know the same types.
_PLACES |= {name.replace("numpy.", "np."): place for name, place in _PLACES.items() if name.startswith("numpy.")}
_PLACES |= {name.rpartition(".")[2]: place for name, place in _PLACES.items() if name[0].islower() and "." in name}


def _link(
    app: Sphinx, env: BuildEnvironment, node: addnodes.pending_xref, text: nodes.TextElement
) -> nodes.reference | None:
    """A link to the documentation of another package, or None where the table has no such name."""
    place = _PLACES.get(node.get("reftarget", "")) if node.get("refdomain") == "py" else None
    return None if place is None else nodes.reference("", "", text, internal=False, refuri=place)


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("missing-reference", _link)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
