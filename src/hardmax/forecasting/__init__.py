"""Forecasting: one attention layer on delay windows of a time series, beside the models it contains."""
