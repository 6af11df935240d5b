"""BibTeX entries of the software and of the papers behind the parts of the library."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType

from ._version import __version__
from .errors import InputError

# BibTeX of old understands letters of ASCII only.
_IN_LATEX = {"ı": r"{\i}", "é": r"{\'e}", "è": r"{\`e}"}


def _latex(name: str) -> str:
    return "".join(_IN_LATEX.get(letter, letter) for letter in name)


@dataclass(frozen=True)
class Paper:
    """Bibliographic data of one paper."""

    key: str
    title: str
    authors: tuple[str, ...]
    """Given names first, family name last."""
    year: int
    arxiv: str

    @property
    def family_names(self) -> tuple[str, ...]:
        """Family names of the authors, for short references."""
        return tuple(name.rpartition(" ")[2] for name in self.authors)

    @property
    def bibtex(self) -> str:
        """BibTeX entry ``@article``."""
        return "\n".join(
            [
                f"@article{{{self.key},",
                f"  title = {{{self.title}}},",
                f"  author = {{{' and '.join(map(_latex, self.authors))}}},",
                f"  journal = {{arXiv preprint arXiv:{self.arxiv}}},",
                f"  year = {{{self.year}}},",
                f"  eprint = {{{self.arxiv}}},",
                "  archivePrefix = {arXiv},",
                "}",
            ]
        )


SOFTWARE = "\n".join(
    [
        "@software{hardmax,",
        "  title = {hardmax: transformers as dynamical systems},",
        "  author = {{The hardmax developers}},",
        f"  version = {{{__version__}}},",
        "  year = {2026},",
        "  license = {MIT},",
        "}",
    ]
)
"""BibTeX entry of this library, in its installed version."""

PAPERS = {
    paper.key: paper
    for paper in (
        Paper(
            "clustering",
            "Clustering in pure-attention hardmax transformers and its role in sentiment analysis",
            ("Albert Alcalde", "Giovanni Fantuzzi", "Enrique Zuazua"),
            2024,
            "2407.01602",
        ),
        Paper(
            "interpolation",
            "Exact Sequence Interpolation with Transformers",
            ("Albert Alcalde", "Giovanni Fantuzzi", "Enrique Zuazua"),
            2025,
            "2502.02270",
        ),
        Paper(
            "timedelayed",
            "Time-Delayed Transformers for Data-Driven Modeling of Low-Dimensional Dynamics",
            ("Albert Alcalde", "Markus Widhalm", "Emre Yılmaz"),
            2026,
            "2602.08478",
        ),
        Paper(
            "meanfield",
            "Quantifying concentration phenomena of mean-field transformers in the low-temperature regime",
            ("Albert Alcalde", "Leon Bungert", "Konstantin Riedl", "Tim Roith"),
            2026,
            "2605.10931",
        ),
        Paper(
            "transformers",
            "A mathematical perspective on Transformers",
            ("Borjan Geshkovski", "Cyril Letrouit", "Yury Polyanskiy", "Philippe Rigollet"),
            2023,
            "2312.10794",
        ),
        Paper(
            "oscillators",
            "Low dimensional behavior of large systems of globally coupled oscillators",
            ("Edward Ott", "Thomas M. Antonsen"),
            2008,
            "0806.0004",
        ),
        Paper(
            "metastability",
            "Dynamic metastability in the self-attention model",
            ("Borjan Geshkovski", "Hugo Koubbi", "Yury Polyanskiy", "Philippe Rigollet"),
            2024,
            "2410.06833",
        ),
        Paper(
            "causal",
            "Clustering in Causal Attention Masking",
            ("Nikita Karagodin", "Yury Polyanskiy", "Philippe Rigollet"),
            2024,
            "2411.04990",
        ),
        Paper(
            "normalisation",
            "Normalization in Attention Dynamics",
            ("Nikita Karagodin", "Shu Ge", "Yury Polyanskiy", "Philippe Rigollet"),
            2025,
            "2510.22026",
        ),
        Paper(
            "icm",
            "The Mean-Field Dynamics of Transformers",
            ("Philippe Rigollet",),
            2025,
            "2512.01868",
        ),
        Paper(
            "longcontext",
            "Critical attention scaling in long-context transformers",
            ("Shi Chen", "Zhengjiang Lin", "Yury Polyanskiy", "Philippe Rigollet"),
            2025,
            "2510.05554",
        ),
        Paper(
            "noise",
            "Phase transitions for the noisy transformer model in arbitrary dimension",
            ("Kyunghoo Mun", "Matthew Rosenzweig"),
            2026,
            "2606.05140",
        ),
        Paper(
            "heads",
            "Gradient Flow Structure and Quantitative Dynamics of Multi-Head Self-Attention",
            ("Ayan Pendharkar",),
            2026,
            "2605.04279",
        ),
        Paper(
            "emergence",
            "The emergence of clusters in self-attention dynamics",
            ("Borjan Geshkovski", "Cyril Letrouit", "Yury Polyanskiy", "Philippe Rigollet"),
            2023,
            "2305.05465",
        ),
        Paper(
            "sinkformers",
            "Sinkformers: Transformers with Doubly Stochastic Attention",
            ("Michael E. Sander", "Pierre Ablin", "Mathieu Blondel", "Gabriel Peyré"),
            2021,
            "2110.11773",
        ),
        Paper(
            "frankwolfe",
            "Attention's forward pass and Frank-Wolfe",
            ("Albert Alcalde", "Borjan Geshkovski", "Domènec Ruiz-Balet"),
            2025,
            "2508.09628",
        ),
        Paper(
            "rankcollapse",
            "Attention is not all you need: pure attention loses rank doubly exponentially with depth",
            ("Yihe Dong", "Jean-Baptiste Cordonnier", "Andreas Loukas"),
            2021,
            "2103.03404",
        ),
    )
}

PAPERS_OF_MODEL = {
    "kuramoto": ("transformers", "oscillators"),
    "sphere_attention": ("transformers",),
    "metastable": ("metastability",),
    "causal_sphere": ("causal",),
    "normalisation": ("normalisation",),
    "equiangular": ("icm", "transformers"),
    "long_context": ("longcontext", "icm"),
    "noisy": ("noise",),
    "multi_head": ("heads",),
    "value_spectrum": ("emergence",),
    "sinkhorn": ("sinkformers",),
    "frank_wolfe": ("frankwolfe",),
    "rank_collapse": ("rankcollapse",),
}
"""Keys of the papers of each model of ``hm.zoo``, the one with its equation first."""

# Key of the paper behind each part of the package.
_PAPER_OF_PART = {
    **dict.fromkeys(("attention", "dynamics", "geometry", "polytopes", "text"), "clustering"),
    "interpolation": "interpolation",
    "forecasting": "timedelayed",
    "meanfield": "meanfield",
}


def citation(obj: object = None) -> str:
    """BibTeX entries of the library and of the papers behind an object, one after the other.

    Parameters
    ----------
    obj
        A layer, a run, a limit, an estimator, a function of this library or a model of ``hm.zoo``: the entries of its
        papers. The module ``hardmax``: the entry of the software. None: the software and all papers.

    Returns
    -------
    str
        One entry, ``@article`` or ``@software``, or several separated by empty lines.

    Examples
    --------
    >>> import hardmax as hm
    >>> print(hm.citation(hm.HardmaxLayer(alpha=0.5)))
    @article{clustering,
      title = {Clustering in pure-attention hardmax transformers and its role in sentiment analysis},
      author = {Albert Alcalde and Giovanni Fantuzzi and Enrique Zuazua},
      journal = {arXiv preprint arXiv:2407.01602},
      year = {2024},
      eprint = {2407.01602},
      archivePrefix = {arXiv},
    }
    """
    if obj is None:
        return "\n\n".join([SOFTWARE, *(paper.bibtex for paper in PAPERS.values())])
    if isinstance(obj, ModuleType) and obj.__name__ == "hardmax":
        return SOFTWARE
    module = getattr(obj, "__module__", None) or type(obj).__module__
    package, _, rest = str(module).partition(".")
    part = rest.partition(".")[0]
    if package == "hardmax" and part == "zoo":
        name = getattr(obj, "name", None) or getattr(obj, "__name__", None)
        keys = PAPERS_OF_MODEL.get(str(name), ())
        if keys:
            return "\n\n".join(PAPERS[key].bibtex for key in keys)
    if package != "hardmax" or part not in _PAPER_OF_PART:
        raise InputError(
            "obj",
            f"an object of {type(obj).__name__}",
            "must be an object of this library that belongs to a paper",
            "pass a layer, a run, a limit, the module hardmax, or nothing for the library and all papers",
        )
    return PAPERS[_PAPER_OF_PART[part]].bibtex
