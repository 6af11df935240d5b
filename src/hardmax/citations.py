"""BibTeX entries of the papers behind the parts of the library."""

from __future__ import annotations

from dataclasses import dataclass

from .errors import InputError


@dataclass(frozen=True)
class Paper:
    """Bibliographic data of one paper."""

    key: str
    title: str
    authors: tuple[str, ...]
    year: int
    arxiv: str

    @property
    def bibtex(self) -> str:
        """BibTeX entry ``@article``."""
        return "\n".join(
            [
                f"@article{{{self.key},",
                f"  title = {{{self.title}}},",
                f"  author = {{{' and '.join(self.authors)}}},",
                f"  journal = {{arXiv preprint arXiv:{self.arxiv}}},",
                f"  year = {{{self.year}}},",
                f"  eprint = {{{self.arxiv}}},",
                "  archivePrefix = {arXiv},",
                "}",
            ]
        )


PAPERS = {
    paper.key: paper
    for paper in (
        Paper(
            "clustering",
            "Clustering in pure-attention hardmax transformers and its role in sentiment analysis",
            ("Alcalde", "Fantuzzi", "Zuazua"),
            2024,
            "2407.01602",
        ),
        Paper(
            "interpolation",
            "Exact Sequence Interpolation with Transformers",
            ("Alcalde", "Fantuzzi", "Zuazua"),
            2025,
            "2502.02270",
        ),
        Paper(
            "timedelayed",
            "Time-Delayed Transformers for Data-Driven Modeling of Low-Dimensional Dynamics",
            ("Alcalde", "Widhalm", r"Y{\i}lmaz"),
            2026,
            "2602.08478",
        ),
        Paper(
            "meanfield",
            "Quantifying concentration phenomena of mean-field transformers in the low-temperature regime",
            ("Alcalde", "Bungert", "Riedl", "Roith"),
            2026,
            "2605.10931",
        ),
    )
}

# Key of the paper behind each part of the package.
_PAPER_OF_PART = {
    **dict.fromkeys(("attention", "dynamics", "geometry", "polytopes", "text"), "clustering"),
    "interpolation": "interpolation",
    "forecasting": "timedelayed",
    "meanfield": "meanfield",
}


def citation(obj: object = None) -> str:
    """BibTeX entry of the paper behind an object.

    Parameters
    ----------
    obj
        A layer, a run, a limit, an estimator or a function of this library; None for all papers.

    Returns
    -------
    str
        One ``@article`` entry, or all of them separated by empty lines.

    Examples
    --------
    >>> import hardmax as hm
    >>> print(hm.citation(hm.HardmaxLayer(alpha=0.5)))
    @article{clustering,
      title = {Clustering in pure-attention hardmax transformers and its role in sentiment analysis},
      author = {Alcalde and Fantuzzi and Zuazua},
      journal = {arXiv preprint arXiv:2407.01602},
      year = {2024},
      eprint = {2407.01602},
      archivePrefix = {arXiv},
    }
    """
    if obj is None:
        return "\n\n".join(paper.bibtex for paper in PAPERS.values())
    module = getattr(obj, "__module__", None) or type(obj).__module__
    package, _, rest = str(module).partition(".")
    part = rest.partition(".")[0]
    if package != "hardmax" or part not in _PAPER_OF_PART:
        raise InputError(
            "obj",
            f"an object of {type(obj).__name__}",
            "must be an object of this library that belongs to a paper",
            "pass a layer, a run, a limit, or nothing for all papers",
        )
    return PAPERS[_PAPER_OF_PART[part]].bibtex
