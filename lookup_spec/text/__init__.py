"""Text lane: templates, detokenizing, lines and edits. Does no I/O and never imports torch."""
