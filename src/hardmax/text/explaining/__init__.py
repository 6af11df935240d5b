"""Explanations of single documents and statistics of many."""
