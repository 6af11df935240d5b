"""ONE LAYER: who listens to whom, and what becomes of them."""
