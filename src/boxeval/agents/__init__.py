"""One module an agent kind: what to run in the box."""
