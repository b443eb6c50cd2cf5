"""Plans → what the engine runs: typed folds, blocks, joins, upper parts."""
