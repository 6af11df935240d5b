"""Tokens as samples of a measure on the sphere: flows, their low-temperature limit, and how they get there."""
