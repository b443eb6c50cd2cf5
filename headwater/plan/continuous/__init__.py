"""Continuous queries: from a statement to pipelines, merges and an upper part."""
