"""The outside world out: one file per kind of sink."""
