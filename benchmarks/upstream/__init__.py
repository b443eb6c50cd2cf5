"""B10: UpStream's figures, by simulation with the engine's own queue."""
