"""hardmax against other libraries in one run, as ratios; accuracy and memory beside time.

``python -m benchmarks [names] [--quick] [--json PATH]`` runs every module here that has a ``run``.
"""
