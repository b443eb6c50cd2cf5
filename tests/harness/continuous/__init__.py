"""The oracle of continuous queries: random streams and queries, a model in plain Python, DuckDB."""
