"""Text → statements: the dialect, the statements, names and types."""
