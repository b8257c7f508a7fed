"""The join of token and tensor lane: sessions, stepped together."""
