"""Leaders, clusters, polytopes and checks of the theory, read from a run or a limit; exported by :mod:`hardmax`."""
