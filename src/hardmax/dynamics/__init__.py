"""MANY LAYERS: repeat a layer, or jump to the limit of infinite depth."""
