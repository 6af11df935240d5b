"""Search for the best model within a time budget."""
