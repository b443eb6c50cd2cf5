"""What sources and sinks share: addresses, options, runs with pauses between attempts, and who keeps them."""
