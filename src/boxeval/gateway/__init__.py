"""Model traffic: one server outside, reached by a box through its keeper."""
