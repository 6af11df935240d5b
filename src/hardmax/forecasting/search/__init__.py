"""Search for the best model by validation rollouts, within a time budget."""
