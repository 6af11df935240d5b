"""The Text page."""
