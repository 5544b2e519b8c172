"""The Merkle tree hash of RFC 6962, over the line hashes of a ledger."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence


def root(leaves: Sequence[bytes]) -> str:
    """Root in hex. Leaves are hashed behind 0x00 and nodes behind 0x01: neither passes for the other."""
    if not leaves:
        return hashlib.sha256(b"").hexdigest()
    level = [hashlib.sha256(b"\x00" + leaf).digest() for leaf in leaves]
    while len(level) > 1:
        pairs = zip(level[::2], level[1::2], strict=False)
        # The odd one out moves up as it is, which is the same tree as RFC 6962's split at a power of two.
        above = [hashlib.sha256(b"\x01" + left + right).digest() for left, right in pairs]
        level = above + level[len(above) * 2 :]
    return level[0].hex()
