"""Streaming tables (ST1–ST14): the write-ahead log's records, the tail, blocks, reads and upkeep."""
