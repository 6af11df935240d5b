"""Data of forecasters: series, timestamps, delay windows, exogenous inputs, POD."""
