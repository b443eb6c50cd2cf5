"""When and what runs: clocks, baskets, factories, the scheduler. State machines without I/O."""
