"""Pictures that pages are made of: Bokeh figures that are made once and then shown new data."""
