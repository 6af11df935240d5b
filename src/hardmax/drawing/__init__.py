"""What all figures share: colours, axes and the plane of words. It imports nothing of what it draws."""
