"""Published models and baselines: the paper's layer, TD-DMD, NG-RC, and forecasters of other packages."""
