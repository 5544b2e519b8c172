"""Numbers over verified runs."""
