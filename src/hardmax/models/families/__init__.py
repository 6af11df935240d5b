"""Architectures of published models: from settings and named weights to a transformer."""
