"""Files in and out: tables of tokens, and runs kept as zarr or netCDF. Files are data, never code."""
