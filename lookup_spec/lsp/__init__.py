"""A language server that brings edits and fill-in of a running service to editors without a plug-in of their own."""
