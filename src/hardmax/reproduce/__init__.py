"""Every figure and table of the papers, made again, and the pages that show them."""
