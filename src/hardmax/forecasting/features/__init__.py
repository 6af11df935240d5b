"""Features of delay windows."""
