"""The same on a GPU, against what torch does there: ``python -m benchmarks.gpu [names] [--quick] [--json PATH]``."""
