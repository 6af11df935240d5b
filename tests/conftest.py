"""Shapes in signatures are checked at run time in the tests: jaxtyping reads them, beartype enforces them.

Only the modules behind the public door are checked: public functions take whatever a caller passes and answer bad
input with errors of their own, which beartype would forestall.
"""

import os

import torch
from hypothesis import settings
from jaxtyping import install_import_hook

# `make test` tries the same examples every time, so that a change is judged by what it changed; a plain `pytest` and
# `make slow` draw new ones.
settings.register_profile("repeatable", derandomize=True)

# Triton decides when it is imported whether kernels are compiled or interpreted, which needs no GPU.
if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"

install_import_hook(
    [
        "hardmax.attention.choice",
        "hardmax.attention.normal_form",
        "hardmax.attention.rational",
        "hardmax.attention.normal_form",
        "hardmax.attention.search",
        "hardmax.dynamics.closed_form",
        "hardmax.dynamics.exact",
        "hardmax.dynamics.process",
        "hardmax.dynamics.certainty",
        "hardmax.dynamics.ties",
        "hardmax.dynamics.process_setup",
    ],
    "beartype.beartype",
)
