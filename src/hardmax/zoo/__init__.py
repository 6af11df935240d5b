"""Models of the field, each one constructor: equation, paper, initial tokens, and what is measured beside theory.

>>> import hardmax as hm
>>> model = hm.zoo.causal_sphere(beta=2.0, n=8)
>>> run = model.run(time=20.0, random_state=0)
>>> measured, theory = model.compare(run)["moved"]
>>> bool(abs(measured - theory) < 1e-12)
True

Each name is imported when it is first used.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .collapse import frank_wolfe as frank_wolfe
    from .collapse import rank_collapse as rank_collapse
    from .collapse import rescaled as rescaled
    from .collapse import residuals as residuals
    from .collapse import sinkhorn as sinkhorn
    from .collapse import value_spectrum as value_spectrum
    from .equiangular_tokens import equiangular as equiangular
    from .equiangular_tokens import long_context as long_context
    from .equiangular_tokens import multi_head as multi_head
    from .equiangular_tokens import normalisation as normalisation
    from .model import FieldModel as FieldModel
    from .noise import critical_coupling as critical_coupling
    from .noise import noisy as noisy
    from .noise import tricritical_beta as tricritical_beta
    from .synchronisation import causal_sphere as causal_sphere
    from .synchronisation import kuramoto as kuramoto
    from .synchronisation import metastable as metastable
    from .synchronisation import sphere_attention as sphere_attention

_MODULE_OF = {
    "FieldModel": "model",
    "causal_sphere": "synchronisation",
    "critical_coupling": "noise",
    "equiangular": "equiangular_tokens",
    "frank_wolfe": "collapse",
    "kuramoto": "synchronisation",
    "long_context": "equiangular_tokens",
    "metastable": "synchronisation",
    "multi_head": "equiangular_tokens",
    "noisy": "noise",
    "normalisation": "equiangular_tokens",
    "rank_collapse": "collapse",
    "rescaled": "collapse",
    "residuals": "collapse",
    "sinkhorn": "collapse",
    "sphere_attention": "synchronisation",
    "tricritical_beta": "noise",
    "value_spectrum": "collapse",
}

MODELS = (
    "kuramoto",
    "sphere_attention",
    "metastable",
    "causal_sphere",
    "normalisation",
    "equiangular",
    "long_context",
    "noisy",
    "multi_head",
    "value_spectrum",
    "sinkhorn",
    "frank_wolfe",
    "rank_collapse",
)
"""Names of the constructors of models, in the order of the documentation."""


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_import_module(f".{_MODULE_OF[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted([*_MODULE_OF, "MODELS"])
