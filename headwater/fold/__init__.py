"""Partials → results: the in-line structures of sliding windows and views (NumPy and Arrow only)."""
