"""The network of the classifier: forward passes, prediction and files."""
