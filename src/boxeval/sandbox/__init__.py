"""Boxes: the only package that talks to the container engine. Knows nothing of suites or verdicts."""
