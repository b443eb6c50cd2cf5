"""The queue before a view while rows come faster than they are folded (split maintenance §4.3)."""
