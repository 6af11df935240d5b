"""Compile a data set into a transformer with rational weights, and prove that it does what it claims."""
