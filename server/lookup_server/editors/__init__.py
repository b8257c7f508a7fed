"""Forms in which editors ask for edits, other than our own: read, put to the model our way, answered their way."""
