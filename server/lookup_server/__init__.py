"""An OpenAI-compatible HTTP service around one engine.

Data moves one way: body -> request model -> prompt and settings -> runner -> pieces -> wire shapes.
"""
