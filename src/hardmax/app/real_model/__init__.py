"""The Real model page."""
