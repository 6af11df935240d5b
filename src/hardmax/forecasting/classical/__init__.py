"""Classical forecasts of measured series: seasons, naive rules, smoothing, ARIMA, decompositions and analogues."""
