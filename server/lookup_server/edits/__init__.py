"""``/v1/edits``: edits that stream as hunks. The protocol, for those who write clients, is ``editors/PROTOCOL.md``."""
