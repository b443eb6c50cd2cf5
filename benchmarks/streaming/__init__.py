"""The same windows over the same files, and in plain Structured Streaming: processor time and latency."""
