"""Token lane: guessing what comes next. Knows token ids only; imports neither torch nor transformers."""
