"""Run the GPU benchmarks by name, or all of them, print their tables and write them as JSON if asked."""

from __future__ import annotations

import sys

import torch

from benchmarks._command import read_arguments, tell
from benchmarks.gpu import causal, limits, odd_clouds, search, softmax, training

_ALL = {
    "search": search,
    "causal": causal,
    "odd_clouds": odd_clouds,
    "softmax": softmax,
    "limits": limits,
    "training": training,
}


def main() -> None:
    """The command line."""
    asked = read_arguments("python -m benchmarks.gpu", __doc__, _ALL, kind="GPU benchmark", quick="smaller sizes")
    if not torch.cuda.is_available():
        sys.exit("there is no GPU here: these figures need one")
    tell(((name, _ALL[name].run(quick=asked.quick)) for name in asked.names), asked, "python -m benchmarks.gpu")


if __name__ == "__main__":
    main()
