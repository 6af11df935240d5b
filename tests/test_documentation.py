"""The code of the documentation runs, its commands exist, and every public name is documented."""

import importlib.util
import json
import re
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import matplotlib as mpl
import pytest
from typer.main import get_command

import hardmax as hm
from documentation import DOCS, PAGES, ROOT, CodeBlock, blocks_of, markdown_blocks, rst_blocks, run_page
from hardmax.cli.app import app

README = ROOT / "README.md"
# Fits and backtests of a minute, runs that a tutorial makes with fewer tokens, a million tokens, and worker processes.
SLOW = {"howto/forecast.rst", "papers/mean-field.rst", "howto/millions.rst", "howto/sweeps.rst"}
REASONS = {"needs an NVIDIA GPU", "needs a trained model", "needs a cluster of dask or ray"}
TUTORIALS = sorted((DOCS / "tutorials").glob("tutorial_*.py"))


def _name(page: Path) -> str:
    return str(page.relative_to(DOCS if page.is_relative_to(DOCS) else ROOT).as_posix())


def _with_python() -> list[object]:
    pages = [page for page in [*PAGES, README] if any(b.language in ("python", "pycon") for b in blocks_of(page))]
    slow = pytest.mark.slow
    return [pytest.param(page, id=_name(page), marks=[slow] if _name(page) in SLOW else []) for page in pages]


@pytest.mark.parametrize("page", _with_python())
def test_the_code_of_a_page_runs_in_one_namespace(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with mpl.rc_context({"backend": "agg"}):
        _, wrong = run_page(page)
    assert wrong == []


def test_blocks_that_are_not_run_say_why() -> None:
    python = [block for page in PAGES for block in blocks_of(page) if block.language in ("python", "pycon")]
    marked = [block for block in python if block.reason]
    assert {block.reason for block in marked} == REASONS
    assert len(marked) == 7
    assert len(python) > 80


def test_blocks_are_found_in_the_order_of_the_page() -> None:
    page = (
        "Title\n=====\n\n>>> x = 1\n>>> x\n1\n\n.. not run: no\n\n.. code-block:: python\n   :caption: c\n\n   y = x\n"
        "\n   z = y\n\nText.\n\n.. code-block:: console\n\n   $ ls\n"
    )
    assert rst_blocks(page) == [
        CodeBlock(4, "pycon", ">>> x = 1\n>>> x\n1\n", ""),
        CodeBlock(10, "python", "y = x\n\nz = y\n", "no"),
        CodeBlock(19, "console", "$ ls\n", ""),
    ]
    assert [b.language for b in markdown_blocks("a\n```python\n>>> 1\n1\n```\n```console\n$ x\n```\n")] == [
        "pycon",
        "console",
    ]


@pytest.mark.parametrize("text", [">>> 1 + 1\n3\n", ".. code-block:: python\n\n   nothing_of_this_name\n"])
def test_wrong_pages_are_noticed(text: str, tmp_path: Path) -> None:
    page = tmp_path / "page.rst"
    page.write_text(text, encoding="utf-8")
    count, wrong = run_page(page)
    assert count == 1
    assert len(wrong) == 1


def _typed(page: Path) -> list[str]:
    """Commands that a page shows, without prompts and comments."""
    lines = [line for block in blocks_of(page) if block.language == "console" for line in block.text.splitlines()]
    commands = [re.sub(r"^\$ ", "", line).partition("#")[0].partition(" > ")[0].strip() for line in lines]
    return [command for command in commands if re.match(r"hardmax \w", command)]


def test_every_command_and_option_of_the_pages_exists() -> None:
    root = get_command(app)
    typed = [(page, line) for page in [*PAGES, README] for line in _typed(page)]
    assert len(typed) > 60
    for page, line in typed:
        words = line.split()[1:]
        command = root
        while words and words[0] in getattr(command, "commands", {}):
            command = command.commands[words.pop(0)]
        assert command is not root, f"{_name(page)}: {line}"
        known = {option for parameter in command.params for option in parameter.opts} | {"-"}
        assert {word for word in words if word.startswith("-")} <= known, f"{_name(page)}: {line}"


def _extension(name: str) -> ModuleType:
    """A module of docs/_extensions."""
    sys.path.insert(0, str(DOCS / "_extensions"))
    try:
        return import_module(name)
    finally:
        sys.path.pop(0)


def _notebook(script: Path) -> dict[str, object]:
    """The notebook that the documentation offers, made as the build makes it."""
    notebook = pytest.importorskip("sphinx_gallery.notebook")
    from sphinx_gallery.gen_gallery import DEFAULT_GALLERY_CONF
    from sphinx_gallery.py_source_parser import split_code_and_text_blocks

    _extension("notebook_words").setup(None)
    _, blocks = split_code_and_text_blocks(script)
    return json.loads(json.dumps(notebook.jupyter_notebook(blocks, dict(DEFAULT_GALLERY_CONF), script.parent)))


@pytest.mark.parametrize(
    "script",
    # The build of the documentation runs all of them; two take ten seconds.
    [pytest.param(s, id=s.stem, marks=[pytest.mark.slow] if s.stem[9] in "35" else []) for s in TUTORIALS],
)
def test_the_notebook_of_a_tutorial_runs(script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made = _notebook(script)
    assert made["nbformat"] == 4
    cells = made["cells"]
    words = "".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    assert not re.search(r":(func|class|doc|meth):`", words)
    assert words.startswith("\n# ")
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    assert len(code) >= 5
    # A name of the tutorial's own, by which classes that it defines find their module.
    namespace = {"__name__": "tutorial"}
    monkeypatch.setitem(sys.modules, "tutorial", type(sys)("tutorial"))
    with mpl.rc_context({"backend": "agg"}):
        for cell in code:
            exec(compile(cell, script.name, "exec"), namespace)  # noqa: S102  our own tutorial
    assert not list(tmp_path.iterdir())


def test_there_are_seven_tutorials_and_thirty_pictures() -> None:
    assert len(TUTORIALS) == 7
    scripts = list((ROOT / "gallery").rglob("plot_*.py"))
    assert len(scripts) >= 30
    drawn = [
        script for script in scripts if re.search(r"draw|plt\.|\.plot|animate", script.read_text(encoding="utf-8"))
    ]
    assert len(drawn) >= 30


def _documented() -> set[str]:
    """Names that have a page of their own."""
    pages = [page.read_text(encoding="utf-8") for page in PAGES if page.parent.name in ("reference", "papers")]
    lines = [line for page in pages for line in page.splitlines()]
    listed = {line.strip() for line in lines if line.startswith("   hardmax.")}
    return listed | {line.split("::")[1].strip() for line in lines if line.startswith(".. auto")}


def test_every_public_name_is_in_the_reference() -> None:
    public = {f"hardmax.{name}" for name in hm.__all__ if not name.startswith("_")}
    assert public <= _documented(), f"missing from docs/reference: {sorted(public - _documented())}"


def test_every_name_that_a_page_refers_to_has_a_page() -> None:
    documented = _documented()
    roles = re.compile(r":(func|class|exc|meth|attr):`(?:[^`<]*<)?~?([\w.]+)>?`")
    scripts = sorted((ROOT / "gallery").rglob("*.py")) + TUTORIALS
    found = [(page, *match) for page in [*PAGES, *scripts] for match in roles.findall(page.read_text(encoding="utf-8"))]
    assert len(found) > 150
    for page, role, name in found:
        owner, _, member = name.rpartition(".")
        known = name in documented or (role in ("meth", "attr") and owner in documented)
        assert known, f"{page.name}: {name}"
        if owner in documented:
            cls = getattr(hm, owner.removeprefix("hardmax."), None)
            assert cls is None or hasattr(cls, member) or member in cls.__annotations__, f"{page.name}: {name}"


def test_every_page_is_in_a_table_of_contents() -> None:
    listed = set()
    for page in PAGES:
        for tree in re.findall(r"\.\. toctree::\n((?:   .*\n|\n)*)", page.read_text(encoding="utf-8") + "\n"):
            for entry in tree.split():
                target = DOCS / entry[1:] if entry.startswith("/") else page.parent / entry
                listed.add(target.with_name(target.name + ".rst"))
    assert {page for page in PAGES if page not in listed} == {DOCS / "index.rst"}


def test_the_command_reference_has_every_command() -> None:
    pytest.importorskip("sphinx")
    text = _extension("commands").all_commands()
    for name, command in get_command(app).commands.items():
        assert f"\nhardmax {name}\n---" in text or text.startswith(f".. _command-hardmax-{name}:")
        for parameter in command.params:
            assert parameter.param_type_name == "argument" or parameter.hidden or parameter.opts[0] in text


def test_the_files_that_the_architecture_page_names_are_there() -> None:
    root = DOCS.parent
    page = (DOCS / "devdocs" / "architecture.rst").read_text(encoding="utf-8")
    named = set(re.findall(r"``((?:[a-z_]+/)*[a-z_]+\.(?:py|rst))``", page)) - {"page.py", "state.py", "view.py"}
    assert len(named) > 40
    missing = [name for name in named if not any((root / base / name).exists() for base in ("src/hardmax", "src", "."))]
    assert missing == []


def test_formulas_are_read_as_tex_reads_them() -> None:
    pytest.importorskip("sphinx")
    read = _extension("mathml").as_tex_reads_it
    assert read(r"\tfrac12\Delta") == r"\tfrac{1}{2}\Delta"
    assert read(r"\tfrac\beta2 I_{d/2}") == r"\tfrac{\beta}{2} I_{d/2}"
    assert read("x_12 + 2^{36}") == "x_{1}2 + 2^{36}"
    assert read(r"\frac{a}{b}") == r"\frac{a}{b}"
    assert (
        read(r"\log\beta + \log(\beta) + \ln n + \exp\left(x") == r"\log\,\beta + \log(\beta) + \ln\, n + \exp\left(x"
    )


def test_formulas_are_set_as_tex_sets_them() -> None:
    pytest.importorskip("sphinx")
    set_ = _extension("mathml").as_tex_sets_it
    assert set_("<msub>\n <mi>μ</mi><mi>t</mi></msub>") == (
        '<msub>\n <mpadded depth="0"><mi>μ</mi></mpadded><mi>t</mi></msub>'
    )
    bar = '<mo stretchy="false">‖</mo>'
    assert set_("<mo>‖</mo><msubsup><mo>‖</mo><mi>A</mi><mn>2</mn></msubsup>") == (
        f'{bar}<msubsup><mpadded depth="0">{bar}</mpadded><mi>A</mi><mn>2</mn></msubsup>'
    )
    assert set_("<msub><mi>z</mi><mi>i</mi></msub>") == "<msub><mi>z</mi><mi>i</mi></msub>"


def test_markdown_becomes_sections_lists_and_code() -> None:
    pytest.importorskip("sphinx")
    text = "# Title\n\n## One\nText with `a_b` and\n- **x `y`**: z\n- [w](https://w.org)\n\n```console\n$ ls\n```\n"
    assert _extension("markdown_page").as_rst(text).splitlines() == [
        "",
        "",
        "One",
        "---",
        "",
        r"Text with \ ``a_b``\  and",
        "",
        r"- **x** \ ``y``\ : z",
        r"- `w <https://w.org>`__\ ",
        "",
        "",
        ".. code-block:: text",
        "",
        "   $ ls",
    ]


def test_links_that_lead_nowhere_are_found(tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("check_links", DOCS / "check_links.py")
    assert spec is not None
    assert spec.loader is not None
    checker = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(checker)
    (tmp_path / "sub").mkdir()
    (tmp_path / "index.html").write_text(
        '<h1 id="top-of-it">a</h1><a href="sub/b.html#here">b</a><a href="#top-of-it"></a><a href="https://x.org/y"></a>'
        '<a href="sub/b.html#gone">c</a><img src="no.png"><a href="sub/a%20b.txt"></a><a href="mailto:a@b.c"></a>',
        encoding="utf-8",
    )
    (tmp_path / "sub" / "b.html").write_text('<p id="here"><a href="../index.html">up</a><a href="b.html#"></a>')
    (tmp_path / "sub" / "a b.txt").write_text("text")
    wrong, inside, outside = checker.broken_links(tmp_path)
    assert wrong == ["index.html: sub/b.html#gone", "index.html: no.png"]
    assert (inside, outside) == (7, 1)


def test_the_changelog_has_short_lines_by_topic() -> None:
    lines = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").splitlines()
    topics = [line for line in lines if line.startswith("### ")]
    assert len(topics) >= 10
    bullets = [line for line in lines if line.startswith("- ")]
    assert max(map(len, bullets)) <= 120
    assert not [line for line in lines if line.startswith("  ")]  # one line each


def test_source_pages_lead_back_to_the_page_of_a_name() -> None:
    pytest.importorskip("sphinx")
    repaired = _extension("source_links").with_right_anchors
    start = '<a href="../reference/generated/hardmax.dynamics.KeepRule.html#hardmax'
    assert repaired(f'{start}.KeepRule.wants">') == f'{start}.dynamics.KeepRule.wants">'
    for same in (
        f'{start}.dynamics.KeepRule">',
        '<a href="reference/generated/hardmax.Leaders-class.html#hardmax.Leaders">',
    ):
        assert repaired(same) == same
