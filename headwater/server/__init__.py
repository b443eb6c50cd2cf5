"""PostgreSQL wire, HTTP and the console."""
