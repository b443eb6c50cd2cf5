"""Random queries over whole tables, kept by circuits of operators and judged by DuckDB."""
