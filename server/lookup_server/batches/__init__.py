"""OpenAI's files and batches: jobs that are sent, left alone, and fetched."""
