"""The Networks page."""
