"""Classical forecasts of measured series: seasons, naive rules, smoothing, decompositions and analogues."""
