"""Linear Road: all four outputs at the peak of the three hours, and questions about the past (B7, B8)."""
