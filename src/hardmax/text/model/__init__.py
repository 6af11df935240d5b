"""The network of the classifier: forward passes and files."""
