"""Exact arithmetic: rational numbers, directions, and exact evaluation of networks."""
