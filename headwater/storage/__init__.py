"""Rows → blocks → rows: files, logs, indexes and the catalog. Never imports Spark."""
