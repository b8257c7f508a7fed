"""Stand-ins and tiny models shared by the tests."""
