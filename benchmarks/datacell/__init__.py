"""B1–B4: DataCell's queries Q1, Q2 and Q3 beside DuckDB, Flink and plain Structured Streaming."""
