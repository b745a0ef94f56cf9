"""Search and sampling over any scorer."""
