"""HTTP: statements, rows, subscriptions, health and metrics (docs/internals/http.md)."""
