"""Benchmarks of others as small tests: their tables, made anew, and their queries."""
