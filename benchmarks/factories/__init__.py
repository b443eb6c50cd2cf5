"""The same work with different numbers of factories (B15)."""
