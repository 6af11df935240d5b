"""Exact search for the points of the largest score: several methods with the same result."""

from .auto import attended as attended
