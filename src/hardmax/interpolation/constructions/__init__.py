"""Constructions of networks from data sets."""
