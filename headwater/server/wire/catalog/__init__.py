"""`pg_catalog` and `information_schema`: what clients ask of PostgreSQL about itself, answered by SQLite."""
