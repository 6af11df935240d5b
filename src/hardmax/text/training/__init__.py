"""Training of the classifier on CPU and GPU."""
