"""Style of all figures, and the plane of words; imports no package whose results are drawn."""
