"""Tensor lane: finding and loading a model, and running it over draft trees."""
