"""Canonical bytes, envelopes, keys, ledger, blobs and verification. Knows nothing of containers."""
