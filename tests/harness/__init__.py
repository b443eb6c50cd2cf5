"""Helpers of the tests: cases as data, oracles, the driver of stream tests."""
