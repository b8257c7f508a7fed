"""The join of engine and text: requests in, text and edits out."""
