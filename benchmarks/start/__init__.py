"""B12: from process start to the first result and the first acknowledged insert."""
