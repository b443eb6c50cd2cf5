"""Reads after a change of one row (B14)."""
