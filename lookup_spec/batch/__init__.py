"""Batch jobs: many requests from a file, each answered exactly once, whatever interrupts the work."""
