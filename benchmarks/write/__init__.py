"""B11: the durable write path beside SQLite, PostgreSQL and DuckDB."""
