"""B8: one-time queries on history by time and key, beside PostgreSQL and DuckDB."""
