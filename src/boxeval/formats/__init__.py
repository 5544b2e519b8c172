"""Readers of suites, policies, scripts and fixtures into `boxeval.spec`."""
