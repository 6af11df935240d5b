"""Diagnostics of fitted forecasters: reports, backtests, skill, ablations."""
