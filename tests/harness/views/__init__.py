"""Random continuous views over random streams, against DuckDB over all rows acknowledged so far."""
