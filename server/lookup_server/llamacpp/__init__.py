"""llama.cpp's wire shapes: request bodies in, replies and stream chunks out."""
