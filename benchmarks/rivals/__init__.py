"""Other private methods, on the same records, bounds and splits, in the same run."""
