"""The outside world in: one file per kind of source."""
