"""Sources: rows from outside into streaming tables, one file per kind of outside world."""
