"""Benchmarks: one folder each, peers measured beside us in the same run."""
