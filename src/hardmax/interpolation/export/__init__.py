"""Networks in other forms: files, PyTorch, ONNX."""
