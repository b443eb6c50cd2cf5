"""AIM: six continuous views over calls of many customers (split maintenance §4.1; B5)."""
