"""Keys of the counter-based generator from seeds."""

import hashlib


def key(seed: int, purpose: str = "rows") -> tuple[int, int]:
    """Two words of 64 bits for a seed and a purpose, the same in all versions of khot."""
    digest = hashlib.sha256(f"khot reservoir 1 {purpose} {seed}".encode()).digest()
    return int.from_bytes(digest[:8], "little"), int.from_bytes(digest[8:16], "little")
