"""The Forecasting page."""
