"""What a page shows, without any widget: read from an address, written to it, computed by the public functions."""
