"""The oracle of epochs: random streams, cuts and joins against brute force in plain Python, and DuckDB."""
