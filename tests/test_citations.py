"""Citations, and agreement of the citation file with them."""

import re
from pathlib import Path

import numpy as np
import pytest
import yaml

import hardmax as hm
from hardmax.citations import PAPERS

ROOT = Path(__file__).parents[1]


def test_everything_of_the_clustering_paper_cites_it() -> None:
    tokens = np.array([[1.0, 0.0], [0.0, 1.0]])
    run = hm.simulate(tokens, hm.HardmaxLayer(), depth=1)
    limit = hm.equilibrium(tokens)
    for thing in (run, limit, hm.HardmaxLayer(), hm.SoftmaxLayer(), hm.leaders(run), limit.polytope, hm.equilibrium):
        assert hm.citation(thing) == PAPERS["clustering"].bibtex


def test_without_an_object_the_library_and_all_papers_are_cited() -> None:
    text = hm.citation()
    assert text.startswith("@software{hardmax,")
    assert all(f"eprint = {{{paper.arxiv}}}" in text for paper in PAPERS.values())
    assert text.count("@article") == len(PAPERS)


def test_the_software_has_an_entry_with_its_version() -> None:
    entry = hm.citation(hm)
    assert entry.startswith("@software{hardmax,")
    assert f"version = {{{hm.__version__}}}" in entry


def test_authors_have_full_names_in_letters_that_bibtex_reads() -> None:
    for paper in PAPERS.values():
        assert all(len(name.split()) >= 2 for name in paper.authors), paper
        assert paper.bibtex.isascii(), paper
    assert r"Emre Y{\i}lmaz" in PAPERS["timedelayed"].bibtex


def test_what_is_not_ours_is_refused() -> None:
    with pytest.raises(hm.InputError, match="obj must be an object of this library"):
        hm.citation(3)
    with pytest.raises(hm.InputError, match="obj must be an object of this library"):
        hm.citation(np.ones(3))


def test_the_citation_file_lists_the_same_papers() -> None:
    listed = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert listed["title"] == "hardmax"
    found = {entry["title"]: entry["identifiers"][0]["value"] for entry in listed["references"]}
    for paper in PAPERS.values():
        assert found[paper.title] == f"arXiv:{paper.arxiv}"
    authors = {entry["title"]: [f"{a['given-names']} {a['family-names']}" for a in entry["authors"]]
               for entry in listed["references"]}  # fmt: skip
    assert authors == {paper.title: list(paper.authors) for paper in PAPERS.values()}


def test_the_version_is_the_same_everywhere() -> None:
    listed = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert listed["version"] == hm.__version__
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert newest is not None
    assert newest[1] == hm.__version__
