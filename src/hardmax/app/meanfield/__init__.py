"""The Mean field page."""
