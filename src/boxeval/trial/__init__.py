"""The seven steps of a trial, one module each."""
