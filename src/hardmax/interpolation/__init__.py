"""Data sets compiled into transformers with rational weights, and proofs that these networks interpolate the data.

Each name is imported when it is first used.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .constructions.interpolate import classify_exactly as classify_exactly
    from .constructions.interpolate import interpolate as interpolate
    from .data import DataSet as DataSet
    from .data import Problem as Problem
    from .data import read_problem as read_problem
    from .evaluation.certificate import Certificate as Certificate
    from .evaluation.certificate import Failure as Failure
    from .evaluation.certificate import verify as verify
    from .evaluation.counts import Counts as Counts
    from .export.torch_module import TorchTransformer as TorchTransformer
    from .network import Block as Block
    from .network import Neuron as Neuron
    from .network import OuterProduct as OuterProduct
    from .network import Report as Report
    from .regularised import RegularisedRun as RegularisedRun
    from .regularised import TrainableTransformer as TrainableTransformer
    from .regularised import TrainingData as TrainingData
    from .regularised import as_trainable as as_trainable
    from .regularised import decay_exponents as decay_exponents
    from .regularised import paper_data as paper_data
    from .regularised import threshold as threshold
    from .regularised import train as train
    from .regularised import training_data as training_data
    from .transformer import ExactTransformer as ExactTransformer

_MODULE_OF = {
    "Block": "network",
    "Certificate": "evaluation.certificate",
    "Counts": "evaluation.counts",
    "DataSet": "data",
    "ExactTransformer": "transformer",
    "Failure": "evaluation.certificate",
    "Neuron": "network",
    "OuterProduct": "network",
    "Problem": "data",
    "RegularisedRun": "regularised",
    "Report": "network",
    "TorchTransformer": "export.torch_module",
    "TrainableTransformer": "regularised",
    "TrainingData": "regularised",
    "as_trainable": "regularised",
    "classify_exactly": "constructions.interpolate",
    "decay_exponents": "regularised",
    "interpolate": "constructions.interpolate",
    "paper_data": "regularised",
    "read_problem": "data",
    "threshold": "regularised",
    "train": "regularised",
    "training_data": "regularised",
    "verify": "evaluation.certificate",
}


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_import_module(f".{_MODULE_OF[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted(_MODULE_OF)
