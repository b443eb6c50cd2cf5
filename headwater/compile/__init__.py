"""Plans → what the engine runs: typed folds, blocks in line, joins, upper parts."""
